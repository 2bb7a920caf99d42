# %% [markdown]
# # 07 Multi-worker
#
# **Goal.** Train one model with several processes that could be several machines: tell each who it is, divide the
# data, save without a race or a hang, and prove that the result is the one-process model.
#
# **Time.** 45 minutes to read, under two minutes to run.
#
# **Before this.** [03 mirrored strategy](03_mirrored_strategy.ipynb),
# [04 custom training loop](04_custom_training_loop.ipynb) and
# [06 collectives](06_collectives_and_ring_all_reduce.ipynb).
#
# **Questions.**
# - What does each field of TF_CONFIG say, and what does a wrong one do?
# - Which worker sees which sample, and how many steps has an epoch?
# - What does a second worker on the same machine cost?
# - Why must every worker call `save`, and where to?
# - What becomes of the samples that do not divide evenly?
#
# **Hardware.** Two processor cores. Workers are processes on this machine; a cluster needs other addresses, nothing
# else.

# %% tags=["parameters"]
dataset = "digits"  # digits, mnist or fashion_mnist; 960 training images are used
epochs = 1  # not used in this chapter: every run is one epoch of 20 steps, so that the weights can be compared
workers = 2  # processes to start: 2, or 3 for 3 and more; one more for the proof

# %%
import distlab  # first: it selects tf-keras, which must happen before TensorFlow is imported

import json
import os
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
import tensorflow as tf
from IPython.display import Markdown

from distlab import checks, cluster_spec, data, devices, draw, launch, metrics, models, programs

draw.apply_style()
tf.keras.utils.set_random_seed(7)
train, test = data.load(dataset)
print(data.describe(dataset))

# %% [markdown]
# ## 1. TF_CONFIG taken apart
#
# `MirroredStrategy` had its replicas in one process. `MultiWorkerMirroredStrategy` has one process per machine, a
# **worker**, with one replica on each of its GPUs, or on its processor. All workers run the *same program*. They form
# a **cluster**, and what a process has to know of it stands in an environment variable, TF_CONFIG.
#
# ![Three workers run one program; TF_CONFIG tells each its index](../figures/07_multi_worker_roles.svg)
#
# | field | says |
# |---|---|
# | `cluster` | who takes part: for each job the list of addresses, the same everywhere |
# | `cluster.worker` | the addresses `host:port` where each worker *listens* |
# | `task.type` | the job of this process: `worker`; other types follow in notebook 08 |
# | `task.index` | which address of that list is its own, counted from 0 |
#
# By hand it is a dictionary, written as JSON:

# %%
cluster = {"worker": ["host1:23456", "host2:23456"]}
task = {"type": "worker", "index": 1}
by_hand = json.dumps({"cluster": cluster, "task": task})
print(by_hand)
print(by_hand == cluster_spec.tf_config(cluster, "worker", 1), "- `distlab.cluster_spec` builds the same text")

# %% [markdown]
# TensorFlow reads the variable when a strategy is made, through a **cluster resolver**. On a cluster other resolvers
# exist that ask Slurm or Kubernetes.

# %%
with mock.patch.dict(os.environ, TF_CONFIG=by_hand):  # only here: this kernel is no worker
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    print("cluster:", resolver.cluster_spec().as_dict())
    print("this process:", resolver.task_type, resolver.task_id)
    print("its address:", resolver.cluster_spec().task_address(resolver.task_type, resolver.task_id))

# %% [markdown]
# **Predict.** The cluster above has two workers. What is wrong with each of the next five texts, and which of them
# would TensorFlow notice at once?

# %%
broken = {
    "the index counted from 1": by_hand.replace('"index": 1', '"index": 2'),
    "no port": by_hand.replace("host2:23456", "host2"),
    "one address twice": by_hand.replace("host2", "host1"),
    "localhost among hosts": by_hand.replace("host2", "localhost"),
    "Python's quotes": str(json.loads(by_hand)),
}
for mistake, text in broken.items():
    try:
        cluster_spec.check(text)
    except cluster_spec.ClusterSpecError as error:
        print(f"{mistake}:\n    {error}")

# %% [markdown]
# TensorFlow notices three at once, in its own words: the index ("exceeds the maximum id"), the port ("Could not parse
# port") and the quotes ("Expecting property name"). The other two are a *wait*: a worker with a wrong view of the
# cluster waits for partners that never come. So check TF_CONFIG before the strategy is made:
# `cluster_spec.check(os.environ["TF_CONFIG"])`.

# %% [markdown]
# <details>
# <summary>Question 1: both of two workers get the index 0. What happens?</summary>
#
# 1. *They agree on who becomes worker 1.* Nobody negotiates: TF_CONFIG is all there is.
# 2. *The second one cannot open its address, or both wait for worker 1.* Yes. On one machine the port is taken; on two
#    machines both wait for a worker 1 that does not exist.
# 3. *Both train, each on half of the data.* That is what the index is for.
# 4. *Both train on the same data.* They do not start to train.
# </details>

# %% [markdown]
# ## 2. One program, started twice
#
# `labs/07_multi_worker/train.py` trains the CNN that many multi-worker tutorials use, first with `Model.fit`, then
# with a loop of its own. These lines decide which worker it is:


# %%
LABS = Path("../labs/07_multi_worker")
print(*programs.source(LABS / "train.py", "__init__").splitlines()[2:10], sep="\n")

# %% [markdown]
# Either the launcher has set TF_CONFIG, or the program builds it from `--index` and a list of addresses. With `fit`
# the rest is [notebook 03](03_mirrored_strategy.ipynb): scope, compile, one global batch. The strategy cuts it.

# %%
programs.show(LABS / "train.py", "fit")

# %% [markdown]
# The loop cuts the samples by hand. `distribute_datasets_from_function` calls `own_batches` once in each worker and
# says which one it is. The step is the one of [notebook 04](04_custom_training_loop.ipynb).

# %%
programs.show(LABS / "train.py", "own_batches", "step")

# %% [markdown]
# By hand you open one terminal per worker, choose two free ports P and Q, and type
#
# ```
# python train.py --index 0 --workers localhost:P localhost:Q
# python train.py --index 1 --workers localhost:P localhost:Q
# ```
#
# The first one waits until the second one is there. `launch.tensorflow` does the same: it chooses free ports, sets
# TF_CONFIG, shows the commands, collects the output, and ends *all* workers if one fails or a deadline passes.
#
# **Predict.** Two workers, each on one of two cores, each with half of every batch. One process would use both cores.
# Is a step with two workers twice as fast, as fast, or slower? Write your guess down for section 6.

# %% tags=["varies"]
team = min(max(workers, 2), 3)
scratch = tempfile.TemporaryDirectory()
saved = Path(scratch.name)
arguments = ["--dataset", dataset, "--folder"]
# Level 3 leaves out what C++ says to the survivors of section 7. Jobs with one environment share a started TensorFlow.
how = {"environment": {"TF_CPP_MIN_LOG_LEVEL": "3"}, "result": True}
run = launch.tensorflow(LABS / "train.py", *arguments, saved / str(team), workers=team, **how)
print(f"{run.seconds:.0f} s in all")

# %%
results = {team: run.result}
assert set(run.exit_codes.values()) == {0} and len(run.output) == team
for losses in (run.result["fit"]["history"]["loss"], run.result["loop"]["losses"]):
    assert losses[-1] < np.log(10)
print("the loss is below ln 10, that of a model that knows nothing, in both ways:", True)

# %% [markdown]
# Most of that time is the start: each worker is a Python that imports TensorFlow. Each also says which part of a batch
# it gets.
#
# ## 3. Batches and steps
#
# Two batch sizes have to be kept apart. The **global batch** $B$ is what one update of the weights sees. Each of $W$
# workers gets the **per-worker batch**. An epoch over $n$ samples then has
#
# $$\frac{n}{B} \text{ steps, rounded down}, \qquad \frac{B}{W} \text{ samples per worker and step}$$
#
# **Predict.** You keep the number 48 in `batch(48)` and go from 2 to 8 workers. Which of the four numbers change?

# %%
print("workers   global batch   per worker   steps per epoch   per worker and epoch")
for count in (1, 2, 3, 4, 8):
    print(f"{count:>7} {48:>14} {48 // count:>12} {960 // 48:>17} {960 // 48 * (48 // count):>22}")
seen = {way: np.array(run.result[way]["seen"]) for way in ("fit", "loop")}
assert seen["fit"].shape == (team, run.result["steps_per_epoch"], 48 // team)
assert run.result["steps_per_epoch"] == 20

# %% [markdown]
# `batch(...)` takes the *global* batch size, as under `MirroredStrategy`. With it fixed, more workers mean less work
# for each, and the same updates: that is what makes the proof of section 10 possible. Whoever wants full workers
# multiplies $B$ by $W$, gets fewer steps per epoch, and has another training (notebook 10, large batch).
#
# `fit` gets `steps_per_epoch` and a data set that ends with `repeat()`:

# %%
finite = tf.data.Dataset.range(960).batch(48)
print("batches without repeat():", int(finite.cardinality()))
print("needed for 3 epochs of 20 steps:", 3 * 20)
print("endless with repeat():", bool(finite.repeat().cardinality() == tf.data.INFINITE_CARDINALITY))

# %% [markdown]
# With `steps_per_epoch`, `fit` draws from *one* iterator over all epochs. Without `repeat()` that runs dry after the
# first. With several workers there is a second reason: none of them may run dry before the others (section 9).
#
# <details>
# <summary>Question 2: 1,000 samples, a global batch of 48, <code>repeat()</code> before <code>batch</code>, 20 steps an
# epoch. What happens to the 40 samples left over?</summary>
#
# 1. *They are never seen.* They would be without `repeat()` and with a fresh start of every epoch.
# 2. *They are the first ones of the next epoch.* Yes: the iterator goes on where it was. The "epoch" is a count of
#    steps.
# 3. *They make a smaller step 21.* With `repeat()` there is no end, so no remainder.
# </details>

# %% [markdown]
# ## 4. Which worker saw which sample?
#
# Each sample carries its number through the pipeline. After training the workers gather the numbers that they were
# given (`strategy.gather`, an all-gather), and the chief writes them down.
#
# **Predict.** The first global batch holds samples 0 to 47. Which of them go to worker 1: under `fit`, and with
# `shard` in the loop? And if the loop forgets `shard`?

# %%
cases = {
    "fit: the strategy divides the batches": seen["fit"],
    "own loop with shard": seen["loop"],
    "own loop, shard forgotten": np.array(run.result["loop"]["seen if not sharded"]),
}
first_steps = {title: [set(rows[:2].ravel()) for rows in given] for title, given in cases.items()}
figure = draw.seen(first_steps, files=2, per_file=48)
figure.axes[-1].set_xticks([24, 72.8], ["samples 0 to 47", "samples 48 to 95"])
draw.show(
    figure,
    "Which worker was given which of the first 96 samples in the first two steps. Under fit each worker has one "
    "connected part of each global batch. With shard they take turns sample by sample. Without shard every worker has "
    "the same samples, and some samples are in no row.",
)


# %%
def covers_once(given: np.ndarray, samples: int) -> bool:
    """Whether every sample from 0 on was given exactly once, whoever got it."""
    return np.array_equal(np.sort(given[:, : samples // 48].ravel()), np.arange(samples))


for title, given in cases.items():
    union = len(set(given[:, :20].ravel()))
    print(f"{title}: disjoint and complete: {covers_once(given, 960)}; {union} of 960 samples seen in the epoch")
assert covers_once(seen["fit"], 960) and covers_once(seen["loop"], 960)
assert not covers_once(cases["own loop, shard forgotten"], 960)

# %% [markdown]
# Both ways cut differently, yet the *union* in each step is the same global batch, and a sum does not care who adds
# what. `fit` used the policy DATA of [notebook 03](03_mirrored_strategy.ipynb): every worker reads everything and
# drops what is not its own. Fine for arrays; with many files, FILE spares the reading.
#
# The forgotten `shard` raises no error. The loss falls. But each step has only as many *different* samples as one
# worker has, and an epoch misses the rest. Only a map like this one shows it. Reshuffling has the same trap: shuffle
# before `shard`, with one seed for all workers, or they shard different orders.

# %% [markdown]
# ## 5. Who is chief?
#
# All workers train alike, and what must be done *once* is left to one of them: the **chief**. It is the task of type
# `chief` if the cluster has one, else worker 0. It writes checkpoints, logs and results. It does not lead: no gradient
# goes through it more than through others.

# %%
for index in range(2):
    spec = cluster_spec.check(cluster_spec.tf_config(cluster, "worker", index))
    print(f"{spec.name} at {spec.address}: chief {spec.is_chief}")
lines = [line for name in sorted(run.output) for line in run.output[name].splitlines() if "the chief" in line]
print("workers of the run that called themselves chief:", len(lines))
assert len(lines) == 1 and lines[0].startswith("worker 0")

# %% [markdown]
# The chief does one thing more, unseen: each variable that is created in the scope takes the *chief's* first value, by
# a broadcast. Workers with different seeds still start with equal weights. The data order has no such help; it needs
# the same seed everywhere.
#
# ## 6. What did the second worker cost?
#
# The loop timed two things on each batch: the gradient alone, which needs nobody else, and the whole step, with the
# all-reduce. Here is the same step in one process, this kernel, which may use all cores. It first trains on the same
# images in the same order; section 10 needs that.

# %%
order = np.random.default_rng(7).permutation(len(train.images))[:960]
images, labels = train.images[order], train.labels[order]
tf.keras.utils.set_random_seed(7)
alone = models.cnn()
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
alone.compile(tf.keras.optimizers.SGD(0.05), loss, metrics=["accuracy"])
alone.fit(tf.data.Dataset.from_tensor_slices((images, labels)).batch(48), verbose=0)
timed, sgd = models.cnn(), tf.keras.optimizers.SGD(0.05)
sgd.build(timed.trainable_variables)


# %%
@tf.function
def one_process_step(images, labels):
    with tf.GradientTape() as tape:
        value = loss(labels, timed(images, training=True))
    gradients = tape.gradient(value, timed.trainable_variables)
    sgd.apply_gradients(zip(gradients, timed.trainable_variables, strict=True))
    return value


batch = (tf.constant(images[:48]), tf.constant(labels[:48]))
one_process_step(*batch)
watches = [metrics.Stopwatch() for _ in range(20)]
for watch in watches:
    with watch:
        one_process_step(*batch).numpy()
single = np.median([(watch.elapsed, watch.cpu) for watch in watches], axis=0)

# %% tags=["varies"]
gradient, step = np.median(np.array(run.result["loop"]["seconds"])[5:], axis=0)  # each: elapsed, of processors
seconds = {"one process, whole step": single[0]}
seconds |= {f"{team} workers, gradient alone": gradient[0], f"{team} workers, whole step": step[0]}
milliseconds = {name: float(1e3 * value) for name, value in seconds.items()}
description = ", ".join(f"{name}: {value:.1f}" for name, value in milliseconds.items())
draw.show(draw.bars(milliseconds, "milliseconds (median)", "{:,.1f}"), f"Milliseconds. {description}")
Markdown(
    f"{team} workers on {devices.cores()} cores have {single[0] / step[0]:.2f} times the speed of one process, and use "
    f"{team * step[1] / single[1]:.2f} times its processor time. Of a worker's step, "
    f"{100 * (1 - gradient[0] / step[0]):.0f} % is not the gradient: it exchanges "
    f"{4e-6 * alone.count_params():.2f} MB, waits for the slower worker, and updates."
)

# %%
assert step[0] > gradient[0]
print("the whole step takes longer than the gradient alone:", True)

# %% [markdown]
# The naive guess counts workers: each computes half, so half the time. Count the *work*. Each worker starts every
# operation again for a smaller batch, updates a copy of all weights, and takes part in the all-reduce of
# [notebook 06](06_collectives_and_ring_all_reduce.ipynb): $2\frac{p-1}{p}n$ bytes, copied several times on their way
# through gRPC. A second worker on the same cores can win only what one process leaves idle, as in
# [notebook 03](03_mirrored_strategy.ipynb). And a step ends when the *slowest* worker ends.
#
# On one machine this is a rehearsal. The gain comes when each worker brings a machine of its own, and when computing
# takes much longer than $n\beta$: more samples per worker, or more work per weight.

# %% [markdown]
# ## 7. Saving
#
# **The right way first.** *Every* worker calls save, inside `with job.folder(...) as place` (section 2). The chief
# writes where it should, the others into a temporary folder that they remove:

# %%
programs.show(LABS / "train.py", "folder")

# %%
left = sorted(path.relative_to(saved).as_posix() for path in saved.rglob("*") if path.is_file())
print(*left, sep="\n")
model = tf.keras.models.load_model(saved / str(team) / "fit" / "model.keras")
assert len(left) == 6
assert checks.largest_difference(model.get_weights(), alone.get_weights()) < 1e-3
print("loaded in this kernel, without any strategy:", model.count_params(), "parameters")

# %% [markdown]
# Under `fit`, the callbacks `ModelCheckpoint` and `BackupAndRestore` do all this themselves. To go on, *all* workers
# restore the chief's checkpoint: `train.py --resume`, also with another number of workers.
#
# Why must those call whose files are thrown away? `save_wrongly.py` tries what looks simpler:
#
# 1. **Everybody** writes a checkpoint to the same path.
# 2. **Only the chief** reads a metric, `mean.result()`, for its log. It was given 2.0 on each worker. The others go on
#    and add up 100 and then 3.
# 3. **Only the chief** writes a `tf.train.Checkpoint` of model and SGD.
# 4. **Only the chief** calls `model.save` after a `fit` with `metrics=["accuracy"]`.
#
# **Predict.** One fails with an error, one gives a wrong number without any, one works, one never returns. Which?

# %% tags=["varies"]
result_file = saved / "wrong.json"
options = ["--folder", saved / "wrong", "--patience", 2, "--result", result_file]
try:
    launch.tensorflow(LABS / "save_wrongly.py", *options, workers=team, environment=how["environment"])
except launch.WorkerFailed as error:
    failed = error
print("\nThe launcher:", str(failed).splitlines()[0])

# %%
wrong = json.loads(result_file.read_text())
print("1. everybody to one path: some save failed:", wrong["everybody"]["failures"] > 0)
print("2. the chief alone reads a mean of 2.0 as:", round(wrong["mixed"]["read alone"], 2))
print("3. the chief alone wrote a checkpoint:", (saved / "wrong" / "alone.index").exists())
print("4. the chief alone, model.save:", failed.rank, "gave up, exit code", failed.exit_code)
assert wrong["everybody"]["failures"] > 0 and (saved / "wrong" / "alone.index").exists()
assert abs(wrong["mixed"]["read alone"] - (2 + 100 * (team - 1)) / (1 + 3 * (team - 1))) < 0.01
assert (failed.rank, failed.exit_code) == ("worker 0", 3)

# %% [markdown]
# **1, a race.** A checkpoint is first written under a temporary name, then renamed. Whoever renames first takes the
# other's file away. It may go well many times, which makes it worse.
#
# **2 and 4, one cause.** Some variables have a part in each worker: a metric's total and count, the moving averages of
# batch normalisation. Reading one means adding up or averaging the parts, a **collective**, in which *all* must take
# part. Saving reads them. This model has four, the total and the count of its loss and of its accuracy:

# %%
print("combined when they are read:", wrong["combined on read"])
print("complete in every worker:", [variable.name for variable in alone.weights])

# %% [markdown]
# If the others wait, the chief waits with them, for ever: a **deadlock**. If they go on, their next collective meets
# the chief's, as both are the workers' next one: in 2 the chief added 100 to its total and 3 to its count. TensorFlow
# compares shapes, so mostly it ends in `Shape mismatch in the collective instance`; with equal shapes nobody notices.
#
# **3 works** as long as no such variable is in the checkpoint: mirrored weights are complete in every worker. Add one
# batch-normalisation layer, and it hangs. Hence the rule without exceptions: *every worker calls; the chief keeps.*
# Nothing of this hung for long here, because the program has a deadline of its own, and the launcher ended the rest.
#
# %% [markdown]
# <details>
# <summary>Question 3: the line <code>if is_chief: print(accuracy.result())</code> runs after each epoch. What is wrong
# with it?</summary>
#
# 1. *Nothing, it only reads.* Reading a metric is a collective.
# 2. *All workers must call `result()`; only the `print` belongs under the `if`.* Yes.
# 3. *It prints the accuracy of the chief's part only.* It would need no partners then. It gives the accuracy of all, or
#    hangs, or mixes numbers.
# </details>

# %% [markdown]
# ## 8. "Collective ops must be configured at program startup"
#
# Why does this notebook start programs, in place of making the strategy here? Because of the error that beginners meet
# first. This kernel has computed; now it is told that it is a worker (`too_late.py` does the same as a program):

# %%
try:
    with mock.patch.dict(os.environ, TF_CONFIG=by_hand):
        tf.distribute.MultiWorkerMirroredStrategy()
except RuntimeError as error:
    too_late = str(error)
print(too_late)
assert "Collective ops must be configured at program startup" in too_late

# %% [markdown]
# TensorFlow creates its runtime at the *first operation*, and a worker's runtime must have a server that listens on
# the address in TF_CONFIG. Once it exists without one, it is too late. Any tensor, data set or model made earlier is
# an operation. In a notebook the kernel has computed long ago; it can be *one* worker at most; and a hang would take
# the kernel with it. A child process starts fresh, can be one of several, and can be ended.

# %% [markdown]
# ## 9. Uneven data: 1,000 samples, 3 workers
#
# 960 samples were chosen with care. With 1,000 samples and a global batch of 96, ten batches are full and 40 samples
# are left. `uneven_data.py` feeds them to three workers in five ways and records who saw what:
#
# | feeding | the global batches |
# |---|---|
# | sharded | `.batch(96)`; the last batch is smaller |
# | drop_remainder | `.batch(96, drop_remainder=True)` |
# | repeat | `.repeat().batch(96)` and 11 steps, 1,000 / 96 rounded up |
# | not_sharded | `.batch(96)` with `AutoShardPolicy.OFF` |
# | padded | filled up to whole batches with samples of weight 0 |
#
# **Predict.** Which of them lose samples, which count some twice? It also tries a global batch of 111: nine full
# batches and *one* sample. What do two of the three workers do in that step: wait forever, stop early, or go on?

# %% tags=["varies"]
uneven = launch.tensorflow(
    LABS / "uneven_data.py", "--dataset", dataset, "--global-batch", 96, 111, workers=3, **how
).result

# %%
print(f"{'global batch, feeding':<21} {'per worker':>18} {'in the last step':>17} {'lost':>5} {'more than once':>15}")
fed = {(one["global_batch"], one["feeding"]): one for one in uneven["feedings"]}
for (size, feeding), one in fed.items():
    per_worker = ", ".join(str(len(samples)) for samples in one["samples"])
    last = ", ".join(str(sizes[-1]) for sizes in one["batch_sizes"])
    lost, repeated = len(one["lost"]), len(one["more_than_once"])
    print(f"{size:>3} {feeding:<17} {per_worker:>18} {last:>17} {lost:>5} {repeated:>15}")
assert fed[96, "drop_remainder"]["lost"] == list(range(960, 1000))
assert fed[96, "repeat"]["more_than_once"] == list(range(56))
for one in (fed[96, "sharded"], fed[111, "padded"]):
    assert one["lost"] == one["more_than_once"] == []

# %%
EDGE = 48  # samples to show from each end
cases = {}
for feeding in ("sharded", "drop_remainder", "repeat"):
    rows = [np.array(samples) for samples in fed[96, feeding]["samples"]]
    cases[f"{feeding}, global batch 96"] = [
        {*own[own < EDGE], *(own[own >= 1000 - EDGE] - 1000 + 2 * EDGE)} for own in rows
    ]
figure = draw.seen(cases, files=2, per_file=EDGE)
figure.axes[-1].set_xticks([EDGE / 2, EDGE * 1.5 + 0.8], ["the first 48 samples", "the last 48 samples"])
draw.show(
    figure,
    "Which worker saw which of the first 48 and of the last 48 of 1,000 samples. Sharded: each sample is in one row. "
    "With drop_remainder the last 40 samples are in no row. With repeat the first samples are in two rows.",
)

# %% [markdown]
# `drop_remainder` and too few steps lose the tail; `repeat` counts the head twice; without sharding everybody does
# everything. Only the plain finite data set and the padded one are exact. Where samples run out, nobody waits: before
# each step the iterator of the *strategy* asks all workers, in an all-reduce of one number, whether anybody has data
# left; the others get an **empty batch**. A loop over a data set of one's own asks nobody: the worker with one step
# more waits in its all-reduce for partners that are gone (try `--own-loop --global-batch 37`).

# %% [markdown]
# So the data are right, and the average can still be wrong. Worker $w$ has $n_w$ samples with mean $m_w$:
#
# $$\frac{1}{W}\sum_w m_w \;\neq\; \frac{\sum_w n_w m_w}{\sum_w n_w}, \quad\text{unless all } n_w \text{ are equal}$$
#
# The same holds for the mean over batches. The samples here are sorted by class, as files often are: the last batch
# holds nothing but nines, and it counts as much as a full one. And $m_w$ of an empty batch is 0 / 0.

# %% tags=["varies"]
print(programs.source(LABS / "uneven_data.py", "step", "mean_of_means"), end="\n\n")
right = uneven["one_process"]["accuracy"]
print(f"accuracy of one process: {right:.5f}\n")
print(f"{'global batch, feeding':<21} {'mean of batches':>16} {'mean of workers':>16} {'sums / counts':>14}")
for (size, feeding), one in fed.items():
    found = [one[way]["accuracy"] for way in ("mean_of_batches", "mean_of_workers", "weighted")]
    mean_of_batches, mean_of_workers, weighted = (np.nan if value is None else value for value in found)
    print(f"{size:>3} {feeding:<17} {mean_of_batches:>16.5f} {mean_of_workers:>16.5f} {weighted:>14.5f}")
for size in (96, 111):
    for feeding in ("sharded", "not_sharded", "padded"):
        assert abs(fed[size, feeding]["weighted"]["accuracy"] - right) < 1e-5
    assert fed[size, "sharded"]["mean_of_batches"]["accuracy"] != right
assert fed[111, "sharded"]["mean_of_batches"]["accuracy"] is None  # not a number, because of the empty batches

# %%
for one in uneven["keras"]:
    off = one["weights_off"]
    print(
        f"global batch {one['global_batch']}: evaluate equals one process: "
        f"{abs(one['evaluate']['accuracy'] - right) < 1e-5}; weights after fit do: {off['fit'] < 1e-5}; "
        f"after fit with weights: {off['weighted_fit'] < 1e-5}"
    )
    assert off["weighted_fit"] < 1e-5 < off["fit"]

# %% [markdown]
# **The fix**: all-reduce *sums and counts*, and divide once, at the end. Keras's metrics do that, so `evaluate` is
# right. Its *gradients* do not: each worker averages over its own samples, then the workers are averaged. In the last
# step of batch 111 one sample meets two empty batches, and its gradient comes out three times too small.
#
# Padding fixes it: all parts have one size again, the padding has weight 0, and the real samples of the last batch
# weigh $\frac{\text{batch}}{\text{real samples}}$ each. (The metrics of that training are then weighted too: evaluate
# separately.) In a loop of your own, divide by the all-reduced count in place of a constant.

# %% [markdown]
# <details>
# <summary>Question 4: in the table the accuracy with <code>repeat</code> is the same, and wrong, in all three columns.
# Why does weighting not help?</summary>
#
# 1. *The weights are rounded.* No: they are whole numbers of samples.
# 2. *The average is right, of other data.* Yes: 56 (or 110) samples count twice. Weighting fixes the averaging, not the
#    feeding.
# 3. *The workers see different samples.* They do in every sharded feeding, also in the right one.
# </details>

# %% [markdown]
# ## 10. Proof
#
# Same first weights, same global batches of 48, SGD, 20 steps: one process, and now one worker more than before too.
# If a sample were lost, counted twice, or a gradient divided by the wrong number, the weights would show it.

# %% tags=["varies"]
more = launch.tensorflow(LABS / "train.py", *arguments, saved / str(team + 1), workers=team + 1, **how)
results[team + 1] = more.result

# %%
for count, result in results.items():
    from_fit = tf.keras.models.load_model(saved / str(count) / "fit" / "model.keras")
    from_loop = models.cnn()
    newest = tf.train.latest_checkpoint(saved / str(count) / "checkpoints")
    tf.train.Checkpoint(model=from_loop).restore(newest).expect_partial()
    for way, model in (("fit", from_fit), ("loop", from_loop)):
        print(f"{count} workers, {way}:", end=" ")
        checks.assert_equal_weights(model.get_weights(), alone.get_weights())
        assert covers_once(np.array(result[way]["seen"]), 960)
scratch.cleanup()

# %% [markdown]
# Neither the number of workers nor the way of cutting shows in the weights, beyond rounding. The proof is short on
# purpose: rounding differences grow from step to step, until two long runs are as different as with two seeds, and as
# good.

# %% [markdown]
# ## Recap
#
# - TF_CONFIG names the cluster, equal for all, and the task, different for each; check it first.
# - `batch` takes the global batch size; an epoch has $n/B$ steps.
# - Only a map of samples shows a forgotten `shard`.
# - Every worker calls `save` and reads metrics; the chief, worker 0, keeps the files.
# - One path for all is a race. Saving by the chief alone hangs, or mixes numbers, if a variable is combined on reading.
# - The strategy comes before any operation, in a process of its own.
# - Uneven data: average sums and counts, never means.
# - 2 and 3 workers equal one process within 1e-5 after 20 SGD steps.
#
# **Next.** [Lab 07](../labs/07_multi_worker/lab.ipynb), [08 other strategies](08_other_strategies.ipynb).
#
# **Sources.**
# - TensorFlow 2.21 and tf-keras 2.21: MultiWorkerMirroredStrategy, TFConfigClusterResolver, `distributed_file_utils`.
# - Abadi et al. (2016), *TensorFlow: a system for large-scale machine learning*, OSDI, arXiv:1605.08695.

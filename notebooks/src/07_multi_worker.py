# %% [markdown]
# # 07 Multi-worker
#
# **Goal.** Train one model with several processes that could be several machines: tell each who it is, divide the
# data, save without a race or a hang, and prove that the result is the one-process model.
#
# **Time.** 45 minutes to read, about a minute to run.
#
# **Before this.** [03 mirrored strategy](03_mirrored_strategy.ipynb),
# [04 custom training loop](04_custom_training_loop.ipynb) and
# [06 collectives](06_collectives_and_ring_all_reduce.ipynb).
#
# **Questions.**
# - What does each field of TF_CONFIG say, and what does a wrong one do?
# - Which worker sees which sample, and how many steps does an epoch have?
# - What does a second worker on the same machine cost?
# - Why must every worker call `save`, and where to?
# - What happens to samples that do not divide evenly?
#
# **Hardware.** Two processor cores. Workers are processes on this machine; on a cluster only their addresses change.

# %% tags=["parameters"]
dataset = "digits"  # digits, mnist or fashion_mnist; 960 training images are used
epochs = 1  # not used in this chapter: every run is one epoch of 20 steps, so that the weights can be compared
workers = 2  # processes to start: 2, or 3 for 3 and more; one more for the proof

# %%
import distlab  # first: it selects tf-keras, which must happen before TensorFlow is imported

import json
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf
from IPython.display import Markdown, display

from distlab import checks, cluster_spec, data, devices, draw, launch, metrics, models, programs, quizzes

draw.apply_style()
tf.get_logger().setLevel("ERROR")  # it announces every strategy
tf.keras.utils.set_random_seed(7)
train, test = data.load(dataset)
PROGRAMS = Path("programs/07_multi_worker")
team = min(max(workers, 2), 3)
print(data.describe(dataset))

# %% [markdown]
# ## 1. One program, started twice
#
# `MirroredStrategy` had its replicas in one process. `MultiWorkerMirroredStrategy` has one process per machine, a
# **worker**, with one replica on each of its GPUs, or on its processor. All workers run the *same program*. This is a
# whole one, `programs/07_multi_worker/minimal.py`:

# %%
programs.show(PROGRAMS / "minimal.py")

# %% [markdown]
# Open two terminals in that folder and type one line in each:
#
# ```
# python minimal.py --index 0 --workers localhost:12345 localhost:23456
# python minimal.py --index 1 --workers localhost:12345 localhost:23456
# ```
#
# The first worker waits until the second one has started. Both print the same losses: they train *one* model.
#
# In a notebook `launch.tensorflow` does the same. It chooses free ports, sets TF_CONFIG in each process, collects the
# output, and ends *all* workers if one fails or a deadline passes.

# %% tags=["varies"]
quiet = {"environment": {"TF_CPP_MIN_LOG_LEVEL": "3"}, "echo": False}  # no log lines of TensorFlow's C++ part
run = launch.tensorflow(PROGRAMS / "minimal.py", workers=team, **quiet)
for name, output in sorted(run.output.items()):
    print(f"{name}: {output}")
print(f"{run.seconds:.0f} s in all, with the start of Python and TensorFlow in each worker")

# %% [markdown]
# With `fit` the rest of the program is as in [notebook 03](03_mirrored_strategy.ipynb). A custom loop is also the same
# as in [notebook 04](04_custom_training_loop.ipynb): the strategy's scope, `strategy.run`, the *global* batch size as
# the divisor. `train.py` in the same folder trains in both ways, for the measurements below.
#
# Two of the course's source texts write `tf.distribute.experimental.MultiWorkerMirroredStrategy`. That is the old name
# of the same strategy: a deprecated subclass.

# %% [markdown] tags=["slide-picture", "slide-table"]
# ## 2. TF_CONFIG taken apart
#
# The workers form a **cluster**. What a process needs to know about it is in an environment variable, TF_CONFIG, which
# the program above fills from its command line.
#
# ![Three workers run one program; TF_CONFIG tells each its index](../figures/07_multi_worker_roles.svg)
#
# | field | says |
# |---|---|
# | `cluster` | who takes part: for each job the list of addresses, the same everywhere |
# | `cluster.worker` | the addresses `host:port` where each worker *listens* |
# | `task.type` | the job of this process: `worker`; other types follow in notebook 08 |
# | `task.index` | which address of that list is its own, counted from 0 |

# %%
cluster = {"worker": ["host1:23456", "host2:23456"]}
task = {"type": "worker", "index": 1}
by_hand = json.dumps({"cluster": cluster, "task": task})
print(by_hand)

# %% [markdown]
# TensorFlow reads the variable when a strategy is made, through a **cluster resolver**. Other resolvers ask Slurm or
# Kubernetes.

# %%
os.environ["TF_CONFIG"] = by_hand
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
print("cluster:", resolver.cluster_spec().as_dict())
print("this process:", resolver.task_type, resolver.task_id)
print("its address:", resolver.cluster_spec().task_address(resolver.task_type, resolver.task_id))
del os.environ["TF_CONFIG"]  # this kernel is no worker

# %% [markdown]
# **Predict.** The cluster above has two workers. What is wrong with each of the next five values of TF_CONFIG, and
# which of the mistakes would TensorFlow report immediately?

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
# TensorFlow notices three, in its own words: the index ("exceeds the maximum id"), the port ("Could not parse
# port") and the quotes ("Expecting property name"). The other two are a *wait*: a worker with a wrong view of the
# cluster waits for peers that never come. So check TF_CONFIG before the strategy is made.

# %% [markdown] tags=["slide-quiz"]
# **Question.** Both of two workers get the index 0. What happens?
#
# 1. They agree on who becomes worker 1.
# 2. The second one cannot open its address, or both wait for worker 1.
# 3. Both train, each on half of the data.
# 4. Both train on the same data.
#
# <details>
# <summary>Answer</summary>
#
# 1. The workers do not negotiate: each knows only its TF_CONFIG.
# 2. **Right.** On one machine the port is taken; on two machines worker 1 never comes: they wait, or one reports a
#    second worker 0.
# 3. That is what the index is for.
# 4. They do not start to train.
# </details>

# %% [markdown] tags=["slide-predict"]
# ## 3. Batches and steps
#
# Keep two batch sizes apart. One update of the weights sees the **global batch** $B$. Each of $W$ workers gets the
# **per-worker batch**. An epoch over $n$ samples then has
#
# $$\frac{n}{B} \text{ steps, rounded down}, \qquad \frac{B}{W} \text{ samples per worker and step}$$
#
# **Predict.** You keep the number 48 in `batch(48)` and go from 2 to 8 workers. Which of these change: the global
# batch, the samples per worker and step, the steps per epoch, the samples per worker and epoch?

# %% tags=["slide-output"]
print("workers   global batch   per worker   steps per epoch   per worker and epoch")
for count in (1, 2, 3, 4, 8):
    print(f"{count:>7} {48:>14} {48 // count:>12} {960 // 48:>17} {960 // 48 * (48 // count):>22}")

# %% [markdown] tags=["slide-takeaway"]
# `batch(...)` takes the *global* batch size, as under `MirroredStrategy`. With a fixed one, more workers mean less work
# for each, and the same updates: that makes the proof of section 9 possible. To give every worker a full batch,
# multiply $B$ by $W$, as `minimal.py` does. Then an epoch has fewer steps, and the training is a different one
# (notebook 10, large batch).
#
# `fit` gets `steps_per_epoch` and a data set that ends with `repeat()`:

# %%
finite = tf.data.Dataset.range(960).batch(48)
print("batches without repeat():", int(finite.cardinality()))
print("needed for 3 epochs of 20 steps:", 3 * 20)
print("batches with repeat():", int(finite.repeat().cardinality()), "(TensorFlow's number for endless)")

# %% [markdown]
# With `steps_per_epoch`, `fit` draws from *one* iterator over all epochs. Without `repeat()` the data run out after the
# first. With several workers there is a second reason: with `repeat()`, every worker has data in every step.
#
# **Question.** 1,000 samples, a global batch of 48, `repeat()` before `batch`, 20 steps an epoch. What happens to the
# 40 samples left over?
#
# 1. They are never seen.
# 2. They are the first ones of the next epoch.
# 3. They make a smaller step 21.
#
# <details>
# <summary>Answer</summary>
#
# 1. That would be true without `repeat()`, if every epoch started again from the first sample.
# 2. **Right.** The iterator continues where it was. The "epoch" is a count of steps.
# 3. With `repeat()` there is no end, so no remainder.
# </details>

# %% [markdown]
# ## 4. Two ways to feed the data
#
# **One global data set**: `strategy.experimental_distribute_dataset(dataset)`, which `fit` calls for you. The strategy
# cuts each global batch, and then removes from each worker's pipeline what belongs to the others. This is
# **auto-sharding**, and a policy says how:
#
# - **OFF**: nothing is removed.
# - **DATA**: each worker reads everything and keeps its part of each batch.
# - **FILE**: each worker reads every $W$-th file.
# - **AUTO** (the default): FILE if the pipeline reads files, else DATA.
#
# **One data set per worker**: `strategy.distribute_datasets_from_function(function)`. The strategy calls your function
# once in each worker, with an `InputContext` that says which worker it is. You take the worker's share yourself, and
# you batch by the *per-replica* batch size.
#
# `feed.py` does both. Eight small files hold four numbers each:

# %%
programs.show(PROGRAMS / "feed.py")

# %%
FILES, PER_FILE = 8, 4
scratch = tempfile.TemporaryDirectory()
saved = Path(scratch.name)
files = [saved / f"numbers-{file}.tfrecord" for file in range(FILES)]
for file, path in enumerate(files):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for number in range(file * PER_FILE, (file + 1) * PER_FILE):
            writer.write(str(number))

# %% [markdown] tags=["slide-predict"]
# **Predict.** Which of the 32 numbers does worker 1 get under each policy? And if the function forgets `shard`?

# %% tags=["slide-output"]
run = launch.tensorflow(PROGRAMS / "feed.py", "--files", *files, workers=team, **quiet)
by_worker = [json.loads(run.output[f"worker {index}"].splitlines()[-1]) for index in range(team)]
cases = {way: [seen[way] for seen in by_worker] for way in by_worker[0]}
print(f"{'':31}{'numbers of':<14}read from   seen twice   never")
print(f"{'way to feed':31}{'each worker':<14}files       or more      seen")
for way, numbers in cases.items():
    counts = np.bincount(np.concatenate(numbers), minlength=FILES * PER_FILE)
    of_each = ", ".join(str(len(own)) for own in numbers)
    from_files = ", ".join(str(len({number // PER_FILE for number in own})) for own in numbers)
    print(f"{way:31}{of_each:<14}{from_files:<12}{(counts > 1).sum():<13}{(counts == 0).sum()}")

# %% tags=["slide-output"]
draw.show(
    draw.seen(cases, FILES, PER_FILE),
    f"Which of {team} workers saw which of {FILES * PER_FILE} numbers in {FILES} files. OFF: every worker saw all. "
    "DATA: the workers take turns, two numbers each. FILE and AUTO: they take turns with whole files. DATA, shuffled "
    "differently: each worker saw a random share; some numbers were seen by several workers, others by none. From "
    "function: they take turns number by number. With the shard forgotten every worker saw all.",
)

# %% [markdown]
# - **OFF** repeats: with $W$ workers one epoch is $W$ passes over the data. It is right when each worker draws its own
#   random order, or chooses its own files.
# - **DATA** is exact, but every worker reads and decodes all files and throws the others' share away.
# - **DATA after a shuffle** is exact only if all workers shuffle alike. Give `shuffle` the same seed, or shard first.
# - **FILE** reads each file once. It needs many files of similar size, and at least one file per worker.
# - **AUTO** chose FILE because the pipeline reads files. It falls back to DATA only if there are none, so one large
#   file needs DATA.
# - A forgotten **`shard`** raises no error. The loss falls, but each step has only as many *different* samples as one
#   worker has.
#
# Under `MirroredStrategy` the policy changes nothing: there is one pipeline, and nothing to divide among pipelines.

# %% [markdown]
# Where the files are does not matter. The same pipeline reads `gs://…` (Google Cloud Storage) and, where a matching
# version of the package tensorflow-io is installed, `hdfs://…` (Hadoop). TensorFlow Datasets (`tfds.load`) gives a
# `tf.data.Dataset` of several files; in a function, its argument `read_config=tfds.ReadConfig(input_context=context)`
# gives each worker its own files.
#
# **Question.** 1,000 images in one file, four workers, no policy. How does each worker get a share?
#
# 1. Nothing to do, AUTO shards by images.
# 2. OFF, and each worker sees a quarter.
# 3. DATA, or at least four files and FILE.
# 4. A larger batch.
#
# <details>
# <summary>Answer</summary>
#
# 1. It tries FILE, because there is a file, and fails: one file for four workers.
# 2. With OFF each worker sees all 1,000.
# 3. **Right.** The first reads everything four times, the second once.
# 4. The batch size does not decide which worker reads what.
# </details>

# %%
print("file systems of this TensorFlow:", *sorted(scheme for scheme in tf.io.gfile.get_registered_schemes() if scheme))

# %% [markdown] tags=["slide-text", "slide-predict"]
# ## 5. Who is chief?
#
# All workers train alike, and one of them does what must be done *once*, such as writing files: the **chief**. It is
# the task of type `chief` if the cluster has one, else worker 0. It does not collect the gradients.
#
# Each variable that is created in the scope takes the *chief's* first value, by a broadcast. So workers with different
# seeds start with equal weights. The data order has no such help; it needs the same seed everywhere.
#
# ## 6. What did the second worker cost?
#
# `train.py` trains a CNN on 960 images with a global batch of 48, first with `fit`, then with a custom loop. The loop
# measures the gradient alone, which needs no other worker, and the whole step, with the all-reduce.
#
# **Predict.** Two workers share two cores; one process would use both. Are two workers faster?

# %% tags=["varies"]
arguments = ["--dataset", dataset, "--folder"]
shutil.rmtree(saved / str(team), ignore_errors=True)  # if this cell runs again
run = launch.tensorflow(PROGRAMS / "train.py", *arguments, saved / str(team), workers=team, result=True, **quiet)
for name, output in sorted(run.output.items()):
    print(f"{name}: {output}")
results = {team: run.result}

# %% [markdown]
# Here is the same step in one process, this kernel, which may use all cores. It first trains on the same images in the
# same order; section 9 needs that.

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
single_step, single_cpu = np.median([(watch.elapsed, watch.cpu) for watch in watches], axis=0)

# %% tags=["varies", "slide-output"]
(gradient, _), (step, step_cpu) = np.median(np.array(run.result["loop"]["seconds"])[5:], axis=0)
seconds = {
    "one process, whole step": single_step,
    f"{team} workers, gradient alone": gradient,
    f"{team} workers, whole step": step,
}
milliseconds = {name: 1000 * float(value) for name, value in seconds.items()}
description = ", ".join(f"{name}: {value:.1f}" for name, value in milliseconds.items())
draw.show(draw.bars(milliseconds, "milliseconds (median)", "{:,.1f}"), f"Milliseconds. {description}")
cost = (
    f"{team} workers on {devices.cores()} cores have {single_step / step:.2f} times the speed of one process, and use "
    f"{team * step_cpu / single_cpu:.2f} times its processor time."
)
rest = (
    f"Of a worker's step, {100 * (1 - gradient / step):.0f} % is not the gradient: it exchanges "
    f"{4e-6 * alone.count_params():.2f} MB, waits for the slower worker, and updates."
)
disturbed = "The gradient alone took as long as the whole step: other programs disturbed this measurement."
Markdown(f"{cost} {rest if step > gradient else disturbed}")

# %% [markdown] tags=["slide-takeaway"]
# The naive guess counts workers: if each computes half, it takes half the time. Count the *work*. Each worker starts
# every operation again for a smaller batch, updates a copy of all weights, and takes part in the all-reduce of
# [notebook 06](06_collectives_and_ring_all_reduce.ipynb): $2\frac{p-1}{p}n$ bytes (there $p$ is the number of workers
# and $n$ the bytes of the gradient), copied several times on their way through gRPC. A second worker on the same cores
# can win only what one process leaves idle. And a step ends when the *slowest* worker ends.
#
# So several workers on the same cores are for testing a program; they rarely speed it up. The gain comes when each
# worker brings its own machine, and when computing takes much longer than the all-reduce: more samples per worker, or
# more work per weight.

# %% [markdown]
# ### Which all-reduce?
#
# `CommunicationOptions` are hints for these exchanges. `AUTO` leaves the choice to TensorFlow. Between GPUs, ask for
# NCCL; between processors only TensorFlow's ring (RING) works. `bytes_per_pack` splits the gradients into packs, so
# that the all-reduce of one pack runs while the next gradients are still computed. `timeout_seconds` turns a hang into
# an error; TensorFlow advises it for debugging only, since each collective then gets a new thread.

# %%
communication = tf.distribute.experimental.CommunicationOptions(
    implementation=tf.distribute.experimental.CommunicationImplementation.RING,  # or NCCL, or AUTO, the default
    bytes_per_pack=32 * 1024 * 1024,  # 0, the default: all gradients in one pack
    timeout_seconds=120.0,
)
print(communication.implementation, communication.bytes_per_pack)

# %% [markdown]
# In a worker: `tf.distribute.MultiWorkerMirroredStrategy(communication_options=communication)`.
#
# ## 7. Saving
#
# **The right way first.** *Every* worker calls save. The chief writes where it should, the others into a temporary
# folder that they remove:

# %%
programs.show(PROGRAMS / "train.py", "place_to_save")

# %% [markdown]
# ```python
# resolver = strategy.cluster_resolver
# is_chief = resolver.task_type == "chief" or ("chief" not in resolver.cluster_spec().jobs and resolver.task_id == 0)
# with place_to_save(folder, is_chief) as place:
#     model.save(place / "model.keras")  # every worker calls
# ```
#
# (A cluster with a task of type `chief` also has a worker 0: by its number alone it would write to the chief's path.)
# The run of section 6 saved like this:

# %%
left = sorted(path.relative_to(saved).as_posix() for path in (saved / str(team)).rglob("*") if path.is_file())
print(*left, sep="\n")
model = tf.keras.models.load_model(saved / str(team) / "fit" / "model.keras")
print("loaded in this kernel, without any strategy:", model.count_params(), "parameters")

# %% [markdown] tags=["slide-text", "slide-points"]
# Under `fit`, the callbacks `ModelCheckpoint` and `BackupAndRestore` do all this themselves. To resume, *all* workers
# restore the chief's checkpoint: `train.py --resume`, also with another number of workers.
#
# Why must a worker call save although its file is thrown away? `save_wrongly.py` tries what looks simpler:
#
# 1. **Everybody** writes a checkpoint to the same path.
# 2. **Only the chief** reads a metric for its log. Each worker gave the metric the value 2.0. The others continue and
#    sum 100 and then 3.
# 3. **Only the chief** writes a `tf.train.Checkpoint` of model and SGD.
# 4. **Only the chief** calls `model.save` after a `fit` with `metrics=["accuracy"]`.

# %%
display(programs.show(PROGRAMS / "save_wrongly.py", "all_write", "mixed", "save_alone"))

# %% [markdown] tags=["slide-predict"]
# In a terminal: `distlab launch --workers 2 save_wrongly.py -- --folder saved`.
#
# **Predict.** One usually fails with an error, one gives a wrong number without any, one works, one never returns.
# Which?

# %% tags=["varies"]
result_file = saved / "wrong.json"
options = ["--folder", saved / "wrong", "--patience", 2, "--result", result_file]
try:
    launch.tensorflow(PROGRAMS / "save_wrongly.py", *options, workers=team, **quiet)
except launch.WorkerFailed as error:
    failed = error
print(failed.run.output["worker 0"])
print("\nThe launcher:", str(failed).splitlines()[0])

# %% tags=["varies", "slide-output"]
wrong = json.loads(result_file.read_text())
tries, failures = wrong["everybody"].values()
happened = f"an error in {failures} of {team} workers" if failures else "still no error"
print(f"1. everybody to one path, try {tries}: {happened}")

# %% tags=["slide-output", "slide-continued"]
print("2. the chief alone reads a mean of 2.0 as:", round(wrong["mixed"]["read alone"], 2))
print("3. tensors in the chief's checkpoint:", len(tf.train.list_variables(str(saved / "wrong" / "alone"))))
print("4. the chief alone, model.save:", failed.rank, "gave up, exit code", failed.exit_code)

# %% [markdown] tags=["slide-takeaway"]
# **1, a race.** A checkpoint is first written under a temporary name, then renamed. The worker that renames first
# removes the file that the other one needs. All may go well many times, which makes the error harder to find.
#
# **2 and 4, one cause.** Some variables have a part in each worker: a metric's total and count, the moving averages of
# batch normalisation. Reading one means adding up or averaging the parts, a **collective**, in which *all* must take
# part. Saving reads them. This model has four, the total and the count of its loss and of its accuracy:

# %%
print("combined when they are read:", wrong["combined on read"])
print("complete in every worker:", [variable.name for variable in alone.weights])

# %% [markdown] tags=["slide-quiz"]
# If the others wait, the chief waits forever: a **deadlock**. If they continue, TensorFlow pairs the chief's
# collective with whatever the others call next: in 2 the chief added 100 to its total and 3 to its count. TensorFlow
# compares shapes, so mostly it raises `Shape mismatch in the collective instance`; with equal shapes nobody notices.
#
# **3 works** without such variables: mirrored weights are complete in every worker. Add one batch-normalisation layer,
# and it hangs. So the rule is: *every worker calls; the chief keeps.*
#
# **Question.** The line `if is_chief: print(accuracy.result())` runs after each epoch. What is wrong with it?
#
# 1. Nothing, it only reads.
# 2. All workers must call `result()`; only the `print` belongs under the `if`.
# 3. It prints the chief's part only.
#
# <details>
# <summary>Answer</summary>
#
# 1. Reading a metric is a collective.
# 2. **Right.**
# 3. It prints that of all, or hangs, or mixes numbers.
# </details>

# %% [markdown]
# ## 8. "Collective ops must be configured at program startup"
#
# Why does this notebook start programs instead of making the strategy here? Because of the error that beginners meet
# first. This kernel has already run TensorFlow operations; now we tell it that it is a worker. (`too_late.py` does the
# same as a program.)

# %%
os.environ["TF_CONFIG"] = by_hand
try:
    tf.distribute.MultiWorkerMirroredStrategy()
except RuntimeError as error:
    print(error)
del os.environ["TF_CONFIG"]

# %% [markdown]
# TensorFlow creates its runtime at the *first operation*, and a worker's runtime must have a server that listens on
# the address in TF_CONFIG. Once it exists without one, it is too late. Any tensor, data set or model made earlier is
# an operation. Create the strategy first. In a notebook, restart the kernel; even then it can be *one* worker at most,
# and a hang would take the kernel with it. A child process starts fresh, can be one of several, and can be ended.
#
# ## 9. Proof
#
# Same first weights, same global batches of 48, SGD, 20 steps: one process, and also one worker more than before.
# If a sample were lost, counted twice, or a gradient divided by the wrong number, the weights would show it.

# %% tags=["varies"]
larger = saved / str(team + 1)
shutil.rmtree(larger, ignore_errors=True)
more = launch.tensorflow(PROGRAMS / "train.py", *arguments, larger, workers=team + 1, result=True, **quiet)
results[team + 1] = more.result
print(f"{team + 1} workers: {more.seconds:.0f} s")

# %% tags=["slide-output"]
for count, result in results.items():
    from_fit = tf.keras.models.load_model(saved / str(count) / "fit" / "model.keras")
    from_loop = models.cnn()
    newest = tf.train.latest_checkpoint(saved / str(count) / "checkpoints")
    tf.train.Checkpoint(model=from_loop).restore(newest).expect_partial()
    for way, model in (("fit", from_fit), ("loop", from_loop)):
        seen = np.array(result[way]["seen"])
        print(f"{count} workers, {way}: {seen.size} samples seen, {len(np.unique(seen))} different ones;", end=" ")
        checks.assert_equal_weights(model.get_weights(), alone.get_weights())

# %% [markdown] tags=["slide-takeaway"]
# Apart from rounding, the weights depend neither on the number of workers nor on how the batches are divided. `fit`
# gave each worker a contiguous part of each batch, the loop every $W$-th sample; the *union* in each step is the same
# global batch, and the order of addition does not matter. The proof is short on purpose: rounding differences grow from
# step to step, until two long runs differ as much as two seeds do, and are equally good.

# %% [markdown]
# ## Appendix: uneven data, 1,001 samples, 2 workers
#
# We chose 960 samples because 48 divides 960. With 1,001 samples and a global batch of 100, ten batches are full and
# *one* sample is left over. `uneven_data.py` feeds them to two workers in five ways and records who saw what:
#
# | feeding | the global batches |
# |---|---|
# | sharded | `.batch(100)`; the last batch is smaller |
# | drop_remainder | `.batch(100, drop_remainder=True)` |
# | repeat | `.repeat().batch(100)` and 11 steps, 1,001 / 100 rounded up |
# | not_sharded | `.batch(100)` with `AutoShardPolicy.OFF` |
# | padded | filled up to whole batches with samples of weight 0 |
#
# **Predict.** Which of them lose samples, which count some twice? What does the worker without a sample do in the last
# step: wait forever, stop early, or continue?

# %%
options = ["--dataset", dataset, "--samples", 1001, "--global-batch", 100]
uneven = launch.tensorflow(PROGRAMS / "uneven_data.py", *options, workers=2, result=True, **quiet).result
fed = {row["feeding"]: row for row in uneven["feedings"]}
print(f"{'feeding':<15} {'per worker':>18} {'in the last step':>17} {'lost':>5} {'more than once':>15}")
for feeding, row in fed.items():
    per_worker = ", ".join(str(len(samples)) for samples in row["samples"])
    last = ", ".join(str(sizes[-1]) for sizes in row["batch_sizes"])
    print(f"{feeding:<15} {per_worker:>18} {last:>17} {len(row['lost']):>5} {len(row['more_than_once']):>15}")

# %% [markdown]
# `drop_remainder` loses the last sample; `repeat` counts the first 99 twice; without sharding every worker processes
# every sample. When the samples run out, no worker waits: before each step the iterator of the *strategy* asks all
# workers, in an all-reduce of one number, whether anybody has data left; the others get an **empty batch**. A loop over
# a plain data set does not ask: the worker with one step more waits for peers that have ended.
#
# So the data are right, and the average can still be wrong. Worker $w$ has $n_w$ samples with mean $m_w$:
#
# $$\frac{1}{W}\sum_w m_w \;=\; \frac{\sum_w n_w m_w}{\sum_w n_w} \quad\text{in general only if all } n_w \text{ are
# equal}$$
#
# The same holds for the mean over batches, and $m_w$ of an empty batch is 0 / 0.

# %% tags=["varies"]
right = uneven["one_process"]["accuracy"]
print(f"accuracy of one process: {right:.5f}\n")
print(f"{'feeding':<15} {'mean of batches':>16} {'mean of workers':>16} {'sums / counts':>14}")
for feeding, row in fed.items():
    values = [row[way]["accuracy"] for way in ("mean_of_batches", "mean_of_workers", "weighted")]
    print(f"{feeding:<15}", *(f"{np.nan if value is None else value:>15.5f}" for value in values))

# %%
with_keras = uneven["keras"][0]  # of the only global batch size
off = with_keras["weights_off"]  # the largest difference from the weights of one process
print("evaluate:", end=" ")
checks.assert_equal([with_keras["evaluate"]["accuracy"]], [right], "accuracies")
print(f"fit: the weights differ by up to {off['fit']:.3f}")
print("fit on padded, weighted data:", end=" ")
checks.assert_equal_weights([off["weighted_fit"]], [0])

# %% [markdown]
# **The fix** is the one of [notebook 04](04_custom_training_loop.ipynb): all-reduce *sums and counts*, and divide once.
# Keras's metrics do that, so `evaluate` is right. Its *gradients* do not: each worker averages over its own samples,
# then the workers are averaged. In the last step one worker has one sample and the other has none, so the gradient is
# half as large as it should be. Under `fit`, padding fixes it: all parts have one size again, the padding has weight 0,
# and the real samples of the last batch weigh $\frac{\text{batch}}{\text{real samples}}$ each.
#
# **Question.** With `repeat` the weighted average is wrong too. Why?
#
# 1. The weights are rounded.
# 2. The average is right, of other data.
# 3. The workers see different samples.
#
# <details>
# <summary>Answer</summary>
#
# 1. They are whole numbers.
# 2. **Right.** 99 samples count twice.
# 3. They do in every sharded feeding.
# </details>

# %% [markdown]
# ## Quiz
#
# Ten questions that mark themselves; with `seed=2` they have other numbers.

# %%
quizzes.ask("07")

# %% [markdown]
# ## Recap
#
# - TF_CONFIG names the cluster, equal for all, and the task, different for each; check it first.
# - `batch` takes the global batch size; an epoch has $n/B$ steps.
# - Two ways to feed: one global data set with an auto-shard policy, or one data set per worker.
# - Every worker calls `save` and reads metrics; the chief, worker 0, keeps the files.
# - One path for all is a race. Saving by the chief alone hangs, or mixes numbers, if a variable is combined on reading.
# - The strategy comes before any operation, in its own process.
# - Uneven data: average sums and counts, never means.
# - Two and more workers equal one process within 1e-5 after 20 SGD steps.
#
# **Next.** [Lab 07](../labs/07_multi_worker/lab.ipynb), [08 other strategies](08_other_strategies.ipynb).
#
# **Sources.**
# - TensorFlow:
#   [MultiWorkerMirroredStrategy](https://www.tensorflow.org/api_docs/python/tf/distribute/MultiWorkerMirroredStrategy),
#   [CommunicationOptions](https://www.tensorflow.org/api_docs/python/tf/distribute/experimental/CommunicationOptions),
#   [Distributed input](https://www.tensorflow.org/tutorials/distribute/input).
# - Abadi et al. (2016), *TensorFlow: a system for large-scale machine learning*, OSDI,
#   [arXiv:1605.08695](https://arxiv.org/abs/1605.08695).

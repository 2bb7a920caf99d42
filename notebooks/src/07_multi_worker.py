# %% [markdown]
# # 07 Multi-worker
#
# **Goal.** Train one model with several processes that could be several machines: tell each who it is, divide the
# data, save without a race or a hang, and check that the result is the one-process model.
#
# **Time.** 35 minutes to read, about a minute to run.
#
# **Before this.** [03 mirrored strategy](03_mirrored_strategy.ipynb), [04 custom training
# loop](04_custom_training_loop.ipynb) and [06 collectives](06_collectives_and_ring_all_reduce.ipynb).
#
# **Questions.**
# - What does each field of TF_CONFIG say, and what does TensorFlow say about a wrong one?
# - Which worker sees which sample, and how many steps does an epoch have?
# - What does a second worker on the same machine cost?
# - Why must every worker call `save`, and where to?
#
# **Hardware.** Two processor cores. Workers are processes on this machine; on a cluster only their addresses change.

# %% tags=["parameters"]
dataset = "digits"  # digits, mnist or fashion_mnist; 960 training images are used
epochs = 1  # not used here: the runs that are compared have one epoch of 20 steps
workers = 2  # processes to start, 2 or 3; section 9 adds one

# %% jupyter={"source_hidden": true}
import distlab  # first: it selects tf-keras

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf
from IPython.display import Markdown

from distlab import checks, cluster_spec, data, draw, launch, models, programs, quizzes
from distlab.devices import cores

draw.apply_style()
tf.get_logger().setLevel("ERROR")  # it announces every strategy
tf.keras.utils.set_random_seed(7)
train, test = data.load(dataset)
PROGRAMS = Path("programs/07_multi_worker")
team = min(max(workers, 2), 3)
scratch = tempfile.TemporaryDirectory()
saved = Path(scratch.name)
quiet = {"environment": {"TF_CPP_MIN_LOG_LEVEL": "3"}, "echo": False}  # no log of the C++ part

# %% [markdown]
# ## 1. One program, started twice
#
# `MirroredStrategy` kept its replicas in one process, so it ends where the machine ends.
# `MultiWorkerMirroredStrategy` has one process per machine, a **worker**, with a replica on each of its GPUs, or one on
# its processor. All workers run the *same program*, and each must learn from outside which one it is. This is a whole
# program, `minimal.py`. It needs TensorFlow, tf-keras and scikit-learn.

# %%
programs.show(PROGRAMS / "minimal.py")

# %% [markdown]
# Open two terminals in the folder of the program and type one line in each, with two free ports:
#
# ```
# python minimal.py 0 localhost:12345 localhost:23456
# python minimal.py 1 localhost:12345 localhost:23456
# ```
#
# The first worker waits until the second one has started. Then both print the same losses, because they train *one*
# model.
#
# **Two workers on one machine with GPUs** would both take all of them, and NCCL refuses a GPU that occurs twice. Give
# each its own: begin the lines with `CUDA_VISIBLE_DEVICES=0` and `CUDA_VISIBLE_DEVICES=1`, or both with
# `CUDA_VISIBLE_DEVICES=-1` for the processor.
#
# In a notebook `launch.tensorflow` does all this. It chooses free ports, and ends *all* workers if one fails.

# %% tags=["varies"]
run = launch.tensorflow(PROGRAMS / "minimal.py", workers=team, **quiet)
for name, output in sorted(run.output.items()):
    print(f"{name}: {output}")
print(f"{run.seconds:.0f} s in all, with the start of Python and TensorFlow in each worker")

# %% [markdown] tags=["slide-picture", "slide-table"]
# With several workers the `fit` of *Keras 3* fails in its first step; only a custom loop works
# ([08b](08b_keras_3.ipynb)). Hence the line that selects Keras 2.
#
# ## 2. TF_CONFIG
#
# The workers form a **cluster**. What a process needs to know about it is in an environment variable, TF_CONFIG, which
# `minimal.py` fills from its command line.
#
# ![Three workers run one program; TF_CONFIG tells each its index](../figures/07_multi_worker_roles.svg)
#
# | field | says |
# |---|---|
# | `cluster` | who takes part: for each job the list of addresses, the same everywhere |
# | `cluster.worker` | the addresses `host:port` where each worker *listens* |
# | `task.type` | the job of this process: `worker`, `chief`, and others in chapter 08 |
# | `task.index` | which address of that list is its own, counted from 0 |
#
# A strategy reads the variable through a **cluster resolver**.

# %%
cluster = {"worker": ["host1:23456", "host2:23456"]}
task = {"type": "worker", "index": 1}
by_hand = json.dumps({"cluster": cluster, "task": task})
print(by_hand)

os.environ["TF_CONFIG"] = by_hand
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
own = resolver.cluster_spec().task_address(resolver.task_type, resolver.task_id)
print("this process:", resolver.task_type, resolver.task_id, "at", own)
del os.environ["TF_CONFIG"]  # this kernel is no worker

# %% [markdown]
# ### What TensorFlow says when it is wrong
#
# A child process makes each mistake for real. The first counts the index from 1. The second gives the worker a port at
# which another program, here this kernel, already listens.
#
# **Predict.** Does TensorFlow name the wrong field and its value?

# %% tags=["varies", "slide-output"]
CREATE = "import tensorflow as tf; tf.distribute.MultiWorkerMirroredStrategy()"


def words(addresses, index):
    """What TensorFlow says last, in a process with this TF_CONFIG."""
    config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
    environment = os.environ | {"TF_CONFIG": json.dumps(config), "TF_CPP_MIN_LOG_LEVEL": "1"}
    command = [sys.executable, "-c", CREATE]
    child = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True)
    lines = child.stderr.splitlines()
    log = [line.partition("] ")[2] for line in lines if "add_port" in line]
    return "\n    ".join([*log, lines[-1]])


print("index 2 of two workers:\n   ", words(["host1:23456", "host2:23456"], 2))
with socket.create_server(("", 0)) as other_program:
    taken = f"localhost:{other_program.getsockname()[1]}"
    print(f"port of {taken} taken:\n   ", words([taken, "host2:23456"], 0))

# %% [markdown]
# The first message has the number, and calls the index `task_id`. The error about the port names neither field nor
# port; only the log above it has the port, and many programs silence that log, as `quiet` does here.
#
# Worse are the mistakes without any message: a worker with a wrong view of the cluster waits for peers that never come.
# So check TF_CONFIG first. `cluster_spec.check` names the field and the fix. TensorFlow accepts the last two of these
# four mistakes at first; on two machines they would show later, far from their cause:

# %%
broken = {
    "Python's quotes": str(json.loads(by_hand)),
    "no port": by_hand.replace("host2:23456", "host2"),
    "one address twice": by_hand.replace("host2", "host1"),
    "localhost among hosts": by_hand.replace("host2", "localhost"),
}
for mistake, text in broken.items():
    try:
        cluster_spec.check(text)
    except cluster_spec.ClusterSpecError as error:
        print(f"{mistake}:\n    {error}")

# %% [markdown] tags=["slide-quiz"]
# **Question.** Both of two workers get the index 0. What happens?
#
# 1. They agree on who becomes worker 1.
# 2. The training does not start: an error, or a wait for worker 1.
# 3. Both train, each on half of the data.
# 4. Both train on the same data.
#
# <details>
# <summary>Answer</summary>
#
# 1. The workers do not negotiate: each knows only its TF_CONFIG.
# 2. **Right.** On one machine the port is taken. On two machines nobody is worker 1: the workers wait, or TensorFlow
#    reports that worker 0 has restarted.
# 3. That is what the index is for.
# 4. They do not start to train.
# </details>

# %% [markdown] tags=["slide-predict"]
# ## 3. Batches, steps and validation
#
# Distinguish two batch sizes. One update of the weights sees the **global batch** $B$. Each of $W$ workers gets the
# **per-worker batch**. Counting full batches only, an epoch over $n$ samples has
#
# $$\frac{n}{B} \text{ steps, rounded down}, \qquad \frac{B}{W} \text{ samples per worker and step}$$
#
# **Predict.** You keep the number 48 in `batch(48)` and go from 2 to 8 workers. Which of these change: the global
# batch, the samples per worker and step, the steps per epoch, the samples per worker and epoch?

# %% jupyter={"source_hidden": true} tags=["slide-output"]
print("workers   global batch   per worker   steps per epoch   per worker and epoch")
for count in (1, 2, 3, 4, 8):
    steps, part = 960 // 48, 48 // count
    print(f"{count:>7} {48:>14} {part:>12} {steps:>17} {steps * part:>22}")

# %% [markdown] tags=["slide-takeaway"]
# Only what one worker gets changes: `batch(...)` takes the *global* batch size, as under `MirroredStrategy`. More
# workers then mean less work for each, and the same updates. `minimal.py` multiplies 24 by the number of replicas, here
# $W$: fewer steps, and a different training ([chapter 10](10_large_batch_and_warmup.ipynb)).
#
# Why does `minimal.py` call `repeat()`? `steps_per_epoch` counts the full batches only; the last, shorter batch is not
# among them. Then `fit` draws all epochs from *one* iterator, and without `repeat()` the data run out in the second
# epoch. With it, the samples left over come first in the next epoch.
#
# Validation data need no `repeat()`: `fit` starts them again after every epoch.
#
# **Predict.** Below are 105 validation samples in batches of 10. How many of them count under each of four calls?


# %% tags=["slide-output"]
class Seen(tf.keras.metrics.Sum):
    """The number of samples that a metric sees."""

    def update_state(self, labels, outputs, sample_weight=None):
        return super().update_state(tf.ones_like(labels))


small = tf.keras.Sequential([tf.keras.layers.InputLayer((1,)), tf.keras.layers.Dense(1)])
small.compile("sgd", "mse", metrics=[Seen(name="seen")])
samples = tf.data.Dataset.from_tensors(([0.0], [0.0])).repeat(105)
for title, check, count in (
    ("batch(10)", samples.batch(10), None),
    ("batch(10), validation_steps=4", samples.batch(10), 4),
    ("batch(10), validation_steps=20", samples.batch(10), 20),
    ("repeat().batch(10)", samples.repeat().batch(10), None),
):
    how = {"epochs": 2, "steps_per_epoch": 3, "validation_steps": count, "verbose": 0}
    try:
        run = small.fit(samples.batch(10).repeat(), validation_data=check, **how)
        print(f"{title:32}{[int(number) for number in run.history['val_seen']]} in two epochs")
    except ValueError as error:
        print(f"{title:32}{str(error)[:63]} …")

# %% [markdown]
# With two workers the numbers are the same. Finite data without `validation_steps` are right: everything is evaluated
# once, an uneven last batch too. With too few steps `fit` evaluates the *same* first batches after each epoch, and
# nothing tells you. With too many it warns, and later epochs have no validation at all. Endless data need a number of
# steps.
#
# What *hangs* is a worker that evaluates alone, for example in a callback of the chief: `evaluate` adds up over all
# workers (section 7).

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
# `feed.py` does both. Here are its two functions:

# %%
programs.show(PROGRAMS / "feed.py", "with_policy", "own_data")

# %% [markdown] tags=["slide-predict"]
# The data are eight small files with four numbers each.
#
# **Predict.** Which of the 32 numbers does worker 1 get under each policy? And if the function forgets `shard`?

# %%
FILES, PER_FILE = 8, 4
files = [saved / f"numbers-{file}.tfrecord" for file in range(FILES)]
for file, path in enumerate(files):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for number in range(file * PER_FILE, (file + 1) * PER_FILE):
            writer.write(str(number))

run = launch.tensorflow(PROGRAMS / "feed.py", "--files", *files, workers=team, **quiet)
last_lines = [run.output[f"worker {index}"].splitlines()[-1] for index in range(team)]
by_worker = [json.loads(line) for line in last_lines]
cases = {way: [seen[way] for seen in by_worker] for way in by_worker[0]}
print(f"{'way to feed':31}{'each worker':<14}{'from files':<12}seen twice or more   never")
for way, numbers in cases.items():
    counts = np.bincount(np.concatenate(numbers), minlength=FILES * PER_FILE)
    of_each = ", ".join(str(len(own)) for own in numbers)
    from_files = ", ".join(str(len({number // PER_FILE for number in own})) for own in numbers)
    repeated, never = (counts > 1).sum(), (counts == 0).sum()
    print(f"{way:31}{of_each:<14}{from_files:<12}{repeated:<21}{never}")

# %% jupyter={"source_hidden": true} tags=["slide-output"]
text = f"Which of {team} workers saw which of {FILES * PER_FILE} numbers in {FILES} files. "
text += (
    "OFF: every worker saw all. DATA: the workers take turns, two numbers each. FILE and "
    "AUTO: they take turns with whole files. DATA, shuffled differently: each worker saw a "
    "random share; some numbers were seen by several workers, others by none. From function: "
    "they take turns number by number. With the shard forgotten every worker saw all."
)
draw.show(draw.seen(cases, FILES, PER_FILE), text)

# %% [markdown]
# Each box is one of the numbers; it is filled if the worker got it. A forgotten `shard` looks like OFF, and AUTO like
# FILE.
#
# - **OFF** repeats: with $W$ workers one epoch is $W$ passes over the data.
# - **DATA** is exact, but every worker reads all files. Shuffle with the same seed everywhere.
# - **FILE** reads each file once. It needs many files of similar size.
# - A forgotten **`shard`** raises no error. The loss falls, but each step has only one worker's number of *different*
#   samples.
#
# **Which to prefer?** The global data set for data in memory, as under `fit`. The function for many large files: shard
# the *list of files* in it, and no worker reads files that it does not need, as `tfds.load` does with
# `read_config=tfds.ReadConfig(input_context=context)`.

# %% [markdown]
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
# 1. It tries FILE, because there is a file, and fails: one file for four workers. Only worker 0 says so; the others get
#    no data.
# 2. With OFF each worker sees all 1,000.
# 3. **Right.** The first reads everything four times, the second once.
# 4. The batch size does not decide which worker reads what.
# </details>

# %% [markdown]
# ## 5. A custom loop, and who is chief
#
# The custom loop is the one of [chapter 04](04_custom_training_loop.ipynb): the scope, `strategy.run`, and the *global*
# batch size as the divisor. Only its beginning and its end are new.
#
# At the beginning each variable takes the *chief's* first value, by a broadcast, so that all workers start with equal
# weights. The data order has no such help; it needs the same seed everywhere.
#
# At the end something must be done *once*, such as keeping the files. The **chief** does it; it does not collect the
# gradients. It is the task of type `chief` if the cluster has one, else worker 0. The index alone is not enough: a
# cluster with a chief also has a worker 0.

# %%
programs.show(PROGRAMS / "loop.py")

# %% tags=["varies"]
run = launch.tensorflow(PROGRAMS / "loop.py", saved / "loop", workers=team, **quiet)
for name, output in sorted(run.output.items()):
    print(f"{name}: {output}")

# %% [markdown] tags=["slide-predict"]
# ## 6. What did the second worker cost?
#
# `train.py` is a longer program for measurements. It trains a CNN on 960 images with a global batch of 48, first with
# `fit`, then with a custom loop. The loop measures the gradient alone, which needs no other worker, and the whole step,
# with the all-reduce.
#
# **Predict.** Both runs use the same cores. How long is a step of two workers, compared with one process: half as long,
# equal, or longer?

# %% tags=["varies"]
runs = {}
arguments = ["--dataset", dataset, "--folder"]
for count in (1, team):
    folder = saved / str(count)
    shutil.rmtree(folder, ignore_errors=True)  # if this cell runs again
    command = [PROGRAMS / "train.py", *arguments, folder]
    runs[count] = launch.tensorflow(*command, workers=count, result=True, **quiet)
    print(*(output for _, output in sorted(runs[count].output.items())), sep="\n")

# %% jupyter={"source_hidden": true} tags=["varies", "slide-output"]
loops = {count: np.array(run.result["loop"]["seconds"])[5:] for count, run in runs.items()}
(single_gradient, _), (single_step, single_cpu) = np.median(loops[1], axis=0)
(gradient, _), (step, step_cpu) = np.median(loops[team], axis=0)
seconds = {
    "one process, gradient alone": single_gradient,
    "one process, whole step": single_step,
    f"{team} workers, gradient alone": gradient,
    f"{team} workers, whole step": step,
}
milliseconds = {name: 1000 * float(value) for name, value in seconds.items()}
description = ", ".join(f"{name}: {value:.1f}" for name, value in milliseconds.items())
picture = draw.bars(milliseconds, "milliseconds per step (median)", "{:,.1f}")
draw.show(picture, f"Milliseconds. {description}")
cost = (
    f"{team} workers on {cores()} cores have {single_step / step:.2f} times the speed "
    f"of one process, and use {team * step_cpu / single_cpu:.2f} times its processor time."
)
rest = (
    f"{100 * (1 - gradient / step):.0f} % of a worker's step is not the gradient: it "
    f"exchanges {4e-6 * models.cnn().count_params():.2f} MB, waits, and updates."
)
disturbed = "The gradient took as long as the whole step: other programs disturbed this run."
Markdown(f"{cost} {rest if step > gradient else disturbed}")

# %% [markdown] tags=["slide-takeaway"]
# Count the *work*, not the workers. Each worker runs every operation, only on a smaller batch, updates a copy of all
# weights, and takes part in the all-reduce of [chapter 06](06_collectives_and_ring_all_reduce.ipynb). On processors it
# goes through gRPC, not through shared memory as MPI's in that chapter, and the threads of all workers compete for the
# cores. And a step ends when the *slowest* worker ends.
#
# So several workers on the same cores are for testing. The gain comes when each worker brings its own machine, and
# computing takes much longer than the all-reduce.
#
# The strategy takes hints for the exchange:
#
# ```python
# tfde = tf.distribute.experimental
# options = tfde.CommunicationOptions(
#     implementation=tfde.CommunicationImplementation.NCCL,  # GPUs only; RING also on processors
#     bytes_per_pack=32 * 1024 * 1024,  # update one pack's weights while the next is exchanged
#     timeout_seconds=120.0,  # only to debug a hang: it becomes an error
# )
# strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
# ```

# %% [markdown]
# ## 7. Saving
#
# **The right way first.** *Every* worker calls save. The chief writes where it should, the others into a temporary
# folder that they remove, as in the last lines of `loop.py`. Under `fit`, the callbacks `ModelCheckpoint` and
# `BackupAndRestore` do all this themselves. To resume, *all* workers restore the chief's checkpoint, so it must be in a
# folder that all machines can read.
#
# The run of section 6 saved like this, and only the chief's files are left:

# %%
folder = saved / str(team)
for path in sorted([*folder.glob("fit/*"), *folder.glob("checkpoints/*")]):
    print(path.relative_to(folder).as_posix())
model = tf.keras.models.load_model(folder / "fit" / "model.keras")
print("loaded here, without any strategy:", model.count_params(), "parameters")

# %% [markdown] tags=["slide-text", "slide-points"]
# Why must a worker call save although its file is thrown away? `save_wrongly.py` tries what looks simpler:
#
# 1. **Everybody** writes a checkpoint to the same path.
# 2. **Only the chief** reads a metric for its log. Each worker gave the metric the value 2.0. The others continue, and
#    each adds 100 to a sum, then 3 to another.
# 3. **Only the chief** writes a `tf.train.Checkpoint` of model and SGD.
# 4. **Only the chief** calls `model.save` after a `fit` with `metrics=["accuracy"]`.
#
# **Predict.** One usually fails with an error, one gives a wrong number without any, one works, one never returns.
# Which?

# %% tags=["slide-continued"]
programs.show(PROGRAMS / "save_wrongly.py", "mixed")

# %% tags=["varies", "slide-output"]
result_file = saved / "wrong.json"
options = ["--folder", saved / "wrong", "--patience", 2, "--result", result_file]
try:
    launch.tensorflow(PROGRAMS / "save_wrongly.py", *options, workers=team, **quiet)
except launch.WorkerFailed as error:
    failed = error
wrong = json.loads(result_file.read_text())
tries, failures = wrong["everybody"].values()
happened = f"an error in {failures} of {team} workers" if failures else "still no error"
print(f"1. everybody to one path, try {tries}: {happened}")

# %% tags=["slide-output", "slide-continued"]
print("2. the chief alone reads a mean of 2.0 as:", round(wrong["mixed"]["read alone"], 2))
tensors = tf.train.list_variables(str(saved / "wrong" / "alone"))
print(f"3. the chief alone, a checkpoint: written, {len(tensors)} entries")
print("4. the chief alone, model.save: gave up after 2 s, exit code", failed.exit_code)
print("variables with a part in each worker:", wrong["combined on read"])

# %% [markdown] tags=["slide-takeaway"]
# **1, a race.** A checkpoint is first written under a temporary name, then renamed. The worker that renames first
# removes the file that the other one needs. It may go well many times.
#
# **2 and 4, one cause.** Some variables have a part in each worker: a metric's total and count, the moving averages of
# batch normalisation. Reading one means adding up or averaging the parts, a **collective**, in which *all* must take
# part. `model.save` reads all of them.
#
# If the others wait, the chief waits forever: a **deadlock**. If they continue, TensorFlow pairs the chief's collective
# with whatever the others call next: with one other worker, 2 gives (2 + 100) / (1 + 3) = 25.5. Where the shapes
# differ, TensorFlow raises `Shape mismatch in the collective instance`; where they are equal nobody notices.

# %% [markdown] tags=["slide-quiz"]
# **3 works**: a checkpoint of model and SGD leaves out the metrics, and mirrored weights are complete in every worker.
# Add one batch-normalisation layer, and it hangs, too. So the rule is: *every worker calls; the chief keeps.*
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
# 2. **Right.** `value = accuracy.result()` on all, then `if is_chief: print(value)`.
# 3. It asks for the other parts, so it hangs or mixes in other numbers.
# </details>

# %% [markdown]
# ## 8. "Collective ops must be configured at program startup"
#
# Why does this chapter start programs instead of making the strategy here? Because of the error that beginners meet
# first. This kernel has already run TensorFlow operations; now we tell it that it is a worker.

# %%
os.environ["TF_CONFIG"] = by_hand
try:
    tf.distribute.MultiWorkerMirroredStrategy()
except RuntimeError as error:
    print(error)
del os.environ["TF_CONFIG"]

# %% [markdown]
# TensorFlow creates its runtime at the *first operation*, and a worker's runtime must have a server that listens on the
# address in TF_CONFIG. Making a tensor, a data set or a model runs operations, so create the strategy first. In a
# notebook, restart the kernel; even then it can be *one* worker at most.
#
# ## 9. Several workers equal one process
#
# Here is the training of section 6 in this kernel, without any strategy: same first weights, same global batches, SGD,
# 20 steps. If a worker lost a sample, or divided a gradient by the wrong number, its weights would differ.

# %% tags=["varies"]
order = np.random.default_rng(7).permutation(len(train.images))[:960]
samples = tf.data.Dataset.from_tensor_slices((train.images[order], train.labels[order]))
tf.keras.utils.set_random_seed(7)
alone = models.cnn()
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
alone.compile(tf.keras.optimizers.SGD(0.05), loss)
alone.fit(samples.batch(48), verbose=0)

larger = saved / str(team + 1)
shutil.rmtree(larger, ignore_errors=True)
command = [PROGRAMS / "train.py", *arguments, larger]
runs[team + 1] = launch.tensorflow(*command, workers=team + 1, result=True, **quiet)
print(f"{team + 1} workers: {runs[team + 1].seconds:.0f} s")

# %% tags=["slide-output"]
for count in (team, team + 1):
    from_fit = tf.keras.models.load_model(saved / str(count) / "fit" / "model.keras")
    from_loop = models.cnn()
    newest = tf.train.latest_checkpoint(saved / str(count) / "checkpoints")
    tf.train.Checkpoint(model=from_loop).restore(newest).expect_partial()
    for way, model in (("fit", from_fit), ("loop", from_loop)):
        seen = np.array(runs[count].result[way]["seen"])
        different = len(np.unique(seen))
        print(f"{count} workers, {way}: {seen.size} samples, {different} different;", end=" ")
        checks.assert_equal_weights(model.get_weights(), alone.get_weights())

# %% [markdown] tags=["slide-takeaway"]
# Apart from rounding, the weights depend neither on the number of workers nor on how the batches are divided: in each
# step the *union* of the parts is the same global batch. (For `fit` the samples are counted in a second pass of the
# same pipeline.) Dropout and batch normalisation act on each worker's part alone, so with them the weights would
# differ. The comparison is short on purpose, since rounding differences grow from step to step.
#
# We chose 960 samples because 48 divides 960. A last batch that does not fill all workers needs care, as on several
# devices: [chapter 04, section 7](04_custom_training_loop.ipynb).

# %% [markdown]
# ## Quiz
#
# Ten questions with instant feedback; `seed=2` gives them other numbers.

# %%
quizzes.ask("07")

# %% [markdown]
# ## Recap
#
# - TF_CONFIG names the cluster, equal for all, and the task, different for each. Check it: some mistakes make it wait
#   without a word.
# - `batch` takes the global batch size; an epoch has $n/B$ steps; validation data stay finite.
# - Policy DATA divides each batch, FILE the files; with `distribute_datasets_from_function` you shard yourself.
# - Several workers on the same cores add work, not hardware: use them for tests.
# - Every worker calls `save` and reads metrics; the chief keeps the files.
# - One path for all is a race. The chief alone hangs, or mixes numbers, if a variable is combined on reading.
# - The strategy comes before any operation.
# - Several workers equal one process within 1e-5 after 20 SGD steps.
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

# %% [markdown]
# # Lab 16, the capstone: a program that nobody has distributed yet
#
# **Goal.** Distribute a serial program that you have not seen before, prove that it computes the same, measure it, read
# the profile of a given run, predict a step on 64 ranks, write the job script, and report on one page.
#
# **Time.** 160 minutes, in several sittings: 75 for exercise 1, 50 for exercises 2 to 5, 35 for the report. The run on
# real ranks is optional and takes 15 more.
#
# **Before this.** Chapters [04](../../notebooks/04_custom_training_loop.ipynb),
# [11](../../notebooks/11_scaling_and_profiling.ipynb), [13](../../notebooks/13_fault_tolerance.ipynb) (what a stop
# costs) and [15](../../notebooks/15_clusters.ipynb), and either [09](../../notebooks/09_horovod.ipynb) or
# [07](../../notebooks/07_multi_worker.ipynb): you choose.
#
# **How it works.** Write each answer in the cell that says so, run it, and run the check below it: it says what is
# wrong, with a hint. `make check LAB=16` does the same in a terminal. The checks need neither Horovod nor other
# processes: their ranks are threads. A full solution is next to this file, in [solution.ipynb](solution.ipynb).

# %%
import argparse
import tempfile
import time
from pathlib import Path

from distlab import costs, data, labs, models, programs  # before TensorFlow

import numpy as np
import tensorflow as tf

tf.get_logger().setLevel("ERROR")
lab = labs.open("16")
hvd = lab.given.hvd
loss_of_each = tf.keras.losses.SparseCategoricalCrossentropy(
    from_logits=True,
    reduction="none",
)

# %% [markdown]
# ## The program
#
# It classifies short texts by topic. The texts are made from a seed:

# %%
words, labels = data.topics.texts(4, seed=1)
for row, label in zip(words, labels, strict=True):
    print(f"{data.topics.NAMES[label]:>9}: {data.topics.sentence(row)}")

# %% [markdown]
# The model takes the mean of the words' vectors, and a dense layer makes scores of it. Here is the training, from
# [train_serial.py](train_serial.py). `python train_serial.py` runs it.

# %%
programs.show(Path("train_serial.py"), "batches", "begin", "step", "save", "train")

# %% [markdown]
# ## 1. On ranks
#
# Write `train(options)` for ranks, which returns `(state, steps)` as before. **Every rank calls it**, with these
# options: `texts`, `batch`, `epochs`, `rate`, `units`, `seed`, `folder`, `resume`. Copy from the serial program what
# stays as it is. `train` may call other functions that you write in the same cell. Choose one way:
#
# - **Horovod.** `hvd` has the calls of `horovod.tensorflow`. `train` calls `hvd.init()` first. Only rank 0's host has
#   checkpoints to resume from.
# - **MultiWorkerMirroredStrategy.** `train` makes `tf.distribute.MultiWorkerMirroredStrategy()` first. All workers see
#   the checkpoints.

# %% [markdown]
# Target: on two ranks or more, the weights after every step are those of the serial program from the same start. Each
# part gives a sixth of the points. Write them in this order:
#
# - **start**: All ranks begin with the weights and momentum of rank 0. With `options.resume` these are the
#   checkpoint's.
# - **shares**: `options.batch` is the **global** batch, a multiple of the number of ranks. In each step every
#   text of the serial program's batch is on one rank. No rank has more than its share. The last batch of an epoch may
#   be smaller: some ranks may then have fewer texts than others, or none.
# - **rate**: The optimizer and the learning rate are the serial program's, since the global batch is the same.
# - **average**: Each step uses the mean gradient of all its texts, whichever rank they are on.
# - **record**: `texts` and `loss` of a step are those of all ranks together, on every rank. `seconds` are this rank's.
# - **checkpoint**: Rank 0 writes one into `options.folder` after each epoch, and no others. No other rank writes there.
#
# The check takes some seconds: two ranks first; then three, which resume.

# %% [markdown]
# Some calls that you may need. Inside a function that `strategy.run` calls, `context` is
# `tf.distribute.get_replica_context()`. Horovod gives the average unless you ask for the sum.
#
# | | Horovod | MultiWorkerMirroredStrategy |
# |---|---|---|
# | number of ranks | `hvd.size()` | `strategy.num_replicas_in_sync` |
# | this rank | `hvd.rank()` | `strategy.cluster_resolver.task_id or 0` |
# | a part of each batch | `words[start::step]` in `dataset.map` | `strategy.experimental_distribute_dataset` |
# | a sum of gradients | `hvd.DistributedGradientTape(tape, op=hvd.Sum)` | `apply_gradients` adds them up |
# | a sum of numbers, inside `strategy.run` | `hvd.allreduce(x, op=hvd.Sum)` | `context.all_reduce("SUM", x)` |
# | a sum of numbers, outside | the same call | `strategy.reduce("SUM", x, axis=None)` |
# | number in a variable | `int(variable)` | `int(variable.numpy())` |


# %% answer="train"
def train(options: argparse.Namespace) -> tuple[tf.train.Checkpoint, list[dict]]:
    """Train on all ranks; the state at the end, and a record of each step."""
    ### BEGIN SOLUTION
    hvd.init()
    state, steps = begin(options), []
    for epoch in range(int(state.epochs_done), options.epochs):
        for words, labels, count in batches(options, epoch):
            start = time.perf_counter()
            loss = float(step(state, words, labels, count))
            seconds = time.perf_counter() - start
            steps.append({"texts": int(count), "loss": loss, "seconds": seconds})
        state.epochs_done.assign_add(1)
        if options.folder and hvd.rank() == 0:
            state.save(str(options.folder / "checkpoint"))
    return state, steps


def batches(options, epoch):
    """This rank's part of each global batch, and how many texts the whole of it has."""
    words, labels = data.topics.texts(options.texts, options.seed)
    order = np.random.default_rng([options.seed, epoch]).permutation(options.texts)
    texts = tf.data.Dataset.from_tensor_slices((words[order], labels[order]))
    whole = texts.batch(options.batch)
    own = slice(hvd.rank(), None, hvd.size())
    return whole.map(lambda words, labels: (words[own], labels[own], tf.size(labels)))


def begin(options):
    """The serial program's state, that of rank 0 on all ranks."""
    model = models.text_classifier(options.units)
    optimizer = tf.keras.optimizers.SGD(options.rate, momentum=0.9)
    optimizer.build(model.trainable_variables)
    done = tf.Variable(0, dtype=tf.int64)
    state = tf.train.Checkpoint(model=model, optimizer=optimizer, epochs_done=done)
    if options.resume and hvd.rank() == 0:
        newest = tf.train.latest_checkpoint(options.folder)
        state.restore(newest).assert_existing_objects_matched()
    hvd.broadcast_variables([*model.variables, *optimizer.variables, done], root_rank=0)
    return state


@tf.function(reduce_retracing=True)
def step(state, words, labels, count):
    """Change the weights once; the loss before. A rank may have no text: sums are divided."""
    with tf.GradientTape() as tape:
        losses = loss_of_each(labels, state.model(words, training=True))
        loss = tf.reduce_sum(losses) / tf.cast(count, tf.float32)
    tape = hvd.DistributedGradientTape(tape, op=hvd.Sum)
    weights = state.model.trainable_variables
    gradients = tape.gradient(loss, weights)
    state.optimizer.apply_gradients(zip(gradients, weights, strict=True))
    return hvd.allreduce(loss, op=hvd.Sum)
    ### END SOLUTION


# %% [markdown]
# **Optional: on real ranks.** When the check says "right", remove the two `#` below. The cell writes your functions to
# a file, in which `hvd` is Horovod, starts the serial program, then 1, 2 and 4 ranks, and prints the largest difference
# of the weights and the times of rank 0. It takes two to four minutes. Ranks that share cores may well be slower than
# one: expect speed-ups below 1. The first batch of another size makes TensorFlow trace the step again, in the middle of
# the run. With `options=["--texts", "20000", "--batch", "2048", "--units", "256"]` it trains a larger model: how do the
# times change?

# %%
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "train_on_ranks.py"
    # lab.given.write(globals(), file)
    # programs.module("real_ranks.py").report(file, ranks=[1, 2, 4])

# %% [markdown]
# ## 2. Throughput
#
# `measured` has a list for each number of ranks, 1 among them, in any order: for each step the texts of all ranks, and
# the seconds, as in your records. The first `warm_up` steps of each list do not count. Now and then another program
# disturbed a step, or TensorFlow traced one again; take the **median** of the texts per second of the steps that count.
#
# Give a dictionary: for each number of ranks a dictionary with `"texts/s"`, `"speed-up"` (over 1 rank) and
# `"efficiency"` (a part of 1). Target: right for any measurements; a third of the points for each number. For example

# %%
for ranks, steps in lab.given.MEASURED.items():
    print(f"{ranks}: {steps}")
print(lab.target("throughput"))


# %% answer="throughput"
def throughput(
    measured: dict[int, list[tuple[int, float]]],
    warm_up: int,
) -> dict[int, dict[str, float]]:
    """Texts per second, speed-up and efficiency, by the number of ranks."""
    ### BEGIN SOLUTION
    rates = {
        ranks: float(np.median([texts / seconds for texts, seconds in steps[warm_up:]]))
        for ranks, steps in measured.items()
    }
    return {
        ranks: {
            "texts/s": rate,
            "speed-up": rate / rates[1],
            "efficiency": rate / rates[1] / ranks,
        }
        for ranks, rate in rates.items()
    }
    ### END SOLUTION


# %% [markdown]
# ## 3. Profile
#
# `events` is the timeline of one rank, in no order: dictionaries with `step`, `name` (`"input"`, `"computing"` or
# `"all-reduce"`), `start` and `end`. In a step there may be several of each. Events of one name do not overlap; an
# all-reduce may run while the rank computes, and that part of it costs nothing.
#
# A step lasts from the first start to the last end of its events. Step 0 does not count. Give which part of the time of
# all other steps together is `"input"`, `"computing"`, and **exposed** `"all-reduce"`, in which nothing is computed; and
# the `"bottleneck"`: the name of the largest of the three. A point for each. For example

# %%
print(*lab.given.TIMELINE, sep="\n")
print(lab.target("profile"))


# %% answer="profile"
def profile(events: list[dict]) -> dict:
    """The shares of input, computing and exposed all-reduce, and the bottleneck."""
    ### BEGIN SOLUTION
    later = [event for event in events if event["step"] > 0]
    total = 0
    for step in {event["step"] for event in later}:
        own = [event for event in later if event["step"] == step]
        total += max(event["end"] for event in own) - min(event["start"] for event in own)
    seconds = dict.fromkeys(["input", "computing", "all-reduce"], 0)
    for event in later:
        seconds[event["name"]] += event["end"] - event["start"]
        for other in later:
            if (event["name"], other["name"]) == ("all-reduce", "computing"):
                overlap = min(event["end"], other["end"]) - max(event["start"], other["start"])
                seconds["all-reduce"] -= max(0, overlap)
    shares = {name: taken / total for name, taken in seconds.items()}
    return {**shares, "bottleneck": max(shares, key=shares.get)}
    ### END SOLUTION


# %% [markdown]
# ## 4. Predict 64 ranks
#
# A step of a rank takes `fixed` seconds, and `each` seconds more for each of its texts. Then follows a ring all-reduce
# of `nbytes` bytes of gradients, with the cluster's α, `latency`, and β, `seconds_per_byte`; nothing of it is hidden. The
# global `batch` is divided over `ranks` ranks as evenly as whole texts allow, and all wait for the fullest one. Give
#
# - `"step"`: the seconds of a step; `"texts/s"`: the throughput of all ranks;
# - `"efficiency"`: over one rank, which has the whole batch and exchanges nothing, as a part of 1;
# - `"most ranks"`: of 1, 2, 4, 8, … up to `ranks`, the largest number with an efficiency of at least `at_least`.
#
# Target: right on any cluster; a point for each number. `costs.all_reduce("ring", ranks, nbytes).seconds(latency,
# seconds_per_byte)` gives the all-reduce. For example

# %%
print(lab.target("predict"))


# %% answer="predict"
def predict(
    ranks: int,
    batch: int,
    fixed: float,
    each: float,
    nbytes: int,
    latency: float,
    seconds_per_byte: float,
    at_least: float,
) -> dict[str, float]:
    """A step on that many ranks, its throughput, efficiency, and how many are worth it."""
    ### BEGIN SOLUTION

    def step(count):
        all_reduce = costs.all_reduce("ring", count, nbytes).seconds(latency, seconds_per_byte)
        return float(fixed + each * np.ceil(batch / count) + all_reduce)

    def efficiency(count):
        return step(1) / step(count) / count

    most = count = 1
    while count <= ranks:
        if efficiency(count) >= at_least:
            most = count
        count *= 2
    return {
        "step": step(ranks),
        "texts/s": batch / step(ranks),
        "efficiency": efficiency(ranks),
        "most ranks": most,
    }
    ### END SOLUTION


# %% [markdown]
# ## 5. The job script
#
# `job_script` gives the text of a bash script for `sbatch`. It asks Slurm for `nodes` nodes with `tasks` ranks on each,
# `cores` cores for each rank, and a time limit of exactly `minutes` minutes, which may be more than a day. It starts
# `python train.py` on all ranks with one `srun`, which must be told the cores too (chapter 15, and
# `notebooks/programs/15_clusters/slurm/ranks.sbatch`). The job ends when the script does. If `train.py` fails, the
# script ends with another status than 0, so that the state of the job is FAILED. The check runs your script by bash, on
# the fake Slurm of lab 15.
#
# Target: right for any numbers, by Slurm's own rules for options and
# [times](https://slurm.schedmd.com/sbatch.html#OPT_time). A point each for nodes and tasks, cores, time, start.


# %% answer="job_script"
def job_script(nodes: int, tasks: int, cores: int, minutes: int) -> str:
    """The text of a job script for Slurm."""
    ### BEGIN SOLUTION
    return f"""#!/bin/bash
#SBATCH --job-name=capstone
#SBATCH --nodes={nodes}
#SBATCH --ntasks-per-node={tasks}
#SBATCH --cpus-per-task={cores}
#SBATCH --time={minutes // 60}:{minutes % 60:02}:00
#SBATCH --output=%x-%j.out

set -euo pipefail
srun --mpi=pmix --kill-on-bad-exit=1 --cpus-per-task={cores} python train.py
"""
    ### END SOLUTION


# %% [markdown]
# ## 6. The report
#
# Report on one page. Write six short texts of 25 to 120 words each. Each text has a number in digits that you
# measured or computed (the 32 of `float32` does not count). If you did not run real ranks, take the largest difference
# that the check of exercise 1 prints and the numbers of the examples above, and say so. For "job" compute one, such as
# cores × hours. These are the questions:
#
# - **equality**: By how much do the weights differ from the serial ones at most? Why is this small enough, and not 0?
# - **throughput**: Texts/s, speed-up and efficiency on each number of ranks. Which steps count, and how sure are you?
# - **profile**: Where does the time of a step go? How do you know?
# - **prediction**: What do you expect on 64 ranks, from which α and β? Which assumption is the weakest?
# - **job**: What do you ask the scheduler for, and why? What does it cost if the job is stopped after an hour?
# - **limits**: What did you not test? What would you do next?
#
# The check sees the form only, a point for each text. Your instructor reads what they say, with
# `rubric.md`, next to this file.

# %% answer="report"
report = {
    "equality": """ """,
    "throughput": """ """,
    "profile": """ """,
    "prediction": """ """,
    "job": """ """,
    "limits": """ """,
}
### BEGIN SOLUTION
report = {
    "equality": """All runs began with one checkpoint. On 1, 2 and 4 ranks no weight
    differed from the serial one by more than a millionth after 3 epochs. Sums of 32-bit
    numbers in another order differ in the last digit or so, and a fault such as a mean of
    means gave a thousand times more.""",
    "throughput": """In the example of exercise 2, one rank does 1,000 texts/s and four
    ranks 2,500: a speed-up of 2.5 and an efficiency of 62.5 %. I left the first step out,
    in which the graph is traced, and took the median, since one step in four was
    disturbed on four ranks. Four steps are few; I would measure 50.""",
    "profile": """In the example timeline 70 % of a step is computing, 15 % is exposed
    all-reduce and 10 % is input. The rest is gaps. The all-reduce takes longer than that,
    but it begins while the rank still computes, and only the part in which nothing is
    computed costs time. So computing is the bottleneck here.""",
    "prediction": """With α = 20 µs and β = 1 ns per byte, 64 ranks need 14 ms for a step
    of 1,000 texts, most of it for the ring, and the efficiency is below a quarter. The
    weakest assumption is that one α and one β hold within a node and between nodes: 64
    ranks are on several.""",
    "job": """I ask for 4 nodes with 16 tasks each, as the nodes have 64 cores, 4 cores
    for each task, and a limit of 90 minutes, half more than the run should take. A
    checkpoint is written after each epoch, so a job that is stopped loses one epoch at
    most, and goes on with --resume.""",
    "limits": """I tested at most 4 ranks on one machine with 2 cores, so nothing here
    shows what a network does. The texts are made up, and the model is so small that the
    exchange costs as much as the computing. Next I would measure α and β on the cluster,
    then 8 ranks on 2 nodes.""",
}
### END SOLUTION

# %% [markdown]
# ## What you have now
#
# - A distributed program that computes what the serial one does, also where batches cannot be divided evenly.
# - Numbers that you can defend: what was measured, what was left out, what was predicted from what.
# - A page that another person can check.
#
# **Going on.** Write the program the other way too. Which of the six parts became easier, which harder?

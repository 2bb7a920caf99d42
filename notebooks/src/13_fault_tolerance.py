# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 13 Fault tolerance
#
# **Goal.** Recognise six faults of a distributed job by their signs, confirm each, and recover from it without losing
# more than the steps since the last whole checkpoint.
#
# **Time.** 50 minutes to read, one minute to run.
#
# **Before this.** [05 save and load](05_save_and_load.ipynb) for checkpoints, [06
# collectives](06_collectives_and_ring_all_reduce.ipynb) for the all-reduce and the virtual cluster, [07
# multi-worker](07_multi_worker.ipynb) for jobs of several processes, [09 Horovod](09_horovod.ipynb) for section 6.
#
# **Questions.**
# - A worker is killed. What is lost, and is the resumed run the same run?
# - All workers are slow. Which one is the cause?
# - Nothing happens at all. Who is missing?
# - The newest checkpoint cannot be read. What does TensorFlow do, and what should a program do?
# - Can a job continue with fewer ranks?
# - The cluster is about to stop the job. How do all workers save at the same step?
#
# **Hardware.** Two cores. Real processes simulate faults.

# %% tags=["parameters"]
dataset = "digits"  # digits, mnist or fashion_mnist; 960 images at most are trained on
epochs = 2  # of the jobs in sections 1, 2, 5, 6 and 7; 12 steps each
workers = 2  # section 3 has as many ranks, but 3 or more; the TensorFlow jobs have 2 workers, enough for one to die

# %% jupyter={"source_hidden": true}
import distlab  # first: it selects tf-keras, which must happen before TensorFlow is imported

import argparse
import math
import shutil
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf

from distlab import checks, collectives, data, draw, launch, models, programs, quizzes
from distlab.simulate import Network, World

PROGRAMS = Path("programs/13_fault_tolerance")  # the programs of this chapter; parts of them are shown below
sys.path.insert(0, str(PROGRAMS))
import train
import whole_checkpoints

# %%
draw.apply_style()
tf.get_logger().setLevel("CRITICAL")  # for checkpoints that we damage on purpose it would print the paths
print(data.describe(dataset))
scratch = tempfile.TemporaryDirectory()
folder = Path(scratch.name)
steps_per_epoch, save_every = 12, 5
total = steps_per_epoch * epochs
options = argparse.Namespace(dataset=dataset, epochs=epochs, steps_per_epoch=steps_per_epoch)

# %% [markdown] tags=["slide-predict"]
# ## 1. Why faults are normal
#
# A part that fails once in five years is reliable. A job that needs 16,384 of them at the same time is not. Training
# Llama 3 on 16,384 GPUs was interrupted unexpectedly 419 times in 54 days (Llama team, 2024, section 3.3.4).
#
# A synchronous job stops when *one* worker stops, so it must save often enough. But saving costs time, too. If a save
# takes $C$ seconds and a fault comes every $M$ seconds, you lose the least time by saving every
#
# $$\sqrt{2 C M}$$
#
# seconds (Young, 1974): each interval costs $C$, and each fault costs half an interval on average.
#
# **Predict.** A save takes 30 seconds. How often would you save in that job: every minute, every quarter of an hour,
# every hour?

# %% tags=["slide-output"]
between_faults = 54 * 24 * 3600 / 419
print(f"a fault every {between_faults / 3600:.1f} hours")
for minutes in (1, math.sqrt(2 * 30 * between_faults) / 60, 60):
    lost = 30 / (60 * minutes) + 60 * minutes / 2 / between_faults
    print(f"a save every {minutes:4.1f} minutes: {lost:5.1%} of the time is lost")

# %% [markdown]
# ### The smallest program that resumes
#
# To resume exactly, a program must restore everything that the next step depends on: the weights, the optimizer's
# momentum, the number of steps done, the position in the data, and the random state if a layer such as dropout draws
# numbers ([notebook 05](05_save_and_load.ipynb); this model draws none). The optimizer counts the steps itself, in
# `iterations`, so a checkpoint of model and optimizer holds the first three.
#
# For the data, **the order is a function of the step**, not of what an iterator has done so far. `index_shuffle`
# computes which image is at a position of a shuffled epoch, without shuffling the epoch:

# %%
programs.show(PROGRAMS / "train.py", "batches")

# %%
from_start = [images.numpy() for images, _ in train.batches(options, first_step=0)]
from_step_10 = [images.numpy() for images, _ in train.batches(options, first_step=10)]
print(f"{len(from_start)} batches from the start, {len(from_step_10)} from step 10 on")
checks.assert_equal(from_start[10:], from_step_10, "images")


# %%
def run_to(last_step, saves, choose=tf.train.latest_checkpoint, after_save=lambda prefix: None):
    """Train to this step from a checkpoint in the folder `saves`, save every five steps; the final weights."""
    tf.keras.utils.set_random_seed(train.SEED)
    model = models.mlp(dropout=0.0)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.SGD(0.1, momentum=0.9), loss)
    model.optimizer.build(model.trainable_variables)  # creates the momentum, which must be restored, too

    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    checkpoint.restore(choose(saves))  # restore(None) does nothing
    manager = tf.train.CheckpointManager(checkpoint, saves, max_to_keep=2)

    first_step = int(model.optimizer.iterations)
    print(f"begins after step {first_step}, ends after step {last_step}")
    for images, labels in train.batches(options, first_step).take(last_step - first_step):
        model.train_on_batch(images, labels)
        step = int(model.optimizer.iterations)
        if step % save_every == 0:
            after_save(manager.save(checkpoint_number=step))
    return model.get_weights()


# %%
final_weights = run_to(total, folder / "undisturbed")
run_to(total - 2, folder / "stopped")  # then something stops the program
checks.assert_equal_weights(run_to(total, folder / "stopped"), final_weights)

# %% [markdown]
# ### Why keep two checkpoints?
#
# With `max_to_keep=2`, the manager deletes an old checkpoint only after a newer pair is complete. With a single file
# that is overwritten, a fault *during the save* can leave nothing. And damage that you notice only when you resume,
# such as a truncated file (section 5), costs one more interval if there are two checkpoints, and the whole run if not.
#
# Keras has a callback, `tf.keras.callbacks.BackupAndRestore`. It saves weights, optimizer, epoch and batch after each
# epoch, or every `save_freq` steps, and restores them when `fit` begins. For a long run it lacks three things:
#
# - It keeps **one** backup, and cannot keep more.
# - It restores what `latest_checkpoint` names, unchecked. If that is damaged, the job cannot start.
# - `fit` skips the finished steps, but *not in the data*: it takes the first batch that the data set yields.

# %% [markdown]
# ### The same for several workers
#
# `train.py` trains with two workers, SGD with momentum and a global batch of 64. The function
# `whole_checkpoints.newest` (section 5) tries the newest checkpoint first, and prints which one it takes and why it
# skips others. It also refuses a checkpoint of another `layout`: names and shapes of variables.
#
# All workers must resume from the *same* checkpoint. If each looked for itself, two workers could see different files:
# a local folder on each machine, or a network disk that shows a new file late. So **the chief decides and reads; the
# others receive its values**, and need no access to its folder.
#
# Saving has its own rule ([notebook 07](07_multi_worker.ipynb)): every worker calls `save` at the same step, because
# some variables are summed over all workers when they are saved. The chief writes to the backup folder, every other
# worker to a temporary one.

# %%
programs.show(PROGRAMS / "train.py", "train", "resume", "values_of_chief")

# %% [markdown] tags=["slide-text", "slide-predict"]
# ## 2. A worker is killed
#
# `kill -9`, SIGKILL, ends a process at once; it cannot clean up. Linux sends the same signal when memory runs out, and
# a machine that loses power ends its workers just as abruptly. Here worker 1 sends it to itself, so that it comes at a
# known step. Each worker also writes every step that it has done to a file.
#
# **Predict.** A save every 5 steps; worker 1 dies after step 13 (after 8 with `epochs=1`). How many steps must be done
# twice?


# %% tags=["varies"]
def job(name, *arguments):
    """Two workers run `train.py`, with checkpoints and lists of steps in a folder of that name."""
    (folder / name).mkdir(exist_ok=True)
    places = ["--backup", folder / name / "backup", "--steps-done", folder / name]
    arguments = ["--dataset", dataset, "--epochs", epochs, *places, *arguments]
    return launch.tensorflow(PROGRAMS / "train.py", *arguments, workers=2, result=True, start_seconds=240)


killed_at = min(13, total - 4)
shutil.rmtree(folder / "killed", ignore_errors=True)  # if this cell runs again
try:
    job("killed", "--kill-worker", 1, "--kill-at-step", killed_at)
except launch.WorkerFailed as error:
    fault = error
    print(f"\nWorkerFailed: {error}")


# %%
def steps_of(name, worker):
    """Every step that a worker has done, in the order in which it did them."""
    return [int(line) for line in (folder / name / f"worker-{worker}.txt").read_text().split()]


print(f"{fault.rank} ended with exit code {fault.exit_code}: killed by signal {-fault.exit_code}")
saved = whole_checkpoints.number(tf.train.latest_checkpoint(folder / "killed" / "backup"))
print(f"done {steps_of('killed', 1)[-1]} steps, the newest checkpoint holds {saved}: {killed_at - saved} are lost")

# %% [markdown]
# Worker 0 was healthy, but in the next step it waits in the all-reduce for a gradient that never comes. The launcher
# ended it. Without the launcher it would stop later with an error of the collective, or with "The following tasks are
# unhealthy (stopped sending heartbeats)". A worker cannot join a running cluster again. So **the whole job is started
# again**, with the same command. Is the result the *same* run as the one that nothing disturbed?

# %% tags=["varies"]
resumed = job("killed")

# %%
done = steps_of("killed", 1)
twice = sorted({step for step in done if done.count(step) > 1})
print(f"resumed after step {resumed.result['first_step']}")
print(f"worker 1 has done {len(done)} steps for a run of {total}, twice those of {twice}")
checks.assert_equal_weights([np.array(weights) for weights in resumed.result["weights"]], final_weights)

# %% tags=["slide-output"]
figure, axes = plt.subplots(figsize=(7.2, 3))
runs = {"until the kill": range(1, killed_at + 1), "after the restart": range(saved + 1, total + 1)}
first = 1
for number, (label, steps) in enumerate(runs.items()):
    done = range(first, first + len(steps))
    axes.plot(done, steps, color=draw.RANK_COLOURS[number], marker=draw.MARKERS[number], linestyle="", label=label)
    first += len(steps)
for step in range(save_every, total + 1, save_every):
    label = "saves" if step == save_every else None
    axes.axhline(step, color="grey", linewidth=0.8, linestyle=":", marker="", label=label)
axes.set(xlabel="steps done by worker 1", ylabel="step of the run")
figure.legend(loc="outside upper center", ncols=3)
draw.show(figure, "Two rising lines of points: to the kill, and from the last save to the end. Dotted: the saves.")

# %% [markdown] tags=["slide-takeaway", "slide-table"]
# The lost steps are done again; nothing else is lost, and the weights are those of the undisturbed run.
#
# | Diagnosis card | a worker is killed |
# |---|---|
# | **Sign** | exit code −9 (137 in a shell); the others stop in a collective, then report missing heartbeats |
# | **Confirm** | which process is gone, and by which signal: launcher, `sacct`, `dmesg` ("Out of memory") |
# | **Cause** | memory, a machine or its power, a colleague's `kill` |
# | **Recovery** | start the whole job again from the newest whole checkpoint; save every $\sqrt{2CM}$ seconds |

# %% [markdown]
# **Question.** The data came from `shuffle(buffer)` without a seed. What happens?
#
# 1. The run is the same; the checkpoint holds everything.
# 2. `fit` fails.
# 3. Some images come twice in the epoch and some not at all
#
# <details>
# <summary>Answer</summary>
#
# 1. No: the checkpoint does not hold the data order.
# 2. No, there is no error. That is the trap.
# 3. **Right.** The epoch is shuffled again, and what was done before the fault is forgotten. It is another run, and no
#    bug in it can be reproduced.
# </details>

# %% [markdown] tags=["slide-text", "slide-predict"]
# ## 3. A straggler
#
# A **straggler** is a worker that is alive but slow, because of a hot processor, a disk with errors, or other programs
# on the same machine. On the virtual cluster, rank 1 needs four times as long to compute.
#
# **Predict.** One of three ranks needs four times as long. By which factor does the job slow down?

# %%
ranks, slow_rank, slower = max(workers, 3), 1, 4.0
milliseconds_per_image = ranks / 3  # then an even share takes about as long with any number of ranks
STEPS = 5
network = Network(latency=5e-6, seconds_per_byte=1e-9)
gradient = np.ones(7_850, np.float32)


async def steps(rank, shares):
    """Five training steps; mean milliseconds of computing and of waiting for the sum."""
    computing = waiting = 0.0
    for _ in range(STEPS):
        start = rank.now
        await rank.compute(1e-3 * milliseconds_per_image * shares[rank.index])
        computed = rank.now
        await collectives.ring_all_reduce(rank, gradient)
        computing, waiting = computing + computed - start, waiting + rank.now - computed
    return 1000 * computing / STEPS, 1000 * waiting / STEPS


def simulated(shares, speeds=None):
    return World(len(shares), network, speeds).run(steps, [shares] * len(shares))


# %% tags=["slide-output"]
def shares_by(speeds):
    """How many of 64 images each rank gets: each image goes to the rank that would finish it first."""
    shares = np.zeros(len(speeds), int)
    for _ in range(64):
        shares[np.argmin((shares + 1) / speeds)] += 1
    return shares.tolist()


even = shares_by([1] * ranks)
for name, speeds in (("one speed", None), ("rank 1 is slow", {slow_rank: 1 / slower})):
    run = simulated(even, speeds)
    print(f"{name}: {1000 * run.elapsed / STEPS:.1f} ms a step")
    for rank, (computing, waiting) in enumerate(run.results):
        print(f"    rank {rank} computes {computing:5.1f} ms and waits {waiting:5.1f} ms")
draw.show(draw.timeline(run), "Timeline of five steps: rank 1 computes all the time, the others wait for most of it.")

# %% [markdown] tags=["slide-takeaway"]
# Every step takes as long as that of the slowest rank: the factor is nearly 4. That is what makes a straggler hard to
# find: *all* ranks report the same slow step. Only its parts differ. A rank that waits is healthy; **the straggler is
# the rank that waits least**.
#
# Now with real processes, over MPI. `find_straggler.py` trains a linear classifier. Each rank measures two times: its
# computation, and its waiting for the sum. Most of the computation is a pause for each image, four times as long on
# rank 1, so that other programs on your machine disturb the times little.

# %%
programs.show(PROGRAMS / "find_straggler.py", "train")

# %% tags=["varies"]
arguments = ["--dataset", dataset, "--slow-rank", slow_rank, "--times-slower", slower]
arguments += ["--pause", milliseconds_per_image / 1000]
trainings = launch.mpirun(PROGRAMS / "find_straggler.py", *arguments, ranks=ranks, result=True).result
for name in ("even", "slow"):
    training = trainings[name]
    print(f"\n{name}: {1e3 * training['step']:.0f} ms a step")
    for rank in range(ranks):
        computing, waiting = (1e3 * training[part][rank] for part in ("computing", "waiting"))
        print(f"    rank {rank} computes {computing:5.1f} ms and waits {waiting:5.1f} ms")
least = np.argmin(trainings["slow"]["waiting"])
which = "the slow one" if least == slow_rank else "not the slow one, as other programs disturbed the ranks more"
print(f"\nA step takes {trainings['slow']['step'] / trainings['even']['step']:.1f} times as long with the slow rank.")
print(f"Rank {least} waits least: {which}.")

# %% [markdown]
# In TensorFlow you get the same two times from a custom loop ([04](04_custom_training_loop.ipynb)) whose step is cut
# into two functions: one computes the gradients, the other applies them, which includes the sum. Horovod's timeline
# shows the waiting as `NEGOTIATE_ALLREDUCE`.
#
# Two remedies, on the virtual cluster: give each rank a share in proportion to its speed, or leave out the slow one.
#
# **Predict.** Which is better? When does it pay to keep the slow rank?

# %%
slow = {slow_rank: 1 / slower}
by_speed = shares_by([slow.get(rank, 1) for rank in range(ranks)])
without = shares_by([1] * (ranks - 1))
for name, shares, speeds in (("even", even, slow), ("by speed", by_speed, slow), ("without it", without, None)):
    print(f"{name:10} {1000 * simulated(shares, speeds).elapsed / STEPS:5.1f} ms a step, shares {shares}")

# %% tags=["varies"]
training = trainings["shared by speed"]
print(f"real ranks, shares by the speed that was measured: {1e3 * training['step']:.0f} ms, {training['shares']}")
checks.assert_equal([training["difference"]], [0], "weights")  # from those that even shares give

# %% [markdown]
# With shares by speed all ranks finish at nearly the same time. The gradients are *summed* and divided by the global
# batch size, so each image counts once; a mean of the ranks' means would weight the images of the slow rank more. The
# gain over leaving the slow rank out is its own speed, a quarter of a rank. Often it is better to take the machine out
# and repair it.
#
# | Diagnosis card | a straggler |
# |---|---|
# | **Sign** | throughput falls on all ranks alike, no error |
# | **Confirm** | computing and waiting per rank: the one that waits least |
# | **Cause** | heat, a failing disk, a shared machine, uneven data |
# | **Recovery** | replace the machine; otherwise shares by speed; more input threads if the data arrive late |

# %% [markdown] tags=["slide-text", "slide-predict"]
# ## 4. A worker that never comes
#
# Some workers never reach the others: they wait in a queue or copy data, a firewall drops their packets, or their
# address is misspelt in TF_CONFIG. In `late_worker.py` worker 1 sleeps for an hour before it creates its strategy.
#
# **Predict.** What does worker 0 print, and after how long does it give up?

# %%
programs.show(PROGRAMS / "late_worker.py", "main")

# %% tags=["varies", "slide-output"]
for deadline in (6, 30, 120):
    try:
        launch.tensorflow(PROGRAMS / "late_worker.py", "--late-worker", 1, workers=2, start_seconds=deadline)
    except launch.WorkerMissing as error:
        missing = error
    print(f"\nWorkerMissing: {missing}")
    if missing.ranks == ["worker 1"]:
        break
    print(f"\n{deadline} s are too short on this machine now: worker 0 was still importing TensorFlow.\n")

# %% [markdown] tags=["slide-takeaway"]
# The sign is silence: the line "all 2 are here" never comes. TensorFlow alone waits for many minutes, and its only
# hint is a log line, "Waiting for 1/2 tasks to connect. Example stragglers: …". The launcher does what a
# person would do: it tries to connect to every address of the cluster, and at the start deadline it names those where
# nobody listens.
#
# A worker listens only when it has imported TensorFlow and creates its strategy. If the deadline is shorter than that,
# the launcher names the healthy worker 0 as well, and the loop above tries again with a longer one. So a start deadline
# must be longer than the slowest healthy start; on a cluster add the wait in the queue and for a slow file system.

# %% [markdown]
# | Diagnosis card | a worker that never comes |
# |---|---|
# | **Sign** | no step, no error, processors idle |
# | **Confirm** | from the waiting machine: `nc -z HOST PORT` for each address; is the process there at all? |
# | **Cause** | not started, still loading, wrong address or port, firewall, another number of workers |
# | **Recovery** | a start deadline; check TF_CONFIG (`distlab.cluster_spec`); create the strategy before loading data |

# %% [markdown]
# ## 5. A half-written checkpoint
#
# A machine loses power while it writes a checkpoint to the disk; the disk is full; a copy is cut short. TensorFlow is
# careful: it writes the data under a temporary name and renames them, then it writes the index, and last the file
# `checkpoint` with the newest name. But the index is written directly under its final name, and all this is only the
# order in which the program writes. A crash, or a tool that copies the folder, can leave something else on the disk.

# %% [markdown]
# A second safeguard: after each save the chief writes a **seal**, a file with the size and the
# SHA-256 digest of each of the checkpoint's files. It writes the seal under another name and then renames it. A rename
# happens completely or not at all. So an interrupted save leaves no seal, and files that are damaged later do not match
# it.

# %%
programs.show(PROGRAMS / "whole_checkpoints.py", "seal", "broken_seal", "unreadable")

# %%
last_saved, saves = (total - 1) // save_every * save_every, folder / "saves"
before = last_saved - save_every
run_to(total - 1, saves, after_save=whole_checkpoints.seal)  # then the machine loses power
in_order = sorted(saves.glob(f"ckpt-{last_saved}.*"), key=lambda file: (file.stat().st_mtime_ns, file.name))
print(f"after step {last_saved} written in this order:", [file.name.split(".")[1][:5] for file in in_order])

# %% [markdown] tags=["slide-text", "slide-points", "slide-predict"]
# We damage copies of the folder in many ways, always the newest checkpoint, and compare four checks:
#
# - `latest_checkpoint`: what TensorFlow would restore;
# - a quick check that many programs make: the index opens and lists all variables;
# - **reading it whole**, `unreadable`: every value is read and compared with the checksum that TensorFlow stores;
# - the seal.
#
# **Predict.** Which damage does the quick check miss? Is there one that even reading it whole misses?


# %%
def cut(file, size):
    """Keep the first `size` bytes."""
    file.write_bytes(file.read_bytes()[:size])


def overwrite(file, position, new):
    """Put other bytes in the middle of a file; its size stays."""
    old = file.read_bytes()
    file.write_bytes(old[:position] + new + old[position + len(new) :])


def put_older(file):
    """Replace a file of the newest checkpoint by that of the one before."""
    shutil.copy(str(file).replace(f"ckpt-{last_saved}", f"ckpt-{before}"), file)


damages = {
    "none": lambda data, index: None,
    "data cut in half": lambda data, index: cut(data, data.stat().st_size // 2),
    "data missing": lambda data, index: data.unlink(),
    "a block of zeros": lambda data, index: overwrite(data, 4096, bytes(4096)),
    "one bit flipped": lambda data, index: overwrite(data, 0, bytes([data.read_bytes()[0] ^ 1])),
    "older data": lambda data, index: put_older(data),
    "older data and index": lambda data, index: [put_older(data), put_older(index)],
    "index cut in half": lambda data, index: cut(index, index.stat().st_size // 2),
    "index missing": lambda data, index: index.unlink(),
}


# %% tags=["slide-output"]
def lists_all(prefix):
    """The quick check: as many variables as in the undamaged checkpoint."""
    try:
        return len(tf.train.load_checkpoint(prefix).get_variable_to_shape_map()) == variables_saved
    except tf.errors.OpError:
        return False


undamaged = tf.train.load_checkpoint(str(saves / f"ckpt-{last_saved}"))
variables_saved = len(undamaged.get_variable_to_shape_map())
print(f"{'damage':21} latest_checkpoint  quick check  read whole  sealed")
for name, damage in damages.items():
    copy = shutil.copytree(saves, folder / name.replace(" ", "_"))
    prefix = str(copy / f"ckpt-{last_saved}")
    damage(Path(f"{prefix}.data-00000-of-00001"), Path(f"{prefix}.index"))
    latest = tf.train.latest_checkpoint(copy)
    are_good = (lists_all(prefix), not whole_checkpoints.unreadable(prefix), not whole_checkpoints.broken_seal(prefix))
    quick, whole, sealed = ("good" if is_good else "bad" for is_good in are_good)
    print(f"{name:21} {Path(latest).name if latest else 'None':18} {quick:12} {whole:11} {sealed}")

# %% [markdown]
# Three lessons.
#
# - `latest_checkpoint` looks only whether the index exists, so it names nearly every broken one. Restoring most of them
#   raises an error, and the job cannot start.
# - With a missing index it returns `None`, although an older whole checkpoint exists. `restore(None)` does nothing, so
#   **the job starts from step 0 without an exception**. Only a line in the log says so. That is the worst case.
# - Only the seal notices files that are whole but belong to an older step.

# %%
try:
    run_to(total, folder / "data_cut_in_half")
except Exception as error:
    print("restored with half of the data:", type(error).__name__)
print("restored with a missing index:", tf.train.latest_checkpoint(folder / "index_missing"))

# %% [markdown]
# So `train.py` and this notebook ask the folder, not TensorFlow's list. They check each checkpoint before they restore
# it, from the newest to the oldest, and say why they skip one. The function `problem` does all checks in turn: files,
# seal, every value, and the shapes of the variables. The last folder below has two damaged checkpoints.

# %%
programs.show(PROGRAMS / "whole_checkpoints.py", "newest")

# %%
both = Path(shutil.copytree(saves, folder / "both_cut"))
for file in both.glob("ckpt-*.data-*"):
    cut(file, 1000)
for name in ("none", "data_cut_in_half", "index_missing", "older_data_and_index", "both_cut"):
    weights = run_to(total, folder / name, choose=whole_checkpoints.newest)
    checks.assert_equal_weights(weights, final_weights)

# %% [markdown] tags=["slide-table"]
# Going back to the older checkpoint costs one interval more, 5 steps, and gives the same weights. If both are damaged,
# the program says so and starts from the beginning.
#
# Keep the checkpoints on another machine's storage: a disk that dies takes both with it. The list that
# `CheckpointManager` reads, the file `checkpoint`, can be damaged, too; `train.py` writes it again when it resumes.
#
# | Diagnosis card | a half-written checkpoint |
# |---|---|
# | **Sign** | restoring raises `DataLossError`, `IndexError`, "not an sstable"; or a resumed run starts at step 0 |
# | **Confirm** | `python whole_checkpoints.py FOLDER` reads every byte |
# | **Cause** | power, full disk, quota, a copy cut short, two jobs with one folder |
# | **Recovery** | keep at least two; write, then rename; check, then restore; fall back |

# %% [markdown]
# **Question.** Why not verify every checkpoint by its size?
#
# 1. A block that never reached the disk reads as zeros: right size, wrong content
# 2. The size is different on every machine.
# 3. It would take too long.
#
# <details>
# <summary>Answer</summary>
#
# 1. **Right.** The same is true of a flipped bit and of an older file.
# 2. No: for the same variables it is equal.
# 3. No, it is the fastest of all checks, and worth little.
# </details>

# %% [markdown]
# ## 6. A job that continues: Horovod Elastic
#
# So far, the death of one worker ends the job. With **Horovod Elastic** the survivors continue. They keep the last
# **committed** state in memory, form a new ring without the dead rank, go back to the commit, and train on. A script
# tells `horovodrun` which hosts exist and how many slots, places for one process, each has; when it names one more
# slot, a rank is added.
#
# `train_elastic.py` trains the same network on the same global batches. Two names of this machine act as two hosts.
# Its last rank kills itself after a step, and later rank 0 adds a slot to the list of hosts.

# %%
programs.show(PROGRAMS / "train_elastic.py", "batches", "train", "on_train_batch_end")

# %% [markdown] tags=["slide-predict"]
# `train` is called again after each change, with the state that all ranks agree on. Each rank finds its share of the
# batch from `hvd.size()` and `hvd.rank()`, which may change each time. The global batch stays 64 for every world size
# that divides 64 (three ranks would have 63 images), so the learning rate stays the same, too.
#
# Two things are easy to forget: build the optimizer before you create the state (otherwise the state lacks the
# momentum), and keep the survivor in the list of hosts.
#
# **Predict.** A commit every 5 steps. How many steps are lost by the death, and how many by the addition?

# %% tags=["varies"]
elastic, problem, added_at = None, launch.horovod_problem(), (killed_at + total) // 2
if problem:
    print("Without Horovod:", problem)
else:
    hosts, discover = folder / "hosts.txt", folder / "discover.sh"
    hosts.write_text("localhost:1\n127.0.0.1:1\n")
    discover.write_text(f"#!/bin/sh\ncat {hosts}\n")
    discover.chmod(0o755)
    # A rank that is added first imports TensorFlow; the other one waits for it longer than Gloo's usual 30 s.
    elastic_options = ["--gloo", "--gloo-timeout-seconds", "200", "--min-np", "1", "--max-np", "2"]
    elastic_options += ["--host-discovery-script", str(discover)]
    sizes = ["--steps", total, "--steps-per-epoch", steps_per_epoch, "--commit-every", save_every]
    faults = ["--kill-at-step", killed_at, "--add-at-step", added_at, "--hosts", hosts]
    arguments = ["--dataset", dataset, *sizes, *faults]
    quiet = {"HOROVOD_LOG_LEVEL": "fatal"}  # else the survivor's network errors, with their C++ source lines
    settings = {"result": True, "start_seconds": 200, "environment": quiet}
    elastic = launch.horovodrun(PROGRAMS / "train_elastic.py", *arguments, options=elastic_options, **settings).result

# %% tags=["varies", "slide-output"]
if elastic:
    for step, size in elastic["starts"]:
        print(f"continues after step {step:2}, world size {size}")
    print(f"rank 0 has done {len(elastic['executed'])} steps for a run of {total}, final loss {elastic['loss']:.4f}")
    checks.assert_equal_weights([np.array(weights) for weights in elastic["weights"]], final_weights)

    figure, axes = plt.subplots(figsize=(7.2, 3))
    for number, size in enumerate((1, 2)):
        done = [index for index, (_, ranks_then) in enumerate(elastic["executed"]) if ranks_then == size]
        steps = [elastic["executed"][index][0] for index in done]
        look = {"color": draw.RANK_COLOURS[number], "marker": draw.MARKERS[number], "linestyle": ""}
        axes.plot(np.array(done) + 1, steps, label=f"world size {size}", **look)
    axes.set(xlabel="steps done by rank 0", ylabel="step of the run")
    figure.legend(loc="outside upper center", ncols=2)
    sizes_in_turn = ", then ".join(str(size) for _, size in elastic["starts"])
    draw.show(figure, f"Steps of the elastic run, with world size {sizes_in_turn}.")

# %% [markdown] tags=["slide-takeaway"]
# The death costs the steps since the last commit. The addition costs none: the program saves its state right before it,
# and nothing is restored. The weights are those of section 1, without Horovod, because the global batches are the same.
#
# Elastic training protects against the death of ranks, not of the job: the commits are in memory. Save to disk, too.
# And if you keep the *per-replica* batch instead of the global one, the global batch changes with the world size, and
# the learning rate must follow it ([notebook 10](10_large_batch_and_warmup.ipynb)).
#
# | Diagnosis card | ranks come and go |
# |---|---|
# | **Sign** | `HorovodInternalError`, "Connection reset by peer"; the world size changes |
# | **Confirm** | log `hvd.size()` with every start; exit code 137 in `horovodrun`'s output |
# | **Cause** | pre-emptible machines, a killed rank, new machines in the list |
# | **Recovery** | Horovod Elastic: state, commits, batches by step; a timeout longer than a rank's start |

# %% [markdown]
# ## 7. A fault that announces itself
#
# Many faults come with a **notice**. A cluster that takes a machine back sends SIGTERM, usually half a minute before
# SIGKILL. Slurm sends a signal of your choice before the time limit: `--signal=USR1@60` to a job's steps,
# `--signal=B:USR1@60` to its batch script. It starts no job again by itself after the
# time limit.
#
# That is time for one save, so nothing is lost. But a worker must not save alone: the others may be at another step,
# and would wait for it in the next all-reduce. So the signal handler does nothing but remember the signal. After
# each step all workers add up how many of them have a notice, one all-reduce of 4 bytes. All see the same sum after the
# same step, save together, and exit with a status that means "start me again".

# %%
programs.show(PROGRAMS / "train.py", "SaveAndStop")

# %% [markdown] tags=["slide-text", "slide-predict"]
# The second call of `notices` is a barrier: without it, a worker could exit while the chief is still writing.
#
# In a batch script, the status decides whether the job goes back to the queue:
#
# ```bash
# #SBATCH --signal=USR1@120 --requeue
# status=0
# srun python train.py --slurm --backup /shared/backup || status=$?
# if [ $status -eq 85 ]; then scontrol requeue $SLURM_JOB_ID; fi
# exit $status
# ```
#
# Here a loop takes the place of the queue. Worker 1 alone receives SIGUSR1.
#
# **Predict.** The signal comes between two saves, when step 8 is done (step 3 with `epochs=1`). At which step do the
# workers save, and how many steps are lost?


# %% tags=["varies"]
def run_until_done(name, *fault):
    """Start the job again as long as its exit status asks for that; the run that came to the end."""
    while True:
        try:
            return job(name, *fault)
        except launch.WorkerFailed as error:
            if error.exit_code != train.START_AGAIN:
                raise
            print(f"\nexit status {error.exit_code}: starting the job again\n")
            fault = ()


notice_at = killed_at - 5
finished = run_until_done("notice", "--kill-worker", 1, "--kill-at-step", notice_at, "--signal", "USR1")
for worker in range(2):
    print(f"worker {worker} has done {len(steps_of('notice', worker))} steps for a run of {total}")

# %% tags=["slide-output"]
print(f"notice when step {notice_at} was done, resumed after step {finished.result['first_step']}")
checks.assert_equal_weights([np.array(weights) for weights in finished.result["weights"]], final_weights)

# %% [markdown] tags=["slide-takeaway"]
# All workers saved at the step after the notice, and no step was done twice.
#
# TensorFlow has this as `tf.distribute.experimental.PreemptionCheckpointHandler`: it takes SIGTERM as the notice, or
# asks Google Cloud; another `termination_watcher_fn` can be passed in its `TerminationConfig`. For `Model.fit`,
# `BackupAndRestore(save_before_preemption=True)` uses it; its manual promises that for Google's clouds only. Test
# yours: a notice that nobody handles is a kill.
#
# | Diagnosis card | a notice |
# |---|---|
# | **Sign** | SIGTERM or your own signal; "DUE TO TIME LIMIT", "PREEMPTION" in the job's log |
# | **Confirm** | `scontrol show job` has `Requeue=1`; the log has the step of the save |
# | **Cause** | time limit, a job of higher priority, maintenance, a machine that is taken back |
# | **Recovery** | remember the signal, agree on a step, save together, exit with the status for a restart |

# %% [markdown]
# **Question.** Which of these faults can you diagnose without looking at another machine?
#
# 1. The straggler: my step is slow.
# 2. The missing worker: my log says so.
# 3. The half-written checkpoint
#
# <details>
# <summary>Answer</summary>
#
# 1. The step is slow everywhere; only the comparison shows which rank is the cause.
# 2. After minutes, and without the reason.
# 3. **Right.** It is a file. Everything else is a relation between workers, and needs a launcher or a monitor that sees
#    all of them.
# </details>

# %% [markdown]
# ## Quiz
#
# Ten questions with instant feedback; `seed=2` gives them other numbers.

# %%
quizzes.ask("13")

# %% [markdown]
# ## Recap
#
# - A killed worker ends a synchronous job; started again it repeats the steps since the last save.
# - The resumed run equals the undisturbed one if the data order is a function of the step.
# - Keep two checkpoints, resume from the newest whole one, and print which and why; the chief chooses.
# - A straggler slows all ranks alike; it is the one that waits least.
# - A worker that never comes is silent; a deadline names it.
# - `latest_checkpoint` names broken checkpoints, or returns `None` next to good ones; a seal finds them.
# - Horovod Elastic continues with fewer or more ranks.
# - After a notice all workers save at the same step; the exit status asks for a restart.
#
# **Next.** [Lab 13](../labs/13_fault_tolerance/lab.ipynb), [14 other frameworks](14_other_frameworks.ipynb).
#
# **Sources.**
# - [Young (1974)](https://doi.org/10.1145/361147.361115), checkpoint interval.
#   [Dean and Barroso (2013)](https://doi.org/10.1145/2408776.2408794), stragglers.
# - [Llama team (2024)](https://arxiv.org/abs/2407.21783). [Sergeev and Del Balso
# (2018)](https://arxiv.org/abs/1802.05799).
# - [*Elastic Horovod*](https://horovod.readthedocs.io/en/stable/elastic_include.html); TensorFlow's
#   [multi-worker guide](https://www.tensorflow.org/tutorials/distribute/multi_worker_with_keras).

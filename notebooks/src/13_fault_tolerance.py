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
# **Time.** 30 minutes to read, one minute to run.
#
# **Before this.** [05 save and load](05_save_and_load.ipynb), [06
# collectives](06_collectives_and_ring_all_reduce.ipynb), [07 multi-worker](07_multi_worker.ipynb), [09
# Horovod](09_horovod.ipynb) for section 7.
#
# **Questions.**
# - A worker is killed. Is the resumed run the same run?
# - How often should a job save?
# - All workers are slow, or nothing happens. Who is the cause?
# - What if the newest checkpoint cannot be read?
# - Can a job continue with fewer ranks?
# - How do all workers save before the cluster stops them?
#
# **Hardware.** Two cores.

# %% tags=["parameters"]
dataset = "digits"  # digits, mnist or fashion_mnist; for sections 3, 4, 7 and 8
epochs = 2  # of the jobs in sections 3, 7 and 8; 12 steps each
workers = 2  # section 4 has as many ranks, but 3 or more; the other jobs have 2

# %% jupyter={"source_hidden": true}
import distlab  # first: it selects tf-keras, which must happen before TensorFlow is imported

import argparse
import math
import re
import shutil
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

from distlab import checks, draw, launch, models, programs, quizzes

PROGRAMS = Path("programs/13_fault_tolerance")
sys.path.insert(0, str(PROGRAMS))
import damage
import minimal
import time_lines
import train
import whole_checkpoints

draw.apply_style()
tf.get_logger().setLevel("CRITICAL")  # it would complain of damaged checkpoints
scratch = tempfile.TemporaryDirectory()
folder = Path(scratch.name)

# %% [markdown]
# ## 1. A run that resumes
#
# Training Llama 3 on 16,384 GPUs was interrupted unexpectedly 419 times in 54 days (Llama team, 2024, section 3.3.4).
# So a program that runs for hours must be able to resume, as this one can:

# %%
programs.show(PROGRAMS / "minimal.py")

# %% [markdown] tags=["slide-text", "slide-points"]
# To resume *exactly*, restore everything that the next step depends on:
#
# - the weights, and the optimizer's momentum;
# - the number of steps done, which the optimizer counts in `iterations`;
# - the position in the data. **The order is a function of the step**: `index_shuffle` computes which image is at a
#   position of the shuffled epoch, without shuffling the epoch;
# - the random state, if a layer such as dropout draws numbers.
#
# Below, the second call ends after step 38, and the third one resumes.

# %%
undisturbed = minimal.train(folder / "undisturbed")
minimal.train(folder / "stopped", steps=38)
checks.assert_equal_weights(minimal.train(folder / "stopped"), undisturbed)

# %% [markdown]
# Steps 36 to 38 are repeated; the weights are the same. (On a GPU, bit for bit only with
# `tf.config.experimental.enable_op_determinism()`.)
#
# **Keras's callback for this**, `tf.keras.callbacks.BackupAndRestore`, keeps *one* backup (Keras 3 two, with
# `double_checkpoint=True`), restores it unchecked, and does not skip data: `fit` counts from the restored step, but
# begins with the first batch that the data set yields.

# %% [markdown] tags=["slide-text", "slide-formula", "slide-predict"]
# ## 2. How often to save
#
# Every $\tau$ seconds a save stops the training for $C$ seconds; every $M$ seconds a fault comes, and starting again
# takes $R$ seconds. This share of the time is lost:
#
# $$\frac{C}{\tau} + \frac{\tau}{2M} + \frac{R}{M}, \qquad \text{least for } \tau = \sqrt{2CM}$$
#
# since a fault costs half an interval on average (Young, 1974).
#
# **Predict.** Before you calculate: in the Llama job a save may take 30 seconds and a restart 10 minutes. Would you
# save every minute, every quarter of an hour, or every hour?


# %% tags=["slide-output"]
def best_interval(save):
    """By Young's formula, in seconds."""
    return math.sqrt(2 * save * between_faults)


between_faults, restart = 54 * 24 * 3600 / 419, 600
print(f"a fault every {between_faults / 3600:.1f} hours")
print("a save every    saves  repeated  restarts  together lost")
for interval in (60, best_interval(30), 3600):
    shares = [30 / interval, interval / 2 / between_faults, restart / between_faults]
    text = "".join(f"{share:10.1%}" for share in [*shares, sum(shares)])
    print(f"{interval / 60:8.1f} min{text}")
draw.calculator("saves")

# %% [markdown] tags=["slide-takeaway"]
# Every quarter of an hour: half or twice the best interval loses only a quarter more to saves and repeated steps. A
# shorter save gains more.
#
# ### Saving in the background
#
# The training need not wait for the file. With `enable_async=True` the call only takes a snapshot of the variables; a
# thread writes it. PyTorch has `torch.distributed.checkpoint.async_save`. Below, a step that changes 64 MiB of
# variables follows each save.

# %% tags=["varies"]
variables = [tf.Variable(tf.zeros((1024, 1024))) for _ in range(16)]
checkpoint = tf.train.Checkpoint(variables=variables)
step = tf.function(lambda: [each.assign_add(tf.ones_like(each)) for each in variables])
for name, enable_async in (("waiting for the file", False), ("in the background", True)):
    options = tf.train.CheckpointOptions(enable_async=enable_async)
    manager = tf.train.CheckpointManager(checkpoint, folder / name, max_to_keep=1)
    seconds = []
    for _ in range(4):
        start = time.perf_counter()
        manager.save(options=options)
        step()
        stepped = time.perf_counter() - start
        manager.sync()  # waits until the file is complete
        seconds.append((stepped, time.perf_counter() - start))
    waits, complete = 1000 * np.median(seconds, axis=0)
    print(f"{name}: save and step {waits:,.0f} ms, file complete after {complete:,.0f} ms")

print("\nIn the Llama job, if the snapshot takes a tenth of the save:")
for name, save, writing in (("waiting for the file", 30, 0), ("in the background", 3, 27)):
    interval = best_interval(save)
    lost = save / interval + (interval / 2 + writing + restart) / between_faults
    print(f"{name}: best every {interval / 60:.1f} min, {lost:.1%} lost")

# %% [markdown]
# $C$ is now only the snapshot. Where it is a tenth of the save, the best interval and the time lost to saves and
# repeated steps shrink by $\sqrt{10}$, and restarts cost most: keep the environment ready, and a spare machine.
#
# The price is memory for the snapshot. And a save counts only when its file is complete, so each fault costs the $W$
# seconds of writing on top, and $\tau$ cannot be shorter than $W$.

# %% [markdown]
# ## 3. A worker is killed
#
# `train.py` trains with two workers under `MultiWorkerMirroredStrategy`. Two rules are new:
#
# - **All workers resume from the same checkpoint.** If each looked for itself, two could see different files. So the
#   chief decides and reads, and the others receive its values.
# - **Every worker calls `save` at the same step** ([chapter 07](07_multi_worker.ipynb)); only the chief keeps the file.
#
# `values_of_chief` is a broadcast; `newest` follows in section 6.

# %%
programs.show(PROGRAMS / "train.py", "resume")

# %% [markdown] tags=["slide-text", "slide-predict"]
# SIGKILL, `kill -9`, ends a process at once. Linux sends it when memory runs out. Here worker 1 sends it to itself:
#
# ```
# distlab launch --workers 2 train.py -- --backup saves --kill-worker 1 --kill-at-step 13
# ```
#
# Worker 0 waits for a gradient that never comes, until TensorFlow or the launcher notices. A worker cannot join a
# running cluster again, so **the whole job is started again**. (With `epochs=1` it is killed after step 8.)
#
# **Predict.** A save every 5 steps; worker 1 dies after step 13. How many steps must be done twice?

# %% jupyter={"source_hidden": true} tags=["varies"]
total, killed_at = 12 * epochs, min(13, 12 * epochs - 4)
quiet = {"TF_CPP_MIN_LOG_LEVEL": "3"}
settings = {"workers": 2, "result": True, "echo": False, "environment": quiet}


def show(run, start=""):
    print(f"{start}process by process, not in the order of time:")
    for name, output in sorted(run.output.items()):
        print(*(f"[{name}] {line}" for line in output.splitlines()), sep="\n")


def run_until_done(name, *fault):
    """Run `train.py` with a fault, and then again; the times of both runs, and the result."""
    shutil.rmtree(folder / name, ignore_errors=True)
    place = folder / name
    saves = ["--backup", place / "saves", "--steps-done", place, "--pause", 0.05]
    times = [time.time()]
    for start, arguments in (("first start, ", [*saves, *fault]), ("second start, ", saves)):
        arguments = ["--dataset", dataset, "--epochs", epochs, *arguments]
        try:
            run = launch.tensorflow(PROGRAMS / "train.py", *arguments, **settings)
        except launch.WorkerFailed as error:
            run = error.run
            print(f"ended first: {error.rank}, exit code {error.exit_code}")
        times.append(time.time())
        show(run, start)
    return [(times[0], times[1]), (times[1], times[2])], run.result


attempts, resumed = run_until_done("killed", "--kill-worker", 1, "--kill-at-step", killed_at)

# %% jupyter={"source_hidden": true} tags=["varies", "slide-output"]
rows = time_lines.of_job(folder / "killed", attempts, workers=2, killed=1)
figure = draw.busy({"": rows}, ["worker 0", "worker 1"], "seconds since the first start", 1)
begin, end = attempts[0]
died = max(interval.end for interval in rows[1] if interval.end < end)
figure.set_figheight(2.4)
figure.axes[0].plot(died - begin, 1, marker="X", color=draw.INK, markersize=9)
text = "Time line of two workers. Both do steps, worker 1 is killed, and worker 0 waits."
draw.show(figure, f"{text} Both start again, and repeat the steps since the last save.")

# %% jupyter={"source_hidden": true}
# The same training in this kernel; nothing disturbs it.
tf.keras.utils.set_random_seed(train.SEED)
model = models.mlp(dropout=0.0)
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(tf.keras.optimizers.SGD(0.1, momentum=0.9), loss)
options = argparse.Namespace(dataset=dataset, epochs=epochs)
for batch in train.batches(options, first_step=0):
    model.train_on_batch(*batch)
final_weights = model.get_weights()


def compare(name, result):
    """The steps that each worker has done, and the difference of the weights."""
    for worker in range(2):
        done = (folder / name / f"worker-{worker}.txt").read_text().split()
        print(f"worker {worker}: {total} steps, {len(done) - len(set(done))} done twice")
    checks.assert_equal_weights(list(map(np.array, result["weights"])), final_weights)


compare("killed", resumed)

# %% [markdown] tags=["slide-takeaway", "slide-table", "slide-quiz"]
# **Three steps** are repeated, 11 to 13, those since the last save; the weights are those of the undisturbed run. The
# rest is $R$: noticing the death, ending worker 0, starting again. (Worker 1 waits for a second, until worker
# 0 is in the next step, and dies at the cross.)
#
# | Diagnosis card | a worker is killed |
# |---|---|
# | **Sign** | exit code −9 (137 in a shell); the others get `UnavailableError`, "Connection reset by peer", or hang |
# | **Confirm** | which process is gone, by which signal: launcher, `sacct`, `dmesg` ("Out of memory") |
# | **Cause** | memory, a GPU, a machine or its power, a colleague's `kill` |
# | **Recovery** | start the whole job again from the newest whole checkpoint |
#
# **Question.** The data came from `shuffle(buffer)` without a seed. What happens?
#
# 1. The run is the same; the checkpoint holds everything.
# 2. `fit` fails.
# 3. Some images come twice in the epoch and some not at all.
#
# <details>
# <summary>Answer</summary>
#
# 1. The checkpoint does not hold the data order.
# 2. There is no error. That is the trap.
# 3. **Right.** The epoch is shuffled again. It is another run, and no bug in it can be reproduced.
# </details>

# %% [markdown]
# ## 4. A straggler
#
# A **straggler** is alive but slow. `find_straggler.py` trains a linear classifier over MPI. Each rank measures its
# computation and its waiting for the sum. Most of the computation is a pause for each image, four times as long on rank
# 1:

# %%
programs.show(PROGRAMS / "find_straggler.py", "measured_step")

# %% [markdown] tags=["slide-predict"]
# The program trains three times: with one speed for all; with the slow rank; and with shares of the batch in proportion
# to the measured speeds.
#
# ```
# mpirun -np 3 python find_straggler.py --slow-rank 1 --times-slower 4
# ```
#
# **Predict.** By which factor does the slow rank slow down the job? All ranks report the same time per step: how do you
# recognise the slow one?

# %% tags=["varies"]
ranks = max(workers, 3)
pause = ranks / 3000  # for each image: an even share takes as long with any number of ranks
slow = f"--slow-rank 1 --times-slower 4 --pause {pause}".split()
program = PROGRAMS / "find_straggler.py"
run = launch.mpirun(program, "--dataset", dataset, *slow, ranks=ranks, result=True, echo=False)
trainings = run.result
for name, training in trainings.items():
    milliseconds, shares = 1e3 * training["step"], training["shares"]
    print(f"{name:16}{milliseconds:4.0f} ms per step, images {shares}")
print(f"{'without it':16}{1e3 * pause * 64 / (ranks - 1):4.0f} ms per step (computed)\n")
differences = [training["difference"] for training in trainings.values()]
checks.assert_equal(differences, [0] * 3, "weights")
least = np.argmin(trainings["slow"]["waiting"])
which = "the slow one" if least == 1 else "not the slow one: other programs disturbed this run"
factor = trainings["slow"]["step"] / trainings["even"]["step"]
print(f"A step takes {factor:.1f} times as long. Rank {least} waits least, {which}.")

# %% jupyter={"source_hidden": true} tags=["varies", "slide-output"]
steps, description = {}, "One step of each rank. "
for name, training in trainings.items():
    times = np.transpose([training["computing"], training["waiting"]])
    steps[name] = [
        [draw.Interval(0, first, "computing"), draw.Interval(first, first + second, "waiting")]
        for first, second in times
    ]
    computing = ", ".join(f"{1e3 * computed:.0f}" for computed, _ in times)
    description += f"{name}: computing {computing} ms, then waiting. "
names = [f"rank {rank}" for rank in range(ranks)]
draw.show(draw.busy(steps, names, "milliseconds of a step (medians)"), description)

# %% [markdown] tags=["slide-takeaway", "slide-table"]
# Every step takes as long as that of the slowest rank, **3.8** times as long, and **the straggler is the rank that
# waits least**. (4 × 21/22: it has 21 of 64 images, the even step waits for 22. On a GPU take both times from a
# profile: calls return before the work is done.)
#
# The gradients are *summed* and divided by the global batch size, so each image counts once, whatever the shares. But
# without the slow rank a step takes only a little longer: often it is better to remove the machine.
#
# | Diagnosis card | a straggler |
# |---|---|
# | **Sign** | throughput falls on all ranks alike, no error |
# | **Confirm** | each rank's computing and waiting; in Horovod's timeline, who is last in `NEGOTIATE_ALLREDUCE` |
# | **Cause** | heat, a failing disk, a shared machine, uneven data |
# | **Recovery** | replace the machine; otherwise shares by speed |

# %% [markdown]
# ## 5. A worker that never comes
#
# Some workers never reach the others, and TensorFlow waits for many minutes.
#
# *Who is missing?* At a deadline, the launcher tries every address of the cluster. *Where is everybody else?*
# `faulthandler.dump_traceback_later(3)` writes the stack of each thread after three seconds, also while the main thread
# hangs. In `late_worker.py` worker 1 sleeps before it creates its strategy.

# %% tags=["varies"]
source = (PROGRAMS / "late_worker.py").read_text().splitlines()
try:
    options = {"workers": 2, "start_seconds": 6, "echo": False, "environment": quiet}
    late = ["--late-worker", 1, "--dump-after", 3]
    launch.tensorflow(PROGRAMS / "late_worker.py", *late, **options)
except launch.WorkerMissing as error:
    print(textwrap.fill(f"WorkerMissing: {str(error).splitlines()[0]}", 66), end="\n\n")
    for worker, output in sorted(error.run.output.items()):
        where = re.findall(r'late_worker.py", line (\d+) in (\w+)', output)[:1]
        for number, function in where:
            line = source[int(number) - 1].strip()
            print(f"{worker} is in {function}, line {number}: {line}")

# %% [markdown] tags=["slide-table"]
# A worker listens only when it has imported TensorFlow and creates its strategy. If your run lists both workers, the
# deadline was shorter than a healthy start.
#
# | Diagnosis card | a worker that never comes |
# |---|---|
# | **Sign** | no step, no error, CPUs idle |
# | **Confirm** | from the waiting machine: `nc -z HOST PORT` for each address |
# | **Cause** | not started, still loading, wrong address or port, firewall, another number of workers |
# | **Recovery** | a start deadline; check TF_CONFIG; create the strategy before loading data |

# %% [markdown] tags=["slide-table"]
# ### When a running job hangs
#
# | Look at | with | what it tells |
# |---|---|---|
# | stacks | `py-spy dump --pid PID`; `faulthandler.register(signal.SIGUSR2)`, `kill -USR2 PID` | who is elsewhere |
# | collectives | Horovod's [stall warning](09_horovod.ipynb); TORCH_NCCL_DESYNC_DEBUG=1 | who never entered which |
# | GPUs | `nvidia-smi` | 100 % at low power: waits in NCCL; 0 %: look at this rank first |
# | hardware | `dmesg` for "Xid", `nvidia-smi -q -d ECC` | a broken GPU, memory errors |
#
# On all nodes of a Slurm job:
#
# ```
# srun --jobid=JOB --overlap --nodes=N --ntasks-per-node=1 \
#     sh -c 'pgrep -u $USER python | xargs -n 1 py-spy dump --pid'
# ```
#
# (Where py-spy gets "Permission denied", use `faulthandler`.) Usual causes: a collective under `if rank == 0`, one step
# more on one rank, an exception on one rank only.
#
# A loss that jumps and stays high is no hang: PaLM's team went back 100 steps and skipped 200 to 500 batches (Chowdhery
# et al., 2022).

# %% [markdown]
# ## 6. A half-written checkpoint
#
# TensorFlow writes the data, then the index, and last the file `checkpoint` with the newest name, but a crash can leave
# something else on the disk. This reads every value, which TensorFlow compares with its checksum:

# %%
programs.show(PROGRAMS / "whole_checkpoints.py", "unreadable")

# %% [markdown] tags=["slide-text", "slide-points", "slide-predict"]
# A second safeguard: after each save the chief writes a **seal**, a file with the size and the SHA-256 digest of each
# file ([whole_checkpoints.py](programs/13_fault_tolerance/whole_checkpoints.py)). An interrupted save leaves no seal.
#
# We damage copies of section 1's newest checkpoint, and compare four checks:
#
# - `latest_checkpoint`: what TensorFlow would restore;
# - a quick check: the index opens and lists all variables;
# - reading it whole, `unreadable`;
# - the seal.
#
# **Predict.** Which damage does each of the four checks miss?


# %% jupyter={"source_hidden": true} tags=["slide-output"]
def lists_all(prefix):
    """The quick check: as many variables as in the undamaged checkpoint."""
    try:
        return len(tf.train.list_variables(prefix)) == variables_saved
    except (tf.errors.OpError, ValueError):
        return False


saves = folder / "undisturbed"
variables_saved = len(tf.train.list_variables(f"{saves}/ckpt-55"))
for prefix in whole_checkpoints.in_order(saves):
    whole_checkpoints.seal(prefix)
print(f"{'damage':21} latest_checkpoint  quick check  read whole  sealed")
for how in damage.DAMAGES:
    copy = shutil.copytree(saves, folder / how)
    prefix = f"{copy}/ckpt-55"
    damage.damage(prefix, how)
    latest = Path(tf.train.latest_checkpoint(copy) or "None").name
    is_bad = [not lists_all(prefix), whole_checkpoints.unreadable(prefix)]
    is_bad.append(whole_checkpoints.broken_seal(prefix))
    quick, whole, sealed = ("bad" if each else "good" for each in is_bad)
    print(f"{how:21} {latest:18} {quick:12} {whole:11} {sealed}")

# %% [markdown] tags=["slide-points", "slide-continued"]
# - `latest_checkpoint` looks only whether the index exists. Restoring most of the broken ones raises an error.
# - With a missing index it returns `None`, although an older whole checkpoint exists. `restore(None)` does nothing, so
#   **the job starts from step 0 without an exception**.
# - Only the seal notices files that are whole but belong to an older step.
#
# `whole_checkpoints.newest` checks from the newest to the oldest. Here `minimal.py` resumes with it:

# %%
both = Path(shutil.copytree(saves, folder / "both cut"))
for number in (50, 55):
    damage.damage(both / f"ckpt-{number}", "data cut in half")
for name in ("index missing", "older data and index", "both cut"):
    weights = minimal.train(folder / name, newest=whole_checkpoints.newest)
    checks.assert_equal_weights(weights, undisturbed)

# %% [markdown] tags=["slide-table", "slide-quiz"]
# Keep checkpoints on another machine, too, in case the disk dies.
#
# | Diagnosis card | a half-written checkpoint |
# |---|---|
# | **Sign** | restoring raises `DataLossError`, `OpError`, `IndexError`; or a resumed run starts at step 0 |
# | **Confirm** | `python whole_checkpoints.py FOLDER` reads every byte |
# | **Cause** | power, full disk, quota, a copy cut short, two jobs with one folder |
# | **Recovery** | keep at least two; write, then rename; check, then restore; fall back |
#
# **Question.** Why not verify every checkpoint by its size?
#
# 1. A block that never reached the disk reads as zeros: right size, wrong content.
# 2. The size is different on every machine.
# 3. It would take too long.
#
# <details>
# <summary>Answer</summary>
#
# 1. **Right.** A flipped bit and an older file have the right size, too.
# 2. For the same variables it is equal.
# 3. It is the fastest check, and worth little.
# </details>

# %% [markdown]
# ## 7. A job that continues: Horovod Elastic
#
# With **Horovod Elastic** the survivors keep the last **committed** state in memory, form a new ring without the dead
# rank, go back to the commit, and train on. A script tells `horovodrun` which hosts exist and how many slots (places
# for one process) each has. PyTorch's `torchrun --nnodes=1:4` restarts all workers instead;
# [torchft](https://github.com/meta-pytorch/torchft) continues.
#
# In `train_elastic.py`, the first function is called after each step, the other two at the start and when the ranks
# have changed (`state.register_reset_callbacks([scale_rate])`):

# %%
programs.show(PROGRAMS / "train_elastic.py", "on_train_batch_end", "train", "scale_rate")

# %% [markdown] tags=["slide-predict"]
# `check_host_updates` asks rank 0 for new hosts, so all ranks must call it. With `--per-rank 32` the global batch and,
# by `scale_rate`, the learning rate follow the ranks ([chapter 10](10_large_batch_and_warmup.ipynb)); here they stay 64
# and 0.1.
#
# The last rank kills itself. Horovod puts its host on a blacklist, so later rank 0 adds a slot on its own host:
#
# ```
# horovodrun --gloo -np 2 --min-np 1 --max-np 2 --host-discovery-script ./discover.sh python train_elastic.py …
# ```
#
# **Predict.** A commit every 5 steps. How many steps are lost by the death, and how many by the addition?

# %% jupyter={"source_hidden": true} tags=["varies"]
elastic, problem, added_at = None, launch.horovod_problem(), (killed_at + total) // 2
if problem:
    print("Without Horovod:", problem)
else:
    hosts, discover = folder / "hosts.txt", folder / "discover.sh"
    hosts.write_text("localhost:1\n127.0.0.1:1\n")
    discover.write_text(f"#!/bin/sh\ncat {hosts}\n")
    discover.chmod(0o755)
    # A new rank may have to import TensorFlow first: the ring waits up to 200 s for it.
    options = ["--gloo", "--min-np", "1", "--max-np", "2", "--gloo-timeout-seconds", "200"]
    options += ["--host-discovery-script", str(discover)]
    changes = ["--hosts", hosts, "--kill-at-step", killed_at, "--add-at-step", added_at]
    variables = {**quiet, "HOROVOD_LOG_LEVEL": "fatal"}
    how = {"result": True, "echo": False, "environment": variables}
    begin, program = time.time(), PROGRAMS / "train_elastic.py"
    arguments = ["--dataset", dataset, "--epochs", epochs, "--pause", 0.05, *changes]
    run = launch.horovodrun(program, *arguments, options=options, **how)
    show(run)
    elastic = run.result
    checks.assert_equal_weights(list(map(np.array, elastic["weights"])), final_weights)

# %% jupyter={"source_hidden": true} tags=["varies", "slide-output"]
if elastic:
    rows = time_lines.of_elastic(elastic, begin)
    figure = draw.busy({"": rows}, ["rank 0", "rank 1"], "seconds since the start", 1)
    [died] = [interval.end for interval in rows[1] if interval.kind == "waiting"]
    figure.set_figheight(2.4)
    figure.axes[0].plot(died - begin, 1, marker="X", color=draw.INK, markersize=9)
    text = "Time line of two ranks. Rank 1 dies; rank 0 waits, goes on alone, and waits again."
    draw.show(figure, text)

# %% [markdown] tags=["slide-takeaway", "slide-table"]
# The death costs **three steps** and the wait for a new ring; the addition **none**, only the wait
# for the new rank. The weights equal those of section 3, since the global batches are the same.
#
# Three traps. Build the optimizer before you create the state, else it lacks the momentum. Keep the survivor in the
# list of hosts. When a rank is added, an attribute such as `state.seen` goes back to the last commit, but the weights
# do not: the class `State` saves it first. And save to disk, too.
#
# | Diagnosis card | ranks come and go |
# |---|---|
# | **Sign** | `HorovodInternalError`, "Connection reset by peer"; the world size changes |
# | **Confirm** | `hvd.size()` in the log; exit code 137 in `horovodrun`'s output |
# | **Cause** | pre-emptible machines, a killed rank, new machines in the list |
# | **Recovery** | Horovod Elastic; a timeout longer than a rank's start |

# %% [markdown]
# ## 8. A fault that announces itself
#
# Many faults come with a **notice**. A cluster that takes a machine back (preemption, a spot instance) sends SIGTERM,
# Slurm by default 30 seconds (`KillWait`) before SIGKILL. It also sends a signal of your choice before the time limit:
# `--signal=USR1@120`.
#
# That is time for one save. A worker must not save alone: the others may be at another step. So the signal handler, set
# before TensorFlow is imported, only notes the signal. After each step all workers add up how many have a notice, one
# all-reduce of 4 bytes, and agree on the step at which they save and stop:

# %%
programs.show(PROGRAMS / "train.py", "on_train_batch_end")

# %% [markdown] tags=["slide-predict"]
# In a batch script, the status decides whether the job goes back to the queue:
#
# ```bash
# #SBATCH --signal=USR1@120 --requeue
# status=0
# srun --kill-on-bad-exit=0 --wait=60 python train.py --slurm --backup /shared/saves || status=$?
# if [ $status -eq 85 ]; then scontrol requeue $SLURM_JOB_ID; fi
# exit $status
# ```
#
# (`--kill-on-bad-exit=0 --wait=60`: the first worker that ends leaves the others a minute.) Worker 1 alone receives
# SIGUSR1, with `epochs=1` after step 3.
#
# **Predict.** The signal comes between two saves, when step 8 is done. At which step do the workers save, and how many
# steps are lost?

# %% tags=["varies"]
notice = f"--kill-worker 1 --kill-at-step {killed_at - 5} --signal USR1".split()
_, finished = run_until_done("notice", *notice)

# %% tags=["varies", "slide-output"]
compare("notice", finished)

# %% [markdown] tags=["slide-takeaway", "slide-table"]
# All workers saved at the step after the notice, **step 9**, and no step was done twice.
#
# **A chain of jobs** needs no right to requeue. Ten short jobs run one at a time (`%1`), and each resumes where the
# last one has saved. When all steps are done, the remaining jobs end at once:
#
# ```bash
# #SBATCH --array=1-10%1 --time=04:00:00 --signal=USR1@120
# ```
#
# **TensorFlow** has `tf.distribute.experimental.PreemptionCheckpointHandler`, and Keras 2 on Google Cloud
# `BackupAndRestore(save_before_preemption=True)`.
#
# | Diagnosis card | a notice |
# |---|---|
# | **Sign** | a signal; "DUE TO TIME LIMIT", "PREEMPTION" in the job's log |
# | **Confirm** | `scontrol show job` has `Requeue=1`; the log has the step of the save |
# | **Cause** | time limit, a job of higher priority, maintenance, a machine that is taken back |
# | **Recovery** | note the signal, agree on a step, save together, exit with the status for a restart |

# %% [markdown]
# ## Quiz
#
# Ten questions with instant feedback; `seed=2` gives them other numbers.

# %%
quizzes.ask("13")

# %% [markdown]
# ## Recap
#
# - The resumed run equals the undisturbed one if the data order is a function of the step.
# - Save every $\sqrt{2CM}$ seconds.
# - The straggler waits least.
# - A deadline names who never comes; stacks show where the others wait.
# - Keep two checkpoints; check before restoring.
# - Horovod Elastic continues with other ranks.
# - After a notice all workers save at the same step.
#
# **Next.** [Lab 13](../labs/13_fault_tolerance/lab.ipynb), [14 other frameworks](14_other_frameworks.ipynb).
#
# **Sources.**
# - [Young (1974)](https://doi.org/10.1145/361147.361115), [Dean and Barroso
#   (2013)](https://doi.org/10.1145/2408776.2408794), [Chowdhery et al. (2022)](https://arxiv.org/abs/2204.02311),
#   [Llama team (2024)](https://arxiv.org/abs/2407.21783).
# - [Elastic Horovod](https://horovod.readthedocs.io/en/stable/elastic_include.html); TensorFlow:
#   [CheckpointOptions](https://www.tensorflow.org/api_docs/python/tf/train/CheckpointOptions); PyTorch:
#   [async_save](https://docs.pytorch.org/docs/stable/distributed.checkpoint.html), [NCCL's
#   variables](https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html).
# - Bekman, [Machine learning
#   engineering](https://github.com/stas00/ml-engineering/tree/master/training/fault-tolerance) and [debugging
#   PyTorch](https://github.com/stas00/ml-engineering/blob/master/debug/pytorch.md); Lambda, [distributed
#   training guide](https://github.com/LambdaLabsML/distributed-training-guide).

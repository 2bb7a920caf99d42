# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 15 Clusters
#
# **Goal.** Write a job script, say why one fails, let a job survive a dead node and its time limit, and predict what a
# slow network costs before you measure it.
#
# **Time.** 50 minutes to read; about two minutes to run on a cluster of two cores, a few seconds without.
#
# **Before this.** [07 multi-worker](07_multi_worker.ipynb) and [09 Horovod](09_horovod.ipynb) for the programs, [11
# scaling](11_scaling_and_profiling.ipynb) for efficiency, [13 fault tolerance](13_fault_tolerance.ipynb) for
# checkpoints and notices.
#
# **Questions.**
# - Who decides where my program runs, and when?
# - Why does a job that failed say COMPLETED?
# - A node dies. The time is over. What is lost?
# - How long is a step on three nodes, if I have measured two?
# - Which remedy helps on which network?
#
# **Hardware.** A Slurm cluster on your own machine (Linux): run `make cluster` before, `make cluster-down` after
# ([clusters.md](../docs/clusters.md)). Without it you see recorded results, with versions and date.

# %% tags=["parameters"]
dataset = "digits"  # digits, mnist or fashion_mnist; for the jobs of sections 3, 4 and 5
epochs = 10  # of the jobs in sections 4 and 5; 12 steps each, but never less than 120 steps
workers = 2  # not used in this chapter: the jobs have 1, 2 and 3 nodes, the virtual cluster has 8 ranks

# %% jupyter={"source_hidden": true}
import distlab  # first: it selects tf-keras, which programs that import TensorFlow need

import json
import shutil
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from distlab import checks, cluster, collectives, costs, draw, launch, programs, quizzes
from distlab.simulate import Network, World

draw.apply_style()
PROGRAMS = Path("programs/15_clusters")  # programs and job scripts of this chapter
scratch = tempfile.TemporaryDirectory()
folder = Path(scratch.name)  # a folder that all nodes see; commands run in it
for place in (PROGRAMS, PROGRAMS / "slurm", Path("programs/13_fault_tolerance")):
    for file in [*place.glob("*.py"), *place.glob("*.sbatch")]:
        shutil.copy(file, folder)

# %% tags=["varies"]
login = cluster.LoginNode(cluster.find(), folder, PROGRAMS)
print(login.source())

# %% [markdown] tags=["slide-picture"]
# ## 1. The words
#
# On your laptop you start a program, and it runs. A cluster has many users, so a **scheduler** stands between you and
# the machines. You log in to the **login node**, where you edit, submit and look. You describe what you need, and the
# scheduler finds **compute nodes** for it.
#
# ![A cluster: the login node with the scheduler's queue, and three compute nodes, of which two belong to a job with one
# task each](../figures/15_cluster.svg)

# %% [markdown]
# | word | meaning | Slurm | PBS |
# |---|---|---|---|
# | queue, partition | where jobs wait for a kind of nodes | `sinfo`, `squeue` | `qstat` |
# | job | what you ask for, and the script that uses it | `sbatch`, `scancel` | `qsub`, `qdel` |
# | allocation | the nodes and cores that a job has until it ends | `salloc` | `qsub -I` |
# | step | one program started in an allocation | `srun` | `mpirun`, `pbsdsh` |
# | task | one process of a step: a rank | `--ntasks` | `mpiprocs` |
# | array | one script submitted as many jobs | `--array` | `-J` |
#
# A line that begins with `$` is a command on the login node. You can type it yourself:
# `.venv/bin/distlab cluster run -- sinfo`, or open a shell there with `distlab cluster run -- bash`.

# %% tags=["varies"]
login.run("sinfo")
login.run("srun --nodes=3 --label hostname | sort")

# %% [markdown]
# `srun` asked for three nodes, waited until it had them, started one task on each, and gave them back.
#
# An interactive job keeps its allocation until you leave it. `salloc` starts a shell in one; here the shell has two
# commands.
#
# **Predict.** The first command is a plain `hostname`. Which host does it name?

# %% tags=["varies"]
login.run("salloc --quiet --nodes=2 bash -c 'hostname; srun hostname | sort'")

# %% [markdown]
# The login node. `salloc` reserves nodes; it does not move you there. Only `srun` starts something on them.
#
# **Question.** You have an allocation of two nodes with eight GPUs and type `python train.py`. What happens?
#
# 1. It trains on eight GPUs.
# 2. It trains on the first node.
# 3. It trains on the login node, slowly, and disturbs everyone.
#
# <details>
# <summary>Answer</summary>
#
# 1. No. Nothing has started a process on those nodes.
# 2. In a batch script it would, with one process. In the shell of `salloc` it depends on the site; here it does not.
# 3. **Right.** Many sites end such programs.
# </details>
#
# ## 2. A job script that fails
#
# A job script is a shell script. Lines that begin with `#SBATCH` are options of `sbatch`, and comments for the shell.
# This program says where it runs, and this script should run it on every node of the job. It has four mistakes.

# %% tags=["slide-code"]
hello = """\
import os, socket

print("task", os.environ["SLURM_PROCID"], "of", os.environ["SLURM_NTASKS"], "on", socket.gethostname())
"""
script = """\
#!/bin/bash
#SBATCH --job-name=first
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --time=00:02:00
#SBATCH --output=%x-%j.out

python helo.py
echo "the job is done"
"""
login.write("hello.py", hello)
login.write("first.sbatch", script)

# %% [markdown] tags=["slide-predict"]
# **Predict.** The partition has three nodes, and the program's file is `hello.py`. Which mistake do you notice first,
# and when?

# %% tags=["varies", "slide-output"]
login.run("sbatch first.sbatch")

# %% [markdown]
# Four nodes can never be had here, so Slurm refuses at once. That is the kind mistake: it costs no waiting. An option
# on the command line wins over the same option in the script:

# %% tags=["varies"]
job = login.submit("sbatch --nodes=2 first.sbatch")
state = login.wait(job)
log = login.read(f"first-{job}.out")
login.run(f"scontrol show job {job} | grep -Eo '(JobState|ExitCode)=[^ ]*'")

# %% tags=["slide-output", "slide-continued"]
print("The job's state is", state, "- and its log says:\n")
print(log)

# %% [markdown] tags=["slide-takeaway"]
# The program did not even start, and Slurm reports success. **The state of a job is the exit status of its script, and
# that is the status of the script's last command**, here `echo`. With `set -e` the script ends at the first command
# that fails.
#
# Correct the name, too, and the log has a single line, of task 0: a batch script runs on the *first* node of the
# allocation only. The other node waits, and you pay for it. That is the fourth mistake: `srun` is missing.

# %%
fixed = script.replace("--nodes=4", "--nodes=2").replace("python helo.py", "srun python hello.py")
fixed = fixed.replace("%x-%j.out\n", "%x-%j.out\n\nset -e")
login.write("first.sbatch", fixed)
programs.changes(script, fixed)

# %% tags=["varies"]
job = login.submit("sbatch first.sbatch")
state = login.wait(job)
lines = sorted(login.read(f"first-{job}.out").splitlines())

# %%
print(state, *lines, sep="\n")

# %% [markdown]
# Read a script from the top:
#
# 1. **What you need**: nodes, tasks per node, cores, memory, GPUs. Ask for less, wait less.
# 2. **How long**: after `--time` the job is killed. Short jobs fit into gaps (*backfill*) and start earlier.
# 3. **Where the log goes**: `%x` is the name, `%j` the id of the job. The folder must exist.
# 4. **The environment**: `module load`, the virtual environment. A batch job need not have what your shell has.
# 5. **The steps**: `srun`, once per program.
#
# **Question.** You add `#SBATCH --time=08:00:00` at the end of the script. How long may the job run?
#
# 1. Eight hours.
# 2. As long as before, without a warning.
# 3. It is refused.
#
# <details>
# <summary>Answer</summary>
#
# 1. `sbatch` reads options only up to the first command.
# 2. **Right.** For the shell the line is a comment, and `sbatch` never sees it.
# 3. It is not, which makes this mistake hard to find.
# </details>

# %% [markdown]
# ## 3. The same program on one, two, three nodes
#
# The script `batch.sbatch` runs any program of this chapter, with one task on each node. (If you ask `sbatch` for
# `--cpus-per-task`, say it to `srun` too: since Slurm 22.05 `srun` does not inherit it. `ranks.sbatch`, in the same
# folder, does so.)

# %%
programs.show(PROGRAMS / "slurm" / "batch.sbatch")

# %% [markdown]
# `train_multi_worker.py` trains with `MultiWorkerMirroredStrategy` ([notebook 07](07_multi_worker.ipynb)). There
# somebody had to write TF_CONFIG for every worker. Here Slurm knows who takes part, so the program asks
# `cluster_spec.from_slurm()`. It reads the variables that `srun` has set for each task:

# %% tags=["varies"]
ask = "from distlab import cluster_spec; print(cluster_spec.from_slurm())"
login.run(f"srun --nodes=3 --label python -c '{ask}' | sort | cut --characters=1-112")

# %% [markdown] tags=["slide-text", "slide-predict"]
# The list of addresses is the same for all; the index differs. The port follows from the job's id, so that two jobs on
# one node do not collide.
#
# We submit the program for one, two and three nodes, and the serial program as a fourth job. Together they want seven
# cores. The three nodes have six.
#
# **Predict.** What does the queue look like right after that?

# %% tags=["varies", "slide-output"]
dataset, steps = login.parameter("dataset", dataset), login.parameter("steps", max(120, 12 * epochs))
jobs = {}
for nodes in (3, 2, 1):
    options = f"--dataset {dataset} --weights {nodes}.npz"
    jobs[nodes] = login.submit(f"sbatch --nodes={nodes} batch.sbatch train_multi_worker.py {options}")
serial = login.submit(f"sbatch --nodes=1 batch.sbatch train_serial.py --dataset {dataset} --weights serial.npz")
login.run("squeue --format='%.6i %.8j %.10T %.6D %R'")

# %% [markdown] tags=["slide-takeaway"]
# A job that cannot start is PENDING, and the last column says why: `(Resources)` if it is the next one, `(Priority)` if
# others come first, `(None)` if the scheduler has not looked yet. When a job ends, the next one starts, and you need
# not be there.

# %% tags=["varies"]
for job in [*jobs.values(), serial]:
    state = login.wait(job)
    print(state, "-", *login.read(f"batch-{job}.out").splitlines()[-1:])


# %%
def difference(file):
    """How far the weights in a file are from the serial run's."""
    with np.load(folder / file) as weights, np.load(folder / "serial.npz") as expected:
        return checks.largest_difference(*([arrays[name] for name in expected.files] for arrays in (weights, expected)))


for nodes in sorted(jobs):
    off = login.measure(f"difference on {nodes}", lambda nodes=nodes: difference(f"{nodes}.npz"))
    print(f"{nodes} node{'s' * (nodes > 1)}", end=": ")
    checks.assert_equal([off], [0], "weights")

# %% [markdown]
# One program, one script, three sizes: only `--nodes` changed. The global batch is the same, so the weights are too.
#
# Do not look at the images per second yet. All "nodes" of this cluster use the cores of one machine, and four jobs ran
# side by side.

# %% [markdown]
# ## 4. A node dies
#
# Two longer jobs. They train with `train.py` of [notebook 13](13_fault_tolerance.ipynb): two workers that save every 5
# steps and resume from the newest whole checkpoint. Two lines make the script ready for what comes:
#
# - `--requeue`: if a node fails, Slurm puts the job back into the queue.
# - `--signal=USR1@87`: Slurm sends SIGUSR1 to the job's steps 87 seconds before the time limit. It may come up to a
#   minute earlier.
#
# `train.py` ends with status 85 if it has saved and is not done. Then the script asks for the queue again.

# %%
long_script = """\
#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1
#SBATCH --time=00:10:00
#SBATCH --signal=USR1@87
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x.out

echo "attempt ${SLURM_RESTART_COUNT:-0} on $SLURM_JOB_NODELIST"
status=0
srun --wait=60 python train.py --slurm "$@" || status=$?
if [ $status -eq 85 ]; then scontrol requeue $SLURM_JOB_ID; fi
exit $status
"""
login.write("long.sbatch", long_script)


# %% [markdown]
# Not `--kill-on-bad-exit` here: the first worker that ends with 85 would take the other one with it. `--wait=60` says
# for how many seconds `srun` then waits for the other one before it kills it: more than the workers may end apart.
#
# So that the jobs last, the network is slow from now on: 10 Mbit/s. The first job is called *dying*, since we will kill
# a node under it. The second, *short*, may run for two minutes only.


# %% tags=["varies"]
def places(name):
    """The arguments of train.py: its folders are named after the job."""
    return f"--epochs {steps // 12} --backup {name} --steps-done {name} --result {name}.json"


login.link(rate="10mbit")
login.run("mkdir dying short undisturbed")
dying = login.submit(f"sbatch --job-name=dying --nodelist=node[1-2] long.sbatch {places('dying')}")
short = login.submit(f"sbatch --job-name=short --time=2 --nodelist=node[1,3] long.sbatch {places('short')}")

# %% [markdown] tags=["slide-text", "slide-predict"]
# When *dying* has done more than five steps, we pull the plug of its node: all of Slurm's processes and
# the worker on node2 are killed. Slurm would notice within half a minute, since the node no longer answers. We are the
# administrator here, and tell it.
#
# **Predict.** What happens to the job, and to the worker on node1?

# %% tags=["varies", "slide-output"]
done = login.wait_for(dying, "dying/worker-0.txt", r"^(?:[6-9]|\d{2,})$")
print(f"dying has done {done} steps")
login.run("ssh node2 \"pkill -9 'slurm|python'\"")
login.run("scontrol update NodeName=node2 State=DOWN Reason=power")
login.wait(dying, until="PENDING")
login.run("sinfo")
login.run("squeue --format='%.6i %.12j %.10T %.6D %R'")

# %% [markdown] tags=["slide-takeaway"]
# The node is down, and the job is back in the queue. Nobody submitted it again. Slurm has ended the worker on node1,
# which could only wait for a gradient that never comes. In the queue the job has the reason `BeginTime`: Slurm waits
# until nothing of the first attempt can be left before it starts a job again.
#
# The administrator switches node2 on. Its `slurmd` reports to the controller, and the node is back. While *dying*
# waits, the same training runs undisturbed, for comparison.

# %% tags=["varies"]
login.run("ssh node2 slurmd")
alone = login.submit(f"sbatch --job-name=undisturbed --nodes=1 long.sbatch {places('undisturbed')}")

# %% [markdown]
# ## 5. The time is over
#
# Meanwhile *short* comes near its time limit, and Slurm sends SIGUSR1 to its workers.
#
# **Predict.** The signal reaches each worker on its own node, at a slightly different moment. How do both save the same
# step?

# %% tags=["varies"]
step_of_notice = login.wait_for(short, "short.out", r"saved at step (\d+)")
print(f"short saved at step {step_of_notice} of {steps}")
login.wait(short, until="PENDING")
login.run("squeue --format='%.6i %.12j %.10T %.6D %R'")

# %% [markdown]
# After each step the workers add up how many of them have a notice, with one all-reduce of 4 bytes, so all learn it at
# the same step ([notebook 13](13_fault_tolerance.ipynb), section 7).
#
# *Short* would get two minutes again, and perhaps another notice. So that both jobs end soon, the network gets its
# speed back, and the administrator gives *short* a longer limit. Users may only make it shorter.

# %% tags=["varies"]
login.link()
login.run(f"scontrol update JobId={short} TimeLimit=10")
states = {name: login.wait(job) for name, job in (("dying", dying), ("short", short), ("undisturbed", alone))}
print(states)
login.run("grep attempt dying.out short.out")


# %%
def off_from_undisturbed(name):
    """The largest difference between a job's last weights and those of the run that nothing disturbed."""
    runs = [json.loads((folder / f"{job}.json").read_text())["weights"] for job in (name, "undisturbed")]
    return checks.largest_difference(*([np.array(weights) for weights in run] for run in runs))


def steps_of(name):
    """Every step that worker 0 has done, in this order."""
    return [int(line) for line in login.read(f"{name}/worker-0.txt").split()]


# %%
for name in ("dying", "short"):
    off = login.measure(f"off {name}", lambda name=name: off_from_undisturbed(name))
    print(f"{name} has done {len(set(steps_of(name)))} of {steps} steps", end="; ")
    checks.assert_equal([off], [0], "weights", tolerance=10 * checks.TOLERANCE)

# %% tags=["varies"]
for name in ("dying", "short"):
    print(f"steps that {name} did twice: {len(steps_of(name)) - len(set(steps_of(name)))}")

# %% [markdown] tags=["slide-table"]
# | | a node dies | the time is over |
# |---|---|---|
# | **Sign** | `NODE FAILURE` in the log, node `down*` in `sinfo` | `DUE TO TIME LIMIT`, state TIMEOUT |
# | **Warning** | none | the signal, if you asked for it |
# | **Lost** | steps since the last save | nothing, if all save together |
# | **Queue again** | `--requeue` | the script, by `scontrol requeue` |
#
# A job without `--signal` gets SIGTERM at the limit and SIGKILL soon after, and nobody queues it again.
#
# **Question.** Each attempt begins with an empty log, and the error of the first one is gone. Why?
#
# 1. Slurm deletes logs of failed jobs.
# 2. Without `--open-mode=append`, a job that is queued again overwrites its log.
# 3. The second attempt ran on another node.
#
# <details>
# <summary>Answer</summary>
#
# 1. It does not.
# 2. **Right.** Since its id, and so its file's name, stays the same.
# 3. The nodes see the same files.
# </details>

# %% [markdown]
# ## 6. A job array fills a table
#
# How well does a training scale? You need the same measurement for several numbers of nodes. Submitting and collecting
# by hand is tedious, and mistakes creep in. An **array** is one script, submitted once, that runs as many jobs. Each
# knows its number from `SLURM_ARRAY_TASK_ID`:

# %%
programs.show(PROGRAMS / "slurm" / "array.sbatch")

# %% [markdown] tags=["slide-text", "slide-predict"]
# `1-3%1` means tasks 1, 2 and 3, one at a time, so that they do not disturb one another. If one fails, the others still
# run, and you submit only that one again: `sbatch --array=2`.
#
# The program is `slow_network.py`: Horovod, started by `srun`, meeting over Gloo. Its network has twenty hidden layers
# of 100 units. Every node trains a batch of its own (*weak scaling*).
#
# The links now let 100 Mbit/s through and delay each message by 2 ms, like a cheap line between two buildings.
#
# **Predict.** What is the efficiency on two nodes: 90 %, 50 %, 10 %?

# %% tags=["varies", "slide-output"]
slow = login.recorded_only(launch.horovod_problem())
if slow is not login:
    print(slow.source())
slow.link(rate="100mbit", latency="2ms")
array = slow.submit("sbatch array.sbatch slow_network.py --gloo-from-slurm")
print(slow.wait(array))
slow.run(f"python scaling_table.py scaling-{array}")
results = {nodes: json.loads(slow.read(f"scaling-{array}/{nodes}.json")) for nodes in (1, 2, 3)}
speeds = [results[nodes]["images_per_second"] for nodes in (1, 2)]
print("The second node makes this training", "faster." if speeds[1] > speeds[0] else "slower.")

# %% [markdown] tags=["slide-takeaway"]
# The ratio of two times decides: how long the gradients are on the way, and how long a node computes. Where the line is
# as slow as here, the gradients usually take many times as long, and a second node makes the training *slower*. Could
# you have known it without the second node?

# %% [markdown]
# ## 7. Predict, measure, explain the rest
#
# You know the size of the gradients, the time of a step on one node, and the link's data sheet. A ring all-reduce of
# $n$ bytes between $p$ ranks takes ([notebook 06](06_collectives_and_ring_all_reduce.ipynb))
#
# $$2(p-1)\,\alpha + 2\,\frac{p-1}{p}\,n\beta$$
#
# seconds, where α is the latency and β the time per byte. The virtual cluster runs the same program and needs no
# formula. Both must agree.

# %%
sizes = [784 * 100, 100, *[100 * 100, 100] * 19, 100 * 10, 10]  # numbers in each gradient
total_bytes = results[2]["gradient_bytes"]  # as the program reports them: 4 per number
link = {"latency": 2e-3, "seconds_per_byte": 8 / 100e6}


async def training_step(rank, step):
    """Compute some batches, then all-reduce the arrays one after the other."""
    compute_seconds, batches, arrays = step
    for _ in range(batches):
        await rank.compute(compute_seconds)
    for array in arrays:
        await collectives.ring_all_reduce(rank, array)


for ranks in (2, 3):
    inputs = [(0.0, 1, [np.zeros(sum(sizes), np.float32)])] * ranks
    simulated = World(ranks, Network(**link)).run(training_step, inputs).elapsed
    formula = costs.all_reduce("ring", ranks, total_bytes).seconds(**link)
    print(f"{ranks} ranks, {total_bytes:,} bytes: simulated {1e3 * simulated:.1f} ms, formula {1e3 * formula:.1f} ms")

# %% [markdown] tags=["slide-predict"]
# **Predict.** Horovod does more than the formula says. Which way will the measured steps differ?

# %% tags=["varies", "slide-output"]
sheet = {n: results[n]["alone"] + costs.all_reduce("ring", n, total_bytes).seconds(**link) for n in (2, 3)}
for nodes, predicted in sheet.items():
    measured = results[nodes]["step_seconds"]
    residual = f"{measured / predicted - 1:+.0%}"
    print(f"{nodes} nodes: predicted {1e3 * predicted:.0f} ms, measured {1e3 * measured:.0f} ms, residual {residual}")

# %% [markdown]
# A residual above 0 means that the data sheet was an optimist. It usually is, because three things are missing in it:
#
# - **Agreement.** Before an all-reduce Horovod's ranks agree on which tensors are ready on all of them. These are small
#   messages, and each costs the latency.
# - **Headers.** Of each Ethernet frame of 1,538 bytes on the wire, at most 1,460 carry data, 5 % less.
# - **Computing.** Adding, copying into the fusion buffer, TCP itself.
#
# So measure on *two* nodes what an all-reduce really costs: one of 1 KiB and one of all gradients give an effective α
# and β. Then predict *three* nodes.

# %% tags=["varies"]
small, whole = results[2]["small_all_reduce"], results[2]["whole_all_reduce"]
points = np.array([[small["bytes"], small["seconds"]], [whole["bytes"], whole["seconds"]]])
fit = costs.fit(*points.T, lambda array_bytes: costs.all_reduce("ring", 2, array_bytes))
effective = {"latency": fit.latency, "seconds_per_byte": fit.seconds_per_byte}
print(f"effective latency {1e3 * fit.latency:.1f} ms, effective time {1e9 * fit.seconds_per_byte:.0f} ms per megabyte")
predicted = results[2]["alone"] + costs.all_reduce("ring", 3, total_bytes).seconds(**effective)
measured = results[3]["step_seconds"]
print(f"3 nodes: predicted {1e3 * predicted:.0f} ms, measured {1e3 * measured:.0f} ms", end=", ")
print(f"residual {measured / predicted - 1:+.0%}, with the data sheet {measured / sheet[3] - 1:+.0%}")

# %% [markdown]
# For your own cluster, two commands do this with more care, for the course's networks: a sweep of sizes, several
# repeats, an interval from the residuals.
#
# ```bash
# srun --nodes=2 --ntasks-per-node=1 distlab measure --gloo-from-slurm --output two.json
# distlab predict --measured two.json --ranks 1..1024
# ```
#
# **Question.** Your prediction for 64 nodes is 30 % too fast. You repeat the measurement on two nodes with ten times as
# many repeats. What do you gain?
#
# 1. The error shrinks to a third.
# 2. Nothing: the missing part does not exist on two nodes.
# 3. A better β.
#
# <details>
# <summary>Answer</summary>
#
# 1. Only random errors do.
# 2. **Right.** Stragglers, shared switches and agreement among many grow with the number of nodes. Measure on 2, 4 and
#    8, and look at the trend.
# 3. It was good enough.
# </details>

# %% [markdown] tags=["slide-table", "slide-predict"]
# ## 8. What helps on a slow network
#
# The formula names the levers. There are only three:
#
# | lever | how | price |
# |---|---|---|
# | fewer messages | **tensor fusion**: join small gradients (Horovod does it by default) | none |
# | fewer bytes | **fp16 compression**: `hvd.Compression.fp16` | rounding of the gradients |
# | fewer steps | **gradient accumulation**: add up several batches, then all-reduce | a larger global batch |
#
# **Predict.** The network has 42 gradients, most of them tiny biases. Which lever matters most on a line with a long
# delay? On one with a low rate?

# %%
ranks = 8
joined = np.zeros(sum(sizes), np.float32)
ways = {
    "each alone": ([np.zeros(size, np.float32) for size in sizes], 1),
    "fused": ([joined], 1),
    "fused, fp16": ([joined.astype(np.float16)], 1),
    "fused, 4 batches": ([joined], 4),
}


def seconds_per_batch(way, network, compute_seconds=5e-3):
    """Simulated, on `ranks` virtual ranks."""
    arrays, batches = ways[way]
    inputs = [(compute_seconds, batches, arrays)] * ranks
    return World(ranks, network).run(training_step, inputs, keep_events=False).elapsed / batches


lines = {"low rate": Network(5e-5, 8 / 100e6), "long delay": Network(2e-3, 8 / 10e9)}
table = {way: [1e3 * seconds_per_batch(way, network) for network in lines.values()] for way in ways}
for way, milliseconds in table.items():
    print(f"{way:17}", *(f"{name} {value:7.1f} ms" for name, value in zip(lines, milliseconds, strict=True)), sep="   ")

# %% tags=["slide-output"]
rates = np.geomspace(10, 10_000, 10)  # Mbit/s
figure, axes = plt.subplots(figsize=(7.2, 3.4))
for number, way in enumerate(ways):
    efficiencies = [5e-3 / seconds_per_batch(way, Network(1e-4, 8e-6 / rate)) for rate in rates]
    look = {"color": draw.RANK_COLOURS[number], "marker": draw.MARKERS[number], "linestyle": draw.DASHES[number]}
    axes.semilogx(rates, 100 * np.array(efficiencies), label=way, **look)
axes.set(xlabel="rate of each link, Mbit/s", ylabel="efficiency in %", ylim=(0, 100))
figure.legend(loc="outside upper center", ncols=4)
draw.show(figure, "Efficiency of eight ranks against the rate: four batches best, then fp16, fused, each alone.")

# %% [markdown] tags=["slide-takeaway"]
# With a low rate, bytes decide: fp16 nearly halves the time, and fusion matters little. With a long delay, messages
# decide: fusion is everything, and fp16 saves next to nothing. Accumulation helps always, because it avoids the whole
# all-reduce three times out of four.
#
# Now the real cluster, two nodes, with rate and delay both bad. The array's second task has already measured three of
# the ways. One run is missing, with fusion switched off:

# %% tags=["varies"]
command = "srun --nodes=2 --ntasks-per-node=1 python slow_network.py --gloo-from-slurm --ways plain --repeats 3"
slow.run(f"HOROVOD_FUSION_THRESHOLD=0 {command} --result unfused.json")
unfused = json.loads(slow.read("unfused.json"))
slow.link()

# %% tags=["varies"]
compute, batches = results[2]["alone"], results[2]["batches"]
times = {"each alone": unfused["ways"]["plain"], "fused": results[2]["ways"]["plain"]}
times |= {"fused, fp16": results[2]["ways"]["fp16"], "fused, 4 batches": results[2]["ways"]["accumulate"] / batches}
exchange = {share: costs.all_reduce("ring", 2, total_bytes * share).seconds(**effective) for share in (1, 0.5)}
each = sum(costs.all_reduce("ring", 2, 4 * size).seconds(**effective) for size in sizes)
expected = {"each alone": compute + each, "fused": compute + exchange[1], "fused, fp16": compute + exchange[0.5]}
expected["fused, 4 batches"] = compute + exchange[1] / batches
print(f"{'':18}predicted   measured   residual, per batch")
for way, seconds in times.items():
    ratio = seconds / expected[way] - 1
    print(f"{way:17}{1e3 * expected[way]:7.0f} ms {1e3 * seconds:7.0f} ms {ratio:+10.0%}")

# %% [markdown]
# For *each alone* our effective α counts one agreement per tensor. Horovod agrees on many tensors at once, and only the
# all-reduces are one after the other. So this prediction may be a pessimist, as the data sheet may be an optimist.
#
# **Question.** Accumulating 64 batches makes the all-reduce invisible. Why not always?
#
# 1. Memory.
# 2. The global batch grows 64-fold, and there are 64 times fewer updates.
# 3. The sums lose precision.
#
# <details>
# <summary>Answer</summary>
#
# 1. The sums need as much memory as one gradient, whatever the number of batches.
# 2. **Right.** Beyond the critical batch size ([notebook 10](10_large_batch_and_warmup.ipynb)) you compute more images
#    for the same loss.
# 3. In float32, not noticeably.
# </details>

# %%
login.close()

# %% [markdown]
# ## Quiz
#
# Ten questions that mark themselves; with `seed=2` they have other numbers.

# %%
quizzes.ask("15")

# %% [markdown]
# ## Recap
#
# - `sbatch` queues a script, `salloc` reserves nodes, `srun` starts tasks on them.
# - A job's state is the status of its script's last command: use `set -e`.
# - One program and one script trained the serial run's weights on one, two and three nodes.
# - A dead node costs the steps since the last save, the time limit costs nothing: if the job may be queued again.
# - An array runs a scaling study; a failed task does not spoil it.
# - The data sheet is a lower bound; two measured sizes give an effective α and β.
# - Fusion saves messages, fp16 bytes, accumulation whole all-reduces.
#
# **Next.** [Lab 15](../labs/15_clusters/lab.ipynb), and then [lab 16](../labs/16_capstone/lab.ipynb), the capstone.
# [00 start here](00_start_here.ipynb) has the map of the course.
#
# **Sources.**
# - Slurm: [*sbatch*](https://slurm.schedmd.com/sbatch.html), [*srun*](https://slurm.schedmd.com/srun.html),
#   [*job array support*](https://slurm.schedmd.com/job_array.html).
# - [Sergeev and Del Balso (2018)](https://arxiv.org/abs/1802.05799), Horovod and tensor fusion.

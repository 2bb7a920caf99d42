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
# **Goal.** Write a job script for nodes with eight GPUs, say why a job fails or waits, and let a job survive a dead
# node and its time limit.
#
# **Time.** 35 minutes to read; about two minutes to run on a cluster of two cores, a few seconds without.
#
# **Before this.** [07 multi-worker](07_multi_worker.ipynb), [09 Horovod](09_horovod.ipynb) and [13 fault
# tolerance](13_fault_tolerance.ipynb).
#
# **Questions.**
# - Why does a job that failed say COMPLETED?
# - What do I write for two nodes with eight GPUs each, and what do I check first?
# - What is lost when a node dies, and what at the time limit?
#
# **Hardware.** A Slurm cluster on your own machine (Linux): run `make cluster` before, `make cluster-down` after
# ([clusters.md](../docs/clusters.md)). Without it you see recorded results.

# %% tags=["parameters"]
dataset = "digits"  # digits, mnist or fashion_mnist; for the jobs of section 4
epochs = 10  # of the jobs in sections 5 and 6; 12 steps each, but never fewer than 120 steps
workers = 2  # not used here: a job says how many nodes it needs

# %% jupyter={"source_hidden": true} tags=["varies"]
import distlab  # first: it selects tf-keras, which programs that import TensorFlow need

import json
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from distlab import checks, cluster, costs, launch, programs, quizzes

PROGRAMS = Path("programs/15_clusters")  # programs and job scripts of this chapter
scratch = tempfile.TemporaryDirectory()
folder = Path(scratch.name)  # a folder that all nodes see; commands run in it
for place in (PROGRAMS, PROGRAMS / "slurm", Path("programs/13_fault_tolerance")):
    for file in [*place.glob("*.py"), *place.glob("*.sbatch")]:
        shutil.copy(file, folder)
login = cluster.LoginNode(cluster.find(), folder, PROGRAMS)
print(login.source())

# %% [markdown] tags=["slide-picture"]
# ## 1. The words
#
# A cluster has many users, so a **scheduler** stands between you and the machines. On the **login node** you edit,
# submit and look. You describe what you need, and the scheduler finds **compute nodes** for it.
#
# ![A cluster: the login node with the scheduler's queue, and three compute nodes, of which two belong to a job with one
# task each](../figures/15_cluster.svg)

# %% [markdown]
# | word | meaning | Slurm | PBS |
# |---|---|---|---|
# | queue, partition | where jobs wait for one kind of node | `sinfo`, `squeue` | `qstat` |
# | job | what you ask for, and the script that uses it | `sbatch`, `scancel` | `qsub`, `qdel` |
# | allocation | the nodes, cores and GPUs of a job until it ends | `salloc` | `qsub -I` |
# | step | one program started in an allocation | `srun` | `mpirun`, `pbsdsh` |
# | task | one process of a step: a rank | `--ntasks` | `mpiprocs` |
#
# A line that begins with `$` is a command on the login node. To type it yourself, open a shell there:
# `.venv/bin/distlab cluster run -- bash`.

# %% tags=["varies"]
login.run("sinfo --format='%P %a %l %D %t %c %m %G'")
login.run("srun --nodes=3 --label hostname | sort")

# %% [markdown]
# `sinfo` lists the partitions (`*`: the default): how long a job may take, and the cores, megabytes and GPUs of each
# node. `srun` asked for three nodes, waited until it had them, started a task on each, and gave them back.
#
# `salloc` opens a shell with an allocation and gives the nodes back when the shell ends. Here the shell runs two
# commands.
#
# **Predict.** The first command is a plain `hostname`. Which host does it name?

# %%
login.run("salloc --quiet --nodes=2 bash -c 'hostname; srun hostname | sort'")

# %% [markdown]
# The login node: here `salloc` reserves nodes and does not move you there. Only `srun` starts something on them. (Large
# sites often set `use_interactive_step`; then the shell is on the first node.)
#
# **Question.** Your shell is on the login node, with an allocation of two nodes with eight GPUs. You type
# `python train.py`. What happens?
#
# 1. It trains on eight GPUs.
# 2. It trains on the first node.
# 3. It trains on the login node, slowly, and disturbs everyone.
#
# <details>
# <summary>Answer</summary>
#
# 1. Nothing has started a process on those nodes.
# 2. In a batch script it would, with one process.
# 3. **Right.** Many sites kill such programs.
# </details>

# %% [markdown]
# ## 2. A job script that fails
#
# A job script is a shell script. Lines that begin with `#SBATCH` are options of `sbatch`, and comments for the shell;
# `sbatch` reads them up to the first command. This script should run the program on every node of the job. It has four
# mistakes.

# %% tags=["slide-code"]
hello = """\
import os, socket

rank, size = os.environ["SLURM_PROCID"], os.environ["SLURM_NTASKS"]
print(f"task {rank} of {size} on {socket.gethostname()}")
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
job = login.submit("sbatch --nodes=2 first.sbatch")
print("state:", login.wait(job))
print(login.read(f"first-{job}.out"))

# %% [markdown] tags=["slide-takeaway"]
# **The state of a job is the exit status of its script, and that is the status of the script's last command**, here
# `echo`. With `set -e` the script ends at the first command that fails, and the state is FAILED.
#
# Slurm refused four nodes immediately. (Elsewhere such a job may wait for ever, with the reason `PartitionNodeLimit`.)
# An option on the command line wins over the one in the script, so the second attempt got two nodes.
#
# Correct the name, too, and the log has a line of task 0 only: a batch script runs on the *first* node. The other one
# waits, and you pay for it. That is the fourth mistake: `srun` is missing.

# %% tags=["varies"]
fixed = script.replace("--nodes=4", "--nodes=2").replace("%j.out\n", "%j.out\n\nset -e")
fixed = fixed.replace("python helo.py", "srun python hello.py")
login.write("first.sbatch", fixed)
job = login.submit("sbatch first.sbatch")
print("state:", login.wait(job))
print(*sorted(login.read(f"first-{job}.out").splitlines()), sep="\n")
programs.changes(script, fixed)

# %% [markdown]
# ## 3. Day one on nodes with eight GPUs
#
# A complete script for two such nodes. Change account, partition and the environment to those of your site.

# %% tags=["slide-output"]
programs.show(PROGRAMS / "slurm" / "gpus_horovod.sbatch")

# %% [markdown] tags=["slide-table"]
# | option | how to choose it |
# |---|---|
# | `--account`, `--partition` | `sacctmgr show assoc user=$USER`, `sinfo` |
# | `--gpus-per-node` | all of a node, or those that you keep busy |
# | `--ntasks-per-node` | one rank per GPU |
# | `--cpus-per-task` | cores of a node over its ranks; they prepare the batches (`num_workers` of a DataLoader) |
# | `--mem` | for all ranks of a node: what the last job used, and a fifth more |
# | `--time` | then the job is killed; short jobs fill gaps (*backfill*) and start earlier |
# | `--exclusive` | nobody else on these nodes, for measurements |
#
# `srun` takes all of this from the job, but since Slurm 22.05 not `--cpus-per-task`: hence `SRUN_CPUS_PER_TASK`. The
# first step prints a line per rank. In the second, `--mpi=pmix` tells MPI who takes part, and `--kill-on-bad-exit=1`
# ends all ranks when one fails.

# %% [markdown] tags=["slide-predict"]
# We run it with the tiny `hello.py`. (The nodes here only tell Slurm that they have GPUs. This cluster keeps no
# accounts, so `sacctmgr` and `sacct` fail.)
#
# **Predict.** CUDA_VISIBLE_DEVICES tells a task its GPUs. Do the 16 tasks get one each, or eight each?

# %% tags=["varies", "slide-output"]
job = login.submit("sbatch gpus_horovod.sbatch hello.py")
print("state:", login.wait(job))
login.run(f"grep 'local rank' gpus-horovod-{job}.out")

# %% [markdown] tags=["slide-takeaway"]
# Eight each: `--gpus-per-node` gives them to the job, and every rank sees all of its node. So it chooses by its **local
# rank**, its number on the node: `gpus[hvd.local_rank()]`. Rank 9 has local rank 1; by its rank it would look for GPU
# 9, and there are only 0 to 7. Another option gives each task its own:

# %% tags=["slide-output"]
ask = "bash -c 'echo local rank $SLURM_LOCALID, GPUs $CUDA_VISIBLE_DEVICES'"
login.run(f"srun --nodes=1 --ntasks-per-node=8 --gpus-per-task=1 --label {ask} | sort -n")

# %% [markdown]
# Now each rank sees one GPU. (Where a site hides the other GPUs, every rank's own is called 0, and direct copies
# between GPUs of a node can fail: [open-mpi/ompi#11949](https://github.com/open-mpi/ompi/issues/11949).) So our script
# asks for GPUs by node.
#
# **Question.** A program takes `gpus[hvd.local_rank()]`, and its script asks for `--gpus-per-task=1`. What happens?
#
# 1. Each rank takes its own GPU.
# 2. Only the ranks with local rank 0 get a GPU; the others end with an IndexError.
# 3. All ranks of a node share GPU 0.
#
# <details>
# <summary>Answer</summary>
#
# 1. It would with `--gpus-per-node=8`.
# 2. **Right.** The list has one entry, for local rank 0. `gpus[hvd.local_rank() % len(gpus)]` works with both options.
# 3. The only entry of each rank is a different GPU.
# </details>

# %% [markdown]
# **Cores.** Without binding, the operating system moves a rank from core to core, also far from its GPU.
# `--cpus-per-task=8` with `--distribution=block:block --cpu-bind=cores` gives local rank $r$ the cores $8r$ to $8r+7$
# (with hyper-threads Slurm counts each core twice); without `block:block` Slurm deals the ranks out over the sockets in
# turn. This is **binding by depth**; the depth is the cores per rank. Elsewhere:
#
# - Polaris (PBS): `mpiexec --ppn 4 --depth 8 --cpu-bind depth`
# - Open MPI: `mpirun --map-by slot:PE=8 --bind-to core`
#
# `nvidia-smi topo -m` says which cores are near which GPU. On Polaris the first cores are nearest to the
# last GPU, so local rank 0 takes GPU 3.
#
# **PyTorch.** A task is one torchrun per node, which starts the eight ranks.

# %%
programs.show(PROGRAMS / "slurm" / "gpus_torch.sbatch")

# %% [markdown]
# **A checklist for the first run**
#
# 1. One GPU, ten minutes: the speed to compare with. Fill a node before you take two.
# 2. `sbatch --test-only SCRIPT`: is the job accepted, and when would it start?
# 3. `hello.py` for two minutes: a line per rank, eight GPUs in each? Add `nvidia-smi -L` there.
# 4. Ten steps: is `hvd.size()` 16? If 16 ranks each say "rank 0 of 1", `--mpi=pmix` is missing, or Horovod was built
#    with another MPI.
# 5. Ten steps with `NCCL_DEBUG=INFO`: look for `NET/IB` (`NET/OFI` on Slingshot and AWS) between nodes. `NET/Socket` is
#    the slow network.
# 6. While it runs, `srun --jobid=JOB --overlap -N1 -n1 nvidia-smi`: are the GPUs busy, and how full is their memory?
# 7. Afterwards `seff JOB`, or `sacct -j JOB --format=JobID,State,Elapsed,TotalCPU,ReqMem,MaxRSS`. Ask for less next
#    time.

# %% [markdown]
# **Where things belong**
#
# - **Environment.** Modules for CUDA and MPI with a venv on top, made on the login node; or a container, by
#   `srun … apptainer exec --nv IMAGE.sif python train.py`.
# - **Variables.** `sbatch` copies those of your shell (`--export=ALL`), so a script works today and fails tomorrow:
#   begin with `module purge`. With `--export=NONE` the job starts clean, and then `srun` needs `--export=ALL`.
# - **Files.** Download on the login node: compute nodes often have no internet. Data and checkpoints go to *scratch*:
#   it is large, but old files there are deleted. Your home has a quota of bytes and of files. Pack small files into an
#   archive, and unpack it in the job to the node's disk (`$SLURM_TMPDIR` or `$TMPDIR`).
# - **TensorBoard, Jupyter.** Through a tunnel: `ssh -J LOGIN -L 6006:localhost:6006 NODE`, then open localhost:6006.

# %% [markdown]
# **Out of memory** can mean two things:
#
# - *The node's.* All ranks together pass `--mem`: `oom_kill` in the log, state OUT_OF_MEMORY. Ask for more, or load
#   data by fewer processes.
# - *A GPU's.* `ResourceExhaustedError: OOM` or `CUDA out of memory`, state FAILED. Take a smaller batch per rank,
#   and `set_memory_growth`: without it TensorFlow leaves NCCL no room.

# %% [markdown]
# ## 4. One program on one, two, three nodes
#
# `train_multi_worker.py` trains with `MultiWorkerMirroredStrategy` ([chapter 07](07_multi_worker.ipynb)), which needs
# TF_CONFIG. Slurm knows who takes part, so `cluster_spec.from_slurm()` makes it from the variables that `srun` has set
# for each task. (TensorFlow's `SlurmClusterResolver` fails without GPUs and uses the same ports for every job:
# [clusters.md](../docs/clusters.md#tf_config-under-slurm).)

# %% tags=["varies"]
ask = "from distlab import cluster_spec; print(cluster_spec.from_slurm())"
login.run(f"srun --nodes=2 --label python -c '{ask}' | sort")

# %% [markdown] tags=["slide-text", "slide-predict"]
# Only the index differs. We submit the program for three, two and one nodes, and the serial program, all by
# `batch.sbatch`, whose last line is `srun --kill-on-bad-exit=1 python "$@"`. Each asks for all eight GPUs of its nodes.
#
# **Predict.** What does the queue look like two seconds later?

# %% tags=["varies", "slide-output"]
dataset = login.parameter("dataset", dataset)
jobs = []
for name, nodes in {"multi_worker": (3, 2, 1), "serial": (1,)}.items():
    for count in nodes:
        options = f"--nodes={count} --gpus-per-node=8"
        program = f"train_{name}.py --dataset {dataset} --weights {name}-{count}.npz"
        jobs.append(login.submit(f"sbatch {options} batch.sbatch {program}"))
time.sleep(2)  # the scheduler looks once a second
login.run("squeue --format='%.6i %.8j %.10T %.6D %R'")
login.run("squeue --me --start --format='%.6i %.10T %.20S %R'")

# %% [markdown] tags=["slide-takeaway"]
# A job that cannot start is PENDING, and the last column says why. It has `(Resources)` if the job is the next one and
# waits for nodes, cores or GPUs, `(Priority)` if others come first, `(None)` if the scheduler has not looked yet.
# `--start` says when Slurm expects each to begin, if those before it take their full `--time`.


# %%
def difference(count):
    """How far the weights of a job are from the serial run's."""
    with (
        np.load(folder / f"multi_worker-{count}.npz") as weights,
        np.load(folder / "serial-1.npz") as serial,
    ):
        both = ([run[name] for name in serial.files] for run in (weights, serial))
        return checks.largest_difference(*both)


for job in jobs:
    login.wait(job)
for count in (1, 2, 3):
    off = login.measure(f"difference on {count}", lambda count=count: difference(count))
    print(f"{count} node{'s' * (count > 1)}", end=": ")
    checks.assert_equal([off], [0], "weights")

# %% [markdown]
# The global batch is the same, so the weights agree up to rounding.
#
# ## 5. A node dies
#
# Two longer jobs train with `train.py` of [chapter 13](13_fault_tolerance.ipynb): two workers that save every 5 steps
# and resume from the newest whole checkpoint. With `--requeue` Slurm queues the job again if a node fails.
# `--signal=USR1@87` sends SIGUSR1 to the workers 87 seconds before the time limit, or up to a minute earlier: *short*
# has only 120.
#
# If `train.py` has saved and is not done, it ends with status 85, and the script requeues the job.
# `--kill-on-bad-exit=0` keeps the first worker that ends from taking the other one with it; `--wait=60` gives that one
# a minute.
#
# A slow network makes the jobs last. We will kill a node of *dying*.

# %% tags=["varies"]
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
srun --kill-on-bad-exit=0 --wait=60 python train.py --slurm "$@" || status=$?
if [ $status -eq 85 ]; then scontrol requeue $SLURM_JOB_ID; fi
exit $status
"""
login.write("long.sbatch", long_script)
steps = login.parameter("steps", max(120, 12 * epochs))
train = f"long.sbatch --epochs {steps // 12}"
train += " --backup {0} --steps-done {0} --result {0}.json"
login.link(rate="10mbit")
login.run("mkdir dying short undisturbed")
dying = "sbatch --job-name=dying --nodelist=node[1-2] " + train.format("dying")
short = "sbatch --job-name=short --time=2 --nodelist=node[1,3] " + train.format("short")
dying, short = login.submit(dying), login.submit(short)

# %% [markdown] tags=["slide-text", "slide-predict"]
# When *dying* has done more than five steps, we pull the plug: all of Slurm's processes and the worker on node2 are
# killed. Slurm would notice within half a minute here, by default within five minutes (`SlurmdTimeout`). We are the
# administrator, and tell it.
#
# **Predict.** What happens to the job, and to the worker on node1?

# %% tags=["varies", "slide-output"]
done = login.wait_for(dying, "dying/worker-0.txt", r"^(?:[6-9]|\d{2,})$")
print(f"dying has done {done} steps")
login.run("ssh node2 \"pkill -9 'slurm|python'\"")
login.run("scontrol update NodeName=node2 State=DOWN Reason=power")
login.wait(dying, until="PENDING")
login.run("squeue --format='%.6i %.12j %.10T %.6D %R'; sinfo --format='%t %N'")

# %% [markdown] tags=["slide-takeaway"]
# **The node is down, and the job is back in the queue, though nobody submitted it again.** Slurm has ended the worker
# on node1, too. (Where *short* is in the queue as well, its signal has already come: section 6.) The reason `BeginTime`
# means that Slurm waits until nothing of the first attempt can be left: here ten seconds, by default two minutes
# (`cred_expire`).
#
# The administrator switches node2 on. The same training also runs undisturbed on one node,
# for comparison.

# %% tags=["varies"]
login.run("ssh node2 slurmd")
alone = login.submit("sbatch --job-name=undisturbed --nodes=1 " + train.format("undisturbed"))

# %% [markdown]
# ## 6. The time limit
#
# *short* gets SIGUSR1 in its first 33 seconds, perhaps before its first step, and each worker at a slightly different
# moment. But both must save the same step. So after each step they add up how many have a notice ([chapter
# 13](13_fault_tolerance.ipynb)).
#
# Then the network gets its speed back, and *short* more time, so that both jobs end soon. (Rounding grows with the
# steps: hence the larger tolerance.)


# %% tags=["varies"]
def off_from_undisturbed(name):
    """How far a job's last weights are from those of the run that nothing disturbed."""
    files = (folder / f"{job}.json" for job in (name, "undisturbed"))
    runs = (json.loads(file.read_text())["weights"] for file in files)
    return checks.largest_difference(*([np.array(weights) for weights in run] for run in runs))


step_of_notice = login.wait_for(short, "short.out", r"saved at step (\d+)")
print(f"short saved at step {step_of_notice} of {steps}")
login.wait(short, until="PENDING")
login.link()
login.run(f"scontrol update JobId={short} TimeLimit=10")
print("states:", *(login.wait(job) for job in (dying, short, alone)))
login.run("grep attempt dying.out short.out")
for name in ("dying", "short"):
    off = login.measure(f"off {name}", lambda name=name: off_from_undisturbed(name))
    done = login.read(f"{name}/worker-0.txt").split()
    once = len(set(done))
    print(f"{name}: {once} of {steps} steps, {len(done) - once} done twice", end="; ")
    checks.assert_equal([off], [0], "weights", tolerance=10 * checks.TOLERANCE)

# %% [markdown] tags=["slide-table"]
# | | a node dies | the time limit |
# |---|---|---|
# | **Sign** | `NODE FAILURE`, node `down` (`down*`: no answer) | without a handler: `DUE TO TIME LIMIT`, TIMEOUT |
# | **Lost** | steps since the last save | nothing, if all save together |
# | **Back in the queue by** | Slurm (`--requeue`) | the script (`scontrol requeue`) |
#
# **Question.** A colleague's job was queued again. Its log begins with the second attempt, and the error of the first
# one is gone. Why?
#
# 1. Slurm deletes logs of failed jobs.
# 2. Without `--open-mode=append`, a job that is queued again overwrites its log.
# 3. The second attempt ran on another node.
#
# <details>
# <summary>Answer</summary>
#
# 1. It does not.
# 2. **Right.** The job keeps its id, so the file keeps its name.
# 3. All nodes see the same files.
# </details>

# %% [markdown] tags=["slide-text", "slide-predict"]
# ## 7. Optional: an array measures a slow network
#
# An **array** is one script, submitted once, that runs as several jobs. `#SBATCH --array=1-3%1` in `array.sbatch` means
# tasks 1, 2 and 3, one at a time. All have the same options, so each holds three nodes here. Each knows its number and
# trains on that many: `array.sbatch` ends with `srun --nodes=$SLURM_ARRAY_TASK_ID … python "$@"`.
#
# `slow_network.py` trains twenty small layers with Horovod, and every node has a batch of the same size (*weak
# scaling*). The links now let 100 Mbit/s through and add 2 ms each. A message crosses two of them, so $\alpha$ is 4 ms.
#
# **Predict.** What is the efficiency on two nodes: 90 %, 50 %, or less than 10 %?

# %% tags=["varies", "slide-output"]
slow = login.recorded_only(launch.horovod_problem())
if slow is not login:
    print(slow.source())
slow.link(rate="100mbit", latency="2ms")
array = slow.submit("sbatch array.sbatch slow_network.py --gloo-from-slurm")
print("state:", slow.wait(array))
slow.run(f"python scaling_table.py scaling-{array}")
results = {n: json.loads(slow.read(f"scaling-{array}/{n}.json")) for n in (1, 2, 3)}
one, two, three = results.values()
ring = costs.all_reduce("ring", 3, two["gradient_bytes"]).seconds(2 * 2e-3, 8 / 100e6)
predicted, measured = 1e3 * (two["alone"] + ring), 1e3 * three["step_seconds"]
print(f"3 nodes by the ring's formula: {predicted:.0f} ms, measured {measured:.0f} ms")

# %% [markdown]
# The exchange takes many times as long as the computing, so the efficiency is nearly computing over exchange. The last
# line adds the ring's formula ([chapter 06](06_collectives_and_ring_all_reduce.ipynb)) to one node's step. The formula
# is usually too fast, mainly because Horovod's ranks first agree on which tensors are ready, in messages of 4 ms each;
# also, at most 95 % of an Ethernet frame is data. What helps on such a link?
#
# | lever | price |
# |---|---|
# | fewer messages: **tensor fusion**, Horovod's default | a copy into the buffer, the wait of a cycle |
# | fewer bytes: **fp16 compression** | rounding of the gradients |
# | fewer all-reduces: **gradient accumulation** | a larger global batch |

# %% tags=["varies"]
program = "slow_network.py --gloo-from-slurm --ways plain --repeats 3 --result unfused.json"
slow.run(f"HOROVOD_FUSION_THRESHOLD=0 srun --nodes=2 --ntasks-per-node=1 python {program}")
times = {"not fused": json.loads(slow.read("unfused.json"))["ways"]["plain"]}
times |= {"fused": two["ways"]["plain"], "fused, fp16": two["ways"]["fp16"]}
times["fused, 4 batches"] = two["ways"]["accumulate"] / two["batches"]
for way, seconds in times.items():
    print(f"{way:17}{1e3 * seconds:7.0f} ms per batch on two nodes")
print(f"Half the bytes save {1 - times['fused, fp16'] / times['fused']:.0%}: latency stays.")
login.close()

# %% [markdown]
# ## Quiz
#
# Ten questions, marked as you answer. With `seed=2` they have other numbers.

# %%
quizzes.ask("15")

# %% [markdown]
# ## Recap
#
# - A job's state is the status of its script's last command: use `set -e`.
# - On nodes with eight GPUs: eight tasks, a GPU by local rank, cores by depth, memory for all ranks together.
# - First run a short job that prints where each rank is and what it sees.
# - If the job may be queued again, a dead node costs the steps since the last save, and the time limit nothing.
#
# **Next.** [Lab 15](../labs/15_clusters/lab.ipynb), and then [lab 16](../labs/16_capstone/lab.ipynb), the capstone.
#
# **Sources.**
# - Slurm: [*sbatch*](https://slurm.schedmd.com/sbatch.html), [*srun*](https://slurm.schedmd.com/srun.html),
#   [*job arrays*](https://slurm.schedmd.com/job_array.html).
# - [Princeton](https://github.com/PrincetonUniversity/multi_gpu_training), multi-GPU training, for one GPU first.
# - Binding: [Polaris](https://docs.alcf.anl.gov/polaris/running-jobs/),
#   [*mpirun*](https://docs.open-mpi.org/en/v5.0.x/man-openmpi/man1/mpirun.1.html).
# - [clusters.md](../docs/clusters.md), to measure and predict your own cluster.
# - [Sergeev and Del Balso (2018)](https://arxiv.org/abs/1802.05799), Horovod and tensor fusion.

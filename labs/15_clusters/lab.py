# %% [markdown]
# # Lab 15: job scripts, requeue, and what to rent
#
# **Goal.** Write four job scripts, let a job be queued again without losing a step, read the table of a scaling study,
# and decide which nodes to rent.
#
# **Time.** 90 minutes for exercises 1 to 6: 50 for the four scripts, 20 of them for the third, and 20 each for
# exercises 5 and 6. 15 more for exercise 7, which is optional.
#
# **Before this.** [Chapter 15](../../notebooks/15_clusters.ipynb), and how ranks agree on a notice in [chapter
# 13](../../notebooks/13_fault_tolerance.ipynb).
#
# **How it works.** Write each answer in the cell that says so, run it, and run the check below it: it says what is
# wrong, with a hint. `make check LAB=15` does the same in a terminal. You need no cluster, and nothing is trained. A
# full solution is next to this file, in [solution.ipynb](solution.ipynb).

# %%
from distlab import labs
from distlab.simulate import Rank

lab = labs.open("15")

# %% [markdown]
# ## How the scripts are checked
#
# Your scripts go to a **fake Slurm**. It reads the `#SBATCH` lines by the rules of the real one. (It takes any
# partition, account, memory and GPUs, which differ from site to site.) Then it runs the script by your machine's bash,
# in a temporary folder. There, `srun`, `python`, `scontrol` and `sbatch` are fakes that only record how they were
# called, and end with the status that the check wants to try: every program may fail.
#
# The fake cluster has 16 nodes with 256 cores each. You need no `module load` and no virtual environment. Start
# programs by `python name.py` or `srun … python name.py`.
#
# A script is a text. Look at the backslash: it leaves out the line break, so that `#!` is at the very beginning. Python
# reads all backslashes in the text: where bash needs one, write two.

# %%
example = """\
#!/bin/bash
#SBATCH --job-name=example
#SBATCH --output=%x-%j.out

python hello.py
"""

# %% [markdown]
# ## 1. A batch job
#
# The job `train` trains on four nodes, with two ranks on each.
#
# - It may take at most 90 minutes. The log of job 17 is `train-17.out`.
# - First `prepare.py` runs, once, on the first node. Then `train.py` runs on all ranks. Then `evaluate.py` runs,
#   once.
# - `train.py` gets all arguments of the script, as they are: `sbatch script --data "set 1"` has two. In bash these
#   are `"$@"`, with the quotation marks.
# - If one of the three programs fails, those after it do not start, and the state of the job is FAILED.
# - If one rank of `train.py` fails, Slurm ends the other ranks at once. (The scripts in section 3 of the notebook show
#   how.)
#
# A point each for the resources (nodes, ranks, time), the log, the programs, and what happens after a failure.

# %% answer="batch"
batch = None  # replace None by a text as in `example`
### BEGIN SOLUTION
batch = """\
#!/bin/bash
#SBATCH --job-name=train
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=2
#SBATCH --time=01:30:00
#SBATCH --output=%x-%j.out

set -e
python prepare.py
srun --kill-on-bad-exit=1 python train.py "$@"
python evaluate.py
"""
### END SOLUTION

# %% [markdown]
# ## 2. A scaling study
#
# `train.py` should run on 1, 2, 4 and 8 nodes, with one rank per node. Write one array for this.
#
# - Only one run at a time. Each may take at most 20 minutes. (`--array=3,5,9` has three tasks with these numbers.)
# - The array has exactly four tasks, and each makes one run.
# - All tasks of an array have the same options: each has as many nodes as the largest run needs, and no more. The
#   number of a task says on how many it runs `train.py`. (If the numbers of your tasks are not the sizes: in bash,
#   `sizes=(1 2 4 8)` is a list, and `${sizes[2]}` its third item.)
# - A run on 4 nodes is `train.py --result scaling/4.json`, and so on. The folder `scaling` is there.
# - No two tasks write into one log, also if you submit the array a second time. In the name of a log, `%A` is the
#   number of the array and `%a` that of the task. A folder in the name must exist.
# - If one run fails, the others still take place. The state of the failed task is FAILED, and if one rank fails,
#   Slurm ends the others of this run at once.
#
# Inside a job, `srun` takes what you do not say from the job: so give it the number of tasks, and better that of nodes
# too.
#
# A point each for the array (its nodes, time, runs at a time), the logs, the runs, and what happens after a failure.

# %% answer="array"
array = None  # replace None by a text as in `example`
### BEGIN SOLUTION
array = """\
#!/bin/bash
#SBATCH --job-name=scaling
#SBATCH --array=1,2,4,8%1
#SBATCH --nodes=8
#SBATCH --ntasks-per-node=1
#SBATCH --time=00:20:00
#SBATCH --output=%x-%A-%a.out

set -e
nodes=$SLURM_ARRAY_TASK_ID
srun --nodes=$nodes --ntasks=$nodes --kill-on-bad-exit=1 \\
    python train.py --result scaling/$nodes.json
"""
### END SOLUTION

# %% [markdown]
# ## 3. Longer than a job may be
#
# The job `long` trains for days, on two nodes with one rank each. A job may take at most 12 hours here.
#
# - Start `train.py --checkpoints saved` and, after that or before it, all arguments of the script. It goes on from the
#   newest checkpoint.
# - When its **ranks** receive SIGUSR1, they save together and end with status 85. They need up to ten minutes for
#   that: the signal comes 600 seconds before the limit. Slurm sends it to the ranks itself, not the script.
# - With status 85, the script asks for the queue again; then its own status does not matter. With any other status it
#   does not ask, and ends with that status.
# - The ranks may end up to five minutes apart: the first one that ends must not take the other one with it. (Say it,
#   since the defaults differ from site to site: `--kill-on-bad-exit=0`, and `--wait=60` would give the other one 60
#   seconds, `--wait=0` any time.)
# - If a node fails, Slurm queues the job again, whatever the site's default is.
# - All attempts write into one log, one after the other: `long-17.out` for job 17.
#
# A point each for the resources, the signal, the attempts (queue and log), and what follows from the status of
# `train.py`.

# %% answer="long"
long = None  # replace None by a text as in `example`
### BEGIN SOLUTION
long = """\
#!/bin/bash
#SBATCH --job-name=long
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=12:00:00
#SBATCH --signal=USR1@600
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.out

status=0
srun --kill-on-bad-exit=0 --wait=0 python train.py --checkpoints saved "$@" || status=$?
if [ $status -eq 85 ]; then scontrol requeue $SLURM_JOB_ID; fi
exit $status
"""
### END SOLUTION

# %% [markdown]
# ## 4. Eight GPUs on each node
#
# The job `gpus` trains on two nodes of the partition `lab`. Each has eight GPUs, 64 cores and 500 GB of memory. The
# account `course` pays.
#
# - `train.py`, with all arguments of the script, runs as one rank per GPU, for at most two hours. If one rank fails,
#   Slurm ends the others at once.
# - `train.py` chooses its GPU by the local rank, as Horovod's programs do: each rank must see all eight of its node.
# - Each rank has its share of the 64 cores, in the job and in the step, and stays on them.
# - All ranks of a node together may use 400 GB (`400G`).
#
# A point each for the resources (nodes, ranks, time, account, partition), the GPUs, the memory, the cores, and the run.

# %% answer="gpus"
gpus = None  # replace None by a text as in `example`
### BEGIN SOLUTION
gpus = """\
#!/bin/bash
#SBATCH --job-name=gpus
#SBATCH --account=course
#SBATCH --partition=lab
#SBATCH --nodes=2
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=8
#SBATCH --mem=400G
#SBATCH --time=02:00:00

export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
srun --cpu-bind=cores --kill-on-bad-exit=1 python train.py "$@"
"""
### END SOLUTION

# %% [markdown]
# ## 5. Queued again without a loss
#
# Now the ranks of `train.py`. Slurm's signal reaches them at different moments: one may have it while the others are
# a step further, or it reaches one rank only. Still all must stop after the same step.
#
# Write `attempt`, which every rank runs on the virtual cluster. `job["saved"]` is the step in the newest checkpoint,
# 0 without one; `job["steps"]` is how many steps there are in all, numbered from 1. The rest of `job` is for these
# functions:
#
# | function | does |
# |---|---|
# | `await lab.given.train_step(rank, job, step)` | step number `step`: compute, and add up the gradients of all ranks |
# | `lab.given.has_notice(rank, job)` | True if this rank has received the signal by now |
# | `await lab.given.add_up(rank, number)` | the sum over all ranks: all must call it, and wait for one another |
# | `await lab.given.save(rank, job, step)` | write a checkpoint of the state after step `step`, which takes a while |
#
# `rank.index` is the rank's number, from 0. The rules:

# %% [markdown]
# - An attempt begins with the step after `job["saved"]`.
# - Right after each step, not before it, the ranks add up how many of them have a notice. After the last step they may
#   leave this out.
# - If a rank has one, and not all steps are done, rank 0 saves, once. No rank ends before rank 0 has saved. Then all
#   ranks return 85.
# - When all steps are done, the ranks return 0, and nothing is saved, also if a notice came during the last step. If
#   no step is left at the beginning, they return 0 at once.
#
# A point each for a notice for one rank, notices for several, the end, and the next attempt.


# %% answer="attempt"
async def attempt(rank: Rank, job: dict) -> int:
    """One attempt of the job; the exit status of this rank."""
    ### BEGIN SOLUTION
    for step in range(job["saved"] + 1, job["steps"] + 1):
        await lab.given.train_step(rank, job, step)
        notices = await lab.given.add_up(rank, lab.given.has_notice(rank, job))
        if notices > 0 and step < job["steps"]:
            if rank.index == 0:
                await lab.given.save(rank, job, step)
            await lab.given.add_up(rank, 0)
            return 85
    return 0
    ### END SOLUTION


# %% [markdown]
# ## 6. Read a scaling table
#
# A scaling study has left a list of runs. Each is a dictionary: its `nodes`; the `state` of its job; the seconds
# `start` and `end` at which it began and ended; the images in the `batch` of **each node**, not the same in all runs; and
# the median seconds of a `step`. `read_table(runs)` gives a dictionary with
#
# - **trusted**: the numbers of the runs to trust, in increasing order; the first run of the list is number 0. Trust a
#   run if its state is COMPLETED and no other run of the list, whatever its state, ran at the same time. All runs
#   share a network. (A run that begins in the second in which another one ends was alone.)
# - **speedup** and **efficiency**: a list for the trusted runs, in increasing order of nodes. Speed-up is images per
#   second over those of the trusted run on one node; the ideal efficiency is 1, not 100. Every study has that run, and
#   no two trusted runs with the same number of nodes.
# - **pays**: the number of nodes up to which it pays to add more. Go from each size to the next larger one. It pays
#   if the speed-up grows by at least half of the number of nodes that are added. Stop at the first step that does not
#   pay, and give the size before it.

# %% [markdown]
# Target: right for any study. One point for each name. Do not round; only this example is rounded:

# %%
print(lab.target("read_table"))


# %% answer="read_table"
def read_table(runs: list[dict]) -> dict:
    """The runs to trust, speed-up, efficiency, and how many nodes pay."""
    trusted = speedup = efficiency = pays = None
    ### BEGIN SOLUTION

    def was_alone(run):
        begun = [peer for peer in runs if peer["start"] < run["end"]]
        return len([peer for peer in begun if peer["end"] > run["start"]]) == 1  # itself

    completed = [number for number, run in enumerate(runs) if run["state"] == "COMPLETED"]
    trusted = [number for number in completed if was_alone(runs[number])]
    rates = {runs[at]["nodes"]: runs[at]["batch"] / runs[at]["step"] for at in trusted}
    sizes = sorted(rates)
    speedup = [nodes * rates[nodes] / rates[1] for nodes in sizes]
    efficiency = [rates[nodes] / rates[1] for nodes in sizes]
    pays = sizes[0]
    for place in range(1, len(sizes)):
        if speedup[place] - speedup[place - 1] < (sizes[place] - sizes[place - 1]) / 2:
            break
        pays = sizes[place]
    ### END SOLUTION
    return {"trusted": trusted, "speedup": speedup, "efficiency": efficiency, "pays": pays}


# %% [markdown]
# ## 7. What to rent (optional)
#
# A training works on `images` images in all, and must be done within `deadline` hours from now. There are some
# `offers`, each a dictionary:
#
# - `name`; `price`: euros per node and hour; `images_per_second`: of one node;
# - `efficiency`: a dictionary with the numbers of nodes that you can rent, and the efficiency on so many;
# - `wait`: the hours in the queue, each time; `limit`: the longest that a job may take, in hours.
#
# If the training takes longer than the limit, the job is queued again, as in exercise 5, as often as needed, and
# waits each time. A training that takes exactly the limit is one job. Saving and starting again cost no time here.
#
# You pay for the hours in which the nodes compute, all nodes together, not for waiting. `rent` gives the cheapest
# choice that is done at the deadline or earlier: a dictionary with `name`, `nodes`, `done` (hours from now to the
# end) and `cost` (euros). If nothing ends in time, it gives None. No two choices cost the same.

# %% [markdown]
# Target: right for any offers. A point each for the choice, its end, its cost, and None where nothing ends in time.
# Do not round; only this example is rounded:

# %%
print(lab.target("rent"))


# %% answer="rent"
def rent(offers: list[dict], images: float, deadline: float) -> dict | None:
    """The cheapest choice that is done in time."""
    ### BEGIN SOLUTION
    best = None
    for offer in offers:
        for nodes, efficiency in offer["efficiency"].items():
            hours = images / (nodes * offer["images_per_second"] * efficiency) / 3600
            jobs = int(-(-hours // offer["limit"]))  # rounded up
            done = hours + jobs * offer["wait"]
            cost = nodes * hours * offer["price"]
            if done <= deadline and (best is None or cost < best["cost"]):
                best = {"name": offer["name"], "nodes": nodes, "done": done, "cost": cost}
    return best
    ### END SOLUTION


# %% [markdown]
# ## Try your scripts on a real Slurm
#
# If a cluster of nine nodes runs ([clusters.md](../../docs/clusters.md)), you can submit your scripts; for `gpus` three
# nodes are enough. Make a folder of your own with a folder `scaling` in it. Write your scripts there, for example by
# `pathlib.Path("batch.sh").write_text(batch)`, and this as `prepare.py`, `train.py` and `evaluate.py`:
#
# ```python
# import os, pathlib, sys
# print("rank", os.environ["SLURM_PROCID"], "on", os.uname().nodename, *sys.argv)
# print("GPUs", os.environ.get("CUDA_VISIBLE_DEVICES"))
# if "--result" in sys.argv:
#     pathlib.Path(sys.argv[sys.argv.index("--result") + 1]).touch()
# sys.exit(0)  # or another status, to see what happens
# ```
#
# Then type in a terminal, in that folder, with the path of your copy of the course:
#
# ```bash
# distlab=/path/to/the/course/.venv/bin/distlab
# $distlab cluster run -- sbatch batch.sh --data "set 1"
# $distlab cluster run -- squeue
# ```
#
# The course's cluster queues every job again that ends with 85, also without `scontrol`. So it does not show whether
# that line of your script is right.

# %% [markdown]
# ## What you have now
#
# - Four scripts to begin with on any cluster that has Slurm: change names, numbers and programs.
# - A loop that loses no step when the time is over, whoever gets the signal.
# - Two rules for money: add nodes only while each brings at least half a node's speed-up, and count the queue.
#
# **Going on.** [Lab 16](../16_capstone/lab.ipynb), the capstone: distribute a program that nobody has distributed yet.
# [Chapter 00](../../notebooks/00_start_here.ipynb) has the map of the course.

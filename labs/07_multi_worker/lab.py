# %% [markdown]
# # Lab 07: start workers, break them, save without a race
#
# **Goal.** Start two workers that train one model, find what is wrong with six jobs that do not start, say how many
# images each worker gets, and save so that nothing hangs, nothing is overwritten and nothing is left behind.
#
# **Time.** 55 minutes.
#
# **Before this.** [Chapter 07](../../notebooks/07_multi_worker.ipynb), sections 1 to 7.
#
# **How it works.** Write each answer in the cell that says so, run it, and run the check below it: it says what is
# wrong, with a hint. `make check LAB=07` does the same in a terminal. The checks need no TensorFlow: they call your
# functions with fake workers, which end within a second. Two other cells start TensorFlow itself. A full solution is
# next to this file, in [solution.ipynb](solution.ipynb).

# %%
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from distlab import labs, programs

lab = labs.open("07")
PROGRAMS = programs.FOLDER / "07_multi_worker"

# %% [markdown]
# ## 1. TF_CONFIG for any task
#
# `cluster` is a dictionary: for each job, such as `worker`, a list of addresses. Some clusters have only workers,
# others also a `chief`, parameter servers, `ps`, or both, in any order. A **task** is one process: the type is its job, the
# index its place in that job's list. Return the **text** of TF_CONFIG for the task of this type and index.
#
# Target: the text for every task of every cluster, exactly as TensorFlow expects it.

# %%
example = {"chief": ["head:2222"], "worker": ["node0:2222", "node1:2222"]}
print("tasks of the example: chief 0, worker 0, worker 1, so three processes and three texts")


# %% answer="tf_config"
def tf_config(cluster: dict[str, list[str]], task_type: str, index: int) -> str:
    """The text of TF_CONFIG for task `index` of type `task_type`."""
    ### BEGIN SOLUTION
    return json.dumps({"cluster": cluster, "task": {"type": task_type, "index": index}})
    ### END SOLUTION


# %% [markdown]
# ## 2. Start the workers
#
# Now start the processes of a cluster, one for each task. `command` is what you would type in a terminal, as a list
# such as `["python", "train.py"]`, and it is the same for all of them. These calls are all you need:
#
# - `subprocess.Popen(command, env=variables)` starts a process and returns at once; `variables` is a dictionary with
#   *all* environment variables of the new process. Those of the notebook are in `os.environ`.
# - `process.wait()` waits until the process ends, and returns its exit code.
#
# Every task is started, the parameter servers too. Return the exit codes when all processes have ended, in the order in
# which `cluster` lists the tasks, not in the order in which they end.
#
# Target: the workers find each other and train. In the check they are fake ones, which train one number.


# %% answer="start"
def start(command: list[str], cluster: dict[str, list[str]]) -> list[int]:
    """Start one process per task, each with its TF_CONFIG; the exit codes of all."""
    ### BEGIN SOLUTION
    processes = []
    for task_type, addresses in cluster.items():
        for index in range(len(addresses)):
            variables = os.environ | {"TF_CONFIG": tf_config(cluster, task_type, index)}
            processes.append(subprocess.Popen(command, env=variables))
    return [process.wait() for process in processes]
    ### END SOLUTION


# %% [markdown]
# When the check is content, let your two functions start real workers. `two_workers.py` chooses free ports, calls your
# `start`, and compares the files that the workers have written. They train one model if both say 2 replicas and their
# weights are equal. It takes about ten seconds, and there are no points for it.

# %%
folder = tempfile.TemporaryDirectory()
file = Path(folder.name) / "start.py"
lab.given.write(globals(), file)

# %%
# !{sys.executable!r} '{PROGRAMS}/two_workers.py' '{file}'

# %% [markdown]
# ## 3. Six jobs that do not start
#
# This is TF_CONFIG in each process of six training jobs, and what TensorFlow said there. Process 0 runs on the machine
# `host1`, process 1 on `host2`, process 2 on `host3`. The number of a process is the index that it should have. Each
# job has **one** mistake. Some processes say nothing: they wait for another one.

# %%
print(lab.given.described())

# %% [markdown]
# You can hear such a message yourself. This is process 1 of job B, in a few seconds:

# %%
text = lab.given.BROKEN["B"][1]
command = "import tensorflow as tf; tf.distribute.MultiWorkerMirroredStrategy()"

# %%
# !TF_CONFIG='{text}' {sys.executable!r} -c '{command}' 2>&1 | tail -n 1

# %% [markdown]
# For each job choose the field that has the mistake, and the fix. These are the words to choose from; the check applies
# your fix to the texts and tests whether all processes of the job would find each other.
#
# Target: six jobs that start. A sixth of the points each.

# %%
print("fields:", *lab.given.FIELDS, sep="\n  ")
print("fixes:", *lab.given.FIXES, sep="\n  ")

# %% answer="diagnosis"
# Instead of each (None, None): a field and a fix, such as ("task.type", "count from 0").
diagnosis = {
    "A": (None, None),
    "B": (None, None),
    "C": (None, None),
    "D": (None, None),
    "E": (None, None),
    "F": (None, None),
}
### BEGIN SOLUTION
diagnosis = {
    "A": ("task.index", "count from 0"),
    "B": ("cluster.worker", "give every address a port"),
    "C": ("cluster.worker", "write the name that other hosts know"),
    "D": ("the whole text", "let json.dumps write it"),
    "E": ("task.index", "give every process a number of its own"),
    "F": ("cluster.worker", "write the same list in every process"),
}
### END SOLUTION


# %% [markdown]
# ## 4. Who gets which images?
#
# Several workers, processes with one device each, train under `MultiWorkerMirroredStrategy`. They read the same TFRecord
# files; `images_per_file` says how many images are in each file. Every worker's pipeline reads the files in this order
# and makes **global batches** by `.batch(batch)`; the last one may be smaller. Then
# `strategy.experimental_distribute_dataset`, which `fit` calls for you, rewrites the pipelines: it divides each batch among
# the workers, and removes from each pipeline what belongs to the others. The **auto-shard policy** says how:
#
# - `"OFF"`: nothing is removed; every worker gets all images, in smaller batches.
# - `"DATA"`: every worker reads everything and keeps its part of *each batch*, worker 0 the first one. A part has as many
#   images as the batch divided by the number of workers, rounded up. The last parts get what is left, which may be
#   nothing: of 8 images three workers keep 3, 3, and 2, and of 4 images they keep 2, 2, and 0.
# - `"FILE"`: with $n$ workers, every worker reads every $n$-th file and keeps all of its images; worker $i$ starts with
#   file $i$, counted from 0. If there are fewer files than workers, TensorFlow refuses.
# - `"AUTO"`: `"FILE"` if the pipeline reads files, else `"DATA"`.

# %% [markdown]
# How many images does each worker get in one epoch? Return a list with one number per worker, or `None` if TensorFlow
# refuses.
#
# Target: the same numbers as TensorFlow. A fifth of the points for each policy, a fifth for few files or images.


# %% answer="samples_seen"
def samples_seen(
    policy: str,
    images_per_file: list[int],
    workers: int,
    batch: int,
) -> list[int] | None:
    """How many images each worker gets; None where TensorFlow refuses."""
    ### BEGIN SOLUTION
    total = sum(images_per_file)
    if policy == "OFF":
        return [total] * workers
    if policy == "DATA":
        kept = [0] * workers
        for start in range(0, total, batch):
            left = min(batch, total - start)
            part = math.ceil(left / workers)
            for worker in range(workers):
                kept[worker] += min(part, left)
                left -= min(part, left)
        return kept
    if len(images_per_file) < workers:  # FILE, or AUTO, which is FILE where files are read
        return None
    return [sum(images_per_file[worker::workers]) for worker in range(workers)]
    ### END SOLUTION


# %% [markdown]
# ## 5. Save without a race
#
# Training is over. **Every** worker calls your function, with
#
# - `worker`: which task it is, by `worker.task_type` and `worker.index`, and the `worker.cluster` of exercise 1;
# - `model`: `model.save(path)` writes a file; it reads variables that have a part on each worker;
# - `accuracy`: `accuracy.result()` gives a Python float here, under TensorFlow a tensor; its parts are on all workers too;
# - `folder`: a `Path` to a folder that all workers share.
#
# Parameter servers do not call it. Several workers may run on one machine, and then they also share its folder for
# temporary files.
#
# At the end, `folder` holds two files that the chief wrote, `model.keras` and `accuracy.txt` (only the number as text,
# with at least three decimals), and nothing else. No worker leaves a temporary file behind. Some clusters name a
# `chief`, others do not: decide here which worker it is.
#
# Target: every worker takes part in the same collectives in the same order; no path is written by two of them; exactly
# one worker is the chief.


# %% answer="save"
def save(worker, model, accuracy, folder: Path) -> None:
    """Save the model and the accuracy; called by every worker."""
    ### BEGIN SOLUTION
    is_chief = worker.task_type == "chief" if "chief" in worker.cluster else worker.index == 0
    value = accuracy.result()
    with tempfile.TemporaryDirectory() as scratch:
        model.save((folder if is_chief else Path(scratch)) / "model.keras")
    if is_chief:
        (folder / "accuracy.txt").write_text(f"{value:.3f}\n")
    ### END SOLUTION


# %% [markdown]
# ## What you have now
#
# - A function that writes TF_CONFIG for any task, and one that starts the workers of any cluster.
# - Six mistakes that you will meet again, and what TensorFlow says about each, or does not say.
# - A function that says how many images each worker gets, and when TensorFlow refuses.
# - A way to save that works whichever variables are combined when they are read, with and without a task `chief`.
#
# **Going on.** In the course's folder `notebooks/programs/07_multi_worker`, `loop.py` saves so with TensorFlow;
# `save_wrongly.py` does it wrongly.
#
# **Sources.** TensorFlow 2.21: TFConfigClusterResolver,
# [AutoShardPolicy](https://www.tensorflow.org/api_docs/python/tf/data/experimental/AutoShardPolicy);
# `distributed_file_utils` for saving by all workers.

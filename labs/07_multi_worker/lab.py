# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Lab 07: who am I, and who keeps the files?
#
# **Goal.** Write the TF_CONFIG of any process of any cluster, say who is chief, find what is wrong with six jobs that
# do not start, and save a model so that nothing hangs, nothing is overwritten and nothing is left behind.
#
# **Time.** 30 minutes.
#
# **Before this.** [Notebook 07](../../notebooks/07_multi_worker.ipynb), sections 2, 5 and 7.
#
# **How it works.** Write each answer in the cell that says so, run it, and run the check below it: it says what is
# wrong, with a hint. `make check LAB=07` does the same in a terminal. No process is started here and TensorFlow is not
# needed: the checks call your functions for every task of made-up clusters, and run the saving in one process. A full
# solution is next to this file, in [solution.ipynb](solution.ipynb).

# %%
import json
import tempfile
from pathlib import Path

from distlab import labs

lab = labs.open("07")

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


# %% nbgrader={"grade": false, "grade_id": "tf_config", "locked": false, "schema_version": 3, "solution": true, "task": false}
def tf_config(cluster: dict[str, list[str]], task_type: str, index: int) -> str:
    """The text of TF_CONFIG for task `index` of type `task_type`."""
    ### BEGIN SOLUTION
    return json.dumps({"cluster": cluster, "task": {"type": task_type, "index": index}})
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_tf_config", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
lab.check("tf_config")
### BEGIN HIDDEN TESTS
lab.points("tf_config")
### END HIDDEN TESTS

# %% [markdown]
# ## 2. The chief
#
# One task of each cluster, the chief, does what must be done only once. Which task that is depends on the cluster: some
# clusters name a `chief`, others do not.
#
# Target: True for exactly one task of each cluster, False for all others.


# %% nbgrader={"grade": false, "grade_id": "is_chief", "locked": false, "schema_version": 3, "solution": true, "task": false}
def is_chief(cluster: dict[str, list[str]], task_type: str, index: int) -> bool:
    """Whether this task is the chief of its cluster."""
    ### BEGIN SOLUTION
    if "chief" in cluster:
        return task_type == "chief"
    return task_type == "worker" and index == 0
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_is_chief", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
lab.check("is_chief")
### BEGIN HIDDEN TESTS
lab.points("is_chief")
### END HIDDEN TESTS

# %% [markdown]
# ## 3. Six jobs that do not start
#
# This is TF_CONFIG in each process of six training jobs. Process 0 runs on the machine `host1`, process 1 on `host2`,
# process 2 on `host3`. The number of a process is the index that it should have. Each job has **one** mistake.

# %%
print(lab.given.described())

# %% [markdown]
# For each job choose the field that has the mistake, and the fix. These are the words to choose from; the check applies
# your fix to the texts and tests whether all processes of the job would find each other.
#
# Target: six jobs that start. A sixth of the points each.

# %%
print("fields:", *lab.given.FIELDS, sep="\n  ")
print("fixes:", *lab.given.FIXES, sep="\n  ")

# %% nbgrader={"grade": false, "grade_id": "diagnosis", "locked": false, "schema_version": 3, "solution": true, "task": false}
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


# %% nbgrader={"grade": true, "grade_id": "check_diagnosis", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
lab.check("diagnosis")
### BEGIN HIDDEN TESTS
lab.points("diagnosis")
### END HIDDEN TESTS

# %% [markdown]
# ## 4. Save the right way
#
# Training is over. **Every** worker calls your function, with
#
# - `worker`: `worker.task_type`, `worker.index`, and `worker.is_chief`, which is True for one of them;
# - `model`: `model.save(path)` writes a file; it reads variables that have a part on each worker;
# - `accuracy`: `accuracy.result()` gives a number; its parts are on all workers too;
# - `folder`: a `Path` to a folder that all workers share.
#
# At the end, `folder` holds two files that the chief wrote, `model.keras` and `accuracy.txt` (only the number as text,
# with at least three decimals), and nothing else. No worker leaves a temporary file behind.
#
# Target: every worker takes part in the same collectives in the same order; no path is written by two of them.


# %% nbgrader={"grade": false, "grade_id": "save", "locked": false, "schema_version": 3, "solution": true, "task": false}
def save(worker, model, accuracy, folder: Path) -> None:
    """Save the model and the accuracy; called by every worker."""
    ### BEGIN SOLUTION
    value = accuracy.result()
    with tempfile.TemporaryDirectory() as scratch:
        place = folder if worker.is_chief else Path(scratch)
        model.save(place / "model.keras")
    if worker.is_chief:
        (folder / "accuracy.txt").write_text(f"{value:.3f}\n")
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_save", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
lab.check("save")
### BEGIN HIDDEN TESTS
lab.points("save")
### END HIDDEN TESTS

# %% [markdown]
# ## What you have now
#
# - One line that writes TF_CONFIG for any task: the cluster is the same everywhere, the task is not.
# - A rule for the chief that also holds when the cluster names one.
# - Six mistakes that you will meet again, and what each looks like.
# - A way to save that works whichever variables are combined when they are read: all workers call, only the chief keeps
#   the files.
#
# **Going on.** In the course's folder `notebooks/programs/07_multi_worker`, `train.py` does the same with TensorFlow;
# `save_wrongly.py` does it wrongly.
#
# **Sources.** TensorFlow 2.21: TFConfigClusterResolver; `distributed_file_utils` for saving by all workers.

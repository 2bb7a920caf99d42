# %% [markdown]
# # Lab 05: resume as if nothing had happened
#
# **Goal.** Resume an interrupted run so that it equals the undisturbed one, find out what a broken checkpoint lacks,
# and choose the newest checkpoint that is whole.
#
# **Time.** 60 minutes for exercises 1 to 3, and 10 more for exercise 4, which is optional.
#
# **Before this.** [Chapter 05](../../notebooks/05_save_and_load.ipynb), section 3.
#
# **How it works.** Write each answer in the cell that says so, run it, and run the check below it: it says what is
# wrong, with a hint. `make check LAB=05` does the same in a terminal. Everything is tiny and runs on one device. A full
# solution is next to this file, in [solution.ipynb](solution.ipynb).

# %%
from distlab import labs  # first: it selects tf-keras

import json
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

tf.get_logger().setLevel("ERROR")
lab = labs.open("05")

# %% [markdown]
# ## 1. The images of a step
#
# The best data order needs no saving: it follows from the number of the step. In every **epoch** the `images` numbers 0,
# 1, … are shuffled and cut into whole batches of `batch` numbers; what remains is left out in this epoch. Steps are
# counted from 0, through all epochs: with 23 images and batches of 5, steps 0 to 3 are epoch 0, and step 4 is the first
# of epoch 1.
#
# Give the numbers of the images of this step. The order must depend on the epoch and on `seed`, and on nothing else: a
# restarted run asks for step 1000 first. So the check also runs your cell again, as a new process would.
#
# Target: no image twice in an epoch; in each epoch and with each seed the images shuffled again, not only shifted or
# reversed; the same numbers whenever a step is asked for, in any process. `np.random.default_rng([seed, epoch])` is a
# generator that depends on both. (`seed + epoch` is allowed, though two seeds then share orders.)


# %% answer="numbers_of"
def numbers_of(step: int, images: int, batch: int, seed: int) -> np.ndarray:
    """The numbers of the images of this step."""
    ### BEGIN SOLUTION
    steps_per_epoch = images // batch
    epoch, place = divmod(step, steps_per_epoch)
    order = np.random.default_rng([seed, epoch]).permutation(images)
    return order[place * batch : (place + 1) * batch]
    ### END SOLUTION


# %% [markdown]
# ## 2. Run, and resume
#
# This class is given. Read `train_step`: what of the object does a later step depend on?

# %%
print(lab.given.source())

# %% [markdown]
# Write the program, as `run` in section 3 of the chapter. A process makes a new `SmallTraining` and calls
# `run(training, folder, last_step, every)`, which
#
# - resumes from the newest checkpoint in `folder`, if there is one;
# - trains until `last_step` steps are done in all, with the images `training.numbers(step)`;
# - saves a checkpoint whenever the number of steps done is a multiple of `every`, and after the last step, each once;
#   if nothing is left to do, it saves nothing. A `tf.train.CheckpointManager` keeps the newest two.
#
# `run` returns nothing. The check kills it before the first save, between two saves, twice, and calls it again
# when it is done. Each time, a new process with a new `SmallTraining` goes on in the same folder. (To kill it,
# `train_step` raises an exception. A process that is really killed runs no `except` and no `finally`, so do not save
# there.)
#
# Target: after each restart the state is that of the undisturbed run at the newest checkpoint, and the weights at the
# end are the same. A sixth of the points each for the checkpoints, weights, the optimizer, position, random state, and
# the lowest loss.


# %% answer="run"
def run(training, folder: Path, last_step: int, every: int) -> None:
    """Train until `last_step` steps are done; a run that is started again resumes."""
    ### BEGIN SOLUTION
    checkpoint = tf.train.Checkpoint(
        weights=training.weights,
        optimizer=training.optimizer,
        generator=training.generator,
        step=training.step,
        lowest_loss=training.lowest_loss,
    )
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
    checkpoint.restore(manager.latest_checkpoint)
    while int(training.step) < last_step:
        training.train_step(training.numbers(int(training.step)))
        if int(training.step) % every == 0 or int(training.step) == last_step:
            manager.save()
    ### END SOLUTION


# %% [markdown]
# Try it yourself, if you like: two runs from the same first weights, one of them interrupted. Its second process begins
# with other weights, so both lines are equal only if `run` restores what a step depends on.

# %%
for stops in ([20], [7, 20]):
    with tempfile.TemporaryDirectory() as folder:
        for process, stop in enumerate(stops):
            tf.keras.utils.set_random_seed(5 + process)
            training = lab.given.training()
            run(training, Path(folder), stop, 3)
    print(f"stops {stops}: weights", training.weights.numpy()[0].round(3))

# %% [markdown]
# ## 3. What four broken checkpoints lack
#
# Four programs trained with Adam and saved a checkpoint. Each checkpoint lacks another part of the state; instead of
# this part the resumed run has what a new process begins with. Each program was also run without a stop. In both runs
# the first three steps after the checkpoint were recorded:
#
# - `numbers`: the images of the batch; `mask`: which inputs dropout kept;
# - `loss`: on this batch, before the step; `learning_rate`;
# - `changes`: by how much the step changed each of six weights.
#
# In equal runs loss and changes may differ by rounding, by a relative error of up to 1e-6; the rest is exactly equal.
# What is lacking shows in the first step as a relative difference of more than 1 %.

# %%
runs = json.loads(Path("broken_runs.json").read_text())
for letter, pair in runs.items():
    print(f"checkpoint {letter}\n{lab.given.described(pair)}\n")

# %% [markdown]
# Write down what you think. Then write a function that finds it for **any** two such runs. `straight` is the
# undisturbed run, `resumed` the other one; each is a list with one dictionary for each step. The answer is one of
# `lab.given.PARTS`. The check uses the four pairs above and hidden ones, saved after
# up to 400 steps, in which the other two parts are lacking too. Some of these have small losses, or gradients that keep
# their signs.
#
# A step's record follows from the state: the images and the mask come first, then the loss, then the changes, which are
# the learning rate times Adam's (in the chapter: *What the optimizer remembers*). There, $t$ is one number for all
# weights, and each weight has its own $m$ and $v$.
#
# Target: right for any such runs. A sixth of the points for each part.

# %%
print(*lab.given.PARTS, sep=", ")
print(runs["A"]["resumed"][0])


# %% answer="lacks"
def lacks(straight: list[dict], resumed: list[dict]) -> str:
    """What the checkpoint lacks."""
    ### BEGIN SOLUTION
    expected, first = straight[0], resumed[0]
    if first["numbers"] != expected["numbers"]:
        return "data position"
    if first["mask"] != expected["mask"]:
        return "random state"
    if not np.isclose(first["loss"], expected["loss"]):
        return "weights"
    if not np.isclose(first["learning_rate"], expected["learning_rate"]):
        return "learning rate"
    factors = np.array(first["changes"]) / np.array(expected["changes"])
    return "step count" if np.allclose(factors, factors[0]) else "averages"
    ### END SOLUTION


# %% [markdown]
# ## 4. Which checkpoint to use, which to delete (optional)
#
# `latest_checkpoint` names the newest checkpoint, whole or not. A program that was killed while it saved, or a full
# disk, leaves a damaged one. A checkpoint has one index file and one or more data files. Here it is **whole** if none of
# them is missing or empty. ([Chapter 13](../../notebooks/13_fault_tolerance.ipynb) adds a seal, which shows damage
# that sizes do not.)
#
# `checkpoints` lists what is in a folder, in no order. Each entry is a dictionary:
#
# - `"number"`: the steps done when it was saved;
# - `"index"`: the bytes of its index file, None if it is missing;
# - `"data"`: a list with the bytes of each data file, one or more, None for each that is missing.
#
# Give a dictionary:
#
# - `"resume"`: the number of the newest whole checkpoint; None if there is none;
# - `"delete"`: a list of the numbers to delete, each once. Of the checkpoints that are older than that, keep only those
#   among the `keep` newest whole ones; the one to resume from is one of these, and `keep` is at least 1. A damaged one
#   that is newer may be in the middle of being written: leave it. With no whole one, delete nothing.
#
# Target: right for any folder, in any order. Half of the points each. For example

# %%
print(lab.target("housekeeping"))


# %% answer="housekeeping"
def housekeeping(checkpoints: list[dict], keep: int) -> dict:
    """What to resume from, and what to delete."""
    ### BEGIN SOLUTION
    complete = [files for files in checkpoints if files["index"] and all(files["data"])]
    whole = sorted(files["number"] for files in complete)
    if not whole:
        return {"resume": None, "delete": []}
    older = [files["number"] for files in checkpoints if files["number"] < whole[-1]]
    return {
        "resume": whole[-1],
        "delete": [number for number in older if number not in whole[-keep:]],
    }
    ### END SOLUTION


# %% [markdown]
# ## What you have now
#
# - A rule for what belongs in a checkpoint: everything that a step changes and a later step reads.
# - A way to diagnose a resumed run: look at its first step, in the order in which things are computed.
# - A choice that trusts files, not the list of the program that was killed.
#
# **Going on.** [Chapter 06](../../notebooks/06_collectives_and_ring_all_reduce.ipynb).

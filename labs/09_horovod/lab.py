# %% [markdown]
# # Lab 09: eight steps to Horovod
#
# **Goal.** Put the eight steps in the right places of a serial program. Then write them as functions, which are
# checked one by one on six ranks of two hosts, and run on two ranks of Horovod at the end.
#
# **Time.** 45 minutes.
#
# **Before this.** [Chapter 09](../../notebooks/09_horovod.ipynb), sections 1 to 5.
#
# **How it works.** Write each answer in the cell that says so, run it, and run the check below it: it says what is
# wrong, with a hint. `make check LAB=09` does the same in a terminal. The checks need no Horovod: their `hvd` is a
# fake with the same calls, whose ranks are threads. Only the last cell starts Horovod itself. A full solution is next
# to this file, in [solution.ipynb](solution.ipynb).

# %%
from distlab import data, labs, programs  # first: it selects tf-keras

import sys
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

tf.get_logger().setLevel("ERROR")
lab = labs.open("09")
hvd = lab.given.hvd
PROGRAMS = programs.FOLDER / "09_horovod"

# %% [markdown]
# ## 1. The puzzle
#
# Here are the lines of a serial program and, below them, cards with code for Horovod. The first column has their names.

# %%
print(lab.given.described(lab.given.LINES))

# %%
print(lab.given.described(lab.given.CARDS))

# %% [markdown]
# Put cards between the lines, so that the program trains on any number of ranks, on several hosts with several GPUs
# each, as one process would with the batches of all ranks together. Five cards are wrong: leave them out. Write lines
# and cards by their names, in the order in which they run.
#
# Target: each of the eight steps is there once, in a place where it has its effect. Often several places are right. An
# eighth of the points for each step.

# %% answer="program"
# Copy this list and put names of cards between those of the lines.
program = [
    "read options",
    "load",
    "model",
    "optimizer",
    "slots",
    "restore",
    "shuffle",
    "batch",
    "steps",
    "loss",
    "gradients",
    "apply",
    "save",
]
### BEGIN SOLUTION
program = [
    "read options",
    "init",
    "pin by local rank",  # before the model takes the devices
    "load",
    "model",
    "rate by size",
    "optimizer",
    "slots",
    "restore",
    "broadcast",  # when every variable is there and has its first value
    "shuffle",
    "shard",
    "batch",
    "steps by size",
    "steps",
    "loss",
    "wrap the tape",
    "gradients",
    "apply",
    "only rank 0",
    "save",
]
### END SOLUTION

# %% [markdown]
# ## 2. Steps 1 and 2: begin, and pin the device
#
# From here on you write functions. The calls of `hvd` do what they do in Horovod. Write what a rank does first: it
# initialises Horovod, and lets TensorFlow see only one GPU, the rank's own (`tf.config.list_physical_devices`,
# `tf.config.set_visible_devices`). There may be hosts without GPUs, and batch systems that show each rank only its own
# GPU, as Slurm does with `--gpus-per-task=1`. (Memory growth is not asked for here.)
#
# Target: on two hosts with three ranks and three GPUs each, every rank has its own GPU; with a list of one GPU each rank
# takes that one; without GPUs nothing fails. Half of the points for each step.


# %% answer="start"
def start():
    """What each process does before anything else."""
    ### BEGIN SOLUTION
    hvd.init()
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        tf.config.set_visible_devices(gpus[hvd.local_rank() % len(gpus)], "GPU")
    ### END SOLUTION


# %% [markdown]
# ## 3. Steps 7 and 8: feed the ranks
#
# These are two functions of `train_serial.py`. The first makes the batches of an epoch and repeats them endlessly; the
# second says after how many steps the epoch is over.

# %%
programs.show(PROGRAMS / "train_serial.py", "batches", "steps_per_epoch")

# %% [markdown]
# Write them for Horovod. `options.batch` is now the batch of one rank.
#
# Target, half of the points for each function:
#
# - in an epoch no sample goes to two ranks, or twice to one rank; every batch of a rank has `options.batch` samples;
#   the next epoch has another order;
# - all ranks take the same number of steps: as many as there are full batches for all ranks together.


# %% answer="feeding"
def batches(options, epoch):
    """This rank's batches of (numbers, images, labels)."""
    ### BEGIN SOLUTION
    images, labels = data.load(options.dataset).train
    order = np.random.default_rng([options.seed, epoch]).permutation(options.images)
    samples = tf.data.Dataset.from_tensor_slices((order, images[order], labels[order]))
    samples = samples.shard(hvd.size(), hvd.rank())
    return samples.batch(options.batch, drop_remainder=True).repeat()
    ### END SOLUTION


def steps_per_epoch(options):
    """Steps after which an epoch is over."""
    ### BEGIN SOLUTION
    return options.images // (options.batch * hvd.size())
    ### END SOLUTION


# %% [markdown]
# ## 4. Steps 3 to 6: train alike
#
# Four more functions. `state` is a `tf.train.Checkpoint` with a `model`, an `optimizer` whose variables exist, and
# `epochs_done`.

# %%
programs.show(PROGRAMS / "train_serial.py", "make_optimizer", "begin", "step", "save")

# %%
mean_loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

# %% [markdown]
# Write them for Horovod. Rank 0 can read the checkpoints; the other ranks perhaps cannot. Each rank starts with its own
# random weights.
#
# Target, a quarter of the points each; the check tests each function by itself:
#
# - the optimizer of the serial program, with the learning rate by the linear rule;
# - a step by `state.optimizer` that leaves equal weights on all ranks, those of one step with the average of their
#   gradients; it returns the loss before the step;
# - after `begin`, all ranks have rank 0's weights, optimizer variables and `epochs_done`; after a restart with
#   `options.resume`, these are those of the newest checkpoint;
# - a checkpoint of all of `state` that only one rank writes, the one that reads it in `begin`, and none if `options.folder` is None.


# %% answer="training"
def make_optimizer(options):
    """SGD with momentum."""
    ### BEGIN SOLUTION
    return tf.keras.optimizers.SGD(options.learning_rate * hvd.size(), momentum=0.9)
    ### END SOLUTION


@tf.function(autograph=False)  # there is no loop or condition to translate
def step(state, images, labels):
    """Change the weights once; the loss before."""
    ### BEGIN SOLUTION
    with tf.GradientTape() as tape:
        loss = mean_loss(labels, state.model(images, training=True))
    tape = hvd.DistributedGradientTape(tape)
    gradients = tape.gradient(loss, state.model.trainable_variables)
    state.optimizer.apply_gradients(zip(gradients, state.model.trainable_variables, strict=True))
    return loss
    ### END SOLUTION


def begin(options, state):
    """The same state on all ranks: with options.resume, the newest of options.folder."""
    ### BEGIN SOLUTION
    if options.resume and hvd.rank() == 0:
        state.restore(tf.train.latest_checkpoint(options.folder)).assert_existing_objects_matched()
    hvd.broadcast_variables([*state.model.variables, *state.optimizer.variables, state.epochs_done], root_rank=0)
    ### END SOLUTION


def save(options, state):
    """Write a checkpoint, if there is a folder for it."""
    ### BEGIN SOLUTION
    if options.folder and hvd.rank() == 0:
        state.save(str(options.folder / "checkpoint"))
    ### END SOLUTION


# %% [markdown]
# ## 5. On two ranks of Horovod
#
# Run the next cells when all checks say "right". They write your functions to a file, in which `hvd` is Horovod, and
# start two ranks with mpirun. The ranks train one epoch with `train_tape.py`, in which your functions replace those of
# the same name; `forgotten_steps.py` tests which step is missing. This takes up to a minute; there are no points for
# it. If Horovod is not installed, one line says so.

# %%
folder = tempfile.TemporaryDirectory()
file = Path(folder.name) / "steps.py"
lab.given.write(globals(), file)

# %%
# !{sys.executable!r} '{PROGRAMS}/two_ranks.py' '{file}'

# %% [markdown]
# ## What you have now
#
# - A program with eight steps, and a reason for the place of each.
# - Functions that are also right where local rank and rank differ. Two ranks on a laptop would not have shown you that.
# - A run on Horovod with the same functions.
#
# **Going on.** Undo one step, such as the broadcast, and run the last two cells. Does the loss tell you?
#
# **Sources.** Horovod 0.28.1: documentation and source of its TensorFlow interface.

# %% [markdown]
# # Lab 14: the eight steps in PyTorch
#
# **Goal.** Carry the eight steps from Horovod over to PyTorch's DDP. Say which images each rank sees, find out from
# logs how a program uses its sampler wrongly, and compute what DDP averages.
#
# **Time.** 55 minutes for exercises 1 to 3, and 25 more for exercises 4 and 5, which are optional.
#
# **Before this.** [Chapter 14](../../notebooks/14_other_frameworks.ipynb), sections 1 to 4, and the eight steps of
# [chapter 09](../../notebooks/09_horovod.ipynb).
#
# **How it works.** Write each answer in the cell that says so, run it, and run the check below it: it says what is
# wrong, with a hint. `make check LAB=14` does the same in a terminal. PyTorch is not needed: the checks use a fake with
# the same calls, whose ranks are threads. Where PyTorch is installed, your program also runs on it. A full solution is
# next to this file, in [solution.ipynb](solution.ipynb).

# %%
import tempfile
from pathlib import Path

import numpy as np

from distlab import labs, programs

lab = labs.open("14")
PROGRAMS = programs.FOLDER / "14_other_frameworks"

# %% [markdown]
# ## 1. The puzzle
#
# This is the Horovod program for TensorFlow with its eight steps.

# %%
programs.show(PROGRAMS / "train_horovod.py", "pin_device", "train")

# %% [markdown]
# You make the same of a serial PyTorch program. Here are its lines and, below them, cards with code for several
# processes. The first column has their names.

# %%
print(lab.given.described(lab.given.LINES))

# %%
print(lab.given.described(lab.given.CARDS))

# %% [markdown]
# `parse`, `make_network`, `load` and `loss_of` do what their names say; every process draws its own first weights.
# `restore` reads the weights and the optimizer's state from a folder that all processes see, and gives the number of
# the next epoch; `save` writes there. `islice(loader, steps)` gives the first `steps` batches of the loader.
# `DistributedSampler(images, N, r)` gives share r of N; without N and r these are world size and rank. `torchrun`
# starts the processes, and tells each its `LOCAL_RANK` (its number on its host) and `LOCAL_WORLD_SIZE` (how many
# processes its host has).

# %% [markdown]
# Put cards between the lines, so that the program trains on any number of ranks, on several hosts with several GPUs
# each, as one process would with the batches of all ranks together. Every epoch has another order. A card has one place
# at most; six are not needed or wrong: leave those out. A card is indented like the serial line that follows it.
#
# Target: each of the eight steps has its effect. Not every step has a card, and one step has two. Often several places
# are right. An eighth of the points for each step.

# %% answer="program"
# Copy this list and put names of cards between those of the lines.
program = [
    "read options",
    "network",
    "model",
    "optimizer",
    "restore",
    "images",
    "sampler",
    "loader",
    "steps",
    "epochs",
    "batches",
    "loss",
    "backward",
    "update",
    "save",
]
### BEGIN SOLUTION
program = [
    "init",
    "pin by local rank",  # before the network moves to the GPU
    "read options",
    "network",
    "model",
    "rate by size",
    "optimizer",
    "restore",  # on all ranks: DDP sends the weights, but not the momentum
    "wrap",  # steps 4 and 5
    "images",
    "sampler",
    "shard",
    "loader",
    "steps",  # of the rank's own share, so step 8 needs no card
    "epochs",
    "set epoch",  # before the loader asks for an order
    "batches",
    "loss",
    "backward",
    "update",
    "only rank 0",
    "save",
]
### END SOLUTION

# %% [markdown]
# When the check says "right", you can run your program on two real processes. Make `for_real` True: the next cell then
# writes the program to a file, and `two_processes.py` starts it with torchrun on 480 images. It takes about 20 seconds.
# If PyTorch is not installed, one line says so. There are no points for it.

# %%
for_real = False
if for_real and (problem := lab.given.problem(program)):
    print(problem)
elif for_real:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "program.py"
        lab.given.write(program, file)
        print(programs.module(PROGRAMS / "two_processes.py").report(file))

# %% [markdown]
# ## 2. Which images does a rank see?
#
# `DistributedSampler` does this, on each of the ranks 0 to `ranks` − 1:
#
# 1. It makes a random order of all images from the number `seed + epoch`. This is the same on all ranks.
# 2. If the images do not divide evenly among the ranks: with `drop_last` it cuts the last ones off the order, as few as
#    possible. Else it begins the order again from its start, until it divides evenly. (With very few images it does so
#    more than once.)
# 3. It takes the positions `rank`, `rank + ranks`, `rank + 2 * ranks` and so on of the order.
#
# Write it with NumPy: `samples` gives the list of the images' numbers, in the rank's order. For step 1 use
# `np.random.default_rng(…).permutation(images)`.
#
# Target: exact, for any job. A quarter of the points each if the images divide evenly in epoch 0 with seed 0; if they
# do in other epochs and with other seeds; if images are repeated; if they are dropped (both in epoch 0). For example

# %%
print(lab.target("samples"))


# %% answer="samples"
def samples(
    images: int,
    ranks: int,
    rank: int,
    epoch: int,
    seed: int,
    drop_last: bool,
) -> list[int]:
    """The numbers of the images that this rank sees in this epoch."""
    ### BEGIN SOLUTION
    order = np.random.default_rng(seed + epoch).permutation(images).tolist()
    if drop_last:
        order = order[: images // ranks * ranks]
    else:
        count = -(-images // ranks) * ranks  # rounded up
        while len(order) < count:
            order = order + order[: count - len(order)]
    return order[rank::ranks]
    ### END SOLUTION


# %% [markdown]
# ## 3. What is wrong with the sampler?
#
# Six jobs of two ranks have logged which of the 13 images each rank saw in each of four epochs. In one job nothing is
# wrong; each of the others has one of these faults:
#
# | Fault | What the program does |
# |---|---|
# | no sampler | each rank has its own `RandomSampler` |
# | a seed per rank | each rank makes its `DistributedSampler` with another seed |
# | no shuffling | the sampler is made with `shuffle=False`: it takes the images in the order 0, 1, 2 … |
# | no set_epoch | `sampler.set_epoch` is never called |
# | set_epoch too late | `sampler.set_epoch(epoch)` comes after the loader has begun the epoch |
#
# Some jobs have `drop_last`, the others not: that is no fault.

# %%
for letter, log in lab.given.LOGS.items():
    print(f"job {letter}\n{lab.given.log_in_words(log)}\n")

# %% [markdown]
# Write a function that finds the fault of **any** such job. `log[rank][epoch]` is the list of the images' numbers that
# a rank saw in an epoch, in its order, as in `lab.given.LOGS["A"][0][2]`; `images` is how many images there are. All
# jobs have at least two ranks and three epochs, and each rank sees at least six images in an epoch. `diagnose` gives
# one of these texts:

# %%
print(*lab.given.FAULTS, sep="\n")

# %% [markdown]
# Target: right for any job, with images that divide evenly, are repeated or dropped. A sixth of the points for each
# text, if you say it of all jobs to which it belongs, and of no other.


# %% answer="diagnose"
def diagnose(log: list[list[list[int]]], images: int) -> str:
    """How the program uses its sampler wrongly."""
    ### BEGIN SOLUTION
    if len(log[0][0]) == images:
        return "no sampler"
    seen = [image for epochs in log for image in epochs[0]]
    if len(set(seen)) < images and len(set(seen)) < len(
        seen,
    ):  # a sampler repeats or drops, never both
        return "a seed per rank"
    first, second, third = log[0][:3]  # rank 0 never sees an image twice
    if first == second == third:
        return "no shuffling" if first == sorted(first) else "no set_epoch"
    return "set_epoch too late" if first == second else "nothing"
    ### END SOLUTION


# %% [markdown]
# ## 4. An uneven batch (optional)
#
# With `DistributedSampler` all ranks have equally many images in each step. Where each rank reads files of its own, they
# may have different numbers in the last one. Each rank's loss is the *mean* over its own images, and DDP takes the plain
# mean of the ranks' gradients. So an image in a small batch counts more.
#
# The mean gradient of a step is a sum over all images of all ranks, each times its weight. `counts` says how many
# images each rank has (at least one). `uneven` gives for the images of rank `rank`
#
# - **weight**: the weight that each of them has with DDP;
# - **factor**: the number by which this rank must multiply its loss, so that DDP gives the mean over all images, in
#   which all count the same.
#
# Target: right for any counts, not rounded: a relative error up to 2e-7 is allowed, enough for float32. One point for
# each number. For example

# %%
print(lab.target("uneven"))


# %% answer="uneven"
def uneven(counts: list[int], rank: int) -> dict[str, float]:
    """The two numbers, by name."""
    answer = dict.fromkeys(("weight", "factor"))
    ### BEGIN SOLUTION
    answer["weight"] = 1 / counts[rank] / len(counts)
    answer["factor"] = len(counts) * counts[rank] / sum(counts)
    ### END SOLUTION
    return answer


# %% [markdown]
# ## 5. Several batches, one all-reduce (optional)
#
# If the batch that you want does not fit into the memory, a rank can add up the gradients of several smaller batches
# before it takes one step: **gradient accumulation**. In PyTorch this is easy, because `loss.backward()` *adds* to
# the gradients that are there; `optimizer.zero_grad()` sets them to zero.
#
# Under DDP, however, every `backward` starts an all-reduce, and only one is needed. In the block of
#
# ```python
# with model.no_sync():
#     ...
# ```
#
# DDP averages nothing. What counts is where the *forward* pass `model(images)` is made. After a forward pass outside the
# block, the very next `backward` averages all that has been added up so far, whichever pair's `backward` it is.

# %% [markdown]
# Write one step. `model` is wrapped by DDP; `batches` is a list of at least one pair `(images, labels)`, all of the same
# length, and as many on each rank. The loss of a pair is `cross_entropy(model(images), labels)`, the mean over the
# pair; you can multiply and divide it by a number. Call `backward` for each pair before the forward pass of the next
# one, so that its activations can be forgotten.
#
# Target, half of the points each: after the step, all ranks have the weights of one step of the optimizer with the mean
# gradient over all images of all ranks; and each step makes one all-reduce, and one `backward` per pair.

# %%
cross_entropy = lab.given.cross_entropy


# %% answer="accumulate"
def accumulate(model, optimizer, batches):
    """One step with the gradients of all batches."""
    ### BEGIN SOLUTION
    optimizer.zero_grad()
    with model.no_sync():
        for images, labels in batches[:-1]:
            loss = cross_entropy(model(images), labels) / len(batches)
            loss.backward()
    images, labels = batches[-1]
    loss = cross_entropy(model(images), labels) / len(batches)
    loss.backward()
    optimizer.step()
    ### END SOLUTION


# %% [markdown]
# ## What you have now
#
# - A DDP program, and a reason for the place of each of its lines. Steps 4 and 5 are one constructor, step 8 follows
#   from the sampler.
# - The rule by which ranks share an epoch, and the signs of five mistakes.
# - What DDP averages: ranks, not images.
#
# **Going on.** Compare your program with `train_ddp.py`. Which of its lines has no counterpart in the puzzle?
#
# **Sources.** PyTorch 2.13: documentation of
# [DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
# and [DistributedSampler](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler).

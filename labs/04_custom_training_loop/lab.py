# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Lab 04: divide the loss rightly
#
# **Goal.** Say by what factor a loop with the wrong divisor is wrong, and write the losses and gradients of replicas so
# that together they are those of one device: with uneven batches, a penalty, accumulated gradients, masks.
#
# **Time.** 40 minutes.
#
# **Before this.** [Notebook 04](../../notebooks/04_custom_training_loop.ipynb).
#
# **How it works.** Write each answer in the cell that says so, run it, and run the check below it: it says what is
# wrong, with a hint. `make check LAB=04` does the same in a terminal. Everything is NumPy: a replica is an entry of a
# list, and nothing is trained. A full solution is next to this file, in [solution.ipynb](solution.ipynb).

# %%
import numpy as np

from distlab import labs

lab = labs.open("04")

# %% [markdown]
# ## 1. By what factor is it wrong?
#
# One device with all images of an update would use the gradient of the **mean** of their losses. Six loops compute the
# gradient of one update on `replicas` replicas. A replica may compute on several small batches, one after the other,
# before the update: these are **micro-batches** (exercise 4). In each of them every replica has `images` images. All
# loops but the last have one micro-batch per update:
#
# | Loop | Each replica's loss | Then |
# |---|---|---|
# | means, summed | mean over its images | gradients of the replicas are added |
# | means, averaged | mean over its images | gradients are averaged |
# | sums, summed | sum over its images | gradients are added |
# | sums, averaged | sum over its images | gradients are averaged |
# | global means, averaged | sum, divided by the images of all replicas in this micro-batch | gradients are averaged |
# | micro-batches, summed | sum, divided by the images of all replicas in this micro-batch | gradients are added, over the replicas and over `micro_batches` such batches, before one update |
#
# Give for each loop the factor between its gradient and that of the mean over all images of the update: 2 if it is
# twice as large, 0.5 if it is half as large. Target: right for any numbers. One point each. For example

# %%
print(lab.target("factors"))


# %% nbgrader={"grade": false, "grade_id": "factors", "locked": false, "schema_version": 3, "solution": true, "task": false}
def factors(replicas: int, images: int, micro_batches: int) -> dict[str, float]:
    """The factor of each loop."""
    answer = {
        "means, summed": None,
        "means, averaged": None,
        "sums, summed": None,
        "sums, averaged": None,
        "global means, averaged": None,
        "micro-batches, summed": None,
    }
    ### BEGIN SOLUTION
    answer["means, summed"] = replicas
    answer["means, averaged"] = 1
    answer["sums, summed"] = replicas * images
    answer["sums, averaged"] = images
    answer["global means, averaged"] = 1 / replicas
    answer["micro-batches, summed"] = micro_batches
    ### END SOLUTION
    return answer


# %% nbgrader={"grade": true, "grade_id": "check_factors", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
lab.check("factors")
### BEGIN HIDDEN TESTS
lab.points("factors")
### END HIDDEN TESTS

# %% [markdown]
# ## 2. The loss of each replica
#
# The strategy adds the gradients of all replicas. So each replica's loss must be its *part* of the mean over all
# examples of this global batch; the parts of all replicas add up to that mean. A replica's part contains its own
# examples only.
#
# `losses` has one array for each replica: the losses of its examples. In the last batch of an epoch the replicas may
# have different numbers of examples, or none, and that can be any replica. Give a list with one number for each replica.
#
# Target: exact to a relative error of 1e-9. A third of the points each for a full batch, an uneven one, and one in which
# a replica has no examples. For example

# %%
print(lab.target("replica_losses"))


# %% nbgrader={"grade": false, "grade_id": "replica_losses", "locked": false, "schema_version": 3, "solution": true, "task": false}
def replica_losses(losses: list[np.ndarray]) -> list[float]:
    """Each replica's part of the mean over all examples."""
    ### BEGIN SOLUTION
    examples = sum(len(own) for own in losses)
    return [np.sum(own) / examples for own in losses]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_replica_losses", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
lab.check("replica_losses")
### BEGIN HIDDEN TESTS
lab.points("replica_losses")
### END HIDDEN TESTS

# %% [markdown]
# ## 3. A penalty
#
# A penalty on the weights, such as weight decay, is part of the loss too. It depends on the weights, which are the same
# on every replica, and on no example. Each replica runs the same code, so each adds the same amount, and all of them
# together must add the penalty once.
#
# Give each replica's loss with its part of `penalty`. Target and points as in exercise 2. For example

# %%
print(lab.target("with_penalty"))


# %% nbgrader={"grade": false, "grade_id": "with_penalty", "locked": false, "schema_version": 3, "solution": true, "task": false}
def with_penalty(losses: list[np.ndarray], penalty: float) -> list[float]:
    """Each replica's part of the mean over all examples plus the penalty."""
    ### BEGIN SOLUTION
    examples = sum(len(own) for own in losses)
    return [np.sum(own) / examples + penalty / len(losses) for own in losses]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_with_penalty", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
lab.check("with_penalty")
### BEGIN HIDDEN TESTS
lab.points("with_penalty")
### END HIDDEN TESTS

# %% [markdown]
# ## 4. Accumulated gradients
#
# Horovod and PyTorch count *ranks*, that is, processes with one replica each. If a batch does not fit into memory, each
# rank computes the gradients of several micro-batches, one after the other, and adds them up before one update. This is
# *gradient accumulation*. The update must be the one that the whole batch would give.
#
# `gradients` has the shape (ranks, micro-batches, parameters). Each gradient is the mean over the images of its
# micro-batch. `counts`, of shape (ranks, micro-batches), says how many images these were. Where there were none, the
# mean is nan; that can be any micro-batch. Give the gradient of the mean over all images, an array of shape (parameters,).
#
# Target: exact to a relative error of 1e-9. A third of the points each for equal micro-batches, unequal ones, and one
# without images. For two ranks with two micro-batches and one parameter:

# %%
print(lab.target("accumulated"))


# %% nbgrader={"grade": false, "grade_id": "accumulated", "locked": false, "schema_version": 3, "solution": true, "task": false}
def accumulated(gradients: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The gradient of the mean over all images."""
    ### BEGIN SOLUTION
    total = np.zeros(gradients.shape[2])
    for of_rank, images_of_rank in zip(gradients, counts, strict=True):
        for mean, images in zip(of_rank, images_of_rank, strict=True):
            if images:
                total += mean * images
    return total / counts.sum()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_accumulated", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
lab.check("accumulated")
### BEGIN HIDDEN TESTS
lab.points("accumulated")
### END HIDDEN TESTS

# %% [markdown]
# ## 5. Masks
#
# Sequences of words have different lengths, and are padded to the same number of positions. A mask is an array of
# integers, not of truth values: 1 is a word, and 0 is padding. The loss to minimise is the mean over all **words** of
# the global batch. The replicas rarely have equally many, so in a real loop an all-reduce first adds up their numbers
# of words. Here the lists hold all replicas.
#
# `losses` and `masks` have one array for each replica, of shape (sequences, positions); the replicas may have different
# numbers of sequences. At padding the losses are arbitrary finite numbers. Give each replica's part of the mean.
#
# Target: exact to a relative error of 1e-9. A third of the points each for equal numbers of words, unequal ones, and a
# replica whose sequences are padding only. For example

# %%
print(lab.target("masked_losses"))


# %% nbgrader={"grade": false, "grade_id": "masked_losses", "locked": false, "schema_version": 3, "solution": true, "task": false}
def masked_losses(losses: list[np.ndarray], masks: list[np.ndarray]) -> list[float]:
    """Each replica's part of the mean over all words."""
    ### BEGIN SOLUTION
    words = sum(mask.sum() for mask in masks)
    return [np.sum(own * mask) / words for own, mask in zip(losses, masks, strict=True)]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_masked_losses", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
lab.check("masked_losses")
### BEGIN HIDDEN TESTS
lab.points("masked_losses")
### END HIDDEN TESTS

# %% [markdown]
# ## What you have now
#
# - The factor of a wrong divisor. With SGD it acts as a wrong learning rate, which is why such a loop seems to work.
#   Adam almost divides a constant factor out again, but not the unequal weights of examples.
# - One rule for every case: add up over all replicas and micro-batches, count what was added, divide once.
#
# In TensorFlow, `tf.nn.compute_average_loss(losses, global_batch_size=…)` is exercise 2 and
# `tf.nn.scale_regularization_loss` divides a penalty by the replicas. Under Horovod, which averages, the loss is each
# rank's own mean if the ranks have equally many examples.
#
# **Going on.** [Notebook 05](../../notebooks/05_save_and_load.ipynb) saves what the loop has trained.

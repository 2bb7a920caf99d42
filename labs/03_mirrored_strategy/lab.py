# %% [markdown]
# # Lab 03: from one device to two
#
# **Goal.** Compute the numbers of a mirrored training before it runs, port a training script with a callback and an
# evaluation to several replicas, and find the fault of a port from what its run did.
#
# **Time.** 40 minutes.
#
# **Before this.** [Chapter 03](../../notebooks/03_mirrored_strategy.ipynb).
#
# **How it works.** Write each answer in the cell that says so, run it, and run the check below it: it says what is
# wrong, with a hint. `make check LAB=03` does the same in a terminal. A full solution is next to this file, in
# [solution.ipynb](solution.ipynb).

# %%
from distlab import devices, labs, models  # first: it selects tf-keras

import math

import numpy as np
import tensorflow as tf

tf.get_logger().setLevel("ERROR")
lab = labs.open("03")

# %% [markdown]
# ## 1. Four numbers
#
# A data set has `images` images. In each step, each of `replicas` replicas gets `per_replica` of them. The training
# makes `epochs` passes over the data. No image is dropped: the last batch of an epoch may be smaller than the others,
# but it is never empty. Compute
#
# - the **global batch size**, which is what `batch(...)` gets, also if there are fewer images;
# - the **steps per epoch**;
# - the **updates** of the weights in the whole training;
# - the **images in the last batch** of an epoch, over all replicas.
#
# Target: correct when the last batch is smaller, when it is full, and when there are fewer images than one batch. A
# quarter of the points for each number.


# %% answer="numbers"
def numbers(images: int, per_replica: int, replicas: int, epochs: int) -> dict[str, int]:
    """The four numbers by name."""
    global_batch_size = steps_per_epoch = updates = images_in_the_last_batch = None
    ### BEGIN SOLUTION
    global_batch_size = per_replica * replicas
    steps_per_epoch = math.ceil(images / global_batch_size)
    updates = steps_per_epoch * epochs
    images_in_the_last_batch = images - (steps_per_epoch - 1) * global_batch_size
    ### END SOLUTION
    return {
        "global batch size": global_batch_size,
        "steps per epoch": steps_per_epoch,
        "updates": updates,
        "images in the last batch": images_in_the_last_batch,
    }


# %% [markdown]
# ## 2. Port a training script
#
# This script trains on one device, in batches of `batch_size` images. In its first epoch the learning rate grows in
# each step by the same amount, up to `rate`. After each epoch it evaluates the model.


# %%
class WarmUp(tf.keras.callbacks.Callback):
    """The rate: `rate / steps` in step 1, twice that in step 2, `rate` from `steps` on."""

    def __init__(self, rate, steps):
        super().__init__()
        self.rate, self.steps = rate, steps

    def on_train_batch_begin(self, batch, logs=None):
        step = self.model.optimizer.iterations.numpy() + 1
        self.model.optimizer.learning_rate.assign(self.rate * min(1, step / self.steps))


def serial(train, validation, first_weights, batch_size, rate, epochs):
    """Train on one device: the model, and the history that `fit` returns."""
    steps_per_epoch = math.ceil(len(train[0]) / batch_size)
    model = models.mlp(dropout=0.0)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.SGD(rate), loss)
    model.set_weights(first_weights)
    history = model.fit(
        tf.data.Dataset.from_tensor_slices(train).batch(batch_size),
        epochs=epochs,
        callbacks=[WarmUp(rate, steps_per_epoch)],
        validation_data=tf.data.Dataset.from_tensor_slices(validation).batch(batch_size),
        verbose=0,
    )
    return model, history


# %% [markdown]
# And here is a strategy with two devices: two GPUs if there are at least two, else two logical CPU devices.

# %%
strategy = tf.distribute.MirroredStrategy(devices.at_least(2))
print("replicas:", strategy.num_replicas_in_sync)

# %% [markdown]
# Write `mirrored`, the same training under a strategy. `train` and `validation` are pairs of images and labels.
# `images_per_replica` images go to **each replica** in a step, and `rate` is the rate that suits a single replica: with
# $R$ replicas the global batch is $R$ times as large, so the rate grows to `rate` × $R$ (the linear scaling rule,
# chapter 10), still in the first epoch. Return the same two things.
#
# Target, a fifth of the points each:
#
# - **variables**: each has one copy on each device of the strategy that the function gets, also if that has one device;
# - **batches**: each replica gets `images_per_replica` images in a full step, no image is dropped, the order is kept;
# - **learning rate**: in every step the one that this rule gives;
# - **evaluation**: after every epoch, the mean loss of all validation images;
# - **weights**: in the end those of a serial run with the same global batches and rates, to within 0.0001. (In the
#   check every replica gets as many images of the last batch as the others; else `fit` averages means of different
#   numbers of images, as in chapter 03.)
#
# The check trains on two devices and on one, and takes up to half a minute.


# %% answer="mirrored"
def mirrored(strategy, train, validation, first_weights, images_per_replica, rate, epochs):
    """Train on all replicas: the model, and the history that `fit` returns."""
    ### BEGIN SOLUTION
    replicas = strategy.num_replicas_in_sync
    batch_size = images_per_replica * replicas
    steps_per_epoch = math.ceil(len(train[0]) / batch_size)
    with strategy.scope():
        model = models.mlp(dropout=0.0)
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(tf.keras.optimizers.SGD(rate * replicas), loss)
    model.set_weights(first_weights)
    history = model.fit(
        tf.data.Dataset.from_tensor_slices(train).batch(batch_size),
        epochs=epochs,
        callbacks=[WarmUp(rate * replicas, steps_per_epoch)],
        validation_data=tf.data.Dataset.from_tensor_slices(validation).batch(batch_size),
        verbose=0,
    )
    return model, history
    ### END SOLUTION


# %% [markdown]
# ## 3. Find the fault
#
# Others have ported their scripts too, and each port wrote down what its run did. Here is the record of a correct one.

# %%
example = {
    "images": 11,  # in an epoch
    "images_per_replica": 4,  # what each replica should get in a step
    "replicas": 2,
    "copies": {"dense/kernel": 2, "dense/bias": 2, "SGD/iterations": 2},  # of each variable
    "parts": [
        [4, 4],
        [2, 1],
    ],  # the images that each replica got, step by step, in the first epoch
    "before": np.array([0.5, -0.2]),  # two of the weights, before the first step
    "after": [
        np.array([0.4, -0.1]),
        np.array([0.4, -0.1]),
    ],  # after the first step, on each replica
    "serial": np.array(
        [0.4000001, -0.1],
    ),  # after that step on one device, with the batch that was intended
}

# %% [markdown]
# Write `diagnose`, which gets such a record and returns the name of the fault. A run has at most one, but one fault can
# show in several entries.
#
# | name | what is wrong |
# |---|---|
# | `"none"` | nothing |
# | `"scope"` | a variable was created outside the strategy's scope |
# | `"batch"` | `batch(...)` did not get the global batch size |
# | `"rest"` | the images that do not fill a global batch were dropped |
# | `"apart"` | each replica updated its copy with its own gradient, which was not reduced |
# | `"step"` | the gradient is too long or too short by a factor: summed instead of averaged, or divided twice |
#
# Target: right for all six, a sixth of the points each. Weights are equal if they differ by at most 0.00001; a larger
# difference is no rounding. A last batch that is smaller than the others is no fault, and there may be fewer images
# than one global batch.


# %% answer="diagnose"
def diagnose(run: dict) -> str:
    """The fault of a mirrored run."""
    ### BEGIN SOLUTION
    batches = [sum(parts) for parts in run["parts"]]
    global_batch_size = run["images_per_replica"] * run["replicas"]
    if min(run["copies"].values()) < run["replicas"]:
        return "scope"
    if batches[0] != min(global_batch_size, run["images"]):
        return "batch"
    if sum(batches) < run["images"]:
        return "rest"
    if np.ptp(run["after"], axis=0).max() > 1e-5:
        return "apart"
    if np.abs(run["after"][0] - run["serial"]).max() > 1e-5:
        return "step"
    return "none"
    ### END SOLUTION


# %% [markdown]
# ## What you have now
#
# - Four numbers to write down before any mirrored training. If the program prints other numbers, it has a bug.
# - A script with a callback and an evaluation that runs on any number of devices.
# - An order of questions for a port that trains badly: variables, batches, images, copies, step length.
#
# **Going on.** The warm-up above rises by the same amount in every step, as that of Goyal and others, which begins with
# the rate of one replica and takes five epochs. [Chapter 10](../../notebooks/10_large_batch_and_warmup.ipynb) shows why
# larger batches need a larger rate, and when the rule fails.
#
# **Sources.**
# - TensorFlow, [Distributed training with Keras](https://www.tensorflow.org/tutorials/distribute/keras).
# - P. Goyal and others (2017), [Accurate, large minibatch SGD](https://arxiv.org/abs/1706.02677).

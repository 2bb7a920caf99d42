# %% [markdown]
# # Lab 02: make the slow program fast
#
# **Goal.** Order a pipeline, find what a cache has frozen, choose the steps per execution, and make a slow training fast.
#
# **Time.** 45 minutes.
#
# **Before this.** [Chapter 02](../../notebooks/02_single_device_baseline.ipynb).
#
# **How it works.** Write each answer in the cell that says so, run it, and run the check below it: it says what is
# wrong, with a hint. No check reads a clock. It counts what your program does: which images come, how often one is
# decoded, how many executions an epoch takes. `make check LAB=02` does the same in a terminal. A full solution is next
# to this file, in [solution.ipynb](solution.ipynb).

# %%
from distlab import labs  # first: it selects tf-keras

import numpy as np
import tensorflow as tf

lab = labs.open("02")

# %% [markdown]
# ## 1. A shuffled pipeline
#
# `numbers` is a dataset of the numbers from 0 on, stored in the order of their classes, and `len(numbers)` is their
# count. Make batches of them, for several epochs in one dataset.
#
# Target, a third of the points each, each only if those before it are right:
#
# - *epochs*: each epoch has every number once, in batches of `batch`; its last batch may be smaller.
# - *mixing*: the numbers of a batch come from all over the data.
# - *new order*: each epoch has another order.


# %% answer="mixed_batches"
def mixed_batches(numbers: tf.data.Dataset, batch: int, epochs: int) -> tf.data.Dataset:
    """The batches of all epochs, one after the other."""
    ### BEGIN SOLUTION
    return numbers.shuffle(len(numbers)).batch(batch).repeat(epochs)
    ### END SOLUTION


# %% [markdown]
# ## 2. What the second epoch repeats
#
# A frozen augmentation gives no error: the training only overfits earlier. So write a tool that finds it. `dataset`
# gives batches: pairs of images, an array with one row per image, and their numbers in the data set. Begin a new pass
# for each epoch, as `for … in dataset` does; `repeat(2)` is one pass, with other random numbers.
#
# Target: a dictionary with `True` or `False` for each name, half of the points each. *order* says whether the second
# epoch has the images in the same order as the first; *augmentation* says whether every image has the same values as in
# the first epoch, wherever it comes.


# %% answer="repeats"
def repeats(dataset: tf.data.Dataset) -> dict[str, bool]:
    """What two epochs have in common."""
    answer = {"order": None, "augmentation": None}
    ### BEGIN SOLUTION
    epochs = []
    for _ in range(2):
        images, numbers = zip(*dataset.as_numpy_iterator(), strict=True)
        epochs.append((np.concatenate(images), np.concatenate(numbers)))
    (images, numbers), (images_again, numbers_again) = epochs
    by_number, by_number_again = (
        images[np.argsort(numbers)],
        images_again[np.argsort(numbers_again)],
    )
    answer["order"] = np.array_equal(numbers, numbers_again)
    answer["augmentation"] = np.array_equal(by_number, by_number_again)
    ### END SOLUTION
    return answer


# %% [markdown]
# Now use it. One of the four pipelines below is right. Two have their cache in a wrong place, and one is the surprise of
# the chapter. Run the cell, and find out in a cell of your own which is which:
#
#     for name, pipeline in pipelines.items():
#         print(name, repeats(pipeline))

# %%
tf.keras.utils.set_random_seed(1)
stored = tf.data.Dataset.range(60)


def noisy(number):
    return tf.random.uniform([4]), number


def newly_noisy(number, seed):
    return tf.random.stateless_uniform([4], seed), number


seeds = tf.data.Dataset.random(seed=1, rerandomize_each_iteration=True).batch(2)
both = tf.data.Dataset.zip
pipelines = {
    "new seeds": both(stored.cache().shuffle(60), seeds).map(newly_noisy).batch(8),
    "noise, cache": stored.map(noisy).cache().shuffle(60).batch(8),
    "shuffle, cache": both(stored.shuffle(60).cache(), seeds).map(newly_noisy).batch(8),
    "cache, noise": stored.cache().map(noisy).shuffle(60).batch(8),
}

# %% [markdown]
# ## 3. Steps per execution
#
# One execution makes several steps: Python's part, `python` microseconds, is paid once for all of them, and each step
# takes `graph` microseconds more. A callback has to run after exactly every `every` steps, and callbacks run only
# between executions, so the steps per execution must divide `every`. `every` need not divide `steps`: if an epoch has
# steps left over, its last execution is shorter.
#
# Target, a quarter of the points each:
#
# - *steps per execution*: the smallest number that divides `every` and lets Python take at most 5 % of the time of a
#   full execution; if there is none, `every` itself.
# - *executions per epoch* of `steps` steps, and the *seconds per epoch*.
# - *times as fast*: by which factor an epoch is shorter than with one step per execution.


# %% answer="plan"
def plan(steps: int, every: int, python: int, graph: int) -> dict[str, float]:
    """How an epoch is executed."""
    answer = {
        "steps per execution": None,
        "executions per epoch": None,
        "seconds per epoch": None,
        "times as fast": None,
    }
    ### BEGIN SOLUTION
    divisors = [together for together in range(1, every + 1) if every % together == 0]
    fitting = [together for together in divisors if 20 * python <= python + together * graph]
    together = fitting[0] if fitting else every
    executions = -(-steps // together)
    seconds = (executions * python + steps * graph) / 1e6
    answer["steps per execution"] = together
    answer["executions per epoch"] = executions
    answer["seconds per epoch"] = seconds
    answer["times as fast"] = steps * (python + graph) / 1e6 / seconds
    ### END SOLUTION
    return answer


# %% [markdown]
# ## 4. A slow program
#
# This program is right: every epoch has every image once, in a new order, with a new augmentation. And it is slow.
# `records` is a dataset of records. `decode(record)` gives an image and its label; it takes long, and gives the same
# each time. `augment(images, labels)` changes an image, or all images of a batch in one call. It makes another change
# in each call, also in a new epoch, so it needs no seeds. (`tf.random` alone would repeat in every epoch, as in
# exercise 2.) A callback runs every `together` steps.


# %%
def slow(records, decode, augment, model, batch, together, epochs):
    model.compile(optimizer="sgd", loss="mse")
    for _ in range(epochs):
        examples = records.shuffle(len(records)).map(decode).map(augment)
        model.fit(examples.batch(batch), verbose=0)


# %% [markdown]
# Write it again, fast. Use `model.compile` and `model.fit`, with the optimizer and loss of `slow`, without `jit_compile`.
# What the model learns must stay as good: every epoch has every image once, in a new order, in batches of `batch`. To see
# what `slow` does, let the check count it: `train = slow`.
#
# Target, a quarter of the points each, all only if the *images* come as they should, and the training is that of `slow`:
#
# - *decoding*: each record is decoded once in the whole training.
# - *augmentation*: a new one in each epoch, by one call for each batch.
# - *executions*: each makes `together` steps; the last one of an epoch may be shorter.
# - *prefetch*: while the model works on a batch, the next one is prepared completely.


# %% answer="train"
def train(records, decode, augment, model, batch, together, epochs):
    """The same training as `slow`, with less work."""
    ### BEGIN SOLUTION
    model.compile(optimizer="sgd", loss="mse", steps_per_execution=together)
    images = records.map(decode, num_parallel_calls=tf.data.AUTOTUNE).cache()
    batches = images.shuffle(len(records)).batch(batch).map(augment)
    model.fit(batches.prefetch(tf.data.AUTOTUNE), epochs=epochs, verbose=0)
    ### END SOLUTION


# %% [markdown]
# ## What you have now
#
# - The order of a pipeline: decode, cache, shuffle, batch, augment with new seeds, prefetch, and what each exchange
#   costs.
# - A tool that finds a frozen order or augmentation in any pipeline of your own.
# - A rule for the steps per execution, and a training whose work you can count without a clock.
#
# **Going on.** [Chapter 03](../../notebooks/03_mirrored_strategy.ipynb) trains on a second device.
#
# **Sources.** TensorFlow, [tf.data](https://www.tensorflow.org/guide/data),
# [pipeline performance](https://www.tensorflow.org/guide/data_performance) and
# [compile](https://www.tensorflow.org/api_docs/python/tf/keras/Model#compile).

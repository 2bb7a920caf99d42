# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Lab 03: from one device to two
#
# **Goal.** Compute the numbers of a mirrored training before it runs, turn a serial program into a mirrored one that
# computes the same, and say how many images each worker sees under each auto-shard policy.
#
# **Time.** 35 minutes.
#
# **Before this.** [Notebook 03](../../notebooks/03_mirrored_strategy.ipynb), sections 1 to 5. Part 3 prepares
# [notebook 07](../../notebooks/07_multi_worker.ipynb), which shows the policies at work.
#
# **How it works.** Write each answer in the cell that says so, run it, and run the check below it: it says what is
# wrong, with a hint. `make check LAB=03` does the same in a terminal. A full solution is next to this file, in
# [solution.ipynb](solution.ipynb).

# %%
from distlab import devices, labs, models

# isort: split
import math

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
# - the **global batch size**;
# - the **steps per epoch**;
# - the **updates** of the weights in the whole training;
# - the **images in the last batch** of an epoch, over all replicas.
#
# Target: correct when the last batch is smaller, when it is full, and when there are fewer images than one batch. A
# quarter of the points for each number.


# %% nbgrader={"grade": false, "grade_id": "numbers", "locked": false, "schema_version": 3, "solution": true, "task": false}
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


# %% nbgrader={"grade": true, "grade_id": "check_numbers", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
lab.check("numbers")
### BEGIN HIDDEN TESTS
lab.points("numbers")
### END HIDDEN TESTS

# %% [markdown]
# ## 2. A serial program becomes a mirrored one
#
# Here is a serial program. It trains for one pass, on one device, and starts from the weights `first_weights`.


# %%
def serial(images, labels, first_weights, batch_size):
    """The model after one pass of SGD, and the batches it was trained on."""
    model = models.mlp(dropout=0.0)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.SGD(0.1), loss)
    model.set_weights(first_weights)
    batches = tf.data.Dataset.from_tensor_slices((images, labels)).batch(batch_size)
    model.fit(batches, verbose=0)
    return model, batches


# %% [markdown]
# And here is a strategy with two devices: two GPUs if there are at least two, else two logical CPU devices.

# %%
strategy = tf.distribute.MirroredStrategy(devices.at_least(2))
print("replicas:", strategy.num_replicas_in_sync)

# %% [markdown]
# Write the mirrored program. Its last argument is not the batch size, but the number of images that **each replica**
# gets in a step. It returns the same two things, the model and the batches.
#
# Target:
#
# - every variable has a copy on each device of the strategy that the function gets, also if that has one device;
# - each replica gets `images_per_replica` images in a full step;
# - no image is dropped, and the images keep their order;
# - after the pass the weights are those of the serial run with the same global batches, to within 0.0001. (If the last
#   batch is not full, it may be averaged replica by replica, as `fit` does.)
#
# Half of the points are for the first three, together.


# %% nbgrader={"grade": false, "grade_id": "mirrored", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mirrored(strategy, images, labels, first_weights, images_per_replica):
    """The model after one pass of SGD on all replicas, and the batches it was trained on."""
    ### BEGIN SOLUTION
    with strategy.scope():
        model = models.mlp(dropout=0.0)
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(tf.keras.optimizers.SGD(0.1), loss)
    model.set_weights(first_weights)
    global_batch_size = images_per_replica * strategy.num_replicas_in_sync
    batches = tf.data.Dataset.from_tensor_slices((images, labels)).batch(global_batch_size)
    model.fit(batches, verbose=0)
    return model, batches
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_mirrored", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
lab.check("mirrored")
### BEGIN HIDDEN TESTS
lab.points("mirrored")
### END HIDDEN TESTS

# %% [markdown]
# ## 3. The auto-shard table
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


# %% nbgrader={"grade": false, "grade_id": "samples_seen", "locked": false, "schema_version": 3, "solution": true, "task": false}
def samples_seen(policy: str, images_per_file: list[int], workers: int, batch: int) -> list[int] | None:
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
    if len(images_per_file) < workers:  # under FILE, and AUTO, which is FILE where files are read
        return None
    return [sum(images_per_file[worker::workers]) for worker in range(workers)]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_samples_seen", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
lab.check("samples_seen")
### BEGIN HIDDEN TESTS
lab.points("samples_seen")
### END HIDDEN TESTS

# %% [markdown]
# ## What you have now
#
# - Four numbers to write down before any mirrored training. If the program prints other numbers, it has a bug.
# - A mirrored program in two changes: the scope and the global batch size.
# - A function that says how many images each worker sees, and when TensorFlow refuses.
#
# **Going on.** Multiply the learning rate by `strategy.num_replicas_in_sync` and look at the hint. Then read in
# [notebook 10](../../notebooks/10_large_batch_and_warmup.ipynb) why larger batches do need a larger rate.
#
# **Sources.** TensorFlow,
# [MirroredStrategy](https://www.tensorflow.org/api_docs/python/tf/distribute/MirroredStrategy) and
# [AutoShardPolicy](https://www.tensorflow.org/api_docs/python/tf/data/experimental/AutoShardPolicy).

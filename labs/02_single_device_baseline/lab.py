# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Lab 02: fix the lecture
#
# **Goal.** Find three faults of a program by their symptoms, and fix them. The program runs and prints no warning.
#
# **Time.** 25 minutes.
#
# **Before this.** [Notebook 02](../../notebooks/02_single_device_baseline.ipynb).
#
# **How it works.** Write each answer in the cell that says so, run it, and run the check below it: it says what is
# wrong, with a hint. `make check LAB=02` does the same in a terminal. A full solution is next to this file, in
# [solution.ipynb](solution.ipynb).

# %%
from distlab import data, labs

# isort: split
import time

import numpy as np
import tensorflow as tf

lab = labs.open("02")

# %% [markdown]
# ## The program
#
# Here are three parts of the lecture's program for two GPUs, in our own code: the model, the clock, the batches. Each
# has one fault. Two of the faults always have an effect; the third only when the number of devices changes. Do not look
# for them yet.

# %%
BATCH_SIZE_PER_REPLICA = 32


def lecture_model():
    """The network, compiled."""
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Input((28, 28)),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(128, activation="relu"),
            tf.keras.layers.Dropout(0.2),
            tf.keras.layers.Dense(10),
        ]
    )
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def lecture_seconds(work):
    """How long `work()` takes."""
    start = time.process_time()
    work()
    return time.process_time() - start


def lecture_batches(images, labels, replicas):
    """The batches of an epoch for this number of replicas."""
    batch_size = BATCH_SIZE_PER_REPLICA * replicas
    print(f"batch size for {replicas} replicas: {batch_size}")
    return tf.data.Dataset.from_tensor_slices((images, labels)).batch(64)


# %% [markdown]
# ## The symptoms
#
# Ask three questions about every training program. What is the loss before training? What does the clock show for work
# that only waits? How many steps does an epoch have with one, two and four replicas?

# %%
train, _ = data.load("digits")
tf.keras.utils.set_random_seed(2)
untrained_loss = lecture_model().evaluate(train.images, train.labels, verbose=0)[0]
print(f"loss before training: {untrained_loss:.0f}, and ln 10 is {np.log(10):.1f}")
print(f"half a second of waiting takes {lecture_seconds(lambda: time.sleep(0.5)):.1f} s")
for replicas in (1, 2, 4):
    print("  steps of an epoch:", len(lecture_batches(train.images, train.labels, replicas)))

# %% [markdown]
# ## 1. From symptom to cause
#
# For each symptom choose its cause from the list, and copy it word for word. Some causes belong to no symptom.
#
# Target: the right cause for each of the three symptoms. A third of the points each.

# %%
for symptom, description in lab.given.SYMPTOMS.items():
    print(f"{symptom}: {description}")
print("causes:", *lab.given.CAUSES, sep="\n  ")

# %% nbgrader={"grade": false, "grade_id": "diagnosis", "locked": false, "schema_version": 3, "solution": true, "task": false}
diagnosis = {
    "loss": None,
    "clock": None,
    "steps": None,
}
### BEGIN SOLUTION
diagnosis = {
    "loss": "the loss takes logits for probabilities",
    "clock": "the clock counts processor time",
    "steps": "the batch size that was computed is not used",
}
### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_diagnosis", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
lab.check("diagnosis")
### BEGIN HIDDEN TESTS
lab.points("diagnosis")
### END HIDDEN TESTS

# %% [markdown]
# ## 2. The model
#
# Write the function again without the fault, with the same layers and weights of the same shapes, and compile the
# model with the same optimizer. The labels are still numbers from 0 to 9.
#
# Target: with any weights the loss on any images equals the cross-entropy computed with NumPy, to within 0.005. So the
# loss before training is near ln 10.


# %% nbgrader={"grade": false, "grade_id": "make_model", "locked": false, "schema_version": 3, "solution": true, "task": false}
def make_model() -> tf.keras.Model:
    """The lecture's network, compiled."""
    ### BEGIN SOLUTION
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Input((28, 28)),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(128, activation="relu"),
            tf.keras.layers.Dropout(0.2),
            tf.keras.layers.Dense(10),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
    return model
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_make_model", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
lab.check("make_model")
### BEGIN HIDDEN TESTS
lab.points("make_model")
### END HIDDEN TESTS

# %% [markdown]
# ## 3. The clock
#
# Target: the elapsed seconds, to within 0.02 s, for work that waits and for work that computes. Call `work()` exactly
# once.


# %% nbgrader={"grade": false, "grade_id": "elapsed_seconds", "locked": false, "schema_version": 3, "solution": true, "task": false}
def elapsed_seconds(work) -> float:
    """The seconds that pass while `work()` runs."""
    ### BEGIN SOLUTION
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_elapsed_seconds", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
lab.check("elapsed_seconds")
### BEGIN HIDDEN TESTS
lab.points("elapsed_seconds")
### END HIDDEN TESTS

# %% [markdown]
# ## 4. The batches
#
# Target: a full batch has `per_replica` images for each of `replicas` replicas; every image occurs once in an epoch,
# with its label; the number of steps is the number of images divided by the images of a full batch, rounded up.


# %% nbgrader={"grade": false, "grade_id": "make_batches", "locked": false, "schema_version": 3, "solution": true, "task": false}
def make_batches(images, labels, per_replica: int, replicas: int) -> tf.data.Dataset:
    """The batches of an epoch, as a strategy expects them."""
    ### BEGIN SOLUTION
    batch_size = per_replica * replicas
    return tf.data.Dataset.from_tensor_slices((images, labels)).batch(batch_size)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check_make_batches", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
lab.check("make_batches")
### BEGIN HIDDEN TESTS
lab.points("make_batches")
### END HIDDEN TESTS

# %% [markdown]
# ## What you have now
#
# - Three questions, each answered in seconds, that find three faults without an error message.
# - A loss that begins near ln 10, a clock that counts waiting, and batches that grow with the number of replicas.
#
# **Going on.** The lecture's printout showed an accuracy of 0.2202 on two GPUs after 0.9778 on one. Which of the three
# faults explains it? [Notebook 03](../../notebooks/03_mirrored_strategy.ipynb) has the answer.
#
# **Sources.** TensorFlow, [losses](https://www.tensorflow.org/api_docs/python/tf/keras/losses) and
# [tf.data](https://www.tensorflow.org/guide/data); Python, [time](https://docs.python.org/3/library/time.html).

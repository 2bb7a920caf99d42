"""Answers to lab 02 that need TensorFlow, as students give them; judged in a process of their own."""

import time
import timeit

from distlab import models
from tests.labs.known_wrong import LabAnswers

# isort: split
import numpy as np
import tensorflow as tf

ANSWERS = LabAnswers()
wrong, right = ANSWERS.wrong, ANSWERS.right
GIVEN = {}


# The model and its loss


def layers_of(last=None, *more):
    return [
        tf.keras.layers.Input((28, 28)),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(128, activation="relu"),
        tf.keras.layers.Dropout(0.2),
        tf.keras.layers.Dense(10, activation=last),
        *more,
    ]


def model_with(loss, last=None, *more):
    model = tf.keras.Sequential(layers_of(last, *more))
    model.compile("adam", loss, metrics=["accuracy"])
    return model


def solution_model():
    return model_with(tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))


@wrong("make_model", "a model that knows nothing has ln 10", "what does the loss take it for")
def as_in_the_lecture():
    return model_with("sparse_categorical_crossentropy")


@wrong("make_model", "Keras noticed, with a warning", share=0.5)
def softmax_and_from_logits():
    return model_with(tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), "softmax")


@wrong("make_model", "is there one softmax")
def softmax_twice():
    return model_with("sparse_categorical_crossentropy", "softmax", tf.keras.layers.Softmax())


@wrong("make_model", "does not fit the labels")
def rows_of_ten_expected():
    return model_with(tf.keras.losses.CategoricalCrossentropy(from_logits=True))


@wrong("make_model", "Is it a cross-entropy")
def another_loss():
    return model_with(lambda labels, scores: tf.reduce_mean((tf.cast(labels, tf.float32) - scores) ** 2))


@wrong("make_model", "not compiled")
def not_compiled():
    return tf.keras.Sequential(layers_of())


@wrong("make_model", "not the lecture's any more")
def another_network():
    model = tf.keras.Sequential([tf.keras.layers.Input((28, 28)), tf.keras.layers.Flatten(), tf.keras.layers.Dense(10)])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


@wrong("make_model", "neither the ten logits nor their softmax")
def sigmoid():
    return model_with("sparse_categorical_crossentropy", "sigmoid")


@right("make_model")
def softmax_in_the_model():
    return model_with("sparse_categorical_crossentropy", "softmax")


@right("make_model")
def softmax_as_a_layer_of_its_own():
    return model_with("sparse_categorical_crossentropy", None, tf.keras.layers.Softmax())


@right("make_model")
def a_loss_of_its_own():
    model = models.mlp()
    model.compile(
        tf.keras.optimizers.Adam(),
        lambda labels, scores: tf.nn.sparse_softmax_cross_entropy_with_logits(
            tf.cast(tf.reshape(labels, [-1]), tf.int32), scores
        ),
    )
    return model


# The clock


def solution_clock(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@wrong("elapsed_seconds", "this clock stands still meanwhile")
def processor_time(work):
    start = time.process_time()
    work()
    return time.process_time() - start


@wrong("elapsed_seconds", "comes too late")
def started_after_the_work(work):
    work()
    start = time.perf_counter()
    return time.perf_counter() - start


@wrong("elapsed_seconds", "negative")
def the_wrong_way_round(work):
    start = time.perf_counter()
    work()
    return start - time.perf_counter()


@wrong("elapsed_seconds", "seconds are wanted")
def in_milliseconds(work):
    return 1000 * solution_clock(work)


@wrong("elapsed_seconds", "fraction of the second")
def whole_seconds(work):
    return int(solution_clock(work))


@wrong("elapsed_seconds", "done 0 times")
def forgets_to_call(work):
    start = time.perf_counter()
    work  # noqa: B018
    return time.perf_counter() - start


@wrong("elapsed_seconds", "done 2 times")
def with_a_warm_up(work):
    work()
    return solution_clock(work)


@wrong("elapsed_seconds", "From which moment")
def the_time_of_day(work):
    work()
    return time.time()


@right("elapsed_seconds")
def by_timeit(work):
    return timeit.timeit(work, number=1)


@right("elapsed_seconds")
def by_the_time_of_day(work):
    start = time.time()
    work()
    return np.float64(time.time() - start)


# The batches


def data_of(images, labels):
    return tf.data.Dataset.from_tensor_slices((images, labels))


def solution_batches(images, labels, per_replica, replicas):
    return data_of(images, labels).batch(per_replica * replicas)


@wrong("make_batches", "a number stands where a name should")
def as_in_the_lecture_64(images, labels, per_replica, replicas):
    return data_of(images, labels).batch(64)


@wrong("make_batches", "divide them once more")
def one_replicas_batch(images, labels, per_replica, replicas):
    return data_of(images, labels).batch(per_replica)


@wrong("make_batches", "comes in twice")
def replicas_twice(images, labels, per_replica, replicas):
    return data_of(images, labels).batch(per_replica * replicas * replicas)


@wrong("make_batches", "How many does one step use up")
def divided_by_the_replicas(images, labels, per_replica, replicas):
    return data_of(images, labels).batch(-(-per_replica // replicas))


@wrong("make_batches", "left out in every epoch")
def drops_the_rest(images, labels, per_replica, replicas):
    return data_of(images, labels).batch(per_replica * replicas, drop_remainder=True)


@wrong("make_batches", "never ends")
def repeats(images, labels, per_replica, replicas):
    return data_of(images, labels).repeat().batch(per_replica * replicas)


@wrong("make_batches", "shuffled apart")
def shuffles_apart(images, labels, per_replica, replicas):
    apart = tf.data.Dataset.zip(
        (tf.data.Dataset.from_tensor_slices(images).shuffle(500, seed=1), tf.data.Dataset.from_tensor_slices(labels))
    )
    return apart.batch(per_replica * replicas)


@wrong("make_batches", "single images")
def forgets_to_batch(images, labels, per_replica, replicas):
    return data_of(images, labels)


@wrong("make_batches", "not a tf.data.Dataset")
def gives_the_batch_size(images, labels, per_replica, replicas):
    return per_replica * replicas


@right("make_batches")
def shuffled_and_prefetched(images, labels, per_replica, replicas):
    pairs = data_of(images, labels).cache().shuffle(len(images))
    return pairs.batch(replicas * per_replica).prefetch(tf.data.AUTOTUNE)


SOLUTIONS = {
    "make_model": {"make_model": solution_model},
    "elapsed_seconds": {"elapsed_seconds": solution_clock},
    "make_batches": {"make_batches": solution_batches},
}

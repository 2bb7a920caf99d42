"""Known answers to the exercises of lab 02 that are not judged by programs."""

import time
import timeit

from distlab import models
from tests.distlab.labs.known_wrong import LabAnswers

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


@wrong("make_model", "does the last layer give, and what does the loss expect?")
def as_in_the_lecture():
    return model_with("sparse_categorical_crossentropy")


@wrong("make_model", "with another layer behind the softmax it would not notice.", share=0.5)
def softmax_and_from_logits():
    return model_with(tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), "softmax")


@wrong("make_model", "but flatter than they should be. Is there only one softmax?")
def softmax_twice():
    return model_with("sparse_categorical_crossentropy", "softmax", tf.keras.layers.Softmax())


@wrong("make_model", ". They are numbers from 0 to 9, not rows of ten.")
def rows_of_ten_expected():
    return model_with(tf.keras.losses.CategoricalCrossentropy(from_logits=True))


@wrong("make_model", ". Is it a cross-entropy of the labels, over all images?")
def another_loss():
    return model_with(lambda labels, scores: tf.reduce_mean((tf.cast(labels, tf.float32) - scores) ** 2))


@wrong("make_model", "The model is not compiled, so it has no loss.")
def not_compiled():
    return tf.keras.Sequential(layers_of())


@wrong("make_model", ". Those of the lecture belong to 784 pixels, 128 units and 10 outputs.")
def another_network():
    model = tf.keras.Sequential([tf.keras.layers.Input((28, 28)), tf.keras.layers.Flatten(), tf.keras.layers.Dense(10)])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


@wrong("make_model", "ten logits nor their softmax. What does the last layer do?")
def sigmoid():
    return model_with("sparse_categorical_crossentropy", "sigmoid")


@wrong("make_model", "a fifth of the hidden units, and nothing else; here it is", "here it is none", share=0.5)
def no_dropout():
    layers = [layer for layer in layers_of() if not isinstance(layer, tf.keras.layers.Dropout)]
    model = tf.keras.Sequential(layers)
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


@wrong("make_model", "a fifth of the hidden units, and nothing else; here it is", "here it is 50%", share=0.5)
def more_dropout():
    model = models.mlp(0.5)
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


@wrong("make_model", "The lecture compiles with Adam and its usual rate; here it is", "SGD", share=0.5)
def another_optimizer():
    model = tf.keras.Sequential(layers_of())
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


@wrong("make_model", "what does the lecture's hidden layer do with its sums?")
def forgets_the_relu():
    flat, drop = tf.keras.layers.Flatten(), tf.keras.layers.Dropout(0.2)
    layers = [tf.keras.layers.Input((28, 28)), flat, tf.keras.layers.Dense(128), drop, tf.keras.layers.Dense(10)]
    model = tf.keras.Sequential(layers)
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


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


@wrong("elapsed_seconds", "s of waiting: this clock stops while the program waits.")
def processor_time(work):
    start = time.process_time()
    work()
    return time.process_time() - start


@wrong("elapsed_seconds", "s of waiting: the clock was first read too late.")
def started_after_the_work(work):
    work()
    start = time.perf_counter()
    return time.perf_counter() - start


@wrong("elapsed_seconds", "the later time was subtracted from the earlier one.")
def the_wrong_way_round(work):
    start = time.perf_counter()
    work()
    return start - time.perf_counter()


@wrong("elapsed_seconds", "s: the unit must be seconds.")
def in_milliseconds(work):
    return 1000 * solution_clock(work)


@wrong("elapsed_seconds", "s: the fraction of the second is lost.")
def whole_seconds(work):
    return int(solution_clock(work))


@wrong("elapsed_seconds", "times. Do it once, between two readings of the clock.", "0 times")
def forgets_to_call(work):
    start = time.perf_counter()
    work  # noqa: B018
    return time.perf_counter() - start


@wrong("elapsed_seconds", "times. Do it once, between two readings of the clock.", "2 times")
def with_a_warm_up(work):
    work()
    return solution_clock(work)


@wrong("elapsed_seconds", "s. From which moment does it count?")
def the_time_of_day(work):
    work()
    return time.time()


@wrong("elapsed_seconds", "s of waiting: this clock stops while the program waits.")
def processor_time_when_it_computes(work):
    start, computing = time.perf_counter(), time.process_time()
    work()
    computing = time.process_time() - computing
    return computing if computing > 0.05 else time.perf_counter() - start


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


@wrong("make_batches", "batches of 64. Where does the program use a number instead of a name?")
def as_in_the_lecture_64(images, labels, per_replica, replicas):
    return data_of(images, labels).batch(64)


@wrong("make_batches", "in all, and the strategy will divide them once more.")
def one_replicas_batch(images, labels, per_replica, replicas):
    return data_of(images, labels).batch(per_replica)


@wrong("make_batches", ": the number of replicas is multiplied twice.")
def replicas_twice(images, labels, per_replica, replicas):
    return data_of(images, labels).batch(per_replica * replicas * replicas)


@wrong("make_batches", "images. How many does one step need, over all replicas?")
def divided_by_the_replicas(images, labels, per_replica, replicas):
    return data_of(images, labels).batch(-(-per_replica // replicas))


@wrong("make_batches", "images are left out in every epoch.")
def drops_the_rest(images, labels, per_replica, replicas):
    return data_of(images, labels).batch(per_replica * replicas, drop_remainder=True)


@wrong("make_batches", "the data set never ends; an epoch is one pass.")
def repeats(images, labels, per_replica, replicas):
    return data_of(images, labels).repeat().batch(per_replica * replicas)


@wrong("make_batches", "no longer belong together. What was shuffled separately?")
def shuffles_apart(images, labels, per_replica, replicas):
    apart = tf.data.Dataset.zip(
        (tf.data.Dataset.from_tensor_slices(images).shuffle(500, seed=1), tf.data.Dataset.from_tensor_slices(labels))
    )
    return apart.batch(per_replica * replicas)


@wrong("make_batches", "The data set gives single images, not batches.")
def forgets_to_batch(images, labels, per_replica, replicas):
    return data_of(images, labels)


@wrong("make_batches", ", not a tf.data.Dataset.")
def gives_the_batch_size(images, labels, per_replica, replicas):
    return per_replica * replicas


@wrong("make_batches", "are needed. Are all batches made alike?")
def only_the_first_batch_is_full(images, labels, per_replica, replicas):
    data = data_of(images, labels)
    first = data.take(per_replica * replicas).batch(per_replica * replicas)
    return first.concatenate(data.skip(per_replica * replicas).batch(per_replica))


@wrong("make_batches", "strategy divides each batch itself: who else divides here?")
def sharded_by_hand(images, labels, per_replica, replicas):
    return data_of(images, labels).shard(replicas, 0).batch(per_replica * replicas)


@right("make_batches")
def shuffled_and_prefetched(images, labels, per_replica, replicas):
    pairs = data_of(images, labels).cache().shuffle(len(images))
    return pairs.batch(replicas * per_replica).prefetch(tf.data.AUTOTUNE)


SOLUTIONS = {
    "make_model": {"make_model": solution_model},
    "elapsed_seconds": {"elapsed_seconds": solution_clock},
    "make_batches": {"make_batches": solution_batches},
}

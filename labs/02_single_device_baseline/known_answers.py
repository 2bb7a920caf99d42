"""Known answers to the exercises of lab 02 that are observed: the lab's own solutions with other lines."""

import time

import distlab  # before TensorFlow: it selects tf-keras

# isort: split
import tensorflow as tf

from tests.distlab.labs.known_wrong import LabAnswers, WrongAnswer
from tests.distlab.labs.solutions import solution_with

assert distlab
ANSWERS, GIVEN = LabAnswers(), {}


def answer(exercise, *changes):
    return solution_with("02", exercise, *changes, tf=tf, time=time)


LOSS, BY_NAME = "tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)", '"sparse_categorical_crossentropy"'
OWN_LOSS = "lambda labels, scores: tf.nn.sparse_softmax_cross_entropy_with_logits(tf.reshape(labels, [-1]), scores)"
SQUARES = "lambda labels, scores: tf.reduce_mean((tf.cast(labels, tf.float32) - scores) ** 2)"
COMPILE = '    model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])\n'
LAST, SOFTMAX = "Dense(10)", 'Dense(10, activation="softmax")'
TWICE = f"{SOFTMAX},\n            tf.keras.layers.Softmax()"
MODEL = {
    "as in the lecture": (LOSS, BY_NAME, "does the last layer give, and what does the loss expect?"),
    "softmax twice": (LAST, TWICE, "but flatter than they should be. Is there only one softmax?"),
    "rows of ten": (LOSS, LOSS.replace("Sparse", ""), ". They are numbers from 0 to 9, not rows of ten."),
    "another loss": (LOSS, SQUARES, ". Is it a cross-entropy of the labels, over all images?"),
    "not compiled": (COMPILE, "", "The model is not compiled, so it has no loss."),
    "another network": ("Dense(128", "Dense(64", ". Those of the lecture belong to 784 pixels, 128 units and 10"),
    "sigmoid": (LAST, 'Dense(10, activation="sigmoid")', "ten logits nor their softmax. What does the last layer do?"),
    "no ReLU": (', activation="relu"', "", "what does the lecture's hidden layer do with its sums?"),
}
HALF_RIGHT = {
    "softmax and from_logits": (LAST, SOFTMAX, "with another layer behind the softmax it would not notice."),
    "no dropout": ("            tf.keras.layers.Dropout(0.2),\n", "", "and nothing else; here it is none"),
    "more dropout": ("Dropout(0.2)", "Dropout(0.5)", "and nothing else; here it is 50%"),
    "another optimizer": ('"adam"', '"sgd"', "compiles with Adam and its usual rate; here it is SGD"),
}
BEGIN, END = "    start = time.perf_counter()\n", "time.perf_counter() - start"
COMPUTING = f"(time.process_time() - begun) if time.process_time() - begun > 0.05 else {END}"
CLOCK = {
    "processor time": ("perf_counter", "process_time", "s of waiting: this clock stops while the program waits."),
    "processor time when it computes": (
        f"{BEGIN}    work()\n    return {END}",
        f"{BEGIN}    begun = time.process_time()\n    work()\n    return {COMPUTING}",
        "s of waiting: this clock stops while the program waits.",
    ),
    "started after the work": (f"{BEGIN}    work()\n", f"    work()\n{BEGIN}", "the clock was first read too late."),
    "the wrong way round": (END, "start - time.perf_counter()", "the later time was subtracted from the earlier one."),
    "in milliseconds": (END, f"1000 * ({END})", "s: the unit must be seconds."),
    "whole seconds": (END, f"int({END})", "s: the fraction of the second is lost."),
    "forgets to call": ("    work()\n", "", "0 times. Do it once, between two readings of the clock."),
    "with a warm-up": (BEGIN, f"    work()\n{BEGIN}", "2 times. Do it once, between two readings of the clock."),
    "the time of day": (END, "time.time()", "s. From which moment does it count?"),
}
IMAGES, BATCH = "tf.data.Dataset.from_tensor_slices((images, labels))", "batch(batch_size)"
APART = "from_tensor_slices(images).shuffle(500, seed=1), tf.data.Dataset.from_tensor_slices(labels)"
BATCHES = {
    "batches of 64": (BATCH, "batch(64)", "batches of 64. Where does the program use a number instead of a name?"),
    "one replica's batch": (BATCH, "batch(per_replica)", "in all, and the strategy will divide them once more."),
    "replicas twice": (BATCH, "batch(batch_size * replicas)", ": the number of replicas is multiplied twice."),
    "divided": (BATCH, "batch(-(-per_replica // replicas))", "images. How many does one step need, over all replicas?"),
    "drops the rest": (BATCH, "batch(batch_size, drop_remainder=True)", "images are left out in every epoch."),
    "repeats": (BATCH, "repeat().batch(batch_size)", "the data set never ends; an epoch is one pass."),
    "shuffles apart": (IMAGES, f"tf.data.Dataset.zip((tf.data.Dataset.{APART}))", "What was shuffled separately?"),
    "forgets to batch": (f".{BATCH}", "", "The data set gives single images, not batches."),
    "gives the batch size": (f"{IMAGES}.{BATCH}", "batch_size", ", not a tf.data.Dataset."),
    "one full batch": (
        f"{IMAGES}.{BATCH}",
        f"{IMAGES}.take(batch_size).{BATCH}.concatenate({IMAGES}.skip(batch_size).batch(per_replica))",
        "are needed. Are all batches made alike?",
    ),
    "sharded by hand": (BATCH, "shard(replicas, 0).batch(batch_size)", "itself: who else divides here?"),
}
for exercise, share, table in (
    ("make_model", 0, MODEL),
    ("make_model", 0.5, HALF_RIGHT),
    ("elapsed_seconds", 0, CLOCK),
    ("make_batches", 0, BATCHES),
):
    for title, (before, after, words) in table.items():
        namespace = answer(exercise, (before, after))
        ANSWERS.wrong_answers[exercise].append(WrongAnswer(title, namespace, (), (words,), share))
ANSWERS.right_answers.update(
    make_model=[
        ("softmax in the model", answer("make_model", (LOSS, BY_NAME), (LAST, SOFTMAX))),
        ("a loss of its own", answer("make_model", (LOSS, OWN_LOSS))),
    ],
    elapsed_seconds=[("by the time of day", answer("elapsed_seconds", ("perf_counter", "time")))],
    make_batches=[
        (
            "shuffled and prefetched",
            answer("make_batches", (BATCH, f"cache().shuffle(len(images)).{BATCH}.prefetch(2)")),
        )
    ],
)
SOLUTIONS = {exercise: answer(exercise) for exercise in ("make_model", "elapsed_seconds", "make_batches")}

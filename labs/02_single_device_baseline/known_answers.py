"""Known answers to lab 02 on TensorFlow: each mistake's own program must get what it gets on fake pipelines."""

import numpy as np
import tensorflow as tf
from lab_02.fast_training import TRAIN
from lab_02.judge import LAB

from distlab.labs.by_programs import changed
from tests.distlab.labs.known_wrong import in_words, verdict_on

GIVEN = KNOWN = {"tf": tf, "np": np}
WRONG = {
    name: {in_words(verdict_on(LAB, name, {name: each.program})): each.program for each in LAB[name].judge.mistakes}
    for name in ("mixed_batches", "repeats", "train")
}
"""By what is said to the same programs on fake pipelines."""


def joined(numbers, batch, epochs):
    batches = [numbers.shuffle(numbers.cardinality()).batch(batch) for _ in range(epochs)]
    whole = batches[0]
    for epoch in batches[1:]:
        whole = whole.concatenate(epoch)
    return whole.prefetch(tf.data.AUTOTUNE)


def by_number(dataset):
    first, second = (
        {int(number): image for images, numbers in dataset for image, number in zip(images, numbers, strict=True)}
        for _ in range(2)
    )
    same = all(np.array_equal(image, second[number]) for number, image in first.items())
    return {"order": list(first) == list(second), "augmentation": same}


def one_dataset_without_end(records, decode, augment, model, batch, together, epochs):
    model.compile(tf.keras.optimizers.SGD(), tf.keras.losses.MeanSquaredError(), steps_per_execution=together)
    images = records.map(decode).cache().shuffle(5000).batch(batch).map(augment).repeat()
    steps = int(np.ceil(len(records) / batch))
    model.fit(images.prefetch(1), epochs=epochs, steps_per_epoch=steps, verbose=0)


def decoded_first(records, decode, augment, model, batch, together, epochs):
    model.compile("SGD", tf.keras.losses.mean_squared_error, steps_per_execution=together)
    images, labels = (tf.stack(field) for field in zip(*records.map(decode), strict=True))
    images = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(len(images))
    images = images.batch(batch).map(augment).prefetch(1)
    for _ in range(epochs):
        model.fit(images, verbose=0)


def as_tensors(dataset):
    said = by_number(dataset)
    return {name: tf.constant(value) for name, value in said.items()}


WRONG["repeats"]["as_tensors"] = as_tensors
for optimizer in ("SGD(0.01 * together)", "SGD(momentum=0.9)"):
    WRONG["train"][optimizer] = changed(TRAIN, ('"sgd"', f"tf.keras.optimizers.{optimizer}"), tf=tf)
RIGHT = {
    "mixed_batches": [[], joined],
    "repeats": [[], by_number],
    "train": [[], one_dataset_without_end, decoded_first],
}

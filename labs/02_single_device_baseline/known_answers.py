"""Known answers to lab 02 on TensorFlow: each mistake's own program must get what it gets on fake pipelines."""

import distlab  # before TensorFlow: it selects tf-keras

# isort: split
import numpy as np
import tensorflow as tf
from lab_02.fast_training import TRAIN
from lab_02.judge import LAB

from distlab.labs.by_programs import changed
from tests.distlab.labs.known_wrong import LabAnswers, verdict_on
from tests.distlab.labs.solutions import solution_with

assert distlab
ANSWERS, GIVEN = LabAnswers(), {"tf": tf}
NAMES = ("mixed_batches", "repeats", "train")
for name in NAMES:
    said: set[str] = set()
    for mistake in LAB[name].judge.mistakes:
        on_fakes = verdict_on(LAB, name, {name: mistake.program})
        if on_fakes.text not in said:
            ANSWERS.wrong(name, on_fakes.text, mistake.program, on_fakes.text, share=on_fakes.share)
        said.add(on_fakes.text)


def joined(numbers, batch, epochs):
    batches = [numbers.shuffle(numbers.cardinality()).batch(batch) for _ in range(epochs)]
    whole = batches[0]
    for epoch in batches[1:]:
        whole = whole.concatenate(epoch)
    return whole.prefetch(tf.data.AUTOTUNE)


ANSWERS.right("mixed_batches", joined)


def by_number(dataset):
    first, second = (
        {int(number): image for images, numbers in dataset for image, number in zip(images, numbers, strict=True)}
        for _ in range(2)
    )
    same = all(np.array_equal(image, second[number]) for number, image in first.items())
    return {"order": list(first) == list(second), "augmentation": same}


ANSWERS.right("repeats", by_number)


def one_dataset_without_end(records, decode, augment, model, batch, together, epochs):
    model.compile(tf.keras.optimizers.SGD(), tf.keras.losses.MeanSquaredError(), steps_per_execution=together)
    images = records.map(decode).cache().shuffle(5000).batch(batch).map(augment).repeat()
    steps = int(np.ceil(len(records) / batch))
    model.fit(images.prefetch(1), epochs=epochs, steps_per_epoch=steps, verbose=0)


ANSWERS.right("train", one_dataset_without_end)


def decoded_first(records, decode, augment, model, batch, together, epochs):
    model.compile("SGD", tf.keras.losses.mean_squared_error, steps_per_execution=together)
    images, labels = (tf.stack(field) for field in zip(*records.map(decode), strict=True))
    images = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(len(images))
    images = images.batch(batch).map(augment).prefetch(1)
    for _ in range(epochs):
        model.fit(images, verbose=0)


ANSWERS.right("train", decoded_first)


OTHER_RATE, WITH_MOMENTUM = "tf.keras.optimizers.SGD(0.01 * together)", "tf.keras.optimizers.SGD(momentum=0.9)"
for optimizer, words in (
    (OTHER_RATE, "the learning rate is not that of `slow`"),
    (WITH_MOMENTUM, "has no momentum"),
):
    ANSWERS.wrong("train", optimizer, changed(TRAIN, ('"sgd"', optimizer), tf=tf), words)


def as_tensors(dataset):
    said = by_number(dataset)
    return {name: tf.constant(value) for name, value in said.items()}


ANSWERS.wrong("repeats", "as_tensors", as_tensors, 'give `True` or `False` for "order"')


SOLUTIONS = {name: solution_with("02", name, tf=tf, np=np) for name in NAMES}

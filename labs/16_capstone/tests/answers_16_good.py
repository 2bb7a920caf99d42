"""A worked example of the capstone's program: right in all six parts, by the strategy; importing it starts
TensorFlow."""

import distlab  # before TensorFlow: it selects tf-keras

# isort: split
import tempfile
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

from distlab import data, models

assert distlab
loss_of_each = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")


def train(options):
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        state = begin(options)

    @tf.function(reduce_retracing=True)
    def whole_step(words, labels):
        loss, count = strategy.run(step, args=(state, words, labels))
        return strategy.reduce("SUM", loss, axis=None), strategy.reduce("MEAN", count, axis=None)

    steps = []
    for epoch in range(int(state.epochs_done.numpy()), options.epochs):
        for words, labels in strategy.experimental_distribute_dataset(batches(options, epoch)):
            start = time.perf_counter()
            loss, count = whole_step(words, labels)
            steps.append({"texts": int(count), "loss": float(loss), "seconds": time.perf_counter() - start})
        state.epochs_done.assign_add(1)
        with tempfile.TemporaryDirectory() as scratch:
            is_first = strategy.cluster_resolver.task_id == 0
            state.save(str((options.folder if is_first else Path(scratch)) / "checkpoint"))
    return state, steps


def begin(options):
    model = models.text_classifier(options.units)
    optimizer = tf.keras.optimizers.SGD(options.rate, momentum=0.9)
    optimizer.build(model.trainable_variables)
    state = tf.train.Checkpoint(model=model, optimizer=optimizer, epochs_done=tf.Variable(0, dtype=tf.int64))
    if options.resume:
        state.restore(tf.train.latest_checkpoint(options.folder)).assert_existing_objects_matched()
    return state


def batches(options, epoch):
    words, labels = data.topics.texts(options.texts, options.seed)
    order = np.random.default_rng([options.seed, epoch]).permutation(options.texts)
    return tf.data.Dataset.from_tensor_slices((words[order], labels[order])).batch(options.batch)


def step(state, words, labels):
    count = tf.distribute.get_replica_context().all_reduce("SUM", tf.cast(tf.size(labels), tf.float32))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(loss_of_each(labels, state.model(words, training=True))) / count
    gradients = tape.gradient(loss, state.model.trainable_variables)
    state.optimizer.apply_gradients(zip(gradients, state.model.trainable_variables, strict=True))
    return loss, count

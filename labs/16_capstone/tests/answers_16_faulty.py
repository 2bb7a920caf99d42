"""A worked example of the capstone's program with five faults; importing it starts TensorFlow.

1. no broadcast, 2. every rank shuffles by itself, 3. the rate grows though the batch does not, 4. the ranks' means are
averaged though the last ones are of different numbers of texts, 5. every rank saves.
"""

import distlab  # before TensorFlow: it selects tf-keras

# isort: split
import time

import numpy as np
import tensorflow as tf

from distlab import data, models
from distlab.labs.fake_horovod import hvd

assert distlab
mean_loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def train(options):
    hvd.init()
    state, steps = begin(options), []
    for epoch in range(int(state.epochs_done), options.epochs):
        for words, labels, count in batches(options, epoch):
            start = time.perf_counter()
            loss = float(step(state, words, labels))
            steps.append({"texts": int(count), "loss": loss, "seconds": time.perf_counter() - start})
        state.epochs_done.assign_add(1)
        state.save(str(options.folder / "checkpoint"))
    return state, steps


def begin(options):
    model = models.text_classifier(options.units)
    optimizer = tf.keras.optimizers.SGD(options.rate * hvd.size(), momentum=0.9)
    optimizer.build(model.trainable_variables)
    state = tf.train.Checkpoint(model=model, optimizer=optimizer, epochs_done=tf.Variable(0, dtype=tf.int64))
    if options.resume and hvd.rank() == 0:
        state.restore(tf.train.latest_checkpoint(options.folder)).assert_existing_objects_matched()
    return state


def batches(options, epoch):
    words, labels = data.topics.texts(options.texts, options.seed)
    order = np.random.default_rng([options.seed, epoch, hvd.rank()]).permutation(options.texts)
    whole = tf.data.Dataset.from_tensor_slices((words[order], labels[order])).batch(options.batch)
    own = slice(hvd.rank(), None, hvd.size())
    return whole.map(lambda words, labels: (words[own], labels[own], tf.size(labels)))


@tf.function(reduce_retracing=True)
def step(state, words, labels):
    with tf.GradientTape() as tape:
        loss = mean_loss(labels, state.model(words, training=True))
    tape = hvd.DistributedGradientTape(tape)
    gradients = tape.gradient(loss, state.model.trainable_variables)
    state.optimizer.apply_gradients(zip(gradients, state.model.trainable_variables, strict=True))
    return hvd.allreduce(loss)

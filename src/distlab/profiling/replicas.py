"""When each replica of a strategy computes: a training step that reads the clock between its parts."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import tensorflow as tf


def moments(
    strategy: "tf.distribute.Strategy", make_model: Callable[[], "tf.keras.Model"], batches: "tf.data.Dataset"
) -> npt.NDArray[np.float64]:
    """In seconds, when each replica began a step, had its gradients, and had updated: (replica, step, 3).

    The batches hold images and labels of classes and are all of one size; the first one traces the step and is left
    out. All are in memory before the first step.
    """
    import tensorflow as tf  # here, because it takes seconds

    def clock(after: list[tf.Tensor]) -> tf.Tensor:
        """The time at which all tensors in `after` have been computed."""
        # `tf.timestamp` is an operation with a side effect, which a `tf.function` runs in the order of the program: the
        # clock of replica 1 would wait for that of replica 0.
        with tf.device("CPU:0"):
            return tf.numpy_function(lambda *values: time.perf_counter(), after, tf.float64, stateful=False)

    with strategy.scope():
        model, optimizer = make_model(), tf.keras.optimizers.SGD(0.1)
        optimizer.build(model.trainable_variables)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def replica(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        began = clock([images[:1]])
        with tf.control_dependencies([began]):
            images = tf.identity(images)  # nothing below starts before the clock was read
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(loss_of(labels, model(images, training=True)))
        gradients = tape.gradient(loss, model.trainable_variables)
        computed = clock(gradients)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        updated = clock([tf.identity(weight) for weight in model.trainable_variables])
        return tf.stack([began, computed, tf.maximum(computed, updated)])

    @tf.function(autograph=False)
    def step(batch: tuple[tf.Tensor, tf.Tensor]) -> tuple[tf.Tensor, ...]:
        return tuple(strategy.experimental_local_results(strategy.run(replica, args=batch)))

    distributed = list(strategy.experimental_distribute_dataset(batches))
    times = [[of_replica.numpy() for of_replica in step(batch)] for batch in distributed]
    return np.array(times[1:]).swapaxes(0, 1)

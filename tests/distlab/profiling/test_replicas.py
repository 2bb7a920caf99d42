"""A replica reads its clock in the order of the parts of a step."""

import numpy as np
import tensorflow as tf

from distlab import models
from distlab.profiling import replicas


def test_a_step_begins_computes_and_updates_after_the_step_before() -> None:
    images, labels = np.zeros((12, 28, 28), np.float32), np.zeros(12, int)
    batches = tf.data.Dataset.from_tensor_slices((images, labels)).batch(4)
    times = replicas.moments(tf.distribute.get_strategy(), models.mlp, batches)
    assert times.shape == (1, 2, 3)
    assert np.all(np.diff(times.ravel()) >= 0)

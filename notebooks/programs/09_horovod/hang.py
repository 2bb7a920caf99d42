"""Rank 0 alone averages the accuracy: `horovodrun -np 2 --gloo python hang.py` hangs."""

import horovod.tensorflow as hvd
import tensorflow as tf


@tf.function  # without it Horovod ignores the name
def average(value: tf.Tensor, name: str) -> tf.Tensor:
    """The average over all ranks."""
    return hvd.allreduce(value, name=name)


hvd.init()
for step in range(2):
    gradient = average(tf.ones(10), "gradient")
    if hvd.rank() == 0:
        print(f"step {step}, accuracy {average(tf.constant(0.9), 'accuracy')}")

"""Rank 0 alone averages the accuracy, and the job hangs: `horovodrun -np 2 --gloo python hang.py`."""

import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()


@tf.function  # outside of one Horovod does not hear of the name
def average(value: tf.Tensor, name: str) -> tf.Tensor:
    """The average over all ranks."""
    return hvd.allreduce(value, name=name)


if hvd.rank() == 0:
    print("accuracy", average(tf.constant(0.9), "accuracy"))
print("gradient", average(tf.ones(10), "gradient"))

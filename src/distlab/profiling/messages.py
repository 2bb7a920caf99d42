"""The tensors that travel between devices in a traced `tf.function`, read from the graph that TensorFlow built."""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf


class Message(NamedTuple):
    """One tensor on its way from one device to another; `step` counts from 1."""

    step: int
    source: int
    destination: int


def between_devices(graph: tf.Graph, devices: Sequence[str]) -> list[Message]:
    """The messages between `devices` ("CPU:0", …; a device's number is its place in the list), in order of their steps.

    A tensor that several operations on a device read travels there once. A message's step is the earliest in which it
    can be sent: the number of messages on the longest chain that ends with it. Operations on other devices, or on none,
    are left out, and so is what one operation does by itself, such as a collective of NCCL.
    """
    numbers = {name: number for number, name in enumerate(devices)}
    steps_before: dict[str, int] = {}
    messages: dict[tuple[str, int], Message] = {}
    for operation in graph.get_operations():
        destination = _number(operation, numbers)
        steps = 0
        for tensor in operation.inputs:
            before = steps_before.get(tensor.op.name, 0)
            source = _number(tensor.op, numbers)
            if source is not None and destination is not None and source != destination:
                before += 1
                messages[tensor.name, destination] = Message(before, source, destination)
            steps = max(steps, before)
        steps_before[operation.name] = steps
    return sorted(messages.values())


def _number(operation: tf.Operation, numbers: dict[str, int]) -> int | None:
    return numbers.get(operation.device.rpartition("device:")[2])

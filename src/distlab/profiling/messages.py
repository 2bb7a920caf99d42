"""The tensors that travel between devices in a traced `tf.function`, read from the graph that TensorFlow built."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import tensorflow as tf


class Message(NamedTuple):
    """One tensor on its way from one device to another; `step` counts from 1."""

    step: int
    source: int
    destination: int


def between_devices(graph: "tf.Graph", devices: Sequence[str]) -> list[Message]:
    """The messages between `devices` ("CPU:0", …; a device's number is its place in the list), in order of their steps.

    A tensor that several operations on a device read travels there once. In a step a device sends at most one message
    and receives at most one, as on the virtual cluster. A message's step is the first in which what it needs has
    arrived and both ends are free; they are served in the order of the graph. Operations on other devices, or on none,
    are left out, and so is what one operation does by itself, such as a collective of NCCL.
    """
    numbers = {name: number for number, name in enumerate(devices)}
    arrived: dict[str, int] = {}  # the step after which an operation can begin
    messages: dict[tuple[str, int], Message] = {}
    sending: set[tuple[int, int]] = set()  # device and step
    receiving: set[tuple[int, int]] = set()
    for operation in graph.get_operations():
        destination = _number(operation, numbers)
        steps = 0
        for tensor in operation.inputs:
            before = arrived.get(tensor.op.name, 0)
            source = _number(tensor.op, numbers)
            if source is not None and destination is not None and source != destination:
                if (tensor.name, destination) not in messages:
                    step = before + 1
                    while (source, step) in sending or (destination, step) in receiving:
                        step += 1
                    sending.add((source, step))
                    receiving.add((destination, step))
                    messages[tensor.name, destination] = Message(step, source, destination)
                before = messages[tensor.name, destination].step
            steps = max(steps, before)
        arrived[operation.name] = steps
    return sorted(messages.values())


def _number(operation: "tf.Operation", numbers: dict[str, int]) -> int | None:
    return numbers.get(operation.device.rpartition("device:")[2])

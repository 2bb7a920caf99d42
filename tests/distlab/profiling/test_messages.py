"""Messages are read from a graph: who sends to whom, in which step, and once per tensor and receiver."""

from collections.abc import Callable

import tensorflow as tf

from distlab.profiling.messages import Message, between_devices

DEVICES = ["CPU:0", "CPU:1", "CPU:2", "CPU:3"]


def graph_of(build: Callable[[], object]) -> tf.Graph:
    """The graph that `build` makes; nothing in it is executed, so the devices need not exist."""
    with tf.Graph().as_default() as graph:
        build()
    return graph


def on(device: str, *inputs: tf.Tensor) -> tf.Tensor:
    """An operation on `device` that reads `inputs`, or a constant when there are none."""
    with tf.device(device):
        return tf.concat([[0.0], *inputs], axis=0) if inputs else tf.constant([1.0])


def to_one_and_back() -> None:
    total = on("CPU:0", *(on(device) for device in DEVICES))
    for device in DEVICES:
        on(device, total)


def test_everything_goes_to_device_0_and_comes_back_one_message_at_a_time() -> None:
    gathered = [Message(step, source, 0) for step, source in enumerate((1, 2, 3), start=1)]
    returned = [Message(step, 0, destination) for step, destination in enumerate((1, 2, 3), start=4)]
    assert between_devices(graph_of(to_one_and_back), DEVICES) == gathered + returned


def test_a_tensor_with_two_readers_travels_once_and_two_tensors_twice() -> None:
    def two_readers() -> None:
        tensor = on("CPU:0")
        on("CPU:1", tensor)
        on("CPU:1", tensor, tensor)

    assert between_devices(graph_of(two_readers), DEVICES) == [Message(1, 0, 1)]
    two_tensors = graph_of(lambda: on("CPU:1", on("CPU:0"), on("CPU:0")))
    assert between_devices(two_tensors, DEVICES) == [Message(1, 0, 1), Message(2, 0, 1)]


def test_operations_on_other_devices_send_and_receive_nothing() -> None:
    for outside in ("CPU:7", "GPU:0", None):
        assert between_devices(graph_of(lambda outside=outside: on("CPU:1", on(outside, on("CPU:0")))), DEVICES) == []

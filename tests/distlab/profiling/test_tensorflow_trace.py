"""Operations are read from the newest trace of TensorFlow's profiler and added up by name and kind."""

import os
from pathlib import Path

import pytest
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from distlab.profiling import tensorflow_trace


def write_trace(file: Path, plane_name: str, picoseconds: dict[str, list[int]]) -> None:
    """A trace with one plane, and in it an event of each duration for each name."""
    space = xplane_pb2.XSpace()
    plane = space.planes.add(name=plane_name)
    line = plane.lines.add()
    for number, (name, durations) in enumerate(picoseconds.items(), start=1):
        plane.event_metadata[number].name = name
        for duration in durations:
            line.events.add(metadata_id=number, duration_ps=duration)
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(space.SerializeToString())


def test_operations_are_added_up_and_the_longest_comes_first(tmp_path: Path) -> None:
    interrupted = 5 * 10**12  # another program took the processor: the median call counts
    matmul, convolution = [10**9, interrupted, 2 * 10**9], [7 * 10**9]
    events = {"dense/MatMul:MatMul": matmul, "conv/Conv2D:_MklConv2D": convolution, "ThreadpoolListener": [7]}
    write_trace(tmp_path / "run" / "host.xplane.pb", "/host:CPU", events)
    first, second = tensorflow_trace.operations(tmp_path)
    assert first == ("conv/Conv2D", "_MklConv2D", 1, pytest.approx(7e-3))
    assert second == ("dense/MatMul", "MatMul", 3, pytest.approx(6e-3))


def test_the_newest_trace_is_read(tmp_path: Path) -> None:
    for moment, name in enumerate(("old", "new")):
        file = tmp_path / name / "host.xplane.pb"
        write_trace(file, "/host:CPU", {f"{name}:MatMul": [10**9]})
        os.utime(file, (moment, moment))
    assert [operation.name for operation in tensorflow_trace.operations(str(tmp_path))] == ["new"]

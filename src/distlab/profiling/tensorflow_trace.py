"""What TensorFlow's profiler has recorded: how long each operation took."""

import re
from pathlib import Path
from statistics import median
from typing import NamedTuple

# An operation is recorded as NAME:KIND; other events are about the runtime.
_OPERATION = re.compile(r"(?P<name>[\w./\-]+):(?P<kind>[A-Z_]\w*)")


class OperationTime(NamedTuple):
    """One operation of the graph: its name, its kind (kernel), how often it ran and the seconds that took together.

    The seconds are those of the median call, times the calls: a call that another program interrupts does not count.
    """

    name: str
    kind: str
    calls: int
    seconds: float


def operations(folder: str | Path) -> list[OperationTime]:
    """The operations on the processor in the newest trace below `folder`, those that took longest first.

    Raises FileNotFoundError without a trace.
    """
    from tensorflow.tsl.profiler.protobuf import xplane_pb2  # here, because it starts TensorFlow

    files = sorted(Path(folder).rglob("*.xplane.pb"), key=lambda file: file.stat().st_mtime_ns)
    if not files:
        raise FileNotFoundError(f"there is no trace (*.xplane.pb) below {folder}")
    space = xplane_pb2.XSpace.FromString(files[-1].read_bytes())
    seconds_of: dict[tuple[str, str], list[float]] = {}
    for plane in (plane for plane in space.planes if plane.name.startswith("/host:")):
        for event in (event for line in plane.lines for event in line.events):
            name = _OPERATION.fullmatch(plane.event_metadata[event.metadata_id].name)
            if name:
                seconds_of.setdefault((name["name"], name["kind"]), []).append(event.duration_ps * 1e-12)
    times = [OperationTime(*key, len(calls), len(calls) * median(calls)) for key, calls in seconds_of.items()]
    return sorted(times, key=lambda time: time.seconds, reverse=True)

"""The reader of Horovod's timelines: known times, files that break off or begin late."""

from pathlib import Path

import pytest

from distlab.profiling import horovod_timeline
from distlab.profiling.horovod_timeline import Timeline

CLOSING = '"args": {"dtype": "float32", "shape": "[2, 5]"}'


def named(pid: int, tensor: str) -> str:
    return f'{{"name": "process_name", "ph": "M", "pid": {pid}, "args": {{"name": "{tensor}"}}}}'


def event(phase: str, moment: int, pid: int, name: str = "", rest: str = "") -> str:
    label = f', "name": "{name}"' if name else ""
    return f'{{"ph": "{phase}"{label}, "ts": {moment}, "pid": {pid}{", " * bool(rest)}{rest}}}'


def step(pid: int, begin: int, queue: int = 5) -> list[str]:
    """One operation: 100 µs of negotiating, 5 of queueing, 3 of copying, 20 on the way, 4 of finishing."""
    turn = begin + 100 + queue
    return [
        event("B", begin, pid, "NEGOTIATE_ALLREDUCE"),
        event("X", begin + 10, pid, "1", '"dur": 0'),
        event("X", begin + 100, pid, "0", '"dur": 0'),
        event("E", begin + 100, pid),
        event("B", turn - 1, pid, "ALLREDUCE"),
        event("B", turn, pid, "MEMCPY_IN_FUSION_BUFFER"),
        event("E", turn + 2, pid),
        event("B", turn + 2, pid, "MPI_ALLREDUCE"),
        event("E", turn + 22, pid),
        event("B", turn + 22, pid, "MEMCPY_OUT_FUSION_BUFFER"),
        event("E", turn + 23, pid),
        event("E", turn + 27, pid, rest=CLOSING),
    ]


EVENTS = [
    '{"name": "process_name", "ph": "M", "pid": 0, "args": {"start_time_since_epoch_in_micros": 17}}',  # the file's
    named(1, "first"),
    *step(1, 1000),
    '{"ph": "i", "name": "CYCLE_START", "ts": 1200, "s": "g"}',
    named(2, "second"),
    *step(2, 2000),
    *step(1, 2000),
    *step(2, 3000, queue=50),
]
STREAM = "[\n" + ",\n".join(EVENTS) + "]"


def read(folder: Path, text: str) -> Timeline:
    file = folder / "timeline.json"
    file.write_text(text)
    return horovod_timeline.read(file)


def microseconds(seconds: dict[str, float]) -> dict[str, float]:
    return {part: round(1e6 * value, 3) for part, value in seconds.items() if round(1e6 * value, 3)}


def test_every_part_of_an_operation_has_its_known_time(tmp_path: Path) -> None:
    timeline = read(tmp_path, STREAM)
    first, *_, last = timeline.operations
    expected = {"negotiating": 100, "queueing": 5, "copying": 3, "communicating": 20, "finishing": 4}
    assert microseconds(first.parts()) == expected
    assert microseconds(last.parts()) == expected | {"queueing": 50}
    assert first.end - first.start == pytest.approx(132e-6)
    assert (first.tensor, first.kind, first.nbytes) == ("first", "ALLREDUCE", 40)
    # Tensors that travel together are one collective.
    calls = [(sorted(call.tensors), call.nbytes) for call in timeline.collectives()]
    assert calls == [(["first"], 40), (["first", "second"], 80), (["second"], 40)]


def test_the_rank_that_was_ready_last_is_known_unless_the_cache_knew_the_tensor(tmp_path: Path) -> None:
    operation = read(tmp_path, STREAM).operations[0]
    assert operation.ready == {1: pytest.approx(1010e-6), 0: pytest.approx(1100e-6)}
    assert operation.last_rank == 0
    cached = [line for line in step(1, 1000) if '"X"' not in line]
    (operation,) = read(tmp_path, "[" + ",".join([named(1, "first"), *cached]) + "]").operations
    assert operation.last_rank is None


def test_a_file_that_breaks_off_anywhere_gives_what_was_finished(tmp_path: Path) -> None:
    whole = read(tmp_path, STREAM).operations
    for kept in range(0, len(STREAM), 23):
        timeline = read(tmp_path, STREAM[:kept])
        assert all(operation in whole for operation in timeline.operations)
        assert len(timeline.operations) == STREAM[:kept].count(CLOSING + "}")


def test_what_was_under_way_when_the_recording_began_is_left_out(tmp_path: Path) -> None:
    late = [*EVENTS[:2], *step(1, 500)[-2:], *EVENTS[2:]]
    assert read(tmp_path, "[" + ",".join(late) + "]").operations == read(tmp_path, STREAM).operations


# HOROVOD_HIERARCHICAL_ALLREDUCE=1: three stages, with copies between them, are one call.
HIERARCHICAL = {"NCCL_REDUCESCATTER": 100, "MEMCPY_IN_HOST_BUFFER": 20, "MPI_ALLREDUCE": 1000, "NCCL_ALLGATHER": 100}


@pytest.mark.parametrize(
    ("activities", "parts", "call"),
    [
        ({"INIT_NCCL": 4000, "NCCL_ALLREDUCE": 100}, {"starting": 4000, "communicating": 100}, 100),
        (HIERARCHICAL, {"copying": 20, "communicating": 1200}, 1220),
    ],
)
def test_activities_are_what_horovod_means_by_them(
    tmp_path: Path, activities: dict[str, int], parts: dict[str, int], call: int
) -> None:
    moment = 50
    events = [named(1, "first"), event("B", 0, 1, "NEGOTIATE_ALLREDUCE"), event("E", moment, 1)]
    events.append(event("B", moment, 1, "ALLREDUCE"))
    for name, duration in activities.items():  # without pauses
        events += [event("B", moment, 1, name), event("E", moment + duration, 1)]
        moment += duration
    timeline = read(tmp_path, "[" + ",".join([*events, event("E", moment, 1, rest=CLOSING)]) + "]")
    [operation] = timeline.operations
    assert microseconds(operation.parts()) == {"negotiating": 50, **parts}
    [collective] = timeline.collectives()
    assert round(1e6 * (collective.end - collective.start)) == call

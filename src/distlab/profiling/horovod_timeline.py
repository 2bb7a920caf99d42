"""Horovod's timeline, read: for each tensor and step, how long it was negotiated, queued, copied and all-reduced.

Rank 0 writes the file (`HOROVOD_TIMELINE=FILE`) as a stream of trace events, so that the file of a run that was killed
ends anywhere. Each tensor is a "process" of the trace; its events B (begin) and E (end) are nested:

    NEGOTIATE_ALLREDUCE, with an event X for each rank at the moment when rank 0 learns that it is ready
    ALLREDUCE
        MEMCPY_IN_FUSION_BUFFER, MPI_ALLREDUCE, MEMCPY_OUT_FUSION_BUFFER, QUEUE, ...

A tensor that Horovod remembers from an earlier step (its response cache) has no X. Source: horovod/common/timeline.cc
and docs/timeline.rst of release 0.28.1.
"""

import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from distlab.runtime.errors import PlainError

PARTS = ("negotiating", "queueing", "copying", "communicating", "finishing")
"""What happens to a tensor, in this order."""

_SEPARATORS = re.compile(r"[\s,]*")
_ITEM_BYTES = {"uint8": 1, "int8": 1, "bool": 1, "float16": 2, "bfloat16": 2, "uint16": 2, "int16": 2}
_ITEM_BYTES |= {"int32": 4, "float32": 4, "int64": 8, "float64": 8}


Event = dict[str, Any]
"""An event as the file has it."""


class NotATimeline(PlainError, ValueError):
    """The file is no timeline of Horovod, or an event in it cannot be read; the message says which."""


class Span(NamedTuple):
    """Something between two moments, in seconds since the recording began."""

    name: str
    start: float
    end: float


@dataclass
class Operation:
    """One collective on one tensor, from the first rank's request to the end; moments in seconds.

    ready: by rank, when rank 0 learned that it had the tensor; empty for a tensor that the response cache knew.
    negotiated: when all ranks had it.  started: when its turn came.  activities: what was done then.
    nbytes: of the tensor; None if the recording does not say.
    """

    tensor: str
    kind: str
    start: float
    negotiated: float
    started: float
    ready: dict[int, float] = field(default_factory=dict)
    activities: list[Span] = field(default_factory=list)
    end: float = math.nan
    nbytes: int | None = None

    @property
    def communication(self) -> Span | None:
        """When its bytes travelled, the whole fused buffer's; None if nothing did (one rank)."""
        return next((span for span in self.activities if _part(span.name) == "communicating"), None)

    @property
    def last_rank(self) -> int | None:
        """The rank that everyone waited for; None if the recording does not say."""
        return max(self.ready, key=self.ready.__getitem__) if len(self.ready) > 1 else None

    def parts(self) -> dict[str, float]:
        """Seconds by PARTS, which together are the time from start to end.

        Queueing is the time between the agreement and the first byte that is copied or sent, and what Horovod itself
        calls QUEUE or WAIT_FOR_...; finishing is the rest.
        """
        seconds = dict.fromkeys(PARTS, 0.0)
        seconds["negotiating"] = self.negotiated - self.start
        for span in self.activities:
            seconds[_part(span.name)] += span.end - span.start
        first = next((span.start for span in self.activities if _part(span.name) != "queueing"), self.started)
        queued_in_activities = sum(
            span.end - span.start for span in self.activities if _part(span.name) == "queueing" and span.start < first
        )
        seconds["queueing"] += first - self.negotiated - queued_in_activities
        seconds["finishing"] = self.end - self.start - sum(seconds[part] for part in PARTS[:-1])
        return seconds


@dataclass(frozen=True)
class FusedCall:
    """One call of MPI, NCCL or Gloo: when, and the tensors that travelled together in it."""

    start: float
    end: float
    tensors: tuple[str, ...]
    nbytes: int


@dataclass(frozen=True)
class Timeline:
    """What a recording holds.

    operations: those that were seen from begin to end, in order of their starts.  unfinished: how many were under way
    when the recording broke off.  is_truncated: the file ends within the stream.
    """

    operations: tuple[Operation, ...]
    unfinished: int
    is_truncated: bool

    @property
    def tensors(self) -> list[str]:
        """Their names, in order of first appearance."""
        return list(dict.fromkeys(operation.tensor for operation in self.operations))

    def of(self, tensor: str) -> list[Operation]:
        """All operations on a tensor."""
        return [operation for operation in self.operations if operation.tensor == tensor]

    def by_tensor(self) -> dict[str, dict[str, float]]:
        """For each tensor the seconds of each part, summed over its operations."""
        parts = {tensor: [operation.parts() for operation in self.of(tensor)] for tensor in self.tensors}
        return {tensor: {part: sum(seconds[part] for seconds in of) for part in PARTS} for tensor, of in parts.items()}

    def totals(self) -> dict[str, float]:
        """The seconds of each part, summed over all tensors; tensors that are under way together all count."""
        return {part: sum(seconds[part] for seconds in self.by_tensor().values()) for part in PARTS}

    def collectives(self) -> list[FusedCall]:
        """The calls that moved bytes, in order: tensors that were fused share one."""
        spans = ((operation.communication, number) for number, operation in enumerate(self.operations))
        travelling = sorted((span.start, span.end, number) for span, number in spans if span)
        groups: list[list[tuple[float, float, int]]] = []
        for start, end, number in travelling:
            # One thread makes all calls, one after the other: spans that overlap are the same call.
            if groups and start < groups[-1][0][1]:
                groups[-1].append((start, end, number))
            else:
                groups.append([(start, end, number)])
        return [
            FusedCall(
                group[0][0],
                max(end for _, end, _ in group),
                tuple(self.operations[number].tensor for *_, number in group),
                sum(self.operations[number].nbytes or 0 for *_, number in group),
            )
            for group in groups
        ]


def read(file: str | Path) -> Timeline:
    """The timeline in a file, whole or broken off; raises NotATimeline for anything else."""
    text = Path(file).read_text(errors="replace")
    events, is_truncated = _events(text, Path(file).name)
    names: dict[object, str] = {}
    under_way: dict[object, _UnderWay] = {}
    operations: list[Operation] = []
    for event in events:
        pid, phase = event.get("pid"), event.get("ph")
        if phase == "M" and event.get("name") == "process_name":
            names[pid] = event.get("args", {}).get("name", "")
        elif phase in ("B", "E", "X"):
            try:
                finished = under_way.setdefault(pid, _UnderWay(names[pid])).take(event)
            except (KeyError, TypeError, ValueError) as error:
                raise NotATimeline(f"{Path(file).name}: an event of {pid} cannot be read ({error}).") from None
            operations.extend([finished] if finished else [])
    operations.sort(key=lambda operation: operation.start)
    unfinished = sum(recorded.operation is not None for recorded in under_way.values())
    return Timeline(tuple(operations), unfinished, is_truncated)


class _UnderWay:
    """The operation of a tensor that is being recorded, and which of its events are open."""

    def __init__(self, tensor: str) -> None:
        self.tensor = tensor
        self.operation: Operation | None = None
        self._open: list[tuple[str, float]] = []

    def take(self, event: Event) -> Operation | None:
        """Note an event; the operation when this was its last."""
        moment = float(event["ts"]) / 1e6
        if event["ph"] == "B":
            self._begin(str(event["name"]), moment)
        elif event["ph"] == "X" and self.operation:
            self.operation.ready[int(event["name"])] = moment
        elif event["ph"] == "E" and self._open:  # without a begin it was under way when the recording started
            return self._end(moment, event.get("args", {}))
        return None

    def _begin(self, name: str, moment: float) -> None:
        if not self._open and name.startswith("NEGOTIATE_"):
            kind = name.removeprefix("NEGOTIATE_")
            self.operation = Operation(self.tensor, kind, moment, math.nan, math.nan)
        elif not self._open:
            self.operation = self.operation or Operation(self.tensor, name, moment, moment, moment)
            self.operation.started = moment
        self._open.append((name, moment))

    def _end(self, moment: float, arguments: dict[str, Any]) -> Operation | None:
        name, begin = self._open.pop()
        operation = self.operation
        assert operation is not None, "what has begun belongs to an operation"
        if self._open:
            operation.activities.append(Span(name, begin, moment))
        elif name.startswith("NEGOTIATE_"):
            operation.negotiated = moment
        else:
            operation.end, operation.nbytes, self.operation = moment, _nbytes(arguments), None
            return operation
        return None


def _part(activity: str) -> str:
    if activity == "QUEUE" or activity.startswith("WAIT_FOR"):
        return "queueing"
    if activity.startswith("MEMCPY"):
        return "copying"
    if activity.startswith(("INIT", "ALLOCATE")):
        return "finishing"
    return "communicating"


def _nbytes(arguments: dict[str, Any]) -> int | None:
    item = _ITEM_BYTES.get(arguments.get("dtype", ""))
    if item is None:
        return None
    return item * math.prod(int(length) for length in re.findall(r"\d+", arguments.get("shape", "")))


def _events(text: str, name: str) -> tuple[list[Event], bool]:
    """The events of the stream, and whether it breaks off."""
    if text.strip() and not text.lstrip().startswith("["):
        raise NotATimeline(f"{name} is not a timeline: it does not begin with a list of events.")
    events: list[Event] = []
    position, decoder = text.find("[") + 1, json.JSONDecoder()
    while True:
        if separators := _SEPARATORS.match(text, position):
            position = separators.end()
        if text.startswith("]", position):
            return events, False
        try:
            event, position = decoder.raw_decode(text, position)
        except json.JSONDecodeError:
            return events, True
        events.append(event)

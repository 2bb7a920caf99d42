"""Horovod's timeline, read: for each tensor and step, how long it was negotiated, queued, copied and all-reduced.

Rank 0 writes the file (`HOROVOD_TIMELINE=FILE`) as a stream of trace events, so that the file of a run that was killed
ends anywhere. Each tensor is a "process" of the trace; its events B (begin) and E (end) are nested:

    NEGOTIATE_ALLREDUCE, with an event X for each rank at the moment when rank 0 learns that it is ready
    ALLREDUCE
        MEMCPY_IN_FUSION_BUFFER, MPI_ALLREDUCE, MEMCPY_OUT_FUSION_BUFFER, QUEUE, ...

A tensor that Horovod remembers from an earlier step (its response cache) has no X. The next negotiation of a tensor may
begin before its ALLREDUCE has ended. Source: horovod/common/timeline.cc, common.h and docs/timeline.rst of release
0.28.1; SCHEDULE is written by older releases.
"""

import gzip
import json
import math
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from distlab.runtime.errors import PlainError

PARTS = ("negotiating", "queueing", "starting", "copying", "communicating", "unknown", "finishing")
"""What happens to a tensor, in this order; starting is that of NCCL or Gloo, unknown what this module does not know."""

_PART_OF = {
    "queueing": ("QUEUE", "SCHEDULE", "WAIT_FOR_"),
    "starting": ("INIT_", "ALLOCATE_"),
    "copying": ("MEMCPY", "COPY_"),
    "communicating": ("MPI_", "NCCL_", "GLOO_", "CCL_", "MLSL_", "DDL_"),
}
_BEGIN = re.compile(r'\s*(\{[^\[]*"traceEvents"\s*:\s*)?\[')
_SEPARATORS = re.compile(r"[\s,]*")
_NEXT_EVENT = re.compile(r"\n\s*(?=\{)")
_ITEM_BYTES = {"uint8": 1, "int8": 1, "bool": 1, "float16": 2, "bfloat16": 2, "uint16": 2, "int16": 2}
_ITEM_BYTES |= {"int32": 4, "float32": 4, "int64": 8, "float64": 8}


Event = dict[str, Any]
"""An event as the file has it."""


class NotATimeline(PlainError, ValueError):
    """The file is no timeline of Horovod."""


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
        """When its bytes travelled, the whole fused buffer's; None if nothing did (one rank).

        A hierarchical all-reduce has several stages: from the begin of the first to the end of the last.
        """
        stages = [span for span in self.activities if _part(span.name) == "communicating"]
        return Span(stages[0].name, stages[0].start, max(span.end for span in stages)) if stages else None

    @property
    def last_rank(self) -> int | None:
        """The rank that everyone waited for; None if the recording does not say."""
        return max(self.ready, key=self.ready.__getitem__) if len(self.ready) > 1 else None

    def parts(self) -> dict[str, float]:
        """Seconds by PARTS, which together are the time from start to end.

        Queueing is the time between the agreement and the first other activity, and what Horovod itself calls QUEUE or
        WAIT_FOR_...; finishing is the rest.
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


class FusedCall(NamedTuple):
    """One call of MPI, NCCL or Gloo: when, and the tensors that travelled together in it.

    nbytes: of all of them; None if the recording does not say.
    """

    start: float
    end: float
    tensors: tuple[str, ...]
    nbytes: int | None


@dataclass(frozen=True)
class Timeline:
    """What a recording holds.

    operations: those that were seen from begin to end, in order of their starts.
    missing: what the file does not hold, in a sentence; "" if it is whole and has a collective.
    """

    operations: tuple[Operation, ...]
    missing: str

    def collectives(self) -> list[FusedCall]:
        """The calls that moved bytes, in order: tensors that were fused share one."""
        travelling = [(span, operation) for operation in self.operations if (span := operation.communication)]
        groups: list[list[tuple[Span, Operation]]] = []
        for span, operation in sorted(travelling, key=lambda each: (each[0].start, each[0].end)):
            # One thread makes all calls, one after the other: spans that overlap are the same call.
            if groups and span.start < groups[-1][0][0].end:
                groups[-1].append((span, operation))
            else:
                groups.append([(span, operation)])
        calls = []
        for group in groups:
            sizes = [operation.nbytes for _, operation in group]
            tensors = tuple(operation.tensor for _, operation in group)
            nbytes = None if None in sizes else sum(filter(None, sizes))
            calls.append(FusedCall(group[0][0].start, max(span.end for span, _ in group), tensors, nbytes))
        return calls


def read(file: str | Path) -> Timeline:
    """The timeline in a file: whole, broken off, a slice, with damaged lines, compressed by gzip or within an object.

    Raises NotATimeline for a file that holds text but no stream of events.
    """
    packed = Path(file).read_bytes()
    content = gzip.decompress(packed) if packed.startswith(b"\x1f\x8b") else packed
    text = content.decode("utf-8-sig", errors="replace")
    events, is_truncated, damaged = _events(text)
    if not events and text.strip() and not _BEGIN.match(text):
        raise NotATimeline(f"{Path(file).name} is not a timeline: it holds no events.")
    names: dict[object, str] = {}
    tensors: dict[object, _Tensor] = defaultdict(_Tensor)
    for event in events:
        pid, phase = event.get("pid"), event.get("ph")
        try:
            if phase == "M" and event.get("name") == "process_name":
                names[pid] = event.get("args", {}).get("name", "")
            elif phase in ("B", "E", "X"):
                tensors[pid].take(event, names.get(pid, f"tensor {pid}"), is_whole=not damaged)
        except (AttributeError, KeyError, TypeError, ValueError):
            damaged += 1
    operations = [operation for tensor in tensors.values() for operation in tensor.finished]
    unfinished, unnamed = sum(len(tensor.under_way) for tensor in tensors.values()), len(tensors.keys() - names.keys())
    reasons = {
        "it holds no collective: one process, or none was reached": not operations,
        "it breaks off": is_truncated,
        f"{unfinished} operations are not finished": unfinished,
        f"{damaged} events cannot be read, and operations near them may be missing": damaged,
        f"{unnamed} tensors have no name": unnamed,
    }
    said = "; ".join(reason for reason, holds in reasons.items() if holds)
    missing = f"The recording is not whole: {said}." if said else ""
    return Timeline(tuple(sorted(operations, key=lambda operation: operation.start)), missing)


class _Tensor:
    """The operations on a tensor: those finished, and under way one, and the next if that is negotiated meanwhile."""

    def __init__(self) -> None:
        self.finished: list[Operation] = []
        self.under_way: list[Operation] = []
        self._open: list[tuple[str, float]] = []

    def take(self, event: Event, tensor: str, is_whole: bool) -> None:
        """Note an event of the tensor of that name.

        is_whole: whether no event of the file is damaged. If one is, a negotiation ends what was open before.
        """
        moment = float(event["ts"]) / 1e6
        if event["ph"] == "X":
            if self.under_way:
                self.under_way[-1].ready[int(event["name"])] = moment
        elif event["ph"] == "B":
            name = str(event["name"])
            if name.startswith("NEGOTIATE_"):
                if not is_whole:
                    self._open = []
                del self.under_way[1 if self._open else 0 :]
                kind = name.removeprefix("NEGOTIATE_")
                self.under_way.append(Operation(tensor, kind, moment, math.nan, math.nan))
            elif not self._open:
                if not self.under_way:
                    self.under_way.append(Operation(tensor, name, moment, moment, moment))
                self.under_way[0].started = moment
            self._open.append((name, moment))
        elif self._open:  # an end without a begin was under way when the recording started
            name, begin = self._open.pop()
            if name.startswith("NEGOTIATE_"):
                self.under_way[-1].negotiated = moment
            elif self._open:
                self.under_way[0].activities.append(Span(name, begin, moment))
            else:
                operation = self.under_way.pop(0)
                operation.end, operation.nbytes = moment, _nbytes(event.get("args", {}))
                self.finished.append(operation)


def _part(activity: str) -> str:
    return next((part for part, names in _PART_OF.items() if activity.startswith(names)), "unknown")


def _nbytes(arguments: dict[str, Any]) -> int | None:
    item = _ITEM_BYTES.get(arguments.get("dtype", ""))
    if item is None:
        return None
    return item * math.prod(int(length) for length in re.findall(r"\d+", arguments.get("shape", "")))


def _events(text: str) -> tuple[list[Event], bool, int]:
    """The events of the stream, whether it breaks off, and how many of them cannot be read."""
    begin = _BEGIN.match(text)
    position = begin.end() if begin else 0
    events: list[Event] = []
    damaged, decoder = 0, json.JSONDecoder()
    while True:
        if separators := _SEPARATORS.match(text, position):
            position = separators.end()
        if text.startswith("]", position):
            return events, False, damaged
        try:
            event, position = decoder.raw_decode(text, position)
            if isinstance(event, dict):
                events.append(event)
        except json.JSONDecodeError:
            following = _NEXT_EVENT.search(text, position)
            if following is None:
                return events, True, damaged
            damaged, position = damaged + 1, following.end()

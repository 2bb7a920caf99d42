"""Which process of a job failed first, as far as its end and its last lines tell.

Reports say little about the order: a rank that fails may free its memory for a second, or wait in MPI_Abort, after it
has told the others or mpirun; they end before it does. So the cause of each end decides, and the moment only between
equal causes.
"""

import re
import signal
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum

from distlab.launch.last_lines import LastLines
from distlab.launch.reports import Ended

# The last lines of a process in which the cause of its end is looked for: a traceback of Keras may have sixty.
_LINES_WITH_CAUSE = 100
_TRACEBACK = "Traceback (most recent call last):"
# What Gloo, Horovod, gRPC, TensorFlow and the system call the loss of another process.
_LOST_PEER = re.compile(
    "HorovodInternalError|Horovod has been shut down|Connection (reset|closed) by peer|ConnectionResetError|Broken pipe"
    "|(Unavailable|Aborted|Cancelled)Error|UNAVAILABLE: |Socket closed|failed to connect to all addresses"
    "|gloo::IoException|Collective ops is aborted by|tasks are unhealthy|coordination service.* error"
)
# TensorFlow's C++ also notes what happens while a process that has failed takes itself apart.
_NOTE_OF_CPP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:|[IWEF]\d{4} \d\d:")
# What TensorFlow notes, in three lines, of a worker that has left: also of one that was done before this process.
_LEFT_WORKER = re.compile(
    r"E\d{4} \d\d:.* The following tasks are unhealthy \(stopped sending heartbeats\):$"
    r"|/job:\w+/replica:\d+/task:\d+$|The tasks have crashed\. Check the task logs for an earlier error"
)
# What Open MPI says of the rank that ends the job, which may then be ended itself before it can exit, and of one that
# left without MPI_Finalize.
_ABORTED = re.compile(r"MPI_ABORT was invoked on rank (\d+) in communicator MPI_COMM_WORLD\s+with errorcode (-?\d+)")
_LEFT = re.compile(r"exited due to process (rank \d+) .*\n.* exiting improperly")


class Cause(IntEnum):
    """Why a process ended, the first cause of a job's end first."""

    OWN = 0
    UNKNOWN = 1
    LOST_PEER = 2
    ENDED_BY_JOB = 3


def notes_left_worker(line: str) -> bool:
    """Whether TensorFlow notes in this line that a worker has left: no fault if one has ended well."""
    return _LEFT_WORKER.match(line) is not None


def cause(end: Ended, last_lines: Sequence[str]) -> Cause:
    """Why a process ended that did not end well."""
    by_request = end.was_asked and end.status in (-signal.SIGTERM, 128 + signal.SIGTERM)
    if _TRACEBACK in last_lines:
        said = [line for line in last_lines[last_lines.index(_TRACEBACK) :] if not _NOTE_OF_CPP.match(line)]
        return Cause.LOST_PEER if any(map(_LOST_PEER.search, said)) else Cause.OWN
    if by_request:
        return Cause.ENDED_BY_JOB
    if any(map(_LOST_PEER.search, last_lines)):
        return Cause.LOST_PEER
    return Cause.UNKNOWN if end.was_asked or end.status is None else Cause.OWN


def in_order(ends: Iterable[Ended], lines: Mapping[str, LastLines], starter: str) -> list[Ended]:
    """The ends of processes that failed, the one that is the reason for the others first.

    `lines`: what each process printed, also the command that started the ranks, whose name is `starter`.
    """
    said = {name: printed.last(_LINES_WITH_CAUSE) for name, printed in lines.items()}
    aborted = _ABORTED.search("\n".join(said.get(starter, ())))
    known = [
        end._replace(status=int(aborted[2]), was_asked=False)
        if aborted and end.name == f"rank {aborted[1]}" and (end.status is None or end.was_asked)
        else end
        for end in ends
    ]
    return sorted(known, key=lambda end: (cause(end, said.get(end.name, ())), end.moment))


def is_own(end: Ended, lines: Mapping[str, LastLines]) -> bool:
    """Whether a process ended by its own fault, so that no other end can be the reason for it."""
    return cause(end, lines[end.name].last(_LINES_WITH_CAUSE) if end.name in lines else ()) is Cause.OWN


def after_good_ends(end: Ended, happened: str, lines: Mapping[str, LastLines], ended_well: Sequence[str]) -> str:
    """What happened to the process that failed first, in a sentence that also names those that had ended well before.

    If it failed because it lost another, these are the reason: it still waited for them, as in an all-reduce.
    """
    job_ended = f"{happened}; the job was ended."
    if not ended_well or is_own(end, lines):
        return job_ended
    names = ", ".join(ended_well)
    if end.name not in lines or cause(end, lines[end.name].last(_LINES_WITH_CAUSE)) is not Cause.LOST_PEER:
        return f"{job_ended} Had ended before, with exit code 0: {names}."
    them, they = ("it", "it") if len(ended_well) == 1 else ("them", "they")
    return (
        f"{names} had ended, with exit code 0, while {end.name} waited for {them}: probably {they} made fewer steps. "
        f"Then {job_ended}"
    )


def left_without_finalize(output: str) -> str | None:
    """The name of the rank that, says mpirun, ended without MPI_Finalize."""
    match = _LEFT.search(output)
    return match[1] if match else None

"""Which process of a job failed first, as far as its end and its last lines tell.

Reports say little about the order: a rank that fails may free its memory for a second, or wait in MPI_Abort, after it
has told the others or mpirun; they end before it does. So the cause of each end decides, and the moment only between
equal causes.
"""

import re
import signal
from collections.abc import Iterable, Mapping
from enum import IntEnum

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
# What TensorFlow notes, in three lines, of a worker that has left: no fault if that was done before this process.
LEFT_WORKER = re.compile(
    r"E\d{4} \d\d:.* The following tasks are unhealthy \(stopped sending heartbeats\):$"
    r"|/job:\w+/replica:\d+/task:\d+$|The tasks have crashed\. Check the task logs for an earlier error"
)
# What Open MPI says of the rank that ends the job, which may then be ended itself before it can exit.
_ABORTED = re.compile(r"MPI_ABORT was invoked on rank (\d+) in communicator MPI_COMM_WORLD\s+with errorcode (-?\d+)")


class Cause(IntEnum):
    """Why a process ended, the first cause of a job's end first."""

    OWN = 0
    LOST_PEER = 1
    LOST_RANK = 2
    """What has started the ranks fails because one of them did."""
    ENDED_BY_JOB = 3


def in_order(
    ends: Iterable[Ended], lines: Mapping[str, Iterable[str]], starter: str | None = None
) -> list[tuple[Cause, Ended]]:
    """The ends of processes that failed, each with its cause, the one that is the reason for the others first.

    lines: what each process printed.  starter: the command that started the ranks, such as mpirun.
    """
    said = {name: [*printed][-_LINES_WITH_CAUSE:] for name, printed in lines.items()}
    aborted = _ABORTED.search("\n".join(said.get(starter or "", ())))
    found = []
    for end in ends:
        if aborted and end.name == f"rank {aborted[1]}":
            end = end._replace(status=int(aborted[2]))
        found.append((_cause(end, said.get(end.name, []), starter), end))
    return sorted(found, key=lambda item: (item[0], item[1].moment))


def _cause(end: Ended, said: list[str], starter: str | None) -> Cause:
    if end.name == starter:
        return Cause.LOST_RANK
    if _TRACEBACK in said:
        said = [line for line in said[said.index(_TRACEBACK) :] if not _NOTE_OF_CPP.match(line)]
    elif starter and end.status in (-signal.SIGTERM, 128 + signal.SIGTERM):  # by which it ends its ranks
        return Cause.ENDED_BY_JOB
    return Cause.LOST_PEER if any(map(_LOST_PEER.search, said)) else Cause.OWN

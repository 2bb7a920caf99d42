"""What can go wrong in a program on the virtual cluster: one exception class, and one clear message, for each."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from distlab.simulate.events import Events

_MOST_LINES = 64


class SimulationError(Exception):
    """A program cannot go on; `events` holds what happened until then, so that it can be drawn (None outside a run)."""

    events: "Events | None" = None


class ProgramError(SimulationError):
    """The program is not a coroutine function, forgets an `await`, or awaits something that is not its rank's."""


class InputsError(SimulationError):
    """There is not one input per rank."""


class NoSuchRankError(SimulationError):
    """A rank number is not a whole number from 0 to size − 1."""


class SelfMessageError(SimulationError):
    """A rank sends to, or receives from, itself: what it already has it can use without a message."""


class NotAnArrayError(SimulationError):
    """What is sent is not an array of numbers."""


class MismatchError(SimulationError):
    """Two arrays of other shapes or dtypes cannot be added."""


class Waiting(NamedTuple):
    """What a rank waits for: a message from `source` (None: from any rank), since virtual time `since` in seconds."""

    source: int | None
    since: float
    source_has_finished: bool = False

    def __str__(self) -> str:
        if self.source is None:
            return f"has waited since {self.since:.9g} s for a message from any rank"
        aside = ", which has finished" if self.source_has_finished else ""
        return f"has waited since {self.since:.9g} s for a message from rank {self.source}{aside}"


class DeadlockError(SimulationError):
    """Every rank that has not finished waits for a message that nobody will send.

    `waiting` maps the number of each waiting rank to what it waits for; `unreceived` counts, by (source, to), the
    messages that were sent and that nobody has asked for.
    """

    def __init__(self, waiting: Mapping[int, Waiting], unreceived: Mapping[tuple[int, int], int]) -> None:
        """The arguments become the attributes of the same names."""
        self.waiting = dict(waiting)
        self.unreceived = dict(unreceived)
        message = "deadlock:\n" + _listed([f"rank {rank} {wait}" for rank, wait in sorted(self.waiting.items())])
        if unreceived:
            message += "\nsent, but received by nobody:\n" + _listed(_counted(unreceived))
        super().__init__(message)


class UnreceivedMessageError(SimulationError):
    """Every rank has finished, but not every message was received; `unreceived` counts them by (source, to)."""

    def __init__(self, unreceived: Mapping[tuple[int, int], int]) -> None:
        """`unreceived` counts the messages by (source, to)."""
        self.unreceived = dict(unreceived)
        super().__init__("sent, but received by nobody:\n" + _listed(_counted(unreceived)))


class RankFailedError(SimulationError):
    """The program raised an exception on one rank (`rank`); the exception is this one's cause."""

    def __init__(self, rank: int, now: float, error: BaseException) -> None:
        """`now` is the virtual time in seconds."""
        self.rank = rank
        super().__init__(f"rank {rank} failed at {now:.9g} s: {type(error).__name__}: {error}")


def _counted(unreceived: Mapping[tuple[int, int], int]) -> list[str]:
    return [
        f"{count} message{'s' if count > 1 else ''} from rank {source} to rank {to}"
        for (source, to), count in sorted(unreceived.items())
    ]


def _listed(lines: list[str]) -> str:
    hidden = len(lines) - _MOST_LINES
    shown = [f"  {line}" for line in lines[:_MOST_LINES]]
    return "\n".join([*shown, f"  and {hidden} more"] if hidden > 0 else shown)

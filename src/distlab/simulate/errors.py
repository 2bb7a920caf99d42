"""What can go wrong in a program on the virtual cluster: one exception class and one clear message for each mistake.

At the end are the checks of an operation's arguments, each with a message that names the rank.
"""

import inspect
import math
import operator
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from distlab.simulate.events import Events


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
        sender = "any rank" if self.source is None else f"rank {self.source}"
        aside = ", which has finished" if self.source_has_finished else ""
        return f"has waited since {1e6 * self.since:,.7g} µs for a message from {sender}{aside}"


class DeadlockError(SimulationError):
    """Every rank that has not finished waits for a message that nobody will send.

    `waiting` maps the number of each waiting rank to what it waits for; `unreceived` counts, by (source, to), the
    messages that were sent and that nobody has asked for.
    """

    def __init__(self, waiting: Mapping[int, Waiting], unreceived: Mapping[tuple[int, int], int]) -> None:
        """The arguments become the attributes of the same names."""
        self.waiting, self.unreceived = dict(waiting), dict(unreceived)
        waits = _listed("deadlock:", [f"rank {rank} {wait}" for rank, wait in sorted(self.waiting.items())])
        super().__init__(f"{waits}\n{_lost(unreceived)}" if unreceived else waits)


class UnreceivedMessageError(SimulationError):
    """Every rank has finished, but not every message was received; `unreceived` counts them by (source, to)."""

    def __init__(self, unreceived: Mapping[tuple[int, int], int]) -> None:
        """`unreceived` counts the messages by (source, to)."""
        self.unreceived = dict(unreceived)
        super().__init__(_lost(unreceived))


def _lost(unreceived: Mapping[tuple[int, int], int]) -> str:
    counts = [
        f"{count} message{'s' if count > 1 else ''} from rank {source} to rank {to}"
        for (source, to), count in sorted(unreceived.items())
    ]
    return _listed("sent, but received by nobody:", counts)


def _listed(title: str, lines: list[str]) -> str:
    return "\n  ".join([title, *lines])


class RankFailedError(SimulationError):
    """The program raised an exception on one rank (`rank`); the exception is this one's cause."""

    def __init__(self, rank: int, now: float, error: BaseException) -> None:
        """`now` is the virtual time in seconds."""
        self.rank = rank
        super().__init__(f"rank {rank} failed at {now:.9g} s: {type(error).__name__}: {error}")


def check_peer(index: int, size: int, peer: int, verb: str) -> int:
    """The number of the rank at the other end of a message, as an int.

    Raises NoSuchRankError unless it is a whole number from 0 to size − 1, SelfMessageError if it is `index`.
    """
    try:
        peer = operator.index(peer)
    except TypeError:
        raise NoSuchRankError(f"rank {index} {verb} rank {peer!r}, which is not a whole number") from None
    if not 0 <= peer < size:
        raise NoSuchRankError(f"rank {index} {verb} rank {peer}, but the ranks are 0 to {size - 1}")
    if peer == index:
        raise SelfMessageError(f"rank {index} {verb} itself: no message is needed for what a rank already has")
    return peer


def copy_message(index: int, array: np.ndarray) -> np.ndarray:
    """A copy of what rank `index` sends; a number becomes an array without dimensions.

    Raises NotAnArrayError for anything that is neither an array nor a number.
    """
    if isinstance(array, np.ndarray):
        return array.copy()
    if inspect.iscoroutine(array):
        raise NotAnArrayError(f"rank {index} sends {unawaited(array)}")
    copied = np.array(array)
    if copied.dtype == object:
        raise NotAnArrayError(f"rank {index} sends {type(array).__name__}: only arrays and numbers can be sent")
    return copied


def check_addable(index: int, array: np.ndarray, addend: np.ndarray) -> None:
    """Raise MismatchError unless rank `index` can add `addend` to `array`: both arrays, of one shape and one dtype."""
    if type(array) is type(addend) is np.ndarray and array.shape == addend.shape and array.dtype is addend.dtype:
        return  # soon, since a run adds millions of times
    for term in (array, addend):
        if inspect.iscoroutine(term):
            raise MismatchError(f"rank {index} cannot add {unawaited(term)}")
    if not (isinstance(array, np.ndarray) and isinstance(addend, np.ndarray)):
        kinds = f"{type(addend).__name__} to {type(array).__name__}"
        raise MismatchError(f"rank {index} cannot add {kinds}: reduce takes two arrays")
    if array.shape != addend.shape or array.dtype != addend.dtype:
        raise MismatchError(
            f"rank {index} cannot add {addend.dtype} of shape {addend.shape} to {array.dtype} of shape {array.shape}"
        )


def check_seconds(index: int, seconds: float) -> None:
    """Raise ProgramError unless rank `index` can compute for `seconds`: finite and not negative."""
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ProgramError(f"rank {index} computes for {seconds} seconds; it must be a number of 0 or more")


def unawaited(coroutine: Coroutine[Any, Any, Any]) -> str:
    """Names a coroutine where an array belongs, and closes it, so that Python does not warn of it later."""
    coroutine.close()
    name = getattr(coroutine, "__name__", "…")
    return f"the coroutine {name}(…), which was never awaited: write `await {name}(…)`"


def not_awaited(index: int, operation: str) -> str:
    """The message for an operation whose `await` was forgotten."""
    return f"rank {index} calls rank.{operation}(…) without awaiting it: write `await rank.{operation}(…)`"


def no_operation(index: int) -> str:
    """The message for an `await` of something else, such as `asyncio.sleep`."""
    return (
        f"rank {index} awaits something that is not an operation of its own rank; virtual time goes by in "
        "`await rank.compute(seconds)`"
    )


def is_of_asyncio(error: BaseException) -> bool:
    """Whether an operation of asyncio, such as `asyncio.sleep`, has failed since its event loop does not run."""
    return isinstance(error, RuntimeError) and str(error) == "no running event loop"

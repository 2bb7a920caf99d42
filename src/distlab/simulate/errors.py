"""What can go wrong in a program on the virtual cluster: one exception class and one clear message for each mistake.

At the end are the checks of an operation's arguments, each with a message that names the rank.
"""

import inspect
import math
import operator
from collections.abc import Coroutine, Mapping
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from distlab.runtime.errors import message_of

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
        hint = _no_await(error) or _no_array(error)
        super().__init__(f"rank {rank} failed at {now:.9g} s: {type(error).__name__}: {message_of(error)}{hint}")


def _no_array(error: BaseException) -> str:
    """What to do if a program takes something else for an array, such as a number or a tensor."""
    if not isinstance(error, AttributeError) or isinstance(error.obj, np.ndarray):
        return ""
    if error.name and hasattr(np.ndarray, error.name):
        return f"; the program takes a NumPy array: give np.array(…) instead of {type(error.obj).__name__}"
    return ""


def _no_await(error: BaseException) -> str:
    """What to do if a program computes with a coroutine as if it were what that gives."""
    if isinstance(error, AttributeError) and inspect.iscoroutine(error.obj):
        return f"; it is {unawaited(error.obj)}"
    if not isinstance(error, TypeError) or "'coroutine'" not in str(error):
        return ""
    *_, (frame, _) = walk_tb(error.__traceback__)
    for name, value in frame.f_locals.items():
        if inspect.iscoroutine(value) and inspect.getcoroutinestate(value) == inspect.CORO_CREATED:
            return f"; {name} is {unawaited(value)}"
    return ""  # Python warns of one that has no name


def _counted(unreceived: Mapping[tuple[int, int], int]) -> list[str]:
    return [
        f"{count} message{'s' if count > 1 else ''} from rank {source} to rank {to}"
        for (source, to), count in sorted(unreceived.items())
    ]


def _listed(lines: list[str]) -> str:
    hidden = len(lines) - _MOST_LINES
    indented = [f"  {line}" for line in lines[:_MOST_LINES]]
    return "\n".join([*indented, f"  and {hidden} more"] if hidden > 0 else indented)


def check_peer(index: int, size: int, peer: int, verb: str) -> int:
    """The number of the rank at the other end of a message, as an int.

    Raises NoSuchRankError unless it is a whole number from 0 to size − 1, SelfMessageError if it is `index`.
    """
    if type(peer) is not int:
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
    if type(array) is np.ndarray:
        return array.copy()
    if inspect.iscoroutine(array):
        raise NotAnArrayError(f"rank {index} sends {unawaited(array)}")
    copied = np.array(array)
    if copied.dtype == object and not isinstance(array, np.ndarray):
        raise NotAnArrayError(f"rank {index} sends {type(array).__name__}: only arrays and numbers can be sent")
    return copied


def check_addable(index: int, array: np.ndarray, addend: np.ndarray) -> None:
    """Raise MismatchError unless rank `index` can add `addend` to `array`: both arrays, of one shape and one dtype."""
    if type(array) is type(addend) is np.ndarray and array.shape == addend.shape and array.dtype is addend.dtype:
        return
    if not (isinstance(array, np.ndarray) and isinstance(addend, np.ndarray)):
        for term in (array, addend):
            if inspect.iscoroutine(term):
                raise MismatchError(f"rank {index} cannot add {unawaited(term)}")
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


def not_a_number(number: int) -> str:
    """The message for a rank that is compared with a number."""
    return f"`rank` itself is never equal to {number}; its number is `rank.index`: write `rank.index == {number}`"

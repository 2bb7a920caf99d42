"""What an operation may be given: one check for each mistake, with a message that names the rank."""

import math
import operator

import numpy as np

from distlab.simulate.errors import MismatchError, NoSuchRankError, NotAnArrayError, ProgramError, SelfMessageError


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
    copied = np.array(array)
    if copied.dtype == object and not isinstance(array, np.ndarray):
        raise NotAnArrayError(f"rank {index} sends {type(array).__name__}: only arrays and numbers can be sent")
    return copied


def check_addable(index: int, array: np.ndarray, other: np.ndarray) -> None:
    """Raise MismatchError unless rank `index` can add `other` to `array`: both arrays, of one shape and one dtype."""
    if not (isinstance(array, np.ndarray) and isinstance(other, np.ndarray)):
        kinds = f"{type(other).__name__} to {type(array).__name__}"
        raise MismatchError(f"rank {index} cannot add {kinds}: reduce takes two arrays")
    if array.shape != other.shape or array.dtype != other.dtype:
        raise MismatchError(
            f"rank {index} cannot add {other.dtype} of shape {other.shape} to {array.dtype} of shape {array.shape}"
        )


def check_seconds(index: int, seconds: float) -> None:
    """Raise ProgramError unless rank `index` can compute for `seconds`: finite and not negative."""
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ProgramError(f"rank {index} computes for {seconds} seconds; it must be a number of 0 or more")


def not_awaited(index: int, operation: str) -> str:
    """The message for an operation whose `await` was forgotten."""
    return f"rank {index} calls rank.{operation}(…) without awaiting it: write `await rank.{operation}(…)`"

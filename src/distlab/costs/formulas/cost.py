"""What a collective costs, before any network is named: steps, bytes on the critical path, bytes sent."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from distlab.runtime.arguments import WrongArgument, wrong
from distlab.simulate.network import SLOWEST

Array = NDArray[np.float64]
Numbers = Array | np.float64
"""One number, or an array of the shape that ranks and bytes have together."""


@dataclass(frozen=True)
class Cost:
    """The price of one collective in the α–β–γ model; every field has the shape of ranks and bytes together (float64).

    A message of n bytes takes α + nβ seconds, and adding n bytes to n others takes nγ seconds (Hockney 1994 for α and
    β; γ as in Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005, section 3). Every rank sends and receives at the same
    time, one message each way.
    """

    steps: Numbers
    """messages that follow one another on the critical path: what α is multiplied with"""
    bytes_on_path: Numbers
    """bytes that follow one another on the critical path: what β is multiplied with"""
    bytes_reduced: Numbers
    """bytes added one after another on the critical path: what γ is multiplied with"""
    bytes_sent: Numbers
    """by all ranks together"""
    largest_bytes_sent: Numbers
    """by the rank that sends most"""

    def seconds(self, latency: float, seconds_per_byte: float, seconds_per_byte_reduced: float = 0.0) -> Numbers:
        """The time on a network where every message has the latency α (s), β (s/byte) and every addition γ (s/byte).

        Raises ValueError for one that is negative, not finite or a bandwidth.
        """
        names = ("latency", "time of a byte", "time to add a byte")
        for name, value in zip(names, (latency, seconds_per_byte, seconds_per_byte_reduced), strict=True):
            if np.asarray(value).dtype.kind not in "uif":
                raise wrong(f"the {name}", value, "a number of seconds")
            if not np.all(np.isfinite(value) & (np.asarray(value) >= 0)):
                raise ValueError(f"the {name} is finite and at least 0, not {value}")
            if np.any(np.asarray(value) > SLOWEST):
                raise WrongArgument(f"the {name} is {value:g}, which is no time: for 1e9 bytes per second give 1e-9.")
        return (
            self.steps * latency + self.bytes_on_path * seconds_per_byte + self.bytes_reduced * seconds_per_byte_reduced
        )

    def __add__(self, following: "Cost") -> "Cost":
        """Both collectives, one after the other.

        `largest_bytes_sent` then assumes that the same rank sends most in both; the other fields are exact.
        """
        return Cost(
            self.steps + following.steps,
            self.bytes_on_path + following.bytes_on_path,
            self.bytes_reduced + following.bytes_reduced,
            self.bytes_sent + following.bytes_sent,
            self.largest_bytes_sent + following.largest_bytes_sent,
        )


def checked(ranks: ArrayLike, array_bytes: ArrayLike = 0) -> tuple[Numbers, Numbers]:
    """`ranks` and `array_bytes` as float64 of one shape.

    Raises ValueError unless every number of ranks is whole and at least 1, every number of bytes finite and at least 0,
    and the two shapes fit together, and for texts.
    """
    ranks, array_bytes = numbers(ranks, "ranks"), numbers(array_bytes, "bytes")
    if not np.all(np.isfinite(ranks) & (ranks >= 1) & (ranks == np.floor(ranks))):
        raise ValueError(f"a number of ranks is a whole number of at least 1, not {_first_wrong(ranks):g}")
    if not np.all(np.isfinite(array_bytes) & (array_bytes >= 0)):
        raise ValueError(f"a number of bytes is finite and at least 0, not {_first_wrong(array_bytes, at_least=0):g}")
    ranks, array_bytes = together(ranks, "ranks", array_bytes, "bytes")
    return ranks[()], array_bytes[()]


def together(first: Numbers, first_name: str, second: Numbers, second_name: str) -> tuple[Array, Array]:
    """Both as arrays of one shape; ValueError if theirs do not fit together, as with lists of different lengths."""
    try:
        first_array, second_array = np.broadcast_arrays(first, second)
    except ValueError:
        shapes = f"{first_name} of shape {np.shape(first)} and {second_name} of shape {np.shape(second)}"
        raise ValueError(f"{shapes} do not fit together") from None
    return first_array, second_array


def numbers(values: ArrayLike, what: str) -> Array:
    """The values as float64; ValueError for what is no number or list of numbers."""
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{values!r} is no number of {what}; give a number or a list of numbers") from None


def floor_log2(ranks: ArrayLike) -> Numbers:
    """⌊lg p⌋, exact for every whole p below 2^53."""
    # frexp gives p = m·2^e with 1/2 ≤ m < 1; a rounded logarithm could miss a power of two.
    return (np.frexp(np.asarray(ranks, np.float64))[1] - 1).astype(np.float64)[()]


def ceil_log2(ranks: ArrayLike) -> Numbers:
    """⌈lg p⌉, exact for every whole p below 2^53."""
    floor = floor_log2(ranks)
    return floor + (np.asarray(ranks) > np.exp2(floor))


def _first_wrong(values: Array, at_least: int = 1) -> float:
    wrong = ~(np.isfinite(values) & (values >= at_least))
    if at_least:
        wrong |= values != np.floor(values)
    return float(values[wrong].flat[0])

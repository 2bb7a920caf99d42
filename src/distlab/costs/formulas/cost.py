"""What a collective costs, before any network is named: steps, bytes on the critical path, bytes sent."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
        """The time on a network where every message has the latency α (s), β (s/byte) and every addition γ (s/byte)."""
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
    and the two shapes fit together.
    """
    p, n = np.broadcast_arrays(np.asarray(ranks, np.float64), np.asarray(array_bytes, np.float64))
    if not np.all(np.isfinite(p) & (p >= 1) & (p == np.floor(p))):
        raise ValueError(f"a number of ranks is a whole number of at least 1, not {p}")
    if not np.all(np.isfinite(n) & (n >= 0)):
        raise ValueError(f"a number of bytes is finite and at least 0, not {n}")
    return p[()], n[()]


def floor_log2(ranks: ArrayLike) -> Numbers:
    """⌊lg p⌋, exact for every whole p below 2^53."""
    # frexp gives p = m·2^e with 1/2 ≤ m < 1; a rounded logarithm could miss a power of two.
    return (np.frexp(np.asarray(ranks, np.float64))[1] - 1).astype(np.float64)[()]


def ceil_log2(ranks: ArrayLike) -> Numbers:
    """⌈lg p⌉, exact for every whole p below 2^53."""
    floor = floor_log2(ranks)
    return floor + (np.asarray(ranks) > np.exp2(floor))

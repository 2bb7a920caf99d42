"""What a program may ask of its rank, on the virtual cluster and over MPI alike."""

from collections.abc import Awaitable
from typing import Protocol

import numpy as np


class Rank(Protocol):
    """One of `size` processes, number `index` from 0; `now` is its time in seconds since the start.

    Every operation must be awaited at once: `await rank.send(1, array)`.
    """

    @property
    def index(self) -> int:
        """The rank's number, 0 to size − 1."""

    @property
    def size(self) -> int:
        """The number of ranks."""

    @property
    def now(self) -> float:
        """Seconds since the start."""

    def send(self, to: int, array: np.ndarray) -> Awaitable[None]:
        """Send a copy of `array`, of any shape and dtype, to rank `to`; it need not be received for this to end."""

    def receive(self, source: int) -> Awaitable[np.ndarray]:
        """The next message from rank `source`, in the order in which it sent them; waits for it."""

    def receive_any(self) -> Awaitable[tuple[int, np.ndarray]]:
        """The message that arrives first from any rank, as (source, array)."""

    def exchange(self, to: int, array: np.ndarray, source: int) -> Awaitable[np.ndarray]:
        """Send `array` to rank `to` and receive from rank `source` at the same time; ends when both have ended."""

    def reduce(self, array: np.ndarray, other: np.ndarray) -> Awaitable[np.ndarray]:
        """Add `other` to `array` in place, and give `array`; shapes and dtypes must be equal."""

    def compute(self, seconds: float) -> Awaitable[None]:
        """Do other work for `seconds`."""

"""The rank that a student's program holds in the sandbox: it asks the grader's virtual cluster for every operation."""

from collections.abc import Awaitable, Coroutine, Generator
from types import coroutine

import numpy as np

from distlab.labs.plain_data import Plain, plain
from distlab.simulate.arguments import check_addable, copy_message, not_awaited
from distlab.simulate.errors import ProgramError


@coroutine
def _asked(operation: list) -> Generator[list, Plain, Plain]:
    return (yield operation)


class RemoteRank:
    """Has the attributes and operations of `distlab.simulate.Rank`."""

    def __init__(self, index: int, size: int) -> None:
        """Rank `index` of `size`."""
        self.index, self.size, self.now = index, size, 0.0
        self._pending: str | None = None

    def resume(self, program: Coroutine, result: Plain, now: float) -> list:
        """Let the program go on; gives the operation that it awaits next. Raises StopIteration and ProgramError."""
        self.now, self._pending = now, None
        operation = program.send(result)
        if not isinstance(operation, list) or self._pending is None:
            raise ProgramError(f"rank {self.index} awaits something that is not an operation of its own rank")
        return operation

    def check_nothing_pending(self) -> None:
        """Raise ProgramError for an operation whose `await` was forgotten."""
        if self._pending is not None:
            raise ProgramError(not_awaited(self.index, self._pending))

    def send(self, to: int, array: np.ndarray) -> Awaitable[None]:
        """See `distlab.simulate.Rank`."""
        return self._ask("send", plain(to), self._message(array))

    def receive(self, source: int) -> Awaitable[np.ndarray]:
        """See `distlab.simulate.Rank`."""
        return self._ask("receive", plain(source))

    def receive_any(self) -> Awaitable[tuple[int, np.ndarray]]:
        """See `distlab.simulate.Rank`."""
        return self._ask("receive_any")

    def exchange(self, to: int, array: np.ndarray, source: int) -> Awaitable[np.ndarray]:
        """See `distlab.simulate.Rank`."""
        return self._ask("exchange", plain(to), self._message(array), plain(source))

    async def _reduced(self, asked: Awaitable, array: np.ndarray) -> np.ndarray:
        await asked
        return array

    def reduce(self, array: np.ndarray, other: np.ndarray) -> Awaitable[np.ndarray]:
        """See `distlab.simulate.Rank`."""
        self.check_nothing_pending()
        check_addable(self.index, array, other)
        np.add(array, other, array)
        return self._reduced(self._ask("reduce", plain(array)), array)

    def compute(self, seconds: float) -> Awaitable[None]:
        """See `distlab.simulate.Rank`."""
        return self._ask("compute", plain(seconds))

    def __repr__(self) -> str:
        return f"<rank {self.index} of {self.size} at {self.now:.9g} s>"

    def _message(self, array: np.ndarray) -> np.ndarray:
        return plain(copy_message(self.index, array), f"what rank {self.index} sends")

    def _ask(self, operation: str, *arguments: Plain) -> Awaitable:
        self.check_nothing_pending()
        self._pending = operation
        return _asked([operation, *arguments])

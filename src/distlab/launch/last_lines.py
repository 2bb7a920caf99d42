"""What a process printed last, which is what an error shows of it."""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice

_CHARACTERS_KEPT = 4_000_000
_CHARACTERS_OF_A_LINE = 2_000
# In a traceback: the frames of `python -m mpi4py`, which the launcher adds to a program and nobody looks for.
_FRAME_OF_STARTER = re.compile(r'  File "(<frozen runpy>|[^"]*/mpi4py/(__main__|run)\.py)"')


class LastLines:
    """What a process printed: of very much the last lines, and how many are left out before them."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque()
        self._characters = self._left_out = 0

    def append(self, line: str) -> None:
        """Keep a line, and let go of the first ones when there is too much."""
        self._lines.append(line)
        self._characters += len(line) + 1
        while self._characters > _CHARACTERS_KEPT and len(self._lines) > 1:
            self._characters -= len(self._lines.popleft()) + 1
            self._left_out += 1

    def last(self, count: int) -> list[str]:
        """The last `count` lines, or fewer."""
        return list(islice(reversed(self._lines), count))[::-1]

    def __iter__(self) -> Iterator[str]:
        if self._left_out:
            yield f"({self._left_out:,} lines before these are left out)"
        yield from self._lines


def cut(line: str) -> str:
    """The line as an error shows it: of one without end, the end."""
    left_out = len(line) - _CHARACTERS_OF_A_LINE
    return line if left_out <= 0 else f"({left_out:,} characters are left out) {line[left_out:]}"


def last_error(lines: Iterable[str]) -> str:
    """What the last line with an error says is wrong, "" if none says so."""
    errors = [line for line in lines if "error: " in line]
    return errors[-1].rpartition("error: ")[2].rstrip(".") if errors else ""


def without_frames_of_starter(lines: Iterable[str]) -> list[str]:
    """The lines without the frames of `python -m mpi4py` in a traceback."""
    kept, in_frame = [], False
    for line in lines:
        in_frame = bool(_FRAME_OF_STARTER.match(line)) or (in_frame and line.startswith("    "))
        if not in_frame:
            kept.append(line)
    return kept

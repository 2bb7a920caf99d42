"""What the sandboxes of one student use, written by their keepers, read by the grader and by all these keepers.

It is a file without a name, which no student's process has open.
"""

import os
import secrets
import struct
import sys
import tempfile
from typing import NamedTuple

_SLOT = struct.Struct("=Qddd")
ENDED = float("inf")


class Use(NamedTuple):
    """What a sandbox used up to the time `seen` (of `time.monotonic()`, or ENDED): `memory` in bytes, times in seconds.

    processor: of all its processes.  stalled: in which a thread of it could run, and all processors were busy.
    """

    memory: int
    processor: float
    stalled: float
    seen: float


class Meter:
    """One `Use` for each sandbox of a student, by number."""

    def __init__(self, descriptor: int | None = None) -> None:
        """A new one, or that of an open file. `name` is different for each student, and says nothing about them."""
        self.name = secrets.token_hex(8)
        self.descriptor = _nameless_file() if descriptor is None else descriptor
        self._count = 0

    def next_number(self) -> int:
        """The number of a new sandbox."""
        self._count += 1
        return self._count - 1

    def write(self, number: int, use: Use) -> None:
        """What sandbox `number` uses."""
        os.pwrite(self.descriptor, _SLOT.pack(*use), number * _SLOT.size)

    def read(self) -> list[Use]:
        """What each sandbox uses."""
        content = os.pread(self.descriptor, os.fstat(self.descriptor).st_size, 0)
        whole = len(content) // _SLOT.size * _SLOT.size
        return [Use(*fields) for fields in _SLOT.iter_unpack(content[:whole])]

    def close(self) -> None:
        """Close the file."""
        os.close(self.descriptor)


def _nameless_file() -> int:
    if sys.platform == "linux":
        return os.memfd_create("distlab")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())

"""Where a notebook was written, as far as grading differs from that: a newer Python, modules next to the file."""

import json
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

GRADER = sys.version_info[:2]
_LONGEST_NAME = 60


class Origin(NamedTuple):
    """The version of the Python that saved the notebook, (0, 0) if it is not known, and the modules next to it."""

    python: tuple[int, int] = (0, 0)
    modules: frozenset[str] = frozenset()


def of(file: Path) -> Origin:
    """The origin of a notebook that can be read; nothing in it is trusted."""
    names = {entry.stem for entry in file.parent.glob("*.py") if entry.stem.isidentifier()}
    return Origin(_python(file), frozenset(name for name in names if len(name) <= _LONGEST_NAME))


def _python(file: Path) -> tuple[int, int]:
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError, MemoryError):
        version = json.loads(file.read_bytes())["metadata"]["language_info"]["version"]
        if match := re.match(r"(3)\.(\d\d?)\b", version, re.ASCII):
            return int(match[1]), int(match[2])
    return 0, 0

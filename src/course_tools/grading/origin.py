"""Where a notebook was written, as far as grading differs from that: a newer Python, files next to it."""

import json
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

GRADER = sys.version_info[:2]
_NAME = r"[\w.-]{1,60}"


class Origin(NamedTuple):
    """The version of the Python that saved the notebook, (0, 0) if it is not known, and the files next to it."""

    python: tuple[int, int] = (0, 0)
    files: frozenset[str] = frozenset()


def of(file: Path) -> Origin:
    """The origin of a notebook that can be read; nothing in it is trusted."""
    names = {entry.name for entry in file.parent.glob("*")}
    return Origin(_python(file), frozenset(name for name in names if re.fullmatch(_NAME, name, re.ASCII)))


def _python(file: Path) -> tuple[int, int]:
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError, MemoryError):
        version = json.loads(file.read_bytes())["metadata"]["language_info"]["version"]
        if match := re.match(r"(3)\.(\d\d?)\b", version, re.ASCII):
            return int(match[1]), int(match[2])
    return 0, 0

"""The time in a file next to a notebook, such as nbgrader's timestamp.txt: it is read with certainty, or not at all."""

import codecs
import re
from datetime import datetime
from pathlib import Path

EXAMPLE = "2026-11-20 17:30:00 +01:00"
_MOST_BYTES, _LONGEST_QUOTE = 100, 40
_TIME = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)\s?(UTC|Z|[+-]\d\d(?::?\d\d)?)?", re.ASCII)


class NoTime(Exception):
    """The file has no time that is understood; the message says what it has."""


def read(file: Path) -> datetime | None:
    """The time that a file says, in UTC unless it names an offset; None if there is no such file. Raises NoTime."""
    if file.is_symlink():
        raise NoTime(f"{file.name} is a link, which is not followed")
    if not file.exists():
        return None
    if not file.is_file():
        raise NoTime(f"{file.name} is {'a folder' if file.is_dir() else 'no plain file'}")
    try:
        with file.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise NoTime(f"{file.name} cannot be read ({error.strerror})") from None
    # PowerShell writes UTF-16, with a mark in front.
    encoding = "utf-16" if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    text = content.decode(encoding, errors="replace").strip()
    if not text:
        raise NoTime(f"{file.name} is empty")
    time = _time(text) if len(content) <= _MOST_BYTES else None
    if time is None:
        raise NoTime(f"{file.name} says {text[:_LONGEST_QUOTE]!a}, which is no time that is understood ({EXAMPLE} is)")
    return time


def _time(text: str) -> datetime | None:
    """None for a date alone, seconds since 1970 and a zone's name too: CST is the name of three zones."""
    parts = _TIME.fullmatch(text)
    if parts is None:
        return None
    local, zone = parts.groups()
    try:
        return datetime.fromisoformat(local + ("+00:00" if zone in (None, "UTC", "Z") else zone))
    except ValueError:  # there is no such day, hour or offset
        return None

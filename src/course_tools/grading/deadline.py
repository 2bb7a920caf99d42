"""The deadline, the times of files, and whether these can be the times at which students saved their work."""

import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

from distlab.runtime.errors import PlainError

_LATEST = datetime.max.replace(microsecond=0, tzinfo=UTC)
# Before the course: what a copy or an archive without times gives to files, such as 1980-01-01.
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
_FASTEST_CLOCK = timedelta(days=1)
# So far apart are at most the times of two files of one copy.
_LONGEST_BETWEEN_COPIES = timedelta(seconds=1)
_MOST_NAMED, _LONGEST_NAME = 3, 60


class NotATime(PlainError):
    """The deadline cannot be read; the message says how to write one."""


def due_time(text: str) -> datetime:
    """The deadline that an instructor writes, in the machine's time zone unless it names one.

    A date without a time is the end of that day. Raises NotATime, also where TZ names a time zone that there is not.
    """
    try:
        time = datetime.fromisoformat(text)
        if len(text) <= len("2026-11-20"):
            time += timedelta(days=1, seconds=-1)
    except ValueError:
        raise NotATime(f"{text!r} is not a time: write --due '2026-11-20 18:00'.") from None
    if time.tzinfo is None:
        _require_time_zone(time)
    return time if time.tzinfo else time.astimezone()


def _require_time_zone(time: datetime) -> None:
    """Raise NotATime if TZ names no zone that the system knows: without a word it takes UTC then."""
    name = os.environ.get("TZ", "").removeprefix(":")
    if not name or any(character.isdigit() for character in name):  # as in CET-1CEST, which needs no files
        return
    try:
        is_known = time.replace(tzinfo=ZoneInfo(name)).utcoffset() == time.astimezone().utcoffset()
    except (ValueError, OSError, LookupError):  # the last for a zone that is in no file
        is_known = Path(name).is_absolute() and Path(name).exists()
    if not is_known:
        raise NotATime(
            f"TZ={name} is no time zone of this machine, which would take UTC: write TZ=Europe/Berlin, or the deadline "
            "with its offset, --due '2026-11-20 18:00+01:00'."
        )


def time_of_change(file: Path) -> datetime:
    """Within the years that a date can have: a file system takes any number."""
    try:
        return datetime.fromtimestamp(file.lstat().st_mtime, UTC)
    except (ValueError, OverflowError, OSError):
        return _LATEST


def can_be_of_work(time: datetime) -> bool:
    """Whether a student can have saved work at that time: not before there was the course, nor in the future."""
    return _EARLIEST <= time <= datetime.now(UTC) + _FASTEST_CLOCK


def copied(late_files: Iterable[tuple[datetime, str]]) -> list[str]:
    """A sentence if late files, each a time and a student, have nearly the same time, as a copy gives it to them."""
    alike = [pair for pair in pairwise(sorted(late_files)) if pair[1][0] - pair[0][0] <= _LONGEST_BETWEEN_COPIES]
    if not alike:
        return []
    students = sorted({student for pair in alike for _, student in pair})
    named = ", ".join(f"{student[:_LONGEST_NAME]!a}" for student in students[:_MOST_NAMED])
    more = f" and {len(students) - _MOST_NAMED} more" if len(students) > _MOST_NAMED else ""
    return [
        f"the late files of {named}{more} have nearly the same time, as after a copy: copy what was handed in with "
        "`cp -a`, or give the times in timestamp.txt"
    ]

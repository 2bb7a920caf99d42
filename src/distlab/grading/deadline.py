"""The deadline, the times of files, and whether these can be the times at which students saved their work."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

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
    """The deadline that an instructor writes, in the machine's time zone unless it names one. Raises NotATime.

    A date without a time is the end of that day.
    """
    try:
        time = datetime.fromisoformat(text)
        if len(text) <= len("2026-11-20"):
            time += timedelta(days=1, seconds=-1)
    except ValueError:
        raise NotATime(f"{text!r} is not a time: write DUE='2026-11-20 18:00'.") from None
    return time if time.tzinfo else time.astimezone()


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

"""The deadline, and files whose times are those of a copy."""

import os
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from course_tools.grading import deadline, submissions
from tests.course_tools.grading.submitted import LAB, put

DUE = deadline.due_time("2026-11-20 18:00")


@pytest.fixture
def time_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Sets the time zone of this process, for one test."""

    def set_zone(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield set_zone
    monkeypatch.undo()
    time.tzset()


def late_file(folder: Path, student: str, seconds: float) -> None:
    """A notebook that was changed so many seconds after the deadline."""
    time = DUE.timestamp() + seconds
    os.utime(put(folder, student, "{}"), (time, time))


def copied(folder: Path) -> list[str]:
    handed_in = submissions.find(folder, [LAB], DUE)
    return deadline.copied([(each.late_file, each.student) for each in handed_in if each.late_file is not None])


def test_a_deadline_without_a_time_is_the_end_of_the_day() -> None:
    due = deadline.due_time("2026-11-20")
    assert deadline.due_time("2026-11-20 23:58") < due < deadline.due_time("2026-11-21 00:00")


def test_what_is_no_time_is_refused() -> None:
    with pytest.raises(deadline.NotATime, match="is not a time"):
        deadline.due_time("tomorrow")


@pytest.mark.parametrize(
    ("zone", "offset"),
    [("Europe/Berlin", "+01:00"), (":Europe/Berlin", "+01:00"), ("CET-1CEST", "+01:00"), ("UTC", "+00:00")],
)
def test_the_deadline_is_in_the_zone_that_tz_names(zone: str, offset: str, time_zone: Callable[[str], None]) -> None:
    time_zone(zone)
    assert deadline.due_time("2026-01-20 18:00").isoformat() == f"2026-01-20T18:00:00{offset}"


@pytest.mark.parametrize("zone", ["Berlin", "MEZ", "Europe/Berln", "../etc"])
def test_a_zone_that_there_is_not_is_refused_unless_the_deadline_has_an_offset(
    zone: str, time_zone: Callable[[str], None]
) -> None:
    time_zone(zone)
    with pytest.raises(deadline.NotATime, match=f"^TZ={zone} is no time zone of this machine"):
        deadline.due_time("2026-01-20 18:00")
    assert deadline.due_time("2026-01-20 18:00+01:00").utcoffset() == timedelta(hours=1)


def test_late_files_with_the_times_of_a_copy_are_to_be_looked_at(tmp_path: Path) -> None:
    for number, student in enumerate(("alice", "bob", "carol", "dora")):
        late_file(tmp_path, student, 60 + number / 2)
    late_file(tmp_path, "erik", 600)
    assert copied(tmp_path) == [
        "the late files of 'alice', 'bob', 'carol' and 1 more have nearly the same time, as after a copy: copy what "
        "was handed in with `cp -a`, or give the times in timestamp.txt"
    ]


def test_files_that_are_in_time_far_apart_or_have_a_written_time_are_no_copies(tmp_path: Path) -> None:
    for student, seconds in (("alice", -9), ("bob", -9), ("carol", 60), ("dora", 65), ("erik", 60)):
        late_file(tmp_path, student, seconds)
    put(tmp_path, "erik", "2026-11-21 12:00:00", f"{LAB}/{submissions.TIMESTAMP}")
    assert copied(tmp_path) == []

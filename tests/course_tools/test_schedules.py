"""Schedules: a session fits its time, and the semester has every chapter once."""

import re
from pathlib import Path

import pytest

from course_tools import readme_tables, schedules

LONGEST = {"Half a day": 80, "Two days": 180, "A semester of twelve weeks": 180}


@pytest.fixture(scope="module")
def minutes(root: Path) -> tuple[dict[str, int], dict[str, int]]:
    """Of the chapters and of the labs, as they say themselves."""
    course, labs = readme_tables.entries(root / "notebooks"), readme_tables.lab_entries(root / "labs")
    return readme_tables.minutes_of(course), readme_tables.minutes_of(labs)


@pytest.mark.parametrize("title", schedules.SCHEDULES)
def test_each_session_fits_its_time(title: str, minutes: tuple[dict[str, int], dict[str, int]]) -> None:
    for session in schedules.SCHEDULES[title]:
        assert 30 <= session.minutes(*minutes) <= LONGEST[title], session


def test_the_semester_has_every_chapter_once_and_every_lab_in_class_or_at_home(
    minutes: tuple[dict[str, int], dict[str, int]],
) -> None:
    read, labs = minutes
    assert sorted(chapter for session in schedules.SEMESTER for chapter in session.chapters) == sorted(read)
    at_home = re.findall(r"lab (\d\d)", " ".join(session.at_home for session in schedules.SEMESTER))
    assert sorted([*at_home, *(lab for session in schedules.SEMESTER for lab in session.labs)]) == sorted(labs)


def test_the_table_adds_up(minutes: tuple[dict[str, int], dict[str, int]]) -> None:
    read, labs = minutes
    row = next(line for line in schedules.markdown(read, labs).splitlines() if line.startswith("| week 2 |"))
    assert f"| {read['03'] + read['04'] + labs['03'] + labs['04']} |" in row


def test_the_handbook_has_the_schedules_of_today(root: Path, minutes: tuple[dict[str, int], dict[str, int]]) -> None:
    assert schedules.markdown(*minutes) in (root / "docs" / "teaching.md").read_text()

"""`distlab map`: what it writes where, what it needs, and schedules that fit their time."""

import json
import re
import shutil
from pathlib import Path

import nbformat
import pytest

from course_tools import __main__ as cli
from course_tools import course_map

LONGEST = {"Half a day": 80, "Two days": 180, "A semester of twelve weeks": 180}
Minutes = tuple[dict[str, int], dict[str, int]]


@pytest.fixture(scope="module")
def minutes(root: Path) -> Minutes:
    """Of the chapters and of the labs, as they say themselves."""
    course, labs = course_map.entries(root / "notebooks"), course_map.lab_entries(root / "labs")
    return course_map.minutes_of(course), course_map.minutes_of(labs)


def test_each_session_fits_its_time(minutes: Minutes) -> None:
    for title, sessions in course_map.SCHEDULES.items():
        for session in sessions:
            assert 30 <= course_map.session_minutes(session, *minutes) <= LONGEST[title], session


def test_each_chapter_says_the_minutes_that_its_words_lines_and_questions_take(notebook: Path) -> None:
    """200 words a minute, 4 s for a line of code that is not folded, 45 s for a question, and 7 minutes of quiz."""
    chapter = nbformat.read(notebook, as_version=4)
    texts = [re.sub(r"<[^>]+>", "", cell.source) for cell in chapter.cells if cell.cell_type == "markdown"]
    code = [cell for cell in chapter.cells if cell.cell_type == "code"]
    shown = [cell.source for cell in code if not cell.metadata.get("jupyter", {}).get("source_hidden")]
    lines = sum(bool(line.strip()) for source in shown for line in source.splitlines())
    asked = sum(text.count("**Predict.**") + text.count("**Question.**") for text in texts)
    minutes = sum(len(text.split()) for text in texts) / 200 + 4 / 60 * lines + 45 / 60 * asked + 7
    assert f"**Time.** {5 * round(minutes / 5)} minutes" in chapter.cells[0].source


def test_the_semester_has_every_chapter_once_and_every_lab_in_class_or_at_home(minutes: Minutes) -> None:
    read, labs = minutes
    semester = course_map.SCHEDULES["A semester of twelve weeks"]
    assert sorted(chapter for session in semester for chapter in session["chapters"]) == sorted(read)
    at_home = re.findall(r"lab (\d\d)", " ".join(session.get("at_home", "") for session in semester))
    assert sorted([*at_home, *(lab for session in semester for lab in session.get("labs", []))]) == sorted(labs)


@pytest.fixture
def course(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The course's pages, with another number in one table, and its notebooks."""
    for folder in ("notebooks", "labs"):
        (tmp_path / folder).symlink_to(root / folder)
    shutil.copytree(root / "docs", tmp_path / "docs")
    text = (root / course_map.README).read_text()
    (tmp_path / course_map.README).write_text(text.replace("| 35 |", "| 99 |"))
    (tmp_path / "build").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def report(notebooks: Path, parameters: dict[str, int], failed: str = "") -> None:
    """Leave the report of a run in which each notebook took 3 s."""
    rows = [
        {"notebook": file.stem, "seconds": 3.0, "status": "failed" if file.stem == failed else "ok"}
        for file in notebooks.glob("[0-9]*.ipynb")
    ]
    course_map.REPORT.write_text(json.dumps({"parameters": parameters, "notebooks": rows}))


def without_seconds(file: Path) -> str:
    """A page without the seconds that the chapters ran."""
    return re.sub(r"(?m)^(\|.*\|) \d+ \| ([\d–]+ \|)$", r"\1 \2", file.read_text())


@pytest.mark.slow
def test_the_committed_pages_are_those_that_are_written(root: Path, course: Path) -> None:
    report(course / "notebooks", {})
    assert cli.main(["map"]) == 0
    assert (course / course_map.TEACHING).read_text().count("| 3 |") >= 16
    for page in (course_map.README, course_map.TEACHING, course_map.SOURCES, course_map.COMMANDS):
        assert without_seconds(course / page) == without_seconds(root / page), "run `make map`"


def test_without_a_report_of_a_complete_run_nothing_is_written(
    course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = course_map.README.read_text()
    for parameters, failed in (({"epochs": 1}, ""), ({}, "01_why_distribute")):
        report(course / "notebooks", parameters, failed)
        assert cli.main(["map"]) == 2
        assert "run `make execute` for all notebooks" in capsys.readouterr().err
        assert course_map.README.read_text() == before

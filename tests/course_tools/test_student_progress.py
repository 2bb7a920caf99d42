"""How far a student is, by notebooks as JupyterLab saves them."""

from pathlib import Path

import nbformat
import pytest

from course_tools import __main__ as cli
from course_tools import student_progress
from course_tools.lab_cells import STUB
from course_tools.student_progress import ChapterProgress
from distlab.labs import registry

RAN = {"execution": {"iopub.execute_input": "2026-11-20T18:00:00.000000Z"}}
EXERCISES = ("first", "second", "third", "fourth")


def save(file: Path, *cells: nbformat.NotebookNode) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=list(cells)), file)


def check(exercise: str, *printed: str) -> nbformat.NotebookNode:
    outputs = [nbformat.v4.new_output("stream", text=text) for text in printed]
    return nbformat.v4.new_code_cell(f'lab.check("{exercise}")\nlab.points("{exercise}")', outputs=outputs)


def answer(exercise: str, text: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_code_cell(text, metadata={"nbgrader": {"grade_id": exercise, "solution": True}})


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Chapter 03 half run, of four exercises one solved, one wrong, one without a saved check and one not begun.

    Chapter 04 is as the course gave it, beside a student's copy of it, and has no lab.
    """
    monkeypatch.setattr(registry, "LABS", tmp_path / "course")
    monkeypatch.chdir(tmp_path)
    save(
        tmp_path / "work/notebooks/03_topic.ipynb",
        nbformat.v4.new_markdown_cell("text"),
        nbformat.v4.new_code_cell("1", metadata=RAN, execution_count=1),
        nbformat.v4.new_code_cell("2", execution_count=2),
        nbformat.v4.new_code_cell("  "),
    )
    save(
        tmp_path / "course/03_topic/lab.ipynb",
        *(cell for name in EXERCISES for cell in (answer(name, f"{name} = 0\n{STUB}"), check(name))),
    )
    save(
        tmp_path / "work/labs/03_topic/lab.ipynb",
        answer("first", "first = 1"),
        check("first", "first: \u2714 right\n"),
        answer("second", "second = 2"),
        check("second", "second: \u2718 not right yet. first: \u2714 right, but not this one\n"),
        answer("third", STUB.replace("\n", "  \n\n")),
        check("third"),
        answer("fourth", "fourth = 4"),  # its check was deleted
    )
    save(tmp_path / "work/notebooks/04_many_words.ipynb", nbformat.v4.new_code_cell("3", execution_count=1))
    save(tmp_path / "work/notebooks/04_many_words-Copy1.ipynb", nbformat.v4.new_code_cell("3", metadata=RAN))
    return tmp_path / "work"


def test_cells_that_ran_and_exercises_that_are_right_count_and_what_is_unchecked_is_named(
    copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chapters, _ = student_progress.progress(copy)
    assert chapters == [ChapterProgress("03 topic", 1, 2, 1, 4), ChapterProgress("04 many words", 0, 1, 0, 0)]
    assert cli.main(["progress"]) == 0
    *_, total, unchecked, as_saved = capsys.readouterr().out.splitlines()
    assert total.split() == ["together", "1", "of", "3", "1", "of", "4"]
    assert unchecked.startswith("Lab 03: 1 exercise is written, not checked: no output of the check is saved.")
    assert as_saved.startswith("Solved is what the check said when it last ran in the notebook.")
    monkeypatch.chdir(copy / "notebooks")
    assert cli.main(["progress"]) == 2
    assert capsys.readouterr().err == "There is no working copy work yet; `make lab` makes it.\n"

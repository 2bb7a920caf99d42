"""A student's notebook file is read without trust."""

import json
import os
from pathlib import Path

import pytest

from course_tools.grading import notebook
from course_tools.grading.material import LabStep, StepKind


@pytest.mark.parametrize(
    "content",
    ["", "[1, 2]", '{"cells": 3}', '{"worksheets": []}', '{"cells": [{"cell_type": "code"}]}', "[" * 100_000, "\x00"],
)
def test_what_is_no_notebook_is_unreadable(tmp_path: Path, content: str) -> None:
    file = tmp_path / "lab.ipynb"
    file.write_text(content)
    with pytest.raises(notebook.Unreadable, match=r"not a notebook of format 4|it is empty"):
        notebook.read(file)


@pytest.mark.parametrize("content", ["", "\n", "\0\0\0"])
def test_an_empty_file_is_called_empty(tmp_path: Path, content: str) -> None:
    (tmp_path / "lab.ipynb").write_text(content)
    with pytest.raises(notebook.Unreadable, match="it is empty"):
        notebook.read(tmp_path / "lab.ipynb")


@pytest.mark.parametrize("before", ["", '{"cells": [],\n'])
def test_a_merge_conflict_is_called_one(tmp_path: Path, before: str) -> None:
    (tmp_path / "lab.ipynb").write_text(f"{before}<<<<<<< HEAD\n=======\n>>>>>>> theirs\n")
    with pytest.raises(notebook.Unreadable, match="merge conflict"):
        notebook.read(tmp_path / "lab.ipynb")


@pytest.mark.parametrize("page", ["<!DOCTYPE html>\n<html></html>", "\n <html>"])
def test_a_page_that_shows_a_notebook_is_called_one(tmp_path: Path, page: str) -> None:
    (tmp_path / "lab.ipynb").write_text(page)
    with pytest.raises(notebook.Unreadable, match="it is a web page, not a notebook"):
        notebook.read(tmp_path / "lab.ipynb")


def test_a_pipe_instead_of_a_notebook_does_not_hang_the_grader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lab.ipynb")
    with pytest.raises(notebook.Unreadable, match="not a plain file"):
        notebook.read(tmp_path / "lab.ipynb")


def test_a_notebook_that_is_removed_after_it_was_found_is_said_to_have_vanished(tmp_path: Path) -> None:
    with pytest.raises(notebook.Unreadable, match=r"^it has vanished since it was found$"):
        notebook.read(tmp_path / "lab.ipynb")
    (tmp_path / "folder").touch()
    with pytest.raises(notebook.Unreadable, match=r"^Not a directory$"):
        notebook.read(tmp_path / "folder" / "lab.ipynb")


def test_too_many_or_too_long_cells_are_unreadable(tmp_path: Path) -> None:
    file = tmp_path / "lab.ipynb"
    file.write_text(json.dumps({"cells": [{"cell_type": "code", "source": "x"}] * 501}))
    with pytest.raises(notebook.Unreadable, match="500"):
        notebook.read(file)
    file.write_text(json.dumps({"cells": [{"cell_type": "code", "source": "x" * 200_001}]}))
    with pytest.raises(notebook.Unreadable, match="200,000"):
        notebook.read(file)


def test_the_student_s_own_cells_run_where_they_are_and_checks_do_not() -> None:
    given = LabStep(StepKind.GIVEN, "cell 1", "import numpy")
    answer = LabStep(StepKind.ANSWER, "mean", "solution")
    judge = LabStep(StepKind.JUDGE, "mean")
    cells = [
        notebook.SubmittedCell("import  numpy"),
        notebook.SubmittedCell("mine = 1"),
        notebook.SubmittedCell("mean = mine", "mean", is_answer=True),
        notebook.SubmittedCell("lab.check('mean')\n# again\ncheck(\"mean\")"),
        notebook.SubmittedCell("print(lab.check('mean'))"),
        notebook.SubmittedCell("lab.check('mean')", "check_mean"),
        notebook.SubmittedCell("mean = 3"),
    ]
    fitted = notebook.fit(cells, [given, answer, judge], {"mean": "stub"})
    assert fitted.steps == [
        given,
        LabStep(StepKind.OWN, "code cell 2", "mine = 1"),
        LabStep(StepKind.ANSWER, "mean", "mean = mine"),
        LabStep(StepKind.OWN, "code cell 5", "print(lab.check('mean'))"),
        judge,
        LabStep(StepKind.OWN, "code cell 7", "mean = 3"),
    ]


def test_what_stands_between_two_answers_to_one_exercise_runs_before_it_is_judged() -> None:
    steps = [LabStep(StepKind.ANSWER, "mean", "solution"), LabStep(StepKind.JUDGE, "mean")]
    check, answer = notebook.SubmittedCell("", "check_mean"), notebook.SubmittedCell("mean = mine", "mean", True)
    cells = [answer, check, notebook.SubmittedCell("mine = 1"), answer, check]
    fitted = notebook.fit(cells, steps, {"mean": "stub"})
    assert [step.kind for step in fitted.steps] == [StepKind.ANSWER, StepKind.OWN, StepKind.JUDGE]


def test_a_file_whose_cells_have_lost_their_metadata_is_told_apart_from_one_without_answers() -> None:
    steps = [LabStep(StepKind.ANSWER, "mean", "solution"), LabStep(StepKind.ANSWER, "sum", "solution")]
    stubs = {"mean": "stub", "sum": "stub"}
    stripped = notebook.fit([notebook.SubmittedCell("mean = 1"), notebook.SubmittedCell("sum = 2")], steps, stubs)
    assert (stripped.has_answers, stripped.notes) == (False, [notebook.NO_ANSWERS])
    assert stripped.look_at == [notebook.NO_ANSWERS]
    no_cell = notebook.fit([notebook.SubmittedCell("lab.check('mean')", "check_mean")], steps, stubs)
    assert (no_cell.has_answers, no_cell.notes) == (False, ["no cell of an exercise is left"])
    partly = notebook.fit([notebook.SubmittedCell("mean = 1", "mean", is_answer=True)], steps, stubs)
    assert (partly.has_answers, partly.notes) == (True, ["the cell of sum is missing"])


@pytest.mark.parametrize(
    ("given", "named"), [('lab = labs.open("07")', "lab 07"), ("labs.open(7)", "lab 07"), ("x", "another lab")]
)
def test_the_notebook_of_another_lab_is_named_though_an_exercise_has_the_same_name(given: str, named: str) -> None:
    foreign = [notebook.SubmittedCell("x = 1", name, is_answer=True) for name in ("mean", "plan", "check_plan", "save")]
    fitted = notebook.fit([notebook.SubmittedCell(given), *foreign], ASKED, STUBS)
    assert (fitted.has_answers, fitted.notes) == (False, [f"this is the notebook of {named}"])
    assert fitted.look_at == fitted.notes
    assert fitted.is_untouched and len(fitted.steps) == len(ASKED)


def test_an_answer_in_a_cell_that_is_no_code_is_to_be_looked_at(tmp_path: Path) -> None:
    settings = {"nbgrader": {"grade_id": "mean", "solution": True}}
    cells = [
        {"cell_type": "code", "source": "sum = 2", "metadata": {"nbgrader": {"grade_id": "sum", "solution": True}}},
        {"cell_type": "markdown", "source": "mean = 1", "metadata": settings},
        {"cell_type": "markdown", "source": "# Why", "metadata": {}},
        {"cell_type": "markdown", "metadata": None},
        {"metadata": {"nbgrader": 3}},
        {"cell_type": "code", "source": "own = 3", "metadata": {}},
    ]
    (tmp_path / "lab.ipynb").write_text(json.dumps({"cells": cells}))
    steps = [LabStep(StepKind.ANSWER, "mean", "solution"), LabStep(StepKind.ANSWER, "sum", "solution")]
    fitted = notebook.fit(notebook.read(tmp_path / "lab.ipynb"), steps, {"mean": "stub", "sum": "stub"})
    note = "the cell of mean is no code cell any more, so that it does not count"
    assert (fitted.notes, fitted.look_at) == ([note, "the cell of mean is missing"], [note])
    assert [step.text for step in fitted.steps] == ["stub", "sum = 2", "own = 3"]


STUB = "def mean(values):\n    ..."
ASKED = [LabStep(StepKind.ANSWER, "mean", "solution"), LabStep(StepKind.ANSWER, "sum", "solution")]
STUBS = {"mean": STUB, "sum": "first = second = None"}
RIGHT = "def mean(values):\n    return sum(values) / len(values)"
ELSEWHERE = "answers count in their own cells only"


def fitted_with(*own: str, mean: str = STUB) -> notebook.Fitted:
    """The exercise "mean" with these added cells below it; "sum" is untouched."""
    cells = [notebook.SubmittedCell(mean, "mean", True), *map(notebook.SubmittedCell, own)]
    return notebook.fit([*cells, notebook.SubmittedCell("first = second = None", "sum", True)], ASKED, STUBS)


@pytest.mark.parametrize(
    ("own", "note"),
    [
        ([RIGHT], f"mean is untouched, but code cell 2 defines mean: {ELSEWHERE}"),
        (["x = 1", "async " + RIGHT], f"mean is untouched, but code cell 3 defines mean: {ELSEWHERE}"),
        (
            ["mean = max", "mean: object = min"],
            f"mean is untouched, but code cell 2 and code cell 3 define mean: {ELSEWHERE}",
        ),
        (
            ["first, (*second, x) = 1, (2, 3)"],
            f"sum is untouched, but code cell 2 defines first and second: {ELSEWHERE}",
        ),
    ],
)
def test_an_answer_in_an_added_cell_does_not_count_but_is_to_be_looked_at(own: list[str], note: str) -> None:
    fitted = fitted_with(*own)
    assert (fitted.notes, fitted.look_at) == ([note], [note])
    assert [step.untouched for step in fitted.steps if step.kind == StepKind.ANSWER] == [True, True]


@pytest.mark.parametrize(
    "own",
    [
        STUB,
        "def  mean(values):\n\n    ...",
        f"{RIGHT}\n%time mean([1])",
        "mean([1, 2])",
        "mean.name = 1\nmean: float",
        f"if True:\n    {RIGHT.splitlines()[0]} return 1",
        "def other():\n    mean = 1",
        "mean = " + "(" * 100_000,
        "mean = " + "-" * 100_000 + "1",
        "mean = '\x00'",
    ],
)
def test_what_is_no_definition_of_the_answer_is_not_noted(own: str) -> None:
    assert fitted_with(own).notes == []


def test_a_definition_next_to_an_answered_cell_is_not_noted() -> None:
    assert fitted_with(RIGHT, mean="def mean(values):\n    return 0").notes == []


def test_an_answer_whose_cell_is_missing_is_found_in_an_added_cell() -> None:
    fitted = notebook.fit(
        [notebook.SubmittedCell(STUBS["sum"], "sum", True), notebook.SubmittedCell(RIGHT)], ASKED, STUBS
    )
    assert fitted.look_at == [f"the cell of mean is missing, but code cell 2 defines mean: {ELSEWHERE}"]
    assert fitted.notes == fitted.look_at

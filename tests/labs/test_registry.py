"""Opening a lab: the check in a notebook, and the same in a terminal."""

from pathlib import Path

import nbformat
import pytest

from distlab import labs
from distlab.course import lab_sources
from distlab.grading import check_file
from distlab.labs import OpenLab, Picture, registry, right, wrong
from distlab.labs.lab import Exercise, Lab, NoSuchExercise
from tests.labs import sample_lab


def test_a_check_prints_its_verdict_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    namespace = {}
    lab = OpenLab(sample_lab.lab(), namespace)
    for steps in (None, 5, 6):
        namespace["steps"] = steps
        lab.check("steps")
    assert capsys.readouterr().out.splitlines() == [
        "steps: … not done yet. `steps` is still empty.",
        "steps: ✘ not right yet. count again",
        "steps: ✔ right",
    ]


def test_a_check_shows_the_picture_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    displayed = []
    monkeypatch.setattr("IPython.display.display", lambda bundle, raw: displayed.append(bundle))
    picture = Picture("<svg/>", "A ring of four ranks that stands still")
    lab = Lab("90_sample", [Exercise("mean", 1, lambda answer, generator: wrong("no", picture=lambda: picture))])
    OpenLab(lab, {}).check("mean")
    assert displayed == [{"image/svg+xml": "<svg/>", "text/plain": "A ring of four ranks that stands still"}]


def test_a_picture_that_cannot_be_drawn_leaves_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> Picture:
        raise ValueError("too wide")

    lab = Lab("90_sample", [Exercise("mean", 1, lambda answer, generator: wrong("no", picture=fails))])
    OpenLab(lab, {}).check("mean")
    assert capsys.readouterr().out.splitlines() == [
        "mean: ✘ not right yet. no",
        "(The run could not be drawn: ValueError: too wide)",
    ]


def test_an_exercise_that_is_not_there_is_said_with_those_that_are() -> None:
    with pytest.raises(NoSuchExercise, match="no exercise 'median'; there are mean, steps, all_gather") as caught:
        OpenLab(sample_lab.lab(), {}).check("median")
    assert len(caught.value._render_traceback_()) == 1


def test_a_lab_is_opened_by_its_number_with_what_it_gives() -> None:
    lab = labs.open("07")
    assert "F" in lab.given.BROKEN
    with pytest.raises(NoSuchExercise, match="Lab 07 has no targets"):
        lab.target("save")


def test_points_come_from_inputs_that_the_check_has_not_used() -> None:
    seen = []

    def judge(answer: object, generator: object) -> object:
        seen.append(generator.integers(2**60))
        return right() if len(seen) % 2 else wrong("half", share=0.5)

    lab = OpenLab(Lab("90_sample", [Exercise("mean", 3, judge)]), {})
    assert [lab.points("mean"), lab.points("mean")] == [3, 1.5]
    lab.verdict("mean")
    assert len(set(seen)) == 3


@pytest.mark.slow
def test_in_a_terminal_the_exercises_of_the_own_notebook_are_checked(
    sample_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = lab_sources.student(lab_sources.convert(sample_source, sample_lab.lab()))
    for name, cell in lab_sources.answer_cells(made):
        cell.source = {"mean": "def mean(values):\n    return 1 / 0\n", "all_gather": cell.source}.get(
            name, "steps = 6"
        )
    (tmp_path / "90_sample").mkdir()
    nbformat.write(made, tmp_path / "90_sample" / "lab.ipynb")
    monkeypatch.setattr(registry, "lab", lambda number: sample_lab.lab())
    assert list(check_file.recheck("90", tmp_path)) == [
        "mean: ✘ not right yet. It raised ZeroDivisionError in line 2 of its cell: division by zero.",
        "steps: ✔ right",
        "all_gather: … not done yet. `all_gather` is still empty.",
        "1 of 6 points",
    ]


def test_a_lab_or_a_notebook_that_is_not_there_is_said_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(registry.NoSuchLab, match="There is no lab '98'; there are 02, 03"):
        next(check_file.recheck("98", tmp_path))
    monkeypatch.setattr(registry, "lab", lambda number: sample_lab.lab())
    with pytest.raises(check_file.CannotCheck, match=r"cannot be checked: it cannot be read"):
        next(check_file.recheck("90", tmp_path))

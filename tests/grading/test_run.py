"""Grading a folder of submissions: sums, what is missing, late, double or unreadable, the table and the pages."""

import csv
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import nbformat
import pytest

from distlab.grading import grades, notebook, run, submissions
from distlab.grading.grade import Report
from distlab.grading.grades import Grade
from distlab.grading.material import Material, load
from distlab.labs import Answer, Verdict, right
from distlab.sandbox import protections
from tests.labs import sample_lab
from tests.labs.sample_lab import points

pytestmark = pytest.mark.slow

Grading = Callable[..., Report]
Handin = Callable[..., nbformat.NotebookNode]
LAB = "90_sample"


def put(folder: Path, student: str, content: nbformat.NotebookNode | str, name: str = f"{LAB}/lab.ipynb") -> Path:
    file = folder / student / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else nbformat.writes(content))
    return file


def grade_all(folder: Path, sample: Material, out: Path, due: datetime | None = None, **how: object) -> run.Result:
    found = submissions.find(folder, [LAB], due)
    held = protections.Protections(True, True, True)
    return run.run(run.Plan(found, {LAB: sample}, out, seed=5, protections=held, **how), lambda line: None)


def test_right_answers_get_all_points_untouched_ones_none(graded: Grading, handed_in: Handin) -> None:
    assert points(graded(handed_in())) == {"mean": 2, "steps": 1, "all_gather": 3}
    untouched = handed_in()
    for cell in untouched.cells:
        if cell.metadata.get("nbgrader", {}).get("solution"):
            name = cell.metadata["nbgrader"]["grade_id"]
            cell.source = {"steps": "steps = None\n...", "mean": "def mean(values):\n    ..."}.get(name, "...")
    report = graded(untouched)
    assert report.score == 0
    assert str(report.exercises[0].verdict).startswith("not done yet")


def test_an_answer_written_with_jupyter_s_own_syntax_counts(graded: Grading, handed_in: Handin) -> None:
    report = graded(
        handed_in(
            mean="%matplotlib inline\n%time total = 0\ndef mean(values):\n    return values.mean()\nmean?",
            steps="%%time\nimport asyncio\nawait asyncio.sleep(0)\nsteps = 6\n!ls",
        )
    )
    assert report.score == 6, [each.verdict for each in report.exercises]


def test_a_mistake_in_a_cell_is_told_with_class_and_line(graded: Grading, handed_in: Handin) -> None:
    report = graded(handed_in(steps="one = 1\nsteps = one / 0", mean="def mean(values)\n    return 0"))
    assert "line 2 with ZeroDivisionError" in report.exercises[1].verdict.text
    assert "line 1 with SyntaxError" in report.exercises[0].verdict.text
    assert report.score == 3


def test_cells_that_the_student_added_run_where_they_stand(graded: Grading, handed_in: Handin) -> None:
    made = handed_in(mean="def mean(values):\n    return added(values) / len(values)")
    place = next(number for number, cell in enumerate(made.cells) if "added" in cell.source)
    made.cells.insert(place, nbformat.v4.new_code_cell("def added(values):\n    return float(sum(values))"))
    made.cells.append(nbformat.v4.new_code_cell("while True: pass"))
    made.cells.append(nbformat.v4.new_code_cell("check('mean')\n# and\ncheck('steps')"))
    report = graded(made)
    assert report.score == 6
    assert report.remarks == ["the student's own code cell 9 failed"]


def test_files_of_the_lab_are_there_and_nothing_is_written_to_them(
    graded: Grading, handed_in: Handin, sample: Material
) -> None:
    made = handed_in(steps="import given, pathlib\npathlib.Path('given.py').write_text('')\nsteps = given.NUMBER - 1")
    assert graded(made).score == 6
    assert sample.files == {"given.py": b"NUMBER = 7\n"}


def test_a_deleted_answer_costs_its_points_and_is_noted(graded: Grading, handed_in: Handin) -> None:
    made = handed_in()
    made.cells = [cell for cell in made.cells if cell.metadata.get("nbgrader", {}).get("grade_id") != "steps"]
    report = graded(made)
    assert points(report) == {"mean": 2, "steps": 0, "all_gather": 3}
    assert report.remarks == ["the cell of steps is missing"]


def test_of_several_answers_to_one_exercise_the_last_counts(graded: Grading, handed_in: Handin) -> None:
    made = handed_in(steps="steps = 5")
    place = next(number for number, cell in enumerate(made.cells) if cell.source == "steps = 5")
    again = nbformat.from_dict(made.cells[place] | {"source": "steps = steps + 1", "id": "copied"})
    untouched = nbformat.from_dict(again | {"source": "steps = None\n# Write your answer here.\n...", "id": "third"})
    made.cells[place + 1 : place + 1] = [again, untouched]
    report = graded(made)
    assert report.score == 6
    assert report.remarks == ["steps is answered in 2 cells, the last one counts"]


def test_a_judge_that_fails_is_a_fault_for_the_instructor(
    sample_source: Path, graded: Grading, handed_in: Handin
) -> None:
    def judge(answer: Answer, generator: object) -> Verdict:
        answer.call("mean", [1.0])[0].sum()  # as if it were a list of arrays
        return right()

    report = graded(handed_in(), load(sample_source, sample_lab.lab(judge)))
    assert points(report) == {"mean": 0, "steps": 1, "all_gather": 3}
    assert len(report.faults) == 1
    assert report.faults[0].startswith("mean: TypeError")


def test_when_the_time_for_the_lab_is_used_up_earlier_points_stay(
    sample_source: Path, graded: Grading, handed_in: Handin
) -> None:
    short = load(sample_source, sample_lab.lab(seconds_per_cell=1.5, seconds=1.4))
    report = graded(handed_in(steps="import time\ntime.sleep(100)"), short)
    assert points(report) == {"mean": 2, "steps": 0, "all_gather": 0}
    assert "stopped after 1.4 s in all" in report.remarks


def test_a_folder_of_submissions_becomes_a_table_and_pages(handed_in: Handin, sample: Material, tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    put(folder, "alice", handed_in())
    put(folder, "bob", handed_in(steps="import os\nprint('<script>alert(1)</script>')\nos._exit(3)"))
    put(folder, "=carol", "this is no notebook")
    (folder / "dora").mkdir(parents=True)
    (folder / "students.txt").write_text("alice\nerik\n")
    result = grade_all(folder, sample, out)
    with (out / "grades.csv").open() as stream:
        rows = list(csv.reader(stream))
    assert rows == [
        ["student", "lab", "score", "max_score", "note"],
        ["'=carol", LAB, "0", "6", "unreadable: it is not a notebook of format 4"],
        ["alice", LAB, "6", "6", ""],
        ["bob", LAB, "5", "6", "the cell of steps hung or ended its process"],
        ["dora", LAB, "0", "6", "missing"],
        ["erik", LAB, "0", "6", "missing"],
    ]
    assert result.faults == []
    page = (out / "feedback" / "bob" / f"{LAB}.html").read_text()
    assert "5 of 6 points" in page
    assert "exit status 3" in page
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert json.loads((out / "report.json").read_text())["seed"] == 5


def test_the_same_seed_gives_the_same_grades(handed_in: Handin, sample: Material, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    put(folder, "alice", handed_in(mean="def mean(values):\n    return float(values.mean()) if values[0] > 0 else 0.0"))
    first, second = (grade_all(folder, sample, tmp_path / name).grades for name in ("one", "two"))
    assert first == second


def test_something_unforeseen_in_one_notebook_does_not_stop_the_others(
    handed_in: Handin, sample: Material, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "in"
    put(folder, "alice", handed_in(steps="raise ValueError('unforeseen')"))
    put(folder, "bob", handed_in())
    read = notebook.read

    def fails_for_alice(file: Path) -> list[notebook.Cell]:
        if "alice" in str(file):
            raise RuntimeError("unforeseen")
        return read(file)

    monkeypatch.setattr(notebook, "read", fails_for_alice)
    result = grade_all(folder, sample, tmp_path / "out")
    assert [(row.student, row.score) for row in result.grades] == [("alice", 0), ("bob", 6)]
    assert result.grades[0].note == "NOT GRADED, see the report"
    assert result.faults == [f"alice {LAB}: RuntimeError: unforeseen"]


def test_late_work_is_noted_and_counts_the_share_that_is_said(
    handed_in: Handin, sample: Material, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    due = datetime(2026, 11, 20, 18, tzinfo=UTC)
    in_time, late = put(folder, "alice", handed_in()), put(folder, "bob", handed_in())
    os.utime(in_time, (due.timestamp() - 1, due.timestamp() - 1))
    os.utime(late, (due.timestamp() + 90 * 60, due.timestamp() + 90 * 60))
    put(folder, "carol", handed_in())
    put(folder, "carol", "2026-11-20 19:00:00.5 UTC", f"{LAB}/timestamp.txt")
    result = grade_all(folder, sample, tmp_path / "out", due, late_share=0.5)
    assert [(row.score, row.note) for row in result.grades] == [
        (6, ""),
        (3, "late by 0 d 1 h 30 min"),
        (3, "late by 0 d 1 h 0 min"),
    ]


def test_two_notebooks_by_one_student_are_noted_and_the_rule_is_fixed(tmp_path: Path) -> None:
    put(tmp_path, "alice", "{}")
    put(tmp_path, "alice", "{}", f"{LAB}/lab-Copy1.ipynb")
    old = put(tmp_path, "bob", "{}", f"{LAB}/mine.ipynb")
    os.utime(old, (1, 1))
    put(tmp_path, "bob", "{}", f"{LAB}/final.ipynb")
    put(tmp_path, "carol", "{}", "90/lab.ipynb")
    put(tmp_path, "dora", "{}", f"{LAB}/lab.ipynb")
    put(tmp_path, "dora", "{}", "90_sample (1)/lab.ipynb")
    found = {each.student: each for each in submissions.find(tmp_path, [LAB])}
    assert (found["alice"].file.name, found["alice"].notes) == ("lab.ipynb", ["2 notebooks, it counts"])
    assert found["bob"].file.name == "final.ipynb"
    assert found["bob"].notes == ["no lab.ipynb, another notebook counts", "2 notebooks, the newest counts"]
    assert found["carol"].notes == ["the folder has another name than the lab's"]
    assert found["dora"].file.parent.name == LAB
    assert found["dora"].notes == [f"2 folders for this lab, {LAB} counts"]


def test_only_labs_that_somebody_handed_in_are_expected_unless_they_are_named(tmp_path: Path) -> None:
    put(tmp_path, "alice", "{}")
    assert [each.lab for each in submissions.find(tmp_path, [LAB, "91_other"])] == [LAB]
    assert [each.lab for each in submissions.find(tmp_path, [LAB, "91_other"], only=True)] == [LAB, "91_other"]
    with pytest.raises(submissions.NoSubmissions, match="No folder in"):
        submissions.find(tmp_path, ["91_other"])
    with pytest.raises(submissions.NoSubmissions, match="SUBMISSIONS=folder"):
        submissions.find(tmp_path / "nowhere", [LAB])
    with pytest.raises(submissions.NoSubmissions, match="is no time"):
        submissions.due_time("tomorrow")


def test_links_into_other_folders_are_not_followed(tmp_path: Path, handed_in: Handin) -> None:
    put(tmp_path, "alice", handed_in())
    (tmp_path / "bob").mkdir()
    (tmp_path / "bob" / LAB).symlink_to(tmp_path / "alice" / LAB)
    (tmp_path / "carol" / LAB).mkdir(parents=True)
    (tmp_path / "carol" / LAB / "lab.ipynb").symlink_to(tmp_path / "alice" / LAB / "lab.ipynb")
    found = {each.student: each for each in submissions.find(tmp_path, [LAB])}
    assert found["bob"].notes == ["missing"]
    with pytest.raises(notebook.Unreadable, match="not a plain file"):
        notebook.read(found["carol"].file)


@pytest.mark.parametrize(
    "content",
    ["", "[1, 2]", '{"cells": 3}', '{"worksheets": []}', '{"cells": [{"cell_type": "code"}]}', "[" * 100_000, "\x00"],
)
def test_what_is_no_notebook_is_unreadable(tmp_path: Path, content: str) -> None:
    file = tmp_path / "lab.ipynb"
    file.write_text(content)
    with pytest.raises(notebook.Unreadable, match="not a notebook of format 4"):
        notebook.read(file)


def test_a_pipe_in_place_of_a_notebook_does_not_hang_the_grader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lab.ipynb")
    with pytest.raises(notebook.Unreadable, match="not a plain file"):
        notebook.read(tmp_path / "lab.ipynb")


def test_too_many_or_too_long_cells_are_unreadable(tmp_path: Path) -> None:
    file = tmp_path / "lab.ipynb"
    file.write_text(json.dumps({"cells": [{"cell_type": "code", "source": "x"}] * 501}))
    with pytest.raises(notebook.Unreadable, match="500"):
        notebook.read(file)
    file.write_text(json.dumps({"cells": [{"cell_type": "code", "source": "x" * 200_001}]}))
    with pytest.raises(notebook.Unreadable, match="200,000"):
        notebook.read(file)


def test_a_text_that_looks_like_a_formula_stays_a_text_in_the_table(tmp_path: Path) -> None:
    file = grades.write([Grade("@x", LAB, 1.5, 6, "-1\n+2")], tmp_path / "grades.csv")
    assert file.read_text().splitlines()[1] == f"'@x,{LAB},1.5,6,'-1 +2"


def test_the_protections_of_this_machine_are_tried_not_assumed() -> None:
    held, weak = protections.strongest(accept_weak=True)
    assert "limits on time" in str(held)
    assert held.complete != ("NOT shut off" in str(held))
    if os.geteuid() == 0 and not weak:
        assert held.complete


def test_without_a_full_sandbox_grading_asks_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(weak: bool = False) -> protections.Protections:
        if not weak:
            raise protections.NoSandbox("Not here.")
        return protections.Protections(False, False, True)

    monkeypatch.setattr(protections, "find", none)
    with pytest.raises(protections.NoSandbox, match="WEAK=1"):
        protections.strongest(accept_weak=False)
    held, weak = protections.strongest(accept_weak=True)
    assert weak
    assert "NOT shut off here: the network, other files" in str(held)

"""Grading a folder of submissions: the table, the pages, an interrupt; and checking one's own notebook."""

import csv
import json
import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import nbformat
import psutil
import pytest

from course_tools import lab_cells, lab_sources, student_files
from course_tools.grading import notebook, run, submissions
from course_tools.grading.material import Material, load
from course_tools.grading.processes_apart import ProcessLimits
from course_tools.sandbox import protections
from distlab.labs import Answer, Verdict, registry, right
from tests.course_tools.grading.submitted import LAB, put
from tests.distlab.labs import sample_lab

pytestmark = pytest.mark.slow

Handin = Callable[..., nbformat.NotebookNode]


def grade_all(
    folder: Path,
    sample: Material,
    out: Path,
    due: datetime | None = None,
    say: Callable[[str], None] = lambda line: None,
    **options: object,
) -> run.GradingResult:
    handed_in = submissions.find(folder, [LAB], due)
    complete = protections.Protections(True, True, True, True, True, "")
    plan = run.GradingPlan(handed_in, {LAB: sample}, out, seed=5, protections=complete, **options)
    return run.run(plan, say)


def test_a_folder_of_submissions_becomes_a_table_and_pages(handed_in: Handin, sample: Material, tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    put(folder, "alice", handed_in())
    put(folder, "bob", handed_in(steps="import os\nprint('<script>alert(1)</script>')\nos._exit(3)"))
    put(folder, "=carol", "this is no notebook")
    put(folder, "fay", "", f"{LAB}.zip")
    (folder / "dora").mkdir(parents=True)
    (folder / "students.txt").write_text("alice\nbob\n=carol\ndora\nerik\nfay\n")
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
        ["fay", LAB, "0", "6", f"missing, but there is '{LAB}.zip'"],
    ]
    assert set(result.faults) == {
        f"fay {LAB}: missing, but there is '{LAB}.zip'",
        f"=carol {LAB}: unreadable: it is not a notebook of format 4",
    }
    page = (out / "feedback" / "bob" / f"{LAB}.html").read_text()
    assert "5 of 6 points" in page
    assert "exit status 3" in page
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert json.loads((out / "report.json").read_text())["seed"] == 5


def test_answers_below_untouched_cells_are_noted_and_to_be_looked_at(
    handed_in: Handin, sample: Material, tmp_path: Path
) -> None:
    made = handed_in(steps=sample.stubs["steps"])
    made.cells.append(nbformat.v4.new_code_cell("steps = 6"))
    put(tmp_path / "in", "alice", made)
    result = grade_all(tmp_path / "in", sample, tmp_path / "out")
    number = sum(cell.cell_type == "code" for cell in made.cells)
    note = f"steps is untouched, but code cell {number} defines steps: answers count in their own cells only"
    assert [(row.score, row.note) for row in result.grades] == [(5, note)]
    assert result.faults == [f"alice {LAB}: {note}"]


def test_work_beside_an_untouched_notebook_is_to_be_looked_at(
    handed_in: Handin, sample: Material, tmp_path: Path
) -> None:
    put(tmp_path / "in", "alice", handed_in(**sample.stubs))
    put(tmp_path / "in", "alice", handed_in(), f"{LAB}/lab-Copy1.ipynb")
    put(tmp_path / "in", "bob", handed_in())
    put(tmp_path / "in", "bob", handed_in(**sample.stubs), f"{LAB}/lab-Copy1.ipynb")
    result = grade_all(tmp_path / "in", sample, tmp_path / "out")
    note = "no answer in lab.ipynb, look into 'lab-Copy1.ipynb'"
    several = "2 notebooks, lab.ipynb counts"
    assert [(row.score, row.note) for row in result.grades] == [(0, f"{several}; {note}"), (6, several)]
    assert result.faults == [f"alice {LAB}: {note}"]


@pytest.mark.parametrize("call", ["breakpoint()", "import pdb; pdb.set_trace()"])
def test_a_forgotten_breakpoint_does_nothing(call: str, handed_in: Handin, sample: Material, tmp_path: Path) -> None:
    put(tmp_path / "in", "alice", handed_in(mean=f"def mean(values):\n    {call}\n    return float(values.mean())"))
    assert [row.score for row in grade_all(tmp_path / "in", sample, tmp_path / "out").grades] == [6]


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

    def fails_for_alice(file: Path) -> list[notebook.SubmittedCell]:
        if "alice" in str(file):
            raise RuntimeError("unforeseen")
        return read(file)

    monkeypatch.setattr(notebook, "read", fails_for_alice)
    result = grade_all(folder, sample, tmp_path / "out")
    assert [(row.student, row.score) for row in result.grades] == [("alice", None), ("bob", 6)]
    assert result.grades[0].note == "LOOK AT, not graded: RuntimeError: unforeseen"
    assert result.faults == [f"alice {LAB}: RuntimeError: unforeseen"]
    assert (tmp_path / "out" / "grades.csv").read_text().splitlines()[1].startswith(f"alice,{LAB},,6,")


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
        (3, "late by 0 d 1 h 30 min by the time of the file"),
        (3, "late by 0 d 1 h 0 min"),
    ]


def test_a_file_of_the_student_s_that_is_missed_in_grading_is_to_be_looked_at(
    handed_in: Handin, sample: Material, tmp_path: Path
) -> None:
    put(tmp_path / "in", "alice", handed_in(steps="from helpers import six\nsteps = six"))
    put(tmp_path / "in", "alice", "six = 6", f"{LAB}/helpers.py")
    result = grade_all(tmp_path / "in", sample, tmp_path / "out")
    note = (
        "the cell of steps failed with ModuleNotFoundError: helpers.py was handed in, but grading has no file of the "
        "student's except the notebook"
    )
    assert [(row.score, row.note) for row in result.grades] == [(5, note)]
    assert result.faults == [f"alice {LAB}: {note}"]


def test_the_notebook_of_another_lab_is_named_and_to_be_looked_at(sample: Material, tmp_path: Path, root: Path) -> None:
    [lab_12] = (root / "labs").glob("12_*")
    put(tmp_path / "in", "alice", (lab_12 / "solution.ipynb").read_text())
    result = grade_all(tmp_path / "in", sample, tmp_path / "out")
    assert [(row.score, row.note) for row in result.grades] == [(0, "this is the notebook of lab 12")]
    assert result.faults == [f"alice {LAB}: this is the notebook of lab 12"]
    assert "this is the notebook of lab 12" in (tmp_path / "out" / "feedback" / "alice" / f"{LAB}.html").read_text()


def test_an_interrupt_ends_what_runs_and_starts_nothing_more(
    handed_in: Handin, sample_source: Path, tmp_path: Path
) -> None:
    put(tmp_path / "in", "student 0", handed_in())
    for number in range(1, 6):
        put(tmp_path / "in", f"student {number}", handed_in(mean="while True: pass"))
    patient = load(sample_source, sample_lab.lab(seconds_per_cell=300, seconds=300))

    def interrupts(line: str) -> None:
        raise KeyboardInterrupt

    before = set(psutil.Process().children(recursive=True))  # other tests may have started a fork server
    with pytest.raises(KeyboardInterrupt):
        grade_all(tmp_path / "in", patient, tmp_path / "out", say=interrupts, at_once=3)
    assert not (tmp_path / "out").exists()
    assert set(psutil.Process().children(recursive=True)) <= before


# What happens to the process that grades a notebook, instead of reading the file.
TROUBLES: dict[str, tuple[Callable[[], object], str]] = {
    "an error": (lambda: [][1], "IndexError"),
    "the machine has no memory left": (lambda: os.kill(os.getpid(), signal.SIGKILL), "ended by SIGKILL"),
    "it never ends": (lambda: time.sleep(600), "was not done after 20 s"),
    "it computes without end": (lambda: [None for _ in iter(int, 1) if False], "ended by SIGXCPU"),
}


@pytest.mark.long
@pytest.mark.parametrize(("happens", "said"), TROUBLES.values(), ids=TROUBLES)
@pytest.mark.parametrize("always", [False, True])
def test_a_trouble_of_the_grader_is_repeated_alone_and_never_becomes_a_grade(
    handed_in: Handin,
    sample: Material,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    happens: Callable[[], object],
    said: str,
    always: bool,
) -> None:
    for student in ("alice", "bob"):
        put(tmp_path / "in", student, handed_in())
    mark = tmp_path / "has happened"
    read = notebook.read

    def troubled(file: Path) -> list[notebook.SubmittedCell]:
        if "alice" in str(file) and (always or not mark.exists()):
            mark.touch()
            happens()
        return read(file)

    monkeypatch.setattr(notebook, "read", troubled)
    if "never" in said or "done" in said:
        monkeypatch.setattr(run, "_limits", lambda material: ProcessLimits(processor=100, wall=20))
    elif "XCPU" in said:
        monkeypatch.setattr(run, "_limits", lambda material: ProcessLimits(processor=10, wall=1000))
    result = grade_all(tmp_path / "in", sample, tmp_path / "out")
    alice, bob = result.grades
    assert (bob.score, bob.note) == (6, "")
    if always:
        assert alice.score is None and said in alice.note and alice.note.startswith("LOOK AT")
        assert len(result.faults) == 1 and said in result.faults[0]
    else:
        assert (alice.score, alice.note, result.faults) == (6, "", [])


@pytest.mark.parametrize("at_once", [1, 2])
def test_the_process_that_starts_sandboxes_may_be_killed_and_all_are_graded(
    handed_in: Handin, sample: Material, tmp_path: Path, at_once: int
) -> None:
    for student in ("alice", "bob", "carol", "dora"):
        put(tmp_path / "in", student, handed_in())

    def servers() -> list[psutil.Process]:
        alive = psutil.process_iter(["ppid", "cmdline"])  # of one that has just ended the command line is None
        own = [process for process in alive if process.info["ppid"] == os.getpid()]
        return [process for process in own if "course_tools.sandbox.fork_server" in (process.info["cmdline"] or [])]

    def kill_server(line: str) -> None:
        if line.startswith("alice"):
            (server,) = servers()
            server.kill()
            server.wait(timeout=60)

    result = grade_all(tmp_path / "in", sample, tmp_path / "out", say=kill_server, at_once=at_once)
    assert [(grade.student, grade.score) for grade in result.grades] == [
        (student, 6) for student in ("alice", "bob", "carol", "dora")
    ]
    assert result.faults == []
    assert servers() == []


def test_a_judge_that_fails_on_an_answer_gives_no_grade_but_a_line_to_look_at(
    handed_in: Handin, sample_source: Path, tmp_path: Path
) -> None:
    def judge(answer: Answer, generator: object) -> Verdict:
        answer.call("mean", [1.0])[0].sum()
        return right()

    put(tmp_path / "in", "alice", handed_in())
    result = grade_all(tmp_path / "in", load(sample_source, sample_lab.lab(judge)), tmp_path / "out")
    assert result.grades[0].score is None
    assert result.grades[0].note.startswith("LOOK AT, not graded (4 of 6 points without it): mean: TypeError")
    assert "No grade yet" in (tmp_path / "out" / "feedback" / "alice" / f"{LAB}.html").read_text()


def test_the_seed_is_written_before_the_first_notebook_is_graded(
    handed_in: Handin, sample: Material, tmp_path: Path
) -> None:
    put(tmp_path / "in", "alice", handed_in())
    seeds = []

    def looks(line: str) -> None:
        (report,) = tmp_path.glob("out-unfinished-*/report.json")
        seeds.append(json.loads(report.read_text())["seed"])

    grade_all(tmp_path / "in", sample, tmp_path / "out", say=looks)
    assert seeds == [5]


def save_as_lab(made: nbformat.NotebookNode, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let lab 90 be the sample, and this the student's notebook of it."""
    (folder / "90_sample").mkdir()
    nbformat.write(made, folder / "90_sample" / "lab.ipynb")
    monkeypatch.setattr(registry, "lab", lambda number: sample_lab.lab())


def test_in_a_terminal_the_exercises_of_the_own_notebook_are_checked(
    sample_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = lab_sources.student(lab_sources.convert(sample_source, sample_lab.lab()))
    for name, cell in lab_cells.answer_cells(made.cells):
        cell.source = {"mean": "def mean(values):\n    return 1 / 0\n", "all_gather": cell.source}.get(
            name, "steps = 6"
        )
    save_as_lab(made, tmp_path, monkeypatch)
    assert list(run.check("90", tmp_path)) == [
        f"{tmp_path / '90_sample' / 'lab.ipynb'}:",
        "mean: ✘ not right yet. It raised ZeroDivisionError in line 2 of its cell: division by zero.",
        "steps: ✔ right",
        "all_gather: … not done yet. `all_gather` is still empty.",
        "1 of 6 points",
    ]


def test_in_a_terminal_a_cell_of_the_student_s_that_failed_is_named(
    sample_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = lab_sources.student(lab_sources.convert(sample_source, sample_lab.lab()))
    [mean] = [cell for cell in made.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == "mean"]
    mean.source = "def mean(values):\n    return total(values) / len(values)"
    made.cells.insert(made.cells.index(mean), nbformat.v4.new_code_cell("1 / 0\ntotal = sum"))
    save_as_lab(made, tmp_path, monkeypatch)
    lines = list(run.check("90", tmp_path))
    [number] = [
        place
        for place, cell in enumerate((c for c in made.cells if c.cell_type == "code"), 1)
        if "1 / 0" in cell.source
    ]
    failed = "The cell stopped in line 1 with ZeroDivisionError: division by zero"
    assert lines[1] == (
        "mean: ✘ not right yet. It raised NameError in line 2 of its cell: name 'total' is not defined. "
        f"Code cell {number}, which has `total`, failed: {failed}"
    )
    assert lines[-2] == f"Code cell {number}: {failed}"


def test_in_a_terminal_the_cell_that_has_overwritten_a_name_of_the_lab_is_named_once(
    sample_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = lab_sources.student(lab_sources.convert(sample_source, sample_lab.lab()))
    [steps] = [cell for name, cell in lab_cells.answer_cells(made.cells) if name == "steps"]
    steps.source = "steps = 6"
    made.cells += [nbformat.v4.new_code_cell(text) for text in ("lab = 11", "lab.given", "lab.given.numbers")]
    save_as_lab(made, tmp_path, monkeypatch)
    number = sum(cell.cell_type == "code" for cell in made.cells) - 2
    assert list(run.check("90", tmp_path))[-2:] == [
        f"Code cell {number} has overwritten `lab`, so that code cell {number + 1}, code cell {number + 2} failed; "
        "choose another name.",
        "1 of 6 points",
    ]


def test_in_a_terminal_an_exercise_without_a_cell_is_said_to_have_none(
    sample_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = lab_sources.student(lab_sources.convert(sample_source, sample_lab.lab()))
    made.cells = [cell for cell in made.cells if cell.metadata.get("nbgrader", {}).get("grade_id") != "mean"]
    save_as_lab(made, tmp_path, monkeypatch)
    lines = list(run.check("90", tmp_path))
    assert (
        "mean: … its cell is missing from the notebook; `.venv/bin/distlab lab --fresh 90` gives the lab back." in lines
    )
    assert "all_gather: … not done yet. `all_gather` is still empty." in lines


def test_in_a_terminal_an_exercise_is_checked_though_its_check_was_deleted(
    sample_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = lab_sources.student(lab_sources.convert(sample_source, sample_lab.lab()))
    [mean] = [cell for cell in made.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == "mean"]
    mean.source = "def mean(values):\n    return sum(values) / len(values)"
    made.cells = [cell for cell in made.cells if cell.metadata.get("nbgrader", {}).get("grade_id") != "check_mean"]
    made.cells.insert(
        made.cells.index(mean) + 1, nbformat.v4.new_code_cell("_mean = mean\nmean = lambda values: _mean(values)")
    )
    made.cells += [nbformat.v4.new_code_cell("mean = None")]
    save_as_lab(made, tmp_path, monkeypatch)
    assert list(run.check("90", tmp_path))[1].startswith("mean: ✔ right")


def test_in_a_terminal_a_copied_cell_is_named(
    sample_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = lab_sources.student(lab_sources.convert(sample_source, sample_lab.lab()))
    [mean] = [cell for cell in made.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == "mean"]
    made.cells.insert(made.cells.index(mean), nbformat.v4.new_code_cell(mean.source, metadata=mean.metadata))
    save_as_lab(made, tmp_path, monkeypatch)
    lines = list(run.check("90", tmp_path))
    assert [line for line in lines if "its cell" in line.lower()] == [
        "  Its cell is there 2 times, and the last one counts."
    ]


def test_in_a_terminal_the_answers_under_a_lab_s_former_name_are_checked_with_the_course_s_files(
    sample_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    course, labs = tmp_path / "course", tmp_path / "work" / "labs"
    made = lab_sources.student(lab_sources.convert(sample_source, sample_lab.lab()))
    for folder in (course / "labs" / "90_new", labs / "90_new", labs / "90_sample"):
        folder.mkdir(parents=True)
        nbformat.write(made, folder / "lab.ipynb")
    (labs / "90_new" / "six.txt").write_text("6")
    monkeypatch.setattr(registry, "lab", lambda number: sample_lab.lab())
    monkeypatch.setattr(student_files, "COURSE", course)
    new, former = (labs / name / "lab.ipynb" for name in ("90_new", "90_sample"))
    renamed = "90_sample is called 90_new now: what you have under the former name"
    lines = list(run.check("90", labs))
    assert (lines[0], lines[-1]) == (f"{new}:", f"{renamed} does not count.")
    [steps] = [cell for name, cell in lab_cells.answer_cells(made.cells) if name == "steps"]
    steps.source = "steps = int(open('six.txt').read())"
    nbformat.write(made, former)
    lines = list(run.check("90", labs))
    assert lines[0] == f"{former}:" and "steps: ✔ right" in lines
    assert lines[-1] == f"{renamed} counts, as you have not begun with the course's new version, {new}."
    former.rename(new.with_stem("lab-Copy1"))
    assert list(run.check("90", labs))[-1] == (
        f"No answer is in {new}, which alone counts, but in 'lab-Copy1.ipynb' next to it: copy the answers into "
        "lab.ipynb, or rename that notebook to lab.ipynb."
    )


def test_in_a_terminal_the_notebook_of_another_lab_is_named(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [lab_12] = (root / "labs").glob("12_*")
    put(tmp_path, "90_sample", (lab_12 / "lab.ipynb").read_text(), "lab.ipynb")
    monkeypatch.setattr(registry, "lab", lambda number: sample_lab.lab())
    with pytest.raises(run.CannotCheck, match=r"cannot be checked: this is the notebook of lab 12; .* --fresh 90`"):
        next(run.check("90", tmp_path))


def test_a_lab_or_a_notebook_that_is_not_there_is_said_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(registry.NoSuchLab, match="There is no lab '98'; there are 02, 03"):
        next(run.check("98", tmp_path))
    monkeypatch.setattr(registry, "lab", lambda number: sample_lab.lab())
    with pytest.raises(run.CannotCheck, match=r"is not there; `.venv/bin/distlab lab --fresh 90` gives the lab back"):
        next(run.check("90", tmp_path))

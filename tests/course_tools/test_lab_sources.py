"""The labs' notebooks come from their sources, run from top to bottom, and nbgrader takes them as they are."""

import zipfile
from pathlib import Path

import nbformat
import pytest
from pytest_notebook.nb_regression import NBRegressionFixture

from course_tools import lab_cells, lab_sources, notebooks
from course_tools.grading import grade, notebook
from course_tools.grading.submissions import Submission
from course_tools.sandbox import protections
from distlab.runtime.errors import PlainError
from tests.distlab.labs import sample_lab
from tests.distlab.labs.sample_lab import points

LABS = Path(__file__).parents[2] / "labs"
SOURCES = lab_sources.chosen(LABS)
every_lab = pytest.mark.parametrize("source", SOURCES, ids=[source.parent.name for source in SOURCES])


def committed(source: Path, name: str) -> nbformat.NotebookNode:
    return nbformat.read(source.parent / name, as_version=4)


def printed(made: nbformat.NotebookNode) -> dict[str, str]:
    """What the checks print, by exercise."""
    checks = [cell for cell in made.cells if cell.metadata.get("nbgrader", {}).get("grade")]
    names = [cell.metadata.nbgrader["grade_id"].removeprefix(lab_sources.CHECK) for cell in checks]
    return dict(zip(names, map(lab_cells.printed, checks), strict=True))


@every_lab
def test_the_student_s_notebook_is_that_of_the_source(source: Path) -> None:
    expected, found = lab_sources.student(lab_sources.convert(source)), committed(source, lab_sources.STUDENT)
    notebooks.note_cells(expected)
    assert found == expected, "run `make labs`"
    code = [cell.source for cell in found.cells if cell.cell_type == "code"]
    assert [line for source in code for line in source.split("\n") if len(line) > 95] == []
    text = "\n".join(cell.source for cell in found.cells)
    assert not any(mark in text for mark in ("BEGIN", "END SOLUTION", "HIDDEN", "lab.points"))
    assert lab_sources.SOLUTION in text


@every_lab
def test_the_solution_is_that_of_the_source_and_was_executed(source: Path) -> None:
    made, expected = committed(source, lab_sources.SOLUTION), lab_sources.solved(lab_sources.convert(source))
    assert [(cell.cell_type, cell.source) for cell in made.cells] == [
        (cell.cell_type, cell.source) for cell in expected.cells
    ], "run `make labs`"
    assert all(cell.execution_count for cell in made.cells if cell.cell_type == "code")
    assert all(text.startswith(f"{name}: ✔ right") for name, text in printed(made).items()), printed(made)


@pytest.mark.slow
@every_lab
def test_the_solution_gives_its_committed_outputs(source: Path, nb_regression: NBRegressionFixture) -> None:
    nb_regression.exec_cwd = str(source.parent)
    nb_regression.check(str(source.parent / lab_sources.SOLUTION))


@pytest.mark.slow
@every_lab
def test_in_grading_the_solution_gets_all_points_and_the_untouched_lab_none(source: Path) -> None:
    graded_lab, (kind, _) = notebook.load(source), protections.strongest(accept_weak=True)
    for name, share in ((lab_sources.SOLUTION, 1), (lab_sources.STUDENT, 0)):
        report, cells = Submission("", ""), notebook.read(source.parent / name)
        grade.grade(report, cells, graded_lab, kind, seed=20_261_120)
        assert points(report) == {exercise.name: share * exercise.points for exercise in graded_lab.lab}, [
            (graded.name, graded.verdict, graded.error) for graded in report.exercises
        ]
        assert (report.note, report.troubles) == ("", [])


@pytest.fixture
def made_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The source of the sample lab, whose notebooks are there, with a check that takes every answer for right."""
    monkeypatch.setattr(lab_sources.registry, "lab", lambda name: sample_lab.lab())
    source = tmp_path / "labs" / "90_sample" / "lab.py"
    source.parent.mkdir(parents=True)
    text = sample_lab.source()
    assert "check=print" in text
    source.write_text(text.replace("check=print", "check=lambda name: print(f'{name}: ✔ right')"))
    source.with_name("given.py").write_text("NUMBER = 7\n")
    (source.parents[1] / "nbgrader_config.py").write_text("c = get_config()\n")
    for name in (lab_sources.STUDENT, lab_sources.SOLUTION):
        (source.parent / name).write_text("as it was")
    return source


def files(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def test_only_named_labs_are_released_and_of_what_stood_there_the_instructors_work_stays(
    made_lab: Path, tmp_path: Path
) -> None:
    old, folder = made_lab.parents[1] / "91_old" / "lab.py", tmp_path / "release"
    old.parent.mkdir()
    old.write_text(made_lab.read_text())
    lab_sources.release([made_lab, old], folder)
    for part in (folder / lab_sources.HANDED_OUT, folder / lab_sources.NBGRADER / lab_sources.SOURCE):
        (part / "99_mylab").mkdir()
        (part / "99_mylab" / "mine.txt").touch()
        (part / "90_sample" / "my_note.txt").touch()
    (folder / lab_sources.NBGRADER / "gradebook.db").write_text("grades")
    students, packed, graders = lab_sources.release([made_lab], folder)
    expected = ["90_sample/given.py", "90_sample/lab.ipynb", "99_mylab/mine.txt"]
    assert files(students) == files(graders / lab_sources.SOURCE) == expected
    kept = files(folder / lab_sources.PREVIOUS / lab_sources.HANDED_OUT)
    assert kept == ["90_sample/given.py", "90_sample/lab.ipynb", "90_sample/my_note.txt", "91_old/lab.ipynb"]
    assert (graders / "gradebook.db").read_text() == "grades"
    with zipfile.ZipFile(packed) as archive:
        assert sorted(name for name in archive.namelist() if not name.endswith("/")) == expected
    assert sorted(entry.name for entry in folder.iterdir()) == ["labs.zip", "nbgrader", "previous", "students"]


@pytest.mark.slow
def test_the_notebooks_of_a_lab_are_written_and_not_over_edits(made_lab: Path) -> None:
    student, solution = lab_sources.regenerate(made_lab)
    assert (student.name, solution.name) == (lab_sources.STUDENT, lab_sources.SOLUTION)
    assert printed(committed(made_lab, lab_sources.SOLUTION))["mean"] == "mean: ✔ right\n"
    assert "".join(printed(committed(made_lab, lab_sources.STUDENT)).values()) == ""
    student.write_text(edited := student.read_text().replace("a sample", "a sample, and a note of a teacher"))
    with pytest.raises(PlainError, match="was edited itself"):
        lab_sources.regenerate(made_lab)
    assert student.read_text() == edited


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('answer="steps"', 'answer="step"', "There is no exercise 'step'; did you mean steps"),
        ('# %% answer="steps"\n', "", "its exercises ask for"),
        ("steps = 6\n### END SOLUTION\n", "0\n### END SOLUTION\n### BEGIN SOLUTOIN\nsteps = 6\n", "SOLUTOIN"),
        ("PROGRAM = 'given.py'\n", "### BEGIN SOLUTION\nsecret = 6\n### END SOLUTION\n", "non-solution cell"),
        ("# # Lab 90: a sample\n", "# ### Begin Solution\n# The secret is 6.\n", "Begin Solution"),
    ],
)
def test_a_source_that_does_not_fit_its_judge_or_would_tell_a_solution_is_refused(
    tmp_path: Path, before: str, after: str, said: str
) -> None:
    text = sample_lab.source()
    assert before in text
    file = tmp_path / "90_sample" / "lab.py"
    file.parent.mkdir()
    file.write_text(text.replace(before, after, 1))
    with pytest.raises((PlainError, RuntimeError), match=said):
        lab_sources.convert(file, sample_lab.lab())

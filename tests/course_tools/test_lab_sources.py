"""The labs' notebooks come from their sources, run from top to bottom, and nbgrader takes them as they are."""

import csv
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest
from pytest_notebook.nb_regression import NBRegressionFixture

from course_tools import hand_edits, lab_sources, notebooks
from course_tools.grading import grade, material, notebook
from course_tools.sandbox import protections
from distlab.labs import registry
from distlab.runtime.errors import PlainError
from tests.distlab.labs import sample_lab
from tests.distlab.labs.sample_lab import points

LABS = Path(__file__).parents[2] / "labs"
SOURCES = lab_sources.chosen(LABS)
every_lab = pytest.mark.parametrize("source", SOURCES, ids=[source.parent.name for source in SOURCES])
SECONDS = 900


def committed(source: Path, name: str) -> nbformat.NotebookNode:
    return nbformat.read(source.parent / name, as_version=4)


def printed(made: nbformat.NotebookNode) -> dict[str, str]:
    """What the checks print, by exercise."""
    return {
        cell.metadata.nbgrader["grade_id"].removeprefix(lab_sources.CHECK): "".join(
            output.get("text", "") for output in cell.outputs
        )
        for cell in made.cells
        if cell.metadata.get("nbgrader", {}).get("grade")
    }


def test_every_lab_has_a_module_and_every_module_a_source() -> None:
    assert [source.parent.name[:2] for source in SOURCES] == list(registry.MODULES)


@every_lab
def test_the_student_s_notebook_is_that_of_the_source(source: Path) -> None:
    expected = lab_sources.student(lab_sources.convert(source))
    hand_edits.note_cells(expected)
    assert committed(source, lab_sources.STUDENT) == expected, "run `make labs`"


@every_lab
def test_the_solution_is_that_of_the_source_and_was_executed(source: Path) -> None:
    made, expected = committed(source, lab_sources.SOLUTION), lab_sources.solved(lab_sources.convert(source))
    assert [(cell.cell_type, cell.source) for cell in made.cells] == [
        (cell.cell_type, cell.source) for cell in expected.cells
    ], "run `make labs`"
    assert all(cell.execution_count for cell in made.cells if cell.cell_type == "code")
    assert all(text.startswith(f"{name}: ✔ right") for name, text in printed(made).items()), printed(made)


@every_lab
def test_the_student_s_notebook_tells_no_solution_but_where_it_is(source: Path) -> None:
    text = "\n".join(cell.source for cell in committed(source, lab_sources.STUDENT).cells)
    for mark in ("BEGIN", "END SOLUTION", "HIDDEN", "lab.points"):
        assert mark not in text
    assert lab_sources.SOLUTION in text


@every_lab
def test_a_lab_that_is_handed_out_names_nothing_that_is_not_there(source: Path) -> None:
    whole = lab_sources.convert(source)
    text = "\n".join(cell.source for cell in lab_sources.without_course(whole).cells)
    assert not any(mark in text for mark in (lab_sources.SOLUTION, "make check", "](../"))
    assert all(words in text for words in ("**How it works.**", "**Before this.**", "otebook "))
    length = len("".join(cell.source for cell in whole.cells))
    assert len(text) > 0.9 * length


@pytest.mark.slow
@every_lab
def test_the_solution_gives_its_committed_outputs(source: Path, nb_regression: NBRegressionFixture) -> None:
    nb_regression.exec_cwd = str(source.parent)
    nb_regression.check(str(source.parent / lab_sources.SOLUTION))


@pytest.mark.slow
@every_lab
def test_an_untouched_lab_runs_from_top_to_bottom_and_nothing_is_done(source: Path) -> None:
    made = notebooks.execute(committed(source, lab_sources.STUDENT), source.parent)
    assert all("not done yet" in text for text in printed(made).values()), printed(made)


@pytest.mark.slow
@every_lab
def test_in_grading_the_solution_gets_all_points_and_the_untouched_lab_none(source: Path) -> None:
    graded_lab, (kind, _) = material.load(source), protections.strongest(accept_weak=True)
    for name, share in ((lab_sources.SOLUTION, 1), (lab_sources.STUDENT, 0)):
        fitted = notebook.fit(notebook.read(source.parent / name), graded_lab)
        report = grade.grade(graded_lab, fitted, kind, seed=20_261_120)
        assert points(report) == {exercise.name: share * exercise.points for exercise in graded_lab.lab}, [
            (graded.exercise.name, graded.verdict, graded.error) for graded in report.exercises
        ]
        assert report.notes == report.troubles == []


@pytest.mark.slow
def test_nbgrader_generates_grades_writes_feedback_and_exports(tmp_path: Path) -> None:
    chosen = [source for source in SOURCES if not registry.lab(source.parent.name).tensorflow]
    lab_sources.release(chosen, tmp_path / "release")
    course = tmp_path / "release" / lab_sources.NBGRADER
    for source in chosen:
        for student, file in (("solved", lab_sources.SOLUTION), ("untouched", lab_sources.STUDENT)):
            place = course / "submitted" / student / source.parent.name
            place.mkdir(parents=True)
            (place / lab_sources.STUDENT).write_bytes((source.parent / file).read_bytes())
    program = Path(__file__).parent / "grading" / "nbgrader_course.py"
    done = subprocess.run(
        [sys.executable, str(program), str(course)], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    with (course / "grades.csv").open() as stream:
        scores = {(row["student_id"], row["assignment"]): float(row["score"]) for row in csv.DictReader(stream)}
    for source in chosen:
        assert scores["solved", source.parent.name] == registry.lab(source.parent.name).points
        assert scores["untouched", source.parent.name] == 0
        assert (course / "feedback" / "solved" / source.parent.name / "lab.html").stat().st_size > 0
        generated = nbformat.read(course / "release" / source.parent.name / lab_sources.STUDENT, as_version=4)
        handed_out = tmp_path / "release" / lab_sources.HANDED_OUT / source.parent.name / lab_sources.STUDENT
        ours = nbformat.read(handed_out, as_version=4)
        assert [cell.source.strip() for cell in generated.cells] == [cell.source.strip() for cell in ours.cells]


def test_only_named_labs_are_released_and_of_what_stood_there_the_instructors_work_stays(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    sample_source = tmp_path_factory.mktemp("labs") / "90_sample" / "lab.py"
    sample_source.parent.mkdir()
    sample_source.write_text(sample_lab.source())
    (sample_source.parent / "given.py").write_text("NUMBER = 7\n")
    old = sample_source.parents[1] / "91_old" / "lab.py"
    old.parent.mkdir()
    old.write_text("# a lab of the course that is not named now\n")
    (sample_source.parents[1] / "nbgrader_config.py").write_text("c = get_config()\n")
    for part in (Path(lab_sources.HANDED_OUT), Path(lab_sources.NBGRADER, lab_sources.SOURCE)):
        for name in ("90_sample", "91_old", "99_mylab"):
            (tmp_path / part / name).mkdir(parents=True)
            (tmp_path / part / name / "before.txt").write_text("of before")
        (tmp_path / part / "README.txt").write_text("mine")
    (tmp_path / lab_sources.NBGRADER / "submitted" / "alice").mkdir(parents=True)
    (tmp_path / lab_sources.NBGRADER / "gradebook.db").write_text("grades")
    sample = lab_sources.convert(sample_source, sample_lab.lab())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lab_sources, "convert", lambda source: sample)
        students, packed, graders = lab_sources.release([sample_source], tmp_path)
    for part in (students, graders / lab_sources.SOURCE):
        files = sorted(str(file.relative_to(part)) for file in part.rglob("*") if file.is_file())
        assert files == ["90_sample/given.py", "90_sample/lab.ipynb", "99_mylab/before.txt", "README.txt"]
        assert not (part / "91_old").exists()
    assert (graders / "submitted" / "alice").exists()
    assert (graders / "gradebook.db").read_text() == "grades"
    with zipfile.ZipFile(packed) as archive:
        names = sorted(name for name in archive.namelist() if not name.endswith("/"))
    assert names == ["90_sample/given.py", "90_sample/lab.ipynb", "99_mylab/before.txt", "README.txt"]
    [kept] = tmp_path.glob("changed-*")
    assert len(list(kept.rglob("before.txt"))) == 4


@pytest.mark.parametrize("in_git", [True, False], ids=["git knows the course", "no repository"])
def test_notes_beside_a_lab_are_not_handed_out_where_git_knows_the_course(made_lab: Path, in_git: bool) -> None:
    labs, folder = made_lab.parents[1], made_lab.parent
    (labs / "nbgrader_config.py").write_text("c = get_config()\n")
    for name in ("given.py", "data.csv", "grading_notes.md"):
        (folder / name).write_text("")
    if in_git:
        known = [f"{folder.name}/{name}" for name in ("lab.py", "given.py", "data.csv")]
        for words in (["init", "-q"], ["add", *known]):
            subprocess.run(["git", "-C", str(labs), *words], check=True)
    left_out: list[Path] = []
    students, *_ = lab_sources.release([made_lab], labs.parent / "release", left_out.append)
    handed_out = sorted(file.name for file in (students / made_lab.parent.name).iterdir())
    notes = folder / "grading_notes.md"
    assert left_out == ([notes] if in_git else [])
    assert handed_out == ["data.csv", "given.py", *([] if in_git else [notes.name]), "lab.ipynb"]


def test_a_stub_replaces_each_solution() -> None:
    region = "    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION"
    settings = {"grade": False, "grade_id": "f", "locked": False, "schema_version": 3, "solution": True, "task": False}
    cell = nbformat.v4.new_code_cell(f"def f():\n{region}\n\n{region}", metadata={"nbgrader": settings})
    notebook = nbformat.v4.new_notebook(
        cells=[cell], metadata={"kernelspec": {"name": "python3", "display_name": "Python", "language": "python"}}
    )
    stub = "    # Write your answer here.\n    ..."
    assert lab_sources.student(notebook).cells[0].source == f"def f():\n{stub}\n\n{stub}"


@pytest.fixture
def made_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The source of the sample lab, whose notebooks are there, with a check that takes every answer for right."""
    monkeypatch.setattr(lab_sources.registry, "lab", lambda name: sample_lab.lab())
    source = tmp_path / "labs" / "90_sample" / "lab.py"
    source.parent.mkdir(parents=True)
    text = sample_lab.source()
    assert "check=print" in text
    source.write_text(text.replace("check=print", "check=lambda name: print(f'{name}: ✔ right')"))
    for name in (lab_sources.STUDENT, lab_sources.SOLUTION):
        (source.parent / name).write_text("as it was")
    return source


@pytest.mark.slow
def test_the_notebooks_of_a_lab_are_written_when_every_check_says_right(made_lab: Path) -> None:
    written = lab_sources.regenerate(made_lab)
    assert [file.name for file in written] == [lab_sources.STUDENT, lab_sources.SOLUTION]
    assert printed(committed(made_lab, lab_sources.SOLUTION))["mean"] == "mean: ✔ right\n"
    assert "".join(printed(committed(made_lab, lab_sources.STUDENT)).values()) == ""


def test_a_lab_whose_notebook_was_edited_itself_is_not_made_again(made_lab: Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("text")])
    hand_edits.note_cells(notebook)
    notebook.cells[0].source = "text, and a note of a teacher"
    file = made_lab.parent / lab_sources.STUDENT
    nbformat.write(notebook, file)
    edited = file.read_text()
    with pytest.raises(hand_edits.EditedByHand):
        lab_sources.regenerate(made_lab)
    assert file.read_text() == edited


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("steps = 6", "steps = = 6", "the cell that begins with `steps = None` fails: SyntaxError: "),
        ("PROGRAM = 'given.py'", "1 / 0", "the cell that begins with `from types import SimpleNamespace` fails: Zero"),
        (
            ": ✔ right",
            ": ✘ not right yet: count\\nagain.",
            "exercise mean: with its solution the check says 'mean: ✘ not right yet: count';",
        ),
        ("print(f'{name}: ✔ right')", "None", "exercise mean: with its solution the check says nothing;"),
        ("    ### BEGIN SOLUTION\n", "<<<<<<< HEAD\n    ### BEGIN SOLUTION\n", "marks a merge conflict"),
    ],
)
def test_a_lab_whose_solution_fails_or_is_not_right_is_named_and_nothing_is_written(
    made_lab: Path, before: str, after: str, said: str
) -> None:
    text = made_lab.read_text()
    assert before in text
    made_lab.write_text(text.replace(before, after, 1))
    with pytest.raises(PlainError) as raised:
        lab_sources.regenerate(made_lab)
    assert str(raised.value).startswith(str(made_lab)) and said in str(raised.value)
    assert "\n" not in str(raised.value)
    assert {file.name for file in made_lab.parent.iterdir()} == {"lab.py", "lab.ipynb", "solution.ipynb"}
    for name in ("lab.ipynb", "solution.ipynb"):
        assert made_lab.with_name(name).read_text() == "as it was"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            '"grade_id": "steps"',
            '"grade_id": "step"',
            "has cells of step, but its judge has no exercise",
        ),
        ('"points": 1', '"points": 2', "2 points, but the exercise 1"),
        ("### BEGIN SOLUTION\nsteps = 6\n### END SOLUTION", "steps = 6", "the answer's cell needs"),
        ('lab.check("steps")\n', 'lab.check("mean")\n', r'must contain lab.check\("steps"\)'),
        ('lab.points("steps")', "pass", r'and lab.points\("steps"\) between'),
        ('"grade_id": "check_steps", "locked": true', '"grade_id": "check_steps", "locked": false', "locked true"),
    ],
)
def test_a_source_that_does_not_fit_its_module_is_refused(tmp_path: Path, before: str, after: str, said: str) -> None:
    text = sample_lab.source()
    assert before in text
    file = tmp_path / "90_sample" / "lab.py"
    file.parent.mkdir()
    file.write_text(text.replace(before, after, 1))
    with pytest.raises(lab_sources.BrokenSource, match=said):
        lab_sources.convert(file, sample_lab.lab())


@pytest.mark.parametrize(
    ("cell", "added", "said"),
    [
        ("steps", "### Begin solution\nsecret = 6\n### End solution", "'### Begin solution' is no mark"),
        ("steps", "#BEGIN  SOLUTION\nsecret = 6\n### END SOLUTION", "'#BEGIN  SOLUTION' is no mark"),
        ("steps", "secret = 6  # end_solution", "'secret = 6  # end_solution' is no mark"),
        ("steps", "### BEGIN SOLUTOIN\nsecret = 6", "'### BEGIN SOLUTOIN' is no mark"),
        ("steps", "### begin hidden tests\nsecret = 6", "'### begin hidden tests' is no mark"),
        ("steps", "secret = 6\n### END SOLUTION", "### END SOLUTION is out of place"),
        ("steps", "### BEGIN SOLUTION\n### BEGIN SOLUTION\n### END SOLUTION", "### BEGIN SOLUTION is out of place"),
        ("steps", "### BEGIN SOLUTION\nsecret = 6", "### BEGIN SOLUTION has no ### END SOLUTION"),
        ("given", "### BEGIN SOLUTION\nsecret = 6\n### END SOLUTION", "### BEGIN SOLUTION is out of place"),
        ("text", "### Begin Solution\nThe secret is 6.", "'### Begin Solution' is no mark"),
    ],
)
def test_a_solution_whose_marks_are_misspelt_or_misplaced_is_not_handed_out(
    made_lab: Path, tmp_path: Path, cell: str, added: str, said: str
) -> None:
    end = {
        "steps": "steps = 6\n### END SOLUTION\n",
        "given": "PROGRAM = 'given.py'\n",
        "text": "# # Lab 90: a sample\n",
    }[cell]
    text = made_lab.read_text()
    assert end in text
    if cell == "text":
        added = "".join(f"# {line}\n" for line in added.splitlines())
    made_lab.write_text(text.replace(end, f"{end}{added}\n", 1))
    for hand_out in (lab_sources.regenerate, lambda source: lab_sources.release([source], tmp_path / "release")):
        with pytest.raises(lab_sources.BrokenSource) as raised:
            hand_out(made_lab)
        assert re.match("90_sample/lab.py, the cell that begins with ", str(raised.value)) and said in str(raised.value)
        assert "\n" not in str(raised.value)
    assert (made_lab.parent / lab_sources.STUDENT).read_text() == "as it was"
    assert not (tmp_path / "release").exists()

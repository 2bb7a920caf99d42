"""How far a student is, by notebooks as JupyterLab saves them."""

import textwrap
from pathlib import Path

import nbformat
import pytest

from course_tools import __main__ as cli
from course_tools import student_files, student_progress
from course_tools.lab_cells import STUB
from course_tools.student_progress import ChapterProgress

RAN = {"execution": {"iopub.execute_input": "2026-11-20T18:00:00.000000Z"}}


def save(file: Path, *cells: nbformat.NotebookNode) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=list(cells)), file)


def check(exercise: str, *printed: str) -> nbformat.NotebookNode:
    outputs = [nbformat.v4.new_output("stream", text=text) for text in printed]
    return nbformat.v4.new_code_cell(f'lab.check("{exercise}")\nlab.points("{exercise}")', outputs=outputs)


def answer(exercise: object, text: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_code_cell(text, metadata={"nbgrader": {"grade_id": exercise, "solution": True}})


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Chapter 03 half run, one of three exercises of its lab solved; chapter 04 as the course gave it, without lab.

    The course itself has no file.
    """
    monkeypatch.setattr(student_files, "COURSE", tmp_path / "course")
    save(
        tmp_path / "work/notebooks/03_topic.ipynb",
        nbformat.v4.new_markdown_cell("text"),
        nbformat.v4.new_code_cell("1", metadata=RAN, execution_count=1),
        nbformat.v4.new_code_cell("2", execution_count=2),
        nbformat.v4.new_code_cell("  "),
    )
    save(
        tmp_path / "work/labs/03_topic/lab.ipynb",
        check("first", "first: \u2714 right\n"),
        check("second", "second: \u2718 not right yet. first: \u2714 right, but not this one\n"),
        check("third"),
    )
    save(tmp_path / "work/labs/03_topic/solution.ipynb", check("first", "first: \u2714 right\n"))
    save(tmp_path / "work/notebooks/04_many_words.ipynb", nbformat.v4.new_code_cell("3", execution_count=1))
    return tmp_path / "work"


def test_cells_that_ran_and_exercises_that_are_right_count(copy: Path) -> None:
    assert student_progress.progress(copy) == [
        ChapterProgress("03 topic", 1, 2, 1, 3),
        ChapterProgress("04 many words", 0, 1, 0, 0),
    ]


def test_an_exercise_whose_check_was_deleted_still_counts(copy: Path) -> None:
    save(
        copy.parent / "course/labs/03_topic/lab.ipynb",
        *(check(name) for name in ("first", "second", "third", "fourth")),
    )
    assert student_progress.progress(copy)[0] == ChapterProgress("03 topic", 1, 2, 1, 4)


def test_exercises_that_are_written_and_whose_checks_have_no_output_are_named(copy: Path) -> None:
    names = ("first", "second", "third", "fourth")
    save(
        copy.parent / "course/labs/03_topic/lab.ipynb",
        *(cell for name in names for cell in (answer(name, f"{name} = 0\n{STUB}"), check(name))),
    )
    save(
        copy / "labs/03_topic/lab.ipynb",
        answer("first", "first = 1"),
        check("first", "first: \u2714 right\n"),
        answer("second", "second = 2"),
        check("second"),
        answer("third", STUB.replace("\n", "  \n\n")),
        check("third"),
        answer("fourth", "fourth = 4"),
        answer(5, "x"),
        nbformat.v4.new_code_cell("own", metadata={"nbgrader": 3}),
    )
    chapters = student_progress.progress(copy)
    assert chapters[0] == ChapterProgress("03 topic", 1, 2, 1, 4, unchecked=2)
    assert student_progress.table(chapters).splitlines()[-2] == (
        "Lab 03: 2 exercises are written, not checked: no output of the check is saved. `make check LAB=03` checks "
        "them; to count here, run the notebook and save it."
    )


def test_elsewhere_a_cell_says_that_there_are_no_notebooks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    (tmp_path / "course").mkdir()
    monkeypatch.chdir(tmp_path / "course")
    student_progress.show_progress()
    assert capsys.readouterr().out == (
        f"{tmp_path} holds no notebooks of the course: run this in one of its notebooks.\n"
    )


def test_a_notebook_that_cannot_be_read_counts_as_untouched_and_is_named(copy: Path) -> None:
    notebook, lab = copy / "notebooks/03_topic.ipynb", copy / "labs/03_topic/lab.ipynb"
    notebook.write_text("<<<<<<< HEAD")
    lab.write_bytes(lab.read_bytes()[:300])
    sentence = "cannot be read as a notebook; `.venv/bin/distlab lab --fresh 03` gives it back."
    lines = f"{notebook} {sentence}", f"{lab} {sentence}"
    chapters = student_progress.progress(copy)
    assert chapters[0] == ChapterProgress("03 topic", 0, 0, 0, 0, lines)
    assert student_progress.table(chapters).splitlines()[-2:] == [*lines]


def test_a_students_copy_of_a_notebook_is_no_chapter(copy: Path) -> None:
    before = student_progress.progress(copy)
    save(copy / "notebooks/04_many_words-Copy1.ipynb", nbformat.v4.new_code_cell("3", metadata=RAN))
    assert student_progress.progress(copy) == before


def test_a_chapter_that_the_course_has_renamed_counts_once_with_what_has_run(copy: Path) -> None:
    save(copy.parent / "course/notebooks/03_subject.ipynb")
    assert [chapter.title for chapter in student_progress.progress(copy)] == ["03 topic", "04 many words"]
    new = copy / "notebooks/03_subject.ipynb"
    save(new, nbformat.v4.new_code_cell("1"))
    chapters = student_progress.progress(copy)
    line = (
        "03_topic is called 03_subject now: what you have under the former name counts, as you have not begun with the "
        f"course's new version, {new}."
    )
    assert chapters[0] == ChapterProgress("03 subject", 1, 2, 1, 3, (line,))
    assert [chapter.title for chapter in chapters] == ["03 subject", "04 many words"]
    assert student_progress.table(chapters).splitlines()[-1] == line
    save(new, nbformat.v4.new_code_cell("1", metadata=RAN))
    line = "03_topic is called 03_subject now: what you have under the former name does not count."
    assert student_progress.progress(copy)[0] == ChapterProgress("03 subject", 1, 1, 1, 3, (line,))


NOT_BEGUN = f"def first():\n{textwrap.indent(STUB, '    ')}"


def test_answers_that_are_not_in_the_copy_s_own_file_are_named(copy: Path) -> None:
    lab = copy / "labs/04_many_words/lab.ipynb"
    own = copy.parent / "course/labs/04_many_words/lab.ipynb"
    for file in (own, lab, lab.with_stem("lab-Copy2")):
        save(file, answer("first", NOT_BEGUN), check("first"))
    assert student_progress.progress(copy)[1] == ChapterProgress("04 many words", 0, 1, 0, 1)
    save(lab.with_stem("lab-Copy1"), answer("first", "first = 1"), check("first"))
    assert student_progress.progress(copy)[1].notes == (
        f"No answer is in {lab}, which alone counts, but in 'lab-Copy1.ipynb' next to it: copy the answers into "
        "lab.ipynb, or rename that notebook to lab.ipynb.",
    )
    lab.with_stem("lab-Copy1").unlink()
    save(own, answer("first", "first = 1"), check("first"))
    assert student_progress.progress(copy)[1] == ChapterProgress(
        *("04 many words", 0, 1, 0, 1),
        notes=(
            f"No answer is in {lab}, which alone counts, but in the course's own, {own}: `make lab` takes them into "
            "the copy.",
        ),
    )
    for text in ("first = 2", "first = 1"):  # another answer, and that one, which `make lab` has taken
        save(lab, answer("first", text), check("first"))
        assert student_progress.progress(copy)[1] == ChapterProgress("04 many words", 0, 1, 0, 1, unchecked=1)


def test_what_was_replaced_by_the_course_s_own_does_not_count(copy: Path) -> None:
    before = student_progress.progress(copy)
    own = copy / "notebooks" / "03_topic.ipynb"
    own.with_stem("03_topic.2026-11-23_120000").write_bytes(own.read_bytes())
    assert student_progress.progress(copy) == before


def test_the_table_adds_up(copy: Path) -> None:
    table = student_progress.table(student_progress.progress(copy)).splitlines()
    assert table[-2].split() == ["together", "1", "of", "3", "1", "of", "3"]


def test_solved_is_said_to_be_what_the_check_found_when_it_last_ran(copy: Path) -> None:
    table = student_progress.table(student_progress.progress(copy))
    assert table.splitlines()[-1].startswith("Solved is what the check said when it last ran in the notebook.")
    nothing_solved = [chapter for chapter in student_progress.progress(copy) if not chapter.solved]
    assert "Solved is" not in student_progress.table(nothing_solved)


def test_the_command_shows_the_copy_and_says_where_there_is_none(
    copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(copy.parent)
    assert cli.main(["progress"]) == 0
    assert "04 many words" in capsys.readouterr().out
    monkeypatch.chdir(copy)
    assert cli.main(["progress"]) == 2
    assert capsys.readouterr().err == "There is no working copy work yet; `make lab` makes it.\n"


def test_a_cell_of_the_copy_shows_it(
    copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(copy / "notebooks")
    student_progress.show_progress()
    assert "03 topic" in capsys.readouterr().out


def test_the_course_s_own_notebooks_count_as_not_run(root: Path) -> None:
    chapters = student_progress.progress(root)
    assert len(chapters) >= 17 and sum(chapter.exercises for chapter in chapters) > 60
    assert {(chapter.cells_run, chapter.solved) for chapter in chapters} == {(0, 0)}

"""Grading one notebook: points and remarks."""

import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from course_tools.grading.grade import Report
from course_tools.grading.material import Material, load
from distlab.labs import Answer, Verdict, right
from tests.distlab.labs import sample_lab
from tests.distlab.labs.sample_lab import points

slow = pytest.mark.slow

Grading = Callable[..., Report]
Handin = Callable[..., nbformat.NotebookNode]


@slow
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


@slow
def test_an_answer_written_with_jupyter_s_own_syntax_counts(graded: Grading, handed_in: Handin) -> None:
    report = graded(
        handed_in(
            mean="%matplotlib inline\n%time total = 0\ndef mean(values):\n    return values.mean()\nmean?",
            steps="%%time\nimport asyncio\nawait asyncio.sleep(0)\nsteps = 6\n!ls",
        )
    )
    assert report.score == 6, [each.verdict for each in report.exercises]


@slow
def test_magics_with_options_and_a_file_that_a_cell_writes_do_not_stop_an_answer(
    graded: Grading, handed_in: Handin
) -> None:
    made = handed_in(
        mean="%timeit -n 3 -r1 sum([1])\nlisted = !ls\nassert listed == []\nimport helper\nmean = helper.mean",
        steps="%timeit -o sum([1])\nthree = %time sum([1, 2])\n%time steps = 2 * three",
    )
    body = "def mean(values):\n    return float(values.mean())\n"
    made.cells.insert(1, nbformat.v4.new_code_cell(f"%%writefile helper.py\n{body}"))
    made.cells.insert(2, nbformat.v4.new_code_cell("%%timeit -n 2 number = 3\nassert number == 3"))
    made.cells.insert(3, nbformat.v4.new_code_cell("%%timeit\nassert True"))
    report = graded(made)
    assert (report.score, report.remarks) == (6, []), [each.verdict for each in report.exercises]


@slow
def test_a_question_that_nobody_answers_is_named(graded: Grading, handed_in: Handin) -> None:
    [_, steps, _] = graded(handed_in(steps="steps = int(input('Steps: '))")).exercises
    assert "(nobody answers an input() here: write the value into the cell)" in steps.verdict.text


@slow
def test_a_mistake_in_a_cell_is_told_with_class_and_line(graded: Grading, handed_in: Handin) -> None:
    report = graded(handed_in(steps="one = 1\nsteps = one / 0", mean="def mean(values)\n    return 0"))
    assert "line 2 with ZeroDivisionError" in report.exercises[1].verdict.text
    assert "line 1 with SyntaxError" in report.exercises[0].verdict.text
    assert report.score == 3
    notes = ["the cell of mean failed with SyntaxError", "the cell of steps failed with ZeroDivisionError"]
    assert (report.remarks, report.look_at) == (notes, [])


@slow
def test_a_note_has_no_name_of_an_error_that_the_student_chose(graded: Grading, handed_in: Handin) -> None:
    report = graded(handed_in(steps="raise type('full points', (Exception,), {})()"))
    assert report.remarks == ["the cell of steps failed with an error"]


@slow
def test_what_a_newer_python_may_allow_is_to_be_looked_at(graded: Grading, handed_in: Handin) -> None:
    made = handed_in(steps="steps = = 6")
    made.metadata["language_info"] = {"name": "python", "version": "3.99.1"}
    report = graded(made)
    own = ".".join(map(str, sys.version_info[:2]))
    why = f"it may be valid in Python 3.99, with which the notebook was written, but grading runs {own}"
    assert report.look_at == report.remarks == [f"the cell of steps failed with SyntaxError: {why}"]
    assert f"({why})" in report.exercises[1].verdict.text


@slow
@pytest.mark.parametrize("newer", [False, True])
def test_characters_of_text_processors_are_named_in_a_syntax_error(
    graded: Grading, handed_in: Handin, newer: bool
) -> None:
    made = handed_in(
        mean="def mean(values):\n\N{NO-BREAK SPACE}   return 0",
        steps="steps = \N{LEFT DOUBLE QUOTATION MARK}6",
        all_gather='text = "C:\\Users"',
    )
    made.metadata["language_info"] = {"name": "python", "version": "3.99.1" if newer else "3.9.1"}
    report = graded(made)
    texts = [each.verdict.text for each in report.exercises]
    again = "as text processors and web pages write it: type the plain character instead)"
    assert f"line 2 with SyntaxError: invalid non-printable character U+00A0 (no-break space, {again}" in texts[0]
    assert f"(left double quotation mark, {again}" in texts[1]
    assert "a backslash in a text begins a special character: write two, or an r in front" in texts[2]
    assert not report.look_at and not any("Python" in text for text in texts)


@slow
def test_a_package_that_grading_does_not_have_is_named_and_to_be_looked_at(graded: Grading, handed_in: Handin) -> None:
    imported = "def mean(values):\n    import pandas_of_home\n    return float(values.mean())"
    report = graded(
        handed_in(mean=imported, steps="import pandas_of_home.io\nsteps = 6", all_gather="import numpy.no_part")
    )
    failed = "failed with ModuleNotFoundError"
    why = "pandas_of_home is no package of the course, and grading has no others"
    look_at = [f"the answer to mean failed: {why}", f"the cell of steps {failed}: {why}"]
    assert (report.look_at, report.remarks) == (look_at, [*look_at, f"the cell of all_gather {failed}"])
    assert f"({why})" in report.exercises[1].verdict.text


@slow
def test_data_that_was_handed_in_and_is_missed_in_grading_is_to_be_looked_at(
    graded: Grading, handed_in: Handin, tmp_path: Path
) -> None:
    (tmp_path / "six.txt").write_text("6")
    report = graded(
        handed_in(
            mean="def mean(values):\n    return float(open('./six.txt').read())",
            steps="steps = int(open('six.txt').read())",
            all_gather="open('seven.txt')",
        )
    )
    why = "six.txt was handed in, but grading has no file of the student's except the notebook"
    look_at = [f"the answer to mean failed: {why}", f"the cell of steps failed with FileNotFoundError: {why}"]
    assert report.look_at == look_at
    assert report.remarks == [*look_at, "the cell of all_gather failed with FileNotFoundError"]


@slow
def test_the_own_cell_that_failed_is_named_where_its_name_is_missed(
    graded: Grading, handed_in: Handin, tmp_path: Path
) -> None:
    (tmp_path / "helpers.py").touch()
    made = handed_in(mean="def mean(values):\n    return total(values) / len(values)")
    made.cells.insert(2, nbformat.v4.new_code_cell("from helpers import total"))
    report = graded(made)
    reason = "helpers.py was handed in, but grading has no file of the student's except the notebook"
    assert report.look_at == [f"the student's own code cell 2 failed with ModuleNotFoundError: {reason}"]
    assert report.exercises[0].verdict.text == (
        "It raised NameError in line 2 of its cell: name 'total' is not defined. Code cell 2, which has `total`, "
        f"failed: The cell stopped in line 1 with ModuleNotFoundError: No module named 'helpers' ({reason})"
    )
    assert points(report) == {"mean": 0, "steps": 1, "all_gather": 3}


@slow
def test_an_own_cell_that_comes_after_its_use_is_named_and_to_be_looked_at(graded: Grading, handed_in: Handin) -> None:
    made = handed_in(mean="def mean(values):\n    return total(values) / len(values)")
    made.cells.append(nbformat.v4.new_code_cell("def total(values):\n    return sum(values)"))
    number = sum(cell.cell_type == "code" for cell in made.cells)
    report = graded(made)
    assert report.exercises[0].verdict.text == (
        "It raised NameError in line 2 of its cell: name 'total' is not defined. "
        f"Code cell {number}, which defines `total`, comes later: cells run from the top."
    )
    assert report.look_at == [f"an answer needs the student's own code cell {number}, which comes later"]
    assert points(report) == {"mean": 0, "steps": 1, "all_gather": 3}


@pytest.mark.long
@slow
def test_cells_that_the_student_added_run_where_they_stand(graded: Grading, handed_in: Handin) -> None:
    made = handed_in(mean="def mean(values):\n    return added(values) / len(values)")
    place = next(number for number, cell in enumerate(made.cells) if "added" in cell.source)
    made.cells.insert(place, nbformat.v4.new_code_cell("def added(values):\n    return float(sum(values))"))
    made.cells.append(nbformat.v4.new_code_cell("while True: pass"))
    made.cells.append(nbformat.v4.new_code_cell("check('mean')\n# and\ncheck('steps')"))
    report = graded(made)
    assert report.score == 6
    assert report.remarks == ["the student's own code cell 9 was abandoned: it did not end within 6 s and was stopped"]


@slow
def test_files_of_the_lab_are_there_and_nothing_is_written_to_them(
    graded: Grading, handed_in: Handin, sample: Material
) -> None:
    made = handed_in(steps="import given, pathlib\npathlib.Path('given.py').write_text('')\nsteps = given.NUMBER - 1")
    assert graded(made).score == 6
    assert sample.files == {"given.py": b"NUMBER = 7\n"}


@slow
def test_a_deleted_answer_costs_its_points_and_is_noted(graded: Grading, handed_in: Handin) -> None:
    made = handed_in()
    made.cells = [cell for cell in made.cells if cell.metadata.get("nbgrader", {}).get("grade_id") != "steps"]
    report = graded(made)
    assert points(report) == {"mean": 2, "steps": 0, "all_gather": 3}
    assert report.remarks == ["the cell of steps is missing"]


@slow
def test_of_several_answers_to_one_exercise_the_last_counts(graded: Grading, handed_in: Handin) -> None:
    made = handed_in(steps="steps = 5")
    place = next(number for number, cell in enumerate(made.cells) if cell.source == "steps = 5")
    again = nbformat.from_dict(made.cells[place] | {"source": "steps = steps + 1", "id": "copied"})
    untouched = nbformat.from_dict(again | {"source": "steps = None\n# Write your answer here.\n...", "id": "third"})
    made.cells[place + 1 : place + 1] = [again, untouched]
    report = graded(made)
    assert report.score == 6
    assert report.remarks == ["steps is answered in 2 cells, the last one counts"]


@slow
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


@slow
def test_when_the_time_for_the_lab_is_used_up_earlier_points_stay(
    sample_source: Path, graded: Grading, handed_in: Handin
) -> None:
    short = load(sample_source, sample_lab.lab(seconds_per_cell=4, seconds=3))
    report = graded(handed_in(steps="import time\ntime.sleep(100)"), short)
    assert points(report) == {"mean": 2, "steps": 0, "all_gather": 0}
    assert "stopped after 3 s in all" in report.remarks


@slow
def test_own_cells_that_use_up_the_time_for_the_lab_are_named_and_no_answer_is_accused(
    sample_source: Path, graded: Grading, handed_in: Handin
) -> None:
    short = load(sample_source, sample_lab.lab(seconds_per_cell=4, seconds=3))
    made = handed_in()
    [check] = [cell for cell in made.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == "check_mean"]
    place = made.cells.index(check) + 1
    made.cells[place:place] = [nbformat.v4.new_code_cell("import time\ntime.sleep(2)") for _ in range(3)]
    report = graded(made, short)
    assert points(report) == {"mean": 2, "steps": 0, "all_gather": 0}
    [note] = report.remarks
    assert note.startswith("stopped after 3 s in all: the student's own cells took ")
    assert report.look_at == [note]
    assert all("cells that were added used up the time" in graded.verdict.text for graded in report.exercises[1:])

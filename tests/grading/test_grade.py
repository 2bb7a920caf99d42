"""Grading one notebook: points, remarks, and what a cell may take from the course."""

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from distlab.grading.grade import CourseNames, Report
from distlab.grading.material import Material, load
from distlab.labs import Answer, Verdict, right
from tests.labs import sample_lab
from tests.labs.sample_lab import points

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
def test_a_mistake_in_a_cell_is_told_with_class_and_line(graded: Grading, handed_in: Handin) -> None:
    report = graded(handed_in(steps="one = 1\nsteps = one / 0", mean="def mean(values)\n    return 0"))
    assert "line 2 with ZeroDivisionError" in report.exercises[1].verdict.text
    assert "line 1 with SyntaxError" in report.exercises[0].verdict.text
    assert report.score == 3


@slow
def test_cells_that_the_student_added_run_where_they_stand(graded: Grading, handed_in: Handin) -> None:
    made = handed_in(mean="def mean(values):\n    return added(values) / len(values)")
    place = next(number for number, cell in enumerate(made.cells) if "added" in cell.source)
    made.cells.insert(place, nbformat.v4.new_code_cell("def added(values):\n    return float(sum(values))"))
    made.cells.append(nbformat.v4.new_code_cell("while True: pass"))
    made.cells.append(nbformat.v4.new_code_cell("check('mean')\n# and\ncheck('steps')"))
    report = graded(made)
    assert report.score == 6
    assert report.remarks == ["the student's own code cell 9 failed"]


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
    short = load(sample_source, sample_lab.lab(seconds_per_cell=1.5, seconds=1.4))
    report = graded(handed_in(steps="import time\ntime.sleep(100)"), short)
    assert points(report) == {"mean": 2, "steps": 0, "all_gather": 0}
    assert "stopped after 1.4 s in all" in report.remarks


GIVEN = [
    "import numpy as np\nfrom distlab import data, labs\nfrom distlab.simulate import Rank\nlab = labs.open('06')",
    "hvd = lab.given.hvd\nprint(lab.given.described())",
]
TAKES = [
    "from distlab.labs.lab_03.lab import numbers_of",
    "import distlab.labs.lab_03.lab",
    "import distlab.labs.lab_03.lab as mine",
    "from distlab.labs import lab_03",
    "from distlab.labs import *",
    "import distlab\ndistlab.labs.lab_03",
    "import distlab as d\nd.labs.lab_03.lab",
    "labs.lab_03.lab.numbers_of(1)",
    "from distlab import labs as mine\nmine.lab_03",
    "getattr(labs, 'lab_03')",
    "vars(labs)",
    "mine = labs\nmine.lab_03",
    "(mine := labs.registry).lab('03')",
    "labs.open('03')._lab",
    "lab._lab['numbers'].judge",
    "lab.check.__globals__",
    "lab.given.__loader__",
    "mine = lab\nmine._lab",
    "async def program(rank: Rank):\n    return labs.registry.lab('06')",
    "importlib.import_module('distlab.labs.lab_03.lab')",
    "from distlab import collectives",
    "import distlab.collectives as c",
    "%time\nlabs.lab_03",
]
MAY_USE = [
    "from distlab import labs\nlab = labs.open('06')\nlab.check('steps')",
    "print(lab.target('steps'), lab.given.FIELDS, lab.given.described())",
    "hvd.init()\nlab.given.hvd.rank()",
    "import distlab\nfrom distlab import data, simulate\ndistlab.simulate.World(2)",
    "labels, lab_1 = data.labels, 2",
    "def labelled(given):\n    return given.labs._private",
    "not Python at all",
]


@pytest.mark.parametrize("cell", TAKES)
def test_a_cell_that_takes_its_answer_from_the_course_is_found(cell: str) -> None:
    assert CourseNames(GIVEN, ["distlab.collectives"]).taken(cell)


@pytest.mark.parametrize("cell", MAY_USE)
def test_a_cell_may_use_what_the_given_cells_use_and_the_rest_of_the_course(cell: str) -> None:
    assert CourseNames(GIVEN, ["distlab.collectives"]).taken(cell) == []


def test_what_a_given_cell_imports_a_cell_may_use_although_it_is_asked_for_elsewhere() -> None:
    names = CourseNames([*GIVEN, "from distlab.collectives import all_gather"], ["distlab.collectives"])
    assert names.taken("from distlab.collectives import all_gather\nresult = all_gather") == []
    assert names.taken("from distlab.collectives import ring_all_reduce") == ["distlab.collectives.ring_all_reduce"]


def test_another_name_is_followed_from_cell_to_cell() -> None:
    names = CourseNames(GIVEN)
    assert names.taken("import distlab as d") == []
    assert names.taken("answer = d.labs.lab_03.answer") != []


def test_a_long_or_deep_cell_does_not_stop_the_grader() -> None:
    for cell in ("labs" + ".a" * 50_000, "(" * 10_000 + ")" * 10_000, "labs()" + "()" * 2_000, "\x00"):
        CourseNames(GIVEN).taken(cell)

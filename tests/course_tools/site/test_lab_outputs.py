"""Outputs of a lab's given cells: those that no answer changes, for every lab of the course."""

import json
from pathlib import Path
from typing import Any

import pytest

from course_tools.site import lab_outputs

LABS = sorted(Path(__file__).parents[3].glob("labs/[0-9][0-9]_*/lab.ipynb"))


def code(source: str, output: str = "", **nbgrader: bool) -> dict[str, Any]:
    outputs = [{"output_type": "stream", "name": "stdout", "text": output}] if output else []
    return {"cell_type": "code", "source": source, "outputs": outputs, "metadata": {"nbgrader": nbgrader}}


@pytest.mark.parametrize(
    ("given", "has_output"),
    [
        ('print("answer")', True),
        ("print(answer)", False),
        ("doubled = 2 * answer\ndoubled", False),
        ("print(number_of_answers)", True),
        ("!python program.py", False),
        ("%%bash\nls *.json && echo", False),
        ("for each in: nothing", False),
    ],
)
def test_a_given_cell_has_its_output_unless_it_uses_an_answer(given: str, has_output: bool) -> None:
    lab = [code("answer = ..."), code(given)]
    solved = [code("answer = 42"), code(given, "something\n")]
    assert bool(lab_outputs.with_outputs(lab, solved)[1]["outputs"]) is has_output


def test_what_is_made_of_an_answer_by_a_given_cell_is_not_shown_by_the_next() -> None:
    sources = ["doubled = 2 * answer", "def shown(): return doubled", "print(shown())", "print(1)"]
    lab = [code("answer = ..."), *map(code, sources)]
    solved = [code("answer = 42"), *(code(source, "output") for source in sources)]
    outputs = [bool(cell["outputs"]) for cell in lab_outputs.with_outputs(lab, solved)]
    assert outputs == [False, False, False, False, True]


def test_a_cell_before_the_first_answer_may_run_a_command_and_a_check_says_nothing() -> None:
    lab = [code("!ls"), code("answer = ..."), code('lab.check("answer")', grade=True)]
    solved = [code("!ls", "file"), code("answer = 42"), code('lab.check("answer")', "right", grade=True)]
    outputs = [bool(cell["outputs"]) for cell in lab_outputs.with_outputs(lab, solved)]
    assert outputs == [True, False, False]


@pytest.mark.parametrize("file", LABS, ids=[file.parent.name for file in LABS])
def test_every_lab_shows_what_it_gives_and_no_word_of_a_check(file: Path) -> None:
    cells, solved = (json.loads(path.read_text())["cells"] for path in (file, file.with_name("solution.ipynb")))
    before = json.dumps(cells)
    shown = [cell for cell in lab_outputs.with_outputs(cells, solved) if cell.get("outputs")]
    assert shown
    assert json.dumps(cells) == before
    assert "\u2714" not in "".join(json.dumps(cell["outputs"], ensure_ascii=False) for cell in shown)
    assert not any(cell["metadata"].get("nbgrader", {}).get("solution") for cell in shown)

"""The table of the eight steps in notebook 14 names what stands in the programs."""

import re
from pathlib import Path

import nbformat
import pytest

PROGRAMS = ("train_tensorflow.py", "train_horovod.py", "train_ddp.py", "train_fsdp.py", "train_deepspeed.py")


def tables(root: Path) -> list[list[list[str]]]:
    """The cells of the two tables, without their headings."""
    notebook = nbformat.read(root / "notebooks" / "14_other_frameworks.ipynb", as_version=4)
    [text] = [cell.source for cell in notebook.cells if "| 1 initialise |" in cell.source]
    found = []
    for heading in ("| step | TensorFlow |", "| step | `fully_shard` |"):
        lines = text[text.index(heading) :].split("\n\n")[0].splitlines()[2:]
        found.append([line.strip("| ").split(" | ") for line in lines])
    return found


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_has_each_of_the_eight_steps_once(root: Path, program: str) -> None:
    source = (root / "notebooks/programs/14_other_frameworks" / program).read_text()
    assert sorted(re.findall(r"Step (\d)", source)) == list("12345678")


def test_the_tables_have_the_eight_steps_and_those_that_differ(root: Path) -> None:
    first, second = tables(root)
    assert [row[0][0] for row in first] == list("12345678")
    assert [row[0][0] for row in second] == list("1456")
    assert {len(row) for row in first} == {4} and {len(row) for row in second} == {3}


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_call_in_the_tables_is_in_its_program(root: Path, program: str) -> None:
    source = (root / "notebooks/programs/14_other_frameworks" / program).read_text()
    table, column = divmod(PROGRAMS.index(program), 3)
    calls = [call for row in tables(root)[table] for call in re.findall(r"`([^`]+)`", row[1 + column])]
    assert len(calls) >= 3
    assert [call for call in calls if call not in source] == []

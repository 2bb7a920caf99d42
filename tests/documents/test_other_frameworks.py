"""The table of the eight steps in notebook 14 names what stands in the programs."""

import re
from pathlib import Path

import nbformat
import pytest

PROGRAMS = ("train_tensorflow.py", "train_horovod.py", "train_ddp.py", "train_fsdp.py", "train_deepspeed.py")


def table(root: Path) -> list[list[str]]:
    """The cells of the table, without its heading."""
    notebook = nbformat.read(root / "notebooks" / "14_other_frameworks.ipynb", as_version=4)
    [text] = [cell.source for cell in notebook.cells if "| 1 initialise |" in cell.source]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if re.match(r"\| \d ", line)]
    assert [row[0][0] for row in rows] == list("12345678")
    assert {len(row) for row in rows} == {1 + len(PROGRAMS)}
    return rows


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_has_each_of_the_eight_steps_once(root: Path, program: str) -> None:
    source = (root / "labs" / "14_other_frameworks" / program).read_text()
    assert sorted(re.findall(r"Step (\d)", source)) == list("12345678")


@pytest.mark.parametrize("column", range(len(PROGRAMS)))
def test_every_call_in_the_table_is_in_its_program(root: Path, column: int) -> None:
    source = (root / "labs" / "14_other_frameworks" / PROGRAMS[column]).read_text()
    for row in table(root):
        cell = row[1 + column] if row[1 + column] != "as DDP" else row[1 + PROGRAMS.index("train_ddp.py")]
        for call in re.findall(r"`([^`]+)`", cell):
            assert call in source, (row[0], PROGRAMS[column], call)

"""The folder that Sphinx reads: a run takes the place of the committed notebook, what cannot be read is left out."""

import json
import os
import re
from pathlib import Path

import nbformat
import pytest

from course_tools.site import sources

NOTEBOOK = Path("notebooks/01_rings.ipynb")


@pytest.mark.parametrize(
    ("run", "shown"),
    [("whole", "two"), ("older", "2"), ("interrupted", "2"), ("damaged", "2")],
)
def test_a_newer_run_that_came_to_its_end_takes_the_place_of_the_committed_notebook(
    course: Path, capsys: pytest.CaptureFixture[str], run: str, shown: str
) -> None:
    executed = course.parent / "executed" / NOTEBOOK.name
    executed.parent.mkdir()
    notebook = nbformat.read(course / NOTEBOOK, as_version=4)
    cell = notebook.cells[2]
    cell.outputs[0].text = "two\n"
    if run == "interrupted":
        cell.execution_count = None
    nbformat.write(notebook, executed)
    if run == "damaged":
        executed.write_text('{"cells": [')
    elif run == "older":
        os.utime(executed, (0, 0))
    sources.gather(course, course.parent / "gathered", executed.parent, no_solutions=False)
    gathered = nbformat.read(course.parent / "gathered" / NOTEBOOK, as_version=4)
    assert gathered.cells[2].outputs[0].text.strip() == shown
    said = capsys.readouterr().out
    assert said.endswith(": 01.\n") if shown == "2" else said == ""


def test_a_damaged_notebook_and_a_copy_have_no_page(course: Path) -> None:
    (course / "notebooks" / "02_more.ipynb").write_text("<<<<<<< HEAD\n")
    (course / "notebooks" / "01_rings-Copy1.ipynb").write_text((course / NOTEBOOK).read_text())
    [problem] = sources.gather(course, course.parent / "gathered", None, no_solutions=False)
    assert "notebooks/02_more.ipynb cannot be read as a notebook; `git checkout " in problem
    assert [file.name for file in (course.parent / "gathered" / "notebooks").iterdir()] == ["01_rings.ipynb"]
    assert "Copy1" not in (course.parent / "gathered" / "index.md").read_text()


def test_pages_are_in_order_of_parts_and_readers_and_the_last_run_has_a_page_of_its_own(course: Path) -> None:
    (course.parent / "executed").mkdir()
    row = {"notebook": "01_rings", "status": "ok", "seconds": 3.0, "peak_memory_mib": 2000.0}
    (course.parent / "report.json").write_text(json.dumps({"notebooks": [row]}))
    gathered = course.parent / "gathered"
    sources.gather(course, gathered, course.parent / "executed", no_solutions=False)
    index, maintain, last = ((gathered / f"{name}.md").read_text() for name in ("index", "maintain", "last_run"))
    assert re.findall(":caption: (.+)", index) == ["One process", "Help", "Teach", "Maintain"]
    assert re.findall("^(?:Lab .+|/.+)", index, re.M) == [
        "/notebooks/01_rings",
        "Lab 01 </labs/01_rings/lab>",
        "/docs/glossary",
        "/maintain",
    ]
    assert maintain.startswith("# ") and "\n/last_run\n" in maintain and ":hidden:" not in maintain
    assert "| [01_rings](notebooks/01_rings.ipynb) | ok | 3 | 2,000 |" in last

"""The committed notebooks: made from `notebooks/src/*.py`, executed, and freed of what belongs to one machine.

A notebook that is made notes in its metadata what its cells were, without outputs and tags: if somebody has edited the
notebook itself, it is not made again, which would drop the edits.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jupytext
import nbformat
import psutil
from nbclient import NotebookClient
from nbformat import NotebookNode

from course_tools import glossary
from course_tools.chapters import chosen, number_of
from distlab.runtime.errors import PlainError

SECONDS_PER_CELL = 900
# Measured outputs are recorded only while other programs leave the processors alone.
SECONDS_TO_WATCH, BUSY_PERCENT = 3.0, 15.0
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
# A cell with this tag shows what differs from run to run (times, this machine); its outputs are not compared.
VARIES = "varies"
# For pytest-notebook. Emptying the texts first saves minutes: it would look for the differences between two pictures
# of a measurement, character by character, before it ignores them.
NOT_COMPARED = {
    "diff_ignore": ["/outputs"],
    "diff_replace": [[f"/outputs/*/{place}", "(?s).+", ""] for place in ("data", "text")],
}


def sources(folder: Path, only: str | None = None) -> list[Path]:
    """The text sources in `folder`/src, in the order of the course; `only` is that of `chapters.chosen`."""
    return chosen(sorted((folder / "src").glob("[0-9][0-9]*_*.py")), only)


def read(file: Path) -> NotebookNode:
    """A committed notebook. Raises PlainError where the file is none, as after a merge conflict."""
    try:
        return nbformat.read(file, as_version=4)
    except Exception as fault:  # as damaged as a file can be
        raise PlainError(
            f"{file} cannot be read as a notebook; `git checkout {file}` restores it, without your changes."
        ) from fault


def notebook_of(source: Path) -> Path:
    """The committed notebook that belongs to a text source."""
    return source.parent.parent / f"{source.stem}.ipynb"


def convert(source: Path) -> NotebookNode:
    """The notebook of a chapter without outputs, with links to the glossary; the same for the same text."""
    notebook = convert_plainly(source.read_text(), number_of(source.stem))
    glossary.link_first_uses(notebook, source.parents[2] / "docs" / "glossary.md", "../docs/glossary.md")
    return notebook


def convert_plainly(text: str, number: str) -> NotebookNode:
    """The notebook that a source's text describes, without outputs; the same for the same text, cell ids included.

    `number` is that of its chapter.
    """
    notebook = jupytext.reads(text, fmt="py:percent")
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    for index, cell in enumerate(notebook.cells):
        cell["id"] = f"{number}-{index:02d}"
        if VARIES in cell.metadata.get("tags", []):
            cell.metadata["nbreg"] = nbformat.from_dict(NOT_COMPARED)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def execute(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """Run every cell in a fresh kernel that starts in `folder`; the notebook itself gets the outputs.

    Raises what nbclient raises, which shows the cell that fails.
    """
    NotebookClient(
        notebook,
        timeout=SECONDS_PER_CELL,
        kernel_name="python3",
        record_timing=False,
        store_widget_state=False,
        # pytest-notebook joins what a cell prints into one output before it compares, whenever it was printed.
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    ).execute(stderr=subprocess.DEVNULL)  # the kernel's, where TensorFlow's C++ code reports
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def clean(notebook: NotebookNode) -> NotebookNode:
    """Replace what names this machine (home, environment, project, data) in the outputs; drop widget views."""
    project = Path(__file__).parents[2]
    names = {str(project): "…", sys.prefix: "….venv", str(Path.home()): "~"}
    if data := os.environ.get("DISTLAB_DATA"):
        names[data] = "…"
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        for output in cell.outputs:
            output.get("data", {}).pop(WIDGET_VIEW, None)
        text = json.dumps(cell.outputs, ensure_ascii=False)
        for name, neutral in names.items():
            text = text.replace(name, neutral)
        cell.outputs = nbformat.from_dict(json.loads(re.sub(r"/tmp/[\w.-]+", "/tmp/…", text)))
    notebook.metadata.pop("widgets", None)
    return notebook


def require_idle(watch: float = SECONDS_TO_WATCH) -> None:
    """Raise PlainError if the processors are used, by the mean over all of them in the next `watch` seconds."""
    percent = psutil.cpu_percent(interval=watch)
    if percent > BUSY_PERCENT:
        raise PlainError(
            f"Other programs use {percent:.0f} % of the processors, which would show in the recorded outputs: wait "
            "until they have ended, or record all the same with `distlab notebooks --force`."
        )


def regenerate(source: Path, text_only: bool = False) -> Path:
    """Write the notebook of a text source with fresh outputs, or with those that it has; return its file.

    Raises what `require_not_edited` and `execute` raise, and PlainError for `text_only` if code has changed: the file
    then stays as it is.
    """
    target, notebook = notebook_of(source), convert(source)
    require_not_edited(target, source)
    if text_only:
        _take_outputs(notebook, target)
    else:
        clean(execute(notebook, target.parent))
    note_cells(notebook)
    nbformat.validate(notebook)
    nbformat.write(notebook, target)
    return target


def _take_outputs(notebook: NotebookNode, recorded: Path) -> None:
    """Take over the outputs of a recorded notebook, whose code must be the same. Raises PlainError."""
    code, old_code = ([cell for cell in each.cells if cell.cell_type == "code"] for each in (notebook, read(recorded)))
    if [cell.source for cell in code] != [cell.source for cell in old_code]:
        raise PlainError(f"The code in {recorded} is another one; `make notebooks` executes the notebook again.")
    for cell, old in zip(code, old_code, strict=True):
        cell.outputs, cell.execution_count = old.outputs, old.execution_count


def note_cells(notebook: NotebookNode) -> None:
    """Note in the metadata what the cells are now."""
    notebook.metadata["distlab"] = nbformat.from_dict({"cells": _digest(notebook)})


def require_not_edited(file: Path, source: Path) -> None:
    """Raise PlainError if the notebook `file` has other cells than it was made with; `source` is its text."""
    try:
        notebook = nbformat.read(file, as_version=4)
    except Exception:  # whatever is wrong with it, there is nothing to keep for people who edit notebooks
        return
    if notebook.metadata.get("distlab", {}).get("cells") not in (None, _digest(notebook)):
        raise PlainError(
            f"{file} was edited itself, and making it again would drop these edits: make them in {source}, then remove "
            f"{file.name} and repeat the command."
        )


def _digest(notebook: NotebookNode) -> str:
    cells = [[cell.cell_type, cell.source] for cell in notebook.cells]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()

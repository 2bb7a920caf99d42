"""The commands that run notebooks and record what they give: the committed outputs, and those of a cluster."""

from pathlib import Path

import nbformat
from nbclient.exceptions import CellControlSignal

from course_tools import notebooks
from distlab import cluster
from distlab.runtime.errors import PlainError

NOTEBOOKS = Path("notebooks")
WRITE = "login.record()"
"""The cell that is added to record a cluster; `login` is the notebook's LoginNode."""


def write_notebooks(*, only: str | None = None, force: bool = False, text: bool = False) -> int:
    """Write the committed notebooks from their text sources; returns the exit status.

    Args:
        only: Some notebooks by number or name: "03" or "02,04".
        force: Also while other programs use the processors.
        text: Only write text and tags, and keep the outputs; no code may have changed.
    """
    for source in notebooks.sources(NOTEBOOKS, only):
        if not (force or text):
            notebooks.require_idle()
        try:
            print(notebooks.regenerate(source, text_only=text), flush=True)
        except CellControlSignal as fault:
            print(f"{fault}\n{notebooks.notebook_of(source)} was not written.")
            return 1
    return 0


def record_cluster(*, force: bool = False) -> None:
    """Run notebook 15 on the cluster that runs, and record what it gives.

    The committed notebook stays as it is: the record is for those who have no cluster.

    Args:
        force: Also while other programs use the processors.
    """
    if cluster.find() is None:
        raise PlainError("No cluster runs; start one with 'make cluster'.")
    if not force:
        notebooks.require_idle()
    [source] = notebooks.sources(NOTEBOOKS, "15")
    notebook = notebooks.convert(source)
    notebook.cells.append(nbformat.v4.new_code_cell(WRITE))
    notebooks.execute(notebook, NOTEBOOKS)
    print("Recorded; `make notebooks ONLY=15` shows it.")

"""Recording notebooks, each in a process of its own: nbclient has signals ask for the kernel's end, and fails then.

`python -m course_tools.recording SOURCE` records one, and with `--cluster` what notebook 15 gets from a cluster.
"""

import sys
from pathlib import Path

import nbformat

from course_tools import notebooks
from distlab import cluster
from distlab.runtime import processes
from distlab.runtime.errors import PlainError

NOTEBOOKS = Path("notebooks")
SECONDS_TO_RECORD = 3600.0
WRITE = "login.record()"
"""The cell that is added for `--cluster`; `login` is the notebook's LoginNode."""


def write_notebooks(*, only: str | None = None, force: bool = False, text: bool = False) -> int:
    """Write the committed notebooks from their text sources; returns the exit status.

    Args:
        only: Some notebooks by number or name: "03" or "02,04".
        force: Also while other programs use the processors.
        text: Only write text and tags, and keep the outputs; no code may have changed.
    """
    processes.end_on_signals()
    for source in notebooks.sources(NOTEBOOKS, only):
        if text:
            print(notebooks.regenerate(source, text_only=True), flush=True)
        elif status := _record(str(source), force=force):
            print(f"{notebooks.notebook_of(source)} was not written.")
            return status
    return 0


def record_cluster(*, force: bool = False) -> int:
    """Run notebook 15 on the cluster that runs, and record what it gives; returns the exit status.

    The committed notebook stays as it is: the record is for those who have no cluster.

    Args:
        force: Also while other programs use the processors.
    """
    processes.end_on_signals()
    if cluster.find() is None:
        raise PlainError("No cluster runs; start one with 'make cluster'.")
    [source] = notebooks.sources(NOTEBOOKS, "15")
    return _record(str(source.resolve()), "--cluster", force=force)


def _record(*arguments: str, force: bool) -> int:
    """Run this module; whatever a notebook has started is ended with it."""
    if not force:
        notebooks.require_idle()
    finished = processes.run([sys.executable, "-P", "-m", "course_tools.recording", *arguments], SECONDS_TO_RECORD)
    # Above the last line kernels may have said something.
    print(finished.output if finished.status != 0 else finished.output.splitlines()[-1], flush=True)
    return 1 if finished.status is None else finished.status


def main(source: Path, with_cluster: bool) -> None:
    """Record the notebook of a text source."""
    if with_cluster:
        notebook = notebooks.convert(source)
        notebook.cells.append(nbformat.v4.new_code_cell(WRITE))
        notebooks.execute(notebook, source.parents[1])
        print("Recorded; `make notebooks ONLY=15` shows it.")
    else:
        print(notebooks.regenerate(source))


if __name__ == "__main__":
    main(Path(sys.argv[1]), "--cluster" in sys.argv)

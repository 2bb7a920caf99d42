"""What a notebook needs beside the course's packages: a tag of its first cell says so, and without it is skipped."""

from pathlib import Path

import nbformat

from distlab import launch

# By tag: the function that gives None when the need is met, else one sentence with the reason and the mend.
NEEDS = {"needs-horovod": launch.horovod_problem}


def missing(notebook: Path) -> str | None:
    """Why this notebook cannot run here, in one sentence; None when it can."""
    first = nbformat.read(notebook, as_version=4).cells[:1]
    tags = [tag for cell in first for tag in cell.metadata.get("tags", [])]
    return next(filter(None, (NEEDS[tag]() for tag in tags if tag in NEEDS)), None)

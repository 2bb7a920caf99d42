"""Files as students hand them in, in the folder that is graded; and the end of what their code has started."""

import time
from pathlib import Path

import nbformat
import psutil

LAB = "90_sample"


def put(folder: Path, student: str, content: nbformat.NotebookNode | str, name: str = f"{LAB}/lab.ipynb") -> Path:
    file = folder / student / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else nbformat.writes(content))
    return file


def wait_for_the_end_of(mark: str) -> None:
    """Until no process has this word in its command."""
    until = time.monotonic() + 300
    while any(mark in (process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])):
        assert time.monotonic() < until
        time.sleep(0.05)

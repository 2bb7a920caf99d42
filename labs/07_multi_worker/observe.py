"""What `save` does as one worker of a fake cluster; runs in the process of the student's code.

The workers are called one after the other, so nothing can hang here. The judge's process notes the collectives, and
says what they give.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from distlab.labs.plain_data import Plain

Ask = Callable[[str], Plain]

SAVE, RESULT = "model.save", "accuracy.result"


@dataclass(frozen=True)
class Worker:
    """One task of a cluster, and whether it is the chief."""

    task_type: str
    index: int
    is_chief: bool


class FakeModel:
    """Saves what the judge gives it; like a real model, it reads variables of all workers: a collective."""

    def __init__(self, ask: Ask) -> None:
        """Each call asks the judge."""
        self._ask = ask
        self.saved_to: list[Path] = []

    def save(self, path: str | Path) -> None:
        """Write the model to `path`, whose folder must exist."""
        Path(path).write_text(str(self._ask(SAVE)))
        self.saved_to.append(Path(path).absolute())


class FakeMetric:
    """A metric with a part on every worker, so that reading it is a collective."""

    def __init__(self, ask: Ask) -> None:
        """Each call asks the judge."""
        self._ask = ask

    def result(self) -> float:
        """The value over all workers."""
        return float(str(self._ask(RESULT)))


@dataclass(frozen=True)
class FilesLeft:
    """What one worker left: in the shared folder (relative path to text), in that for temporary files, elsewhere.

    The first two folders are the worker's own, so that every file in them is its work. `written` are the paths to which
    it saved the model, also those that are gone: in the shared folder relative to that, else absolute.
    """

    folder: dict[str, str]
    temporary: list[str]
    elsewhere: list[str]
    written: list[str]


def call_save(
    namespace: Mapping[str, Any], ask: Ask, task_type: str, index: int, is_chief: bool
) -> dict[str, Any] | None:
    """Call `save(worker, model, accuracy, folder)` for one task; the fields of FilesLeft, None without a `save`."""
    save = namespace.get("save")
    if save is None:
        return None
    model, usual = FakeModel(ask), tempfile.tempdir
    home = Path(tempfile.mkdtemp())
    folder, temporary = home / "saved", home / "temporary"
    folder.mkdir()
    temporary.mkdir()
    try:
        tempfile.tempdir = str(temporary)
        save(Worker(task_type, index, is_chief), model, FakeMetric(ask), folder)
        written = [Path(os.path.normpath(path)) for path in model.saved_to]
        left = FilesLeft(
            files(folder),
            sorted(path.name for path in temporary.iterdir()),
            [str(path) for path in written if not path.is_relative_to(home) and path.exists()],
            [
                path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)
                for path in written
                if not path.is_relative_to(temporary)  # which nobody shares
            ],
        )
        return asdict(left)
    finally:
        tempfile.tempdir = usual
        shutil.rmtree(home, ignore_errors=True)
        for path in model.saved_to:
            path.unlink(missing_ok=True)


def files(folder: Path) -> dict[str, str]:
    """The text of every file below a folder, by its relative path."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text(errors="replace")[:1000] for path in found}

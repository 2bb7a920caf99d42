"""A cluster in one process, to rehearse what its workers do at the end of a training: who takes part, who writes what.

The workers are called one after the other. So nothing can hang here, and what would be a deadlock or a race on a real
cluster shows in the record: collectives that not all took part in, files of one name that several wrote. The
collectives are noted in the judge's process, which also says what they give.
"""

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from distlab.labs.plain_data import Plain

Cluster = Mapping[str, Sequence[str]]
Ask = Callable[[str], Plain]

SAVE, RESULT = "model.save", "accuracy.result"


@dataclass(frozen=True)
class Worker:
    """One task of a cluster: its type, its index among those of its type, and whether it is the chief."""

    task_type: str
    index: int
    is_chief: bool

    @property
    def name(self) -> str:
        """Such as "worker 0"."""
        return f"{self.task_type} {self.index}"


class RehearsedModel:
    """Saves what the judge gives it; like a real model, it reads variables of all workers: a collective."""

    def __init__(self, ask: Ask) -> None:
        """Each call asks the judge."""
        self._ask = ask
        self.saved_to: list[Path] = []

    def save(self, path: str | Path) -> None:
        """Write the model to `path`, whose folder must exist."""
        Path(path).write_text(self._ask(SAVE))
        self.saved_to.append(Path(path).absolute())


class RehearsedMetric:
    """A metric whose parts lie on all workers, so that reading it is a collective."""

    def __init__(self, ask: Ask) -> None:
        """Each call asks the judge."""
        self._ask = ask

    def result(self) -> float:
        """The value over all workers."""
        return self._ask(RESULT)


@dataclass
class Collectives:
    """In the judge's process: notes the calls of one worker in order, and says what they give."""

    model: str
    accuracy: float
    called: list[str] = field(default_factory=list)

    def __call__(self, call: Plain) -> Plain:
        """What a call gives; None for what is no collective."""
        if not isinstance(call, str) or call not in (SAVE, RESULT):
            return None
        self.called.append(call)
        return self.model if call == SAVE else self.accuracy


def workers_of(cluster: Cluster) -> list[Worker]:
    """The tasks of a cluster, in order."""
    chief = "chief" if "chief" in cluster else "worker"
    tasks = [(task_type, index) for task_type in cluster for index in range(len(cluster[task_type]))]
    return [Worker(task_type, index, (task_type, index) == (chief, 0)) for task_type, index in tasks]


def rehearse(
    namespace: Mapping[str, object], ask: Ask, name: str, task_type: str, index: int, is_chief: bool
) -> dict | None:
    """Call `name(worker, model, accuracy, folder)` for one task; what it left, or None without such a function.

    folder: the files (relative path to text) in the shared folder.  temporary: those in the folder for temporary files.
    elsewhere: which files it saved in another place and left there. The folders are its own, so that every file in them
    is its work.
    """
    save = namespace.get(name)
    if save is None:
        return None
    worker = Worker(task_type, index, is_chief)
    model, usual = RehearsedModel(ask), tempfile.tempdir
    home = Path(tempfile.mkdtemp())
    folder, temporary = home / "saved", home / "temporary"
    folder.mkdir()
    temporary.mkdir()
    try:
        tempfile.tempdir = str(temporary)
        save(worker, model, RehearsedMetric(ask), folder)
        elsewhere = [path for path in model.saved_to if not path.is_relative_to(home) and path.exists()]
        return {
            "folder": _files(folder),
            "temporary": sorted(_files(temporary)) or sorted(path.name for path in temporary.iterdir()),
            "elsewhere": [str(path) for path in elsewhere],
        }
    finally:
        tempfile.tempdir = usual
        shutil.rmtree(home, ignore_errors=True)
        for path in model.saved_to:
            path.unlink(missing_ok=True)


def _files(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text(errors="replace")[:1000] for path in files}

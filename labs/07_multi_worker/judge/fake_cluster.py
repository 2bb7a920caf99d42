"""The exercise `save`: a fake cluster in one process, what its workers do there, and the judge of it.

The workers are called one after the other, so nothing can hang here. A deadlock or a race on a real cluster shows in
the record: collectives that not all took part in, files of one name that several wrote. The judge's process notes the
collectives, and says what they give.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from lab_07.hints import Lab07Hint

from distlab.labs.answer import Answer
from distlab.labs.plain_data import Plain, as_record
from distlab.labs.verdict import AnyHint, Verdict, not_done, right, wrong

Cluster = dict[str, list[str]]
Task = tuple[str, int]
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


def drawn_clusters(generator: np.random.Generator) -> list[Cluster]:
    """Clusters with and without a chief and parameter servers, in several orders; hosts and ports are drawn."""

    def addresses(job: str, count: int) -> list[str]:
        return [f"{job}{number}.lab:{port}" for number, port in enumerate(generator.integers(2000, 60000, count))]

    return [
        {"worker": addresses("node", int(generator.integers(3, 5)))},
        {"chief": addresses("head", 1), "worker": addresses("node", int(generator.integers(2, 4)))},
        {"chief": addresses("head", 1), "worker": addresses("node", 2), "ps": addresses("store", 2)},
        {"worker": addresses("node", 2), "ps": addresses("store", 1)},
        {"ps": addresses("store", 2), "worker": addresses("node", 2), "chief": addresses("head", 1)},
        {"ps": addresses("store", 1), "worker": addresses("node", 3)},
    ]


def tasks_of(cluster: Cluster) -> list[Task]:
    """The type and index of every process of a cluster, in order."""
    return [(task_type, index) for task_type in cluster for index in range(len(cluster[task_type]))]


def in_words(cluster: Cluster) -> str:
    """Such as "a cluster of 1 chief, 2 worker"."""
    return "a cluster of " + ", ".join(f"{len(addresses)} {job}" for job, addresses in cluster.items())


def workers_of(cluster: Cluster) -> list[Worker]:
    """The tasks of a cluster, in order, with its chief."""
    chief = "chief" if "chief" in cluster else "worker"
    return [Worker(*task, is_chief=task == (chief, 0)) for task in tasks_of(cluster)]


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
    worker = Worker(task_type, index, is_chief)
    model, usual = FakeModel(ask), tempfile.tempdir
    home = Path(tempfile.mkdtemp())
    folder, temporary = home / "saved", home / "temporary"
    folder.mkdir()
    temporary.mkdir()
    try:
        tempfile.tempdir = str(temporary)
        save(worker, model, FakeMetric(ask), folder)
        elsewhere = [path for path in model.saved_to if not path.is_relative_to(home) and path.exists()]
        return asdict(
            FilesLeft(
                _files(folder),
                sorted(_files(temporary)) or sorted(path.name for path in temporary.iterdir()),
                [str(path) for path in elsewhere],
                _shared_paths(model.saved_to, folder, temporary),
            )
        )
    finally:
        tempfile.tempdir = usual
        shutil.rmtree(home, ignore_errors=True)
        for path in model.saved_to:
            path.unlink(missing_ok=True)


def _shared_paths(paths: Sequence[Path], folder: Path, temporary: Path) -> list[str]:
    """Those paths that another worker could name too: nobody shares `temporary`."""
    resolved = [Path(os.path.normpath(path)) for path in paths]
    return [
        path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)
        for path in resolved
        if not path.is_relative_to(temporary)
    ]


def _files(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text(errors="replace")[:1000] for path in files}


@dataclass(frozen=True)
class WorkerRecord:
    """What one worker called, in order, and what it left."""

    name: str
    is_chief: bool
    collectives: list[str]
    files: FilesLeft


def judge_save(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Call `save` for every worker of two fake clusters, one of which names a chief."""
    for cluster in drawn_clusters(generator)[:2]:
        accuracy = float(generator.integers(500, 999)) / 1000
        model = f"a model, number {generator.integers(10**9)}"
        records = []
        for worker in workers_of(cluster):
            record = _record(answer, worker, Collectives(model, accuracy))
            if record is None:
                return not_done("there is no `save` yet: run the cell above")
            records.append(record)
        if not any(record.collectives or record.files.folder or record.files.temporary for record in records):
            return not_done("`save` does nothing")
        if hint := _hint_of_records(records, model, accuracy):
            return wrong(hint, context=f"In {in_words(cluster)}: ")
    return right(
        "Everybody takes part in every collective, the chief alone keeps the files, and nothing is left behind."
    )


def _record(answer: Answer, worker: Worker, collectives: Collectives) -> WorkerRecord | None:
    """What one worker calls and leaves; None if there is no `save`."""
    files = answer.inside(call_save, worker.task_type, worker.index, worker.is_chief, respond=collectives)
    if files is None:
        return None
    left = as_record(files, FilesLeft, "what `save` leaves")
    return WorkerRecord(worker.name, worker.is_chief, collectives.called, left)


def _hint_of_records(records: Sequence[WorkerRecord], model: str, accuracy: float) -> AnyHint | None:
    (chief,) = [record for record in records if record.is_chief]
    peers = [record for record in records if not record.is_chief]
    return (
        _hint_of_collectives(chief, peers)
        or _hint_of_chief(chief.files.folder, model, accuracy)
        or next((hint for peer in peers if (hint := _hint_of_peer(peer, chief))), None)
        or next((hint for pair in combinations(records, 2) if (hint := _hint_of_pair(*pair))), None)
        or next((hint for record in records if (hint := _hint_of_rest(record))), None)
    )


def _hint_of_collectives(chief: WorkerRecord, peers: Sequence[WorkerRecord]) -> AnyHint | None:
    for peer in peers:
        if peer.collectives == chief.collectives:
            continue
        if sorted(peer.collectives) == sorted(chief.collectives):
            return Lab07Hint.ANOTHER_ORDER.says(name=peer.name, calls=" and ".join(peer.collectives))
        missing = [call for call in chief.collectives if call not in peer.collectives]
        if missing == chief.collectives and len(missing) > 1:
            return Lab07Hint.DOES_NOTHING.says(name=peer.name)
        if missing:
            hint = Lab07Hint.SAVE_WITHOUT_OTHERS if missing[0] == SAVE else Lab07Hint.RESULT_WITHOUT_OTHERS
            return hint.says(name=peer.name)
        calls, expected = ", ".join(peer.collectives), ", ".join(chief.collectives)
        return Lab07Hint.MORE_THAN_THE_CHIEF.says(name=peer.name, calls=calls, expected=expected)
    if SAVE not in chief.collectives:
        return Lab07Hint.NOBODY_SAVES
    return None if RESULT in chief.collectives else Lab07Hint.NOBODY_READS


def _hint_of_chief(files: dict[str, str], model: str, accuracy: float) -> AnyHint | None:
    if "model.keras" not in files:
        return Lab07Hint.NO_MODEL_FILE.says(files=", ".join(files) or "nothing")
    if files["model.keras"] != model:
        return Lab07Hint.ANOTHER_MODEL_FILE
    if "accuracy.txt" not in files:
        return Lab07Hint.NO_ACCURACY_FILE
    try:
        written = float(files["accuracy.txt"])
    except ValueError:
        return Lab07Hint.ACCURACY_IS_NO_NUMBER.says(text=files["accuracy.txt"][:40])
    if abs(written - accuracy) >= 0.0006:
        return Lab07Hint.ANOTHER_ACCURACY.says(written=written, expected=accuracy)
    if more := sorted(set(files) - {"model.keras", "accuracy.txt"}):
        return Lab07Hint.MORE_FILES.says(files=", ".join(more))
    return None


def _hint_of_peer(peer: WorkerRecord, chief: WorkerRecord) -> AnyHint | None:
    twice = sorted(set(peer.files.folder) & set(chief.files.folder))
    if "model.keras" in twice:
        return Lab07Hint.RACE.says(name=peer.name)
    if twice:
        return Lab07Hint.BOTH_WRITE.says(name=peer.name, file=twice[0])
    if peer.files.folder:
        return Lab07Hint.COPY_IN_THE_FOLDER.says(name=peer.name, files=", ".join(peer.files.folder))
    return None


def _hint_of_pair(first: WorkerRecord, second: WorkerRecord) -> AnyHint | None:
    """Two workers that save to one path race, also when both remove the file afterwards."""
    for path in first.files.written:
        if path in second.files.written:
            return Lab07Hint.RACE_OF_TWO.says(first=first.name, second=second.name, path=path)
    return None


def _hint_of_rest(record: WorkerRecord) -> AnyHint | None:
    if record.files.temporary:
        return Lab07Hint.TEMPORARY_FILES.says(name=record.name, file=record.files.temporary[0])
    if record.files.elsewhere:
        return Lab07Hint.FILES_ELSEWHERE.says(name=record.name, file=record.files.elsewhere[0])
    return None

"""What `start` and `save` do; runs in the process of the student's code.

`start` starts small fake workers: they read TF_CONFIG, and train one number together through files. The workers of
`save` are called one after the other, so nothing can hang there; their collectives are noted.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from distlab.labs.plain_data import Plain

# Starting the workers ------------------------------------------------------------------------------------------------

FAKE_WORKER = """
import fcntl, json, os, sys, time
from pathlib import Path

folder, text, own, tasks = Path(sys.argv[1]), os.environ.get("TF_CONFIG", ""), None, []
codes = json.loads((folder / "codes").read_text())


def write(name, text):
    temporary = folder / f"temporary-{os.getpid()}"
    temporary.write_text(text)
    temporary.rename(folder / name)  # complete at once


try:
    config = json.loads(text)
    own = "{type} {index}".format(**config["task"])
    tasks = [f"{job} {index}" for job, of_job in config["cluster"].items() for index in range(len(of_job))]
except (AttributeError, KeyError, TypeError, ValueError):
    pass
write(f"started-{os.getpid()}", json.dumps([text, own, os.environ.get("LAB_07", ""), sys.argv[2:]]))
if own not in tasks:
    sys.exit(1)
last, place = open(folder / "last", "w"), tasks.index(own)
if own == tasks[-1]:
    fcntl.flock(last, fcntl.LOCK_EX)  # until this process ends
weight, deadline = 0.0, time.monotonic() + 25
for step in range(3):
    write(f"{step} {own}", repr(sum(weight - number for number in range(place, 12, len(tasks)))))
    files = [folder / f"{step} {task}" for task in tasks]
    while not all(file.exists() for file in files):
        started = [json.loads(file.read_text())[1] for file in folder.glob("started-*")]
        if time.monotonic() > deadline or len(started) == len(codes) and not set(tasks) <= set(started):
            sys.exit(2)  # nobody is the task that it waits for
        time.sleep(0.01)
    weight -= 0.5 * sum(float(file.read_text()) for file in files) / 12
if own != tasks[-1]:  # that one ends first
    fcntl.flock(last, fcntl.LOCK_SH)
    time.sleep(0.2)
sys.exit(codes[place])
"""


WORDS = ["--title", "fake workers"]
"""After the program and its folder in every command."""


@dataclass
class Started:
    """What `start` did and returned.

    processes: how many `subprocess` has started.  configs: TF_CONFIG of each that ran, in no order.  words: those of
    its command after the folder.  keeps: whether all had the other variables too.  waits_too_early: how many processes
    there were when it first waited for one, 0 if all were there.  still_run: how many had not ended when it returned.
    """

    codes: Plain = None
    processes: int = 0
    configs: list[str] = field(default_factory=list)
    words: list[list[str]] = field(default_factory=list)
    keeps: bool = True
    waits_too_early: int = 0
    still_run: int = 0
    changes_own: bool = False


def call_start(namespace: Mapping[str, Any], cluster: dict[str, list[str]], codes: list[int]) -> Started | None:
    """Call `start(command, cluster)` with fake workers, which end with these codes; None without a `start`."""
    start = namespace.get("start")
    if start is None:
        return None
    started = Started()
    with tempfile.TemporaryDirectory() as name, mock.patch.dict(os.environ, LAB_07="kept"):
        folder = Path(name)
        program = folder / "worker.py"
        program.write_text(FAKE_WORKER)
        (folder / "codes").write_text(json.dumps(codes))
        os.environ.pop("TF_CONFIG", None)
        with watched(len(codes), started) as processes:
            started.codes = start([sys.executable, "-S", str(program), name, *WORDS], cluster)
            started.still_run = sum(process.poll() is None for process in processes)
        started.processes = len(processes)
        started.changes_own = "TF_CONFIG" in os.environ
        for file in folder.glob("started-*"):
            text, _, kept, words = json.loads(file.read_text())
            started.configs.append(text)
            started.words.append(words)
            started.keeps &= kept == "kept"
    if isinstance(started.codes, (list, tuple, np.ndarray)):
        codes = [code.item() if isinstance(code, np.integer) else code for code in started.codes]
        started.codes = [code if isinstance(code, int | None) else type(code).__name__ for code in codes]
    elif started.codes is not None:
        started.codes = type(started.codes).__name__
    return started


@contextmanager
def watched(tasks: int, started: Started) -> Iterator[list[subprocess.Popen[Any]]]:
    """Note the processes that are started, and end them all at the end.

    If the caller's thread waits for one before all are there, it would wait forever: so they are ended then.
    """
    processes: list[subprocess.Popen[Any]] = []
    caller, kind = threading.current_thread(), subprocess.Popen
    usual_start = kind.__init__

    def noted(self: Any, *arguments: Any, **options: Any) -> None:
        usual_start(self, *arguments, **options)
        processes.append(self)

    def checked(usual: Callable[..., Any]) -> Callable[..., Any]:
        def wait(self: Any, *arguments: Any, **options: Any) -> Any:
            is_early = threading.current_thread() is caller and len(processes) < tasks and self.poll() is None
            started.waits_too_early = started.waits_too_early or is_early * len(processes)
            if started.waits_too_early:
                for process in processes:
                    process.kill()
            return usual(self, *arguments, **options)

        return wait

    with (
        mock.patch.object(kind, "__init__", noted),
        mock.patch.object(kind, "wait", checked(kind.wait)),
        mock.patch.object(kind, "communicate", checked(kind.communicate)),
    ):
        try:
            yield processes
        finally:
            for process in processes:
                process.kill()
    for process in processes:
        process.wait()


# Saving --------------------------------------------------------------------------------------------------------------

SAVE, RESULT = "model.save", "accuracy.result"


@dataclass(frozen=True)
class Worker:
    """One task of a cluster."""

    cluster: dict[str, list[str]]
    task_type: str
    index: int


class FakeModel:
    """Saves a text; like a real model, it reads variables of all workers: a collective."""

    def __init__(self, text: str, calls: list[str]) -> None:
        """Each call is noted in `calls`."""
        self._text, self._calls = text, calls
        self.saved_to: list[Path] = []

    def save(self, path: str | Path) -> None:
        """Write the model to `path`, whose folder must exist."""
        self._calls.append(SAVE)
        Path(path).write_text(self._text)
        self.saved_to.append(Path(path).absolute())


class FakeNumber(float):
    """A number that can be read as that of a tensor too."""

    def numpy(self) -> float:
        """The number."""
        return float(self)


class FakeMetric:
    """A metric with a part on every worker, so that reading it is a collective."""

    def __init__(self, value: float, calls: list[str]) -> None:
        """Each call is noted in `calls`."""
        self._value, self._calls = FakeNumber(value), calls

    def result(self) -> FakeNumber:
        """The value over all workers."""
        self._calls.append(RESULT)
        return self._value


@dataclass(frozen=True)
class FilesLeft:
    """The collectives that one worker called, and what it left: in the shared folder (relative path to text), in that
    for temporary files, elsewhere.

    The first two folders are the worker's own, so that every file in them is its work, but for one in the shared
    folder: `deletes` says whether it is gone. An empty folder is a name that ends with a slash. `written` are the paths
    to which the worker saved the model, also those that are gone, as `name_for_all` has them.
    """

    calls: list[str]
    folder: dict[str, str]
    temporary: list[str]
    elsewhere: list[str]
    written: list[str]
    deletes: bool


def call_save(
    namespace: Mapping[str, Any], task: tuple[dict[str, list[str]], str, int], text: str, accuracy: float
) -> FilesLeft | None:
    """Call `save(worker, model, accuracy, folder)` for one task of a cluster; None without a `save`.

    The model is this text, and the metric's value the accuracy.
    """
    save = namespace.get("save")
    if save is None:
        return None
    calls: list[str] = []
    model, usual = FakeModel(text, calls), tempfile.tempdir
    home = Path(tempfile.mkdtemp())
    folder, temporary = home / "saved", home / "temporary"
    folder.mkdir()
    (of_others := folder / "of_others").touch()
    temporary.mkdir()
    try:
        tempfile.tempdir = str(temporary)
        save(Worker(*task), model, FakeMetric(accuracy, calls), folder)
        written = [Path(os.path.normpath(path)) for path in model.saved_to]
        deletes = not of_others.exists()
        of_others.unlink(missing_ok=True)
        return FilesLeft(
            calls,
            files(folder),
            sorted(path.name for path in temporary.iterdir()),
            [str(path) for path in written if not path.is_relative_to(home) and path.exists()],
            [name_for_all(path, folder, temporary) for path in written],
            deletes,
        )
    finally:
        tempfile.tempdir = usual
        shutil.rmtree(home, ignore_errors=True)
        for path in model.saved_to:
            path.unlink(missing_ok=True)


def name_for_all(path: Path, folder: Path, temporary: Path) -> str:
    """The path as it is on a machine on which all workers run, with one folder for temporary files."""
    places = {temporary: " in the folder for temporary files", folder: "", folder.parent: " next to the shared folder"}
    for place, words in places.items():
        if path.is_relative_to(place):
            return f"{path.relative_to(place).as_posix()}{words}"
    return str(path)


def files(folder: Path) -> dict[str, str]:
    """The text of every file below a folder, by its relative path; empty folders too."""
    texts = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file():
            texts[name] = path.read_text(errors="replace")[:1000]
        elif not any(path.iterdir()):
            texts[f"{name}/"] = ""
    return texts

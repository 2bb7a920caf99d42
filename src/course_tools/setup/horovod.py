"""Horovod for the installed TensorFlow: a wheel built once per machine from the release's source, then reused.

The wheel lies in the user's cache folder under a name that says what it was built for and with. A build that fails
leaves a sentence and a log; the rest of the course works without Horovod.
"""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal, NamedTuple

from course_tools.setup import nvidia
from course_tools.setup.horovod_source import EDITS, EDITS_FOR_NCCL, NotBuilt, unpack
from distlab import devices
from distlab.launch.horovod import built_for, horovod_problem, record, write_record
from distlab.runtime import environment
from distlab.runtime.environment import SITE_MPI_LIBRARY, cache_folder, site_mpi_folder

SWITCHES = dict.fromkeys(("WITH_TENSORFLOW", "WITHOUT_PYTORCH", "WITHOUT_MXNET", "WITH_GLOO", "WITH_MPI"), "1")


class Build(NamedTuple):
    """What is built in besides Gloo: folders of the site, nvidia.PACKAGES, or None for no NCCL and the packaged MPI."""

    cuda: str | None = None
    nccl: str | None = None
    mpi: str | None = None

    def __str__(self) -> str:
        """What Horovod is made of, as one sentence."""
        named = {"NCCL": self.nccl, "CUDA": self.cuda, "MPI": self.mpi}
        parts = [f"{name} of {place}, " for name, place in named.items() if place]
        return f"Horovod with {''.join(parts)}Gloo{'' if self.mpi else ' and the packaged Open MPI'}."


def set_up(
    *,
    retry: bool = False,
    gpu: Literal["nccl"] | None = None,
    mpi: Literal["packaged", "system"] | None = None,
    cuda: Literal["site", "packages"] | None = None,
) -> int:
    """Install the start-up file and Horovod; 1 if Horovod was asked for and is not there.

    Args:
        retry: Build the Horovod of the last time again, also after a build that failed.
        gpu: Horovod with NCCL, for NVIDIA GPUs.
        mpi: Horovod with the packaged MPI or with the one whose mpicc is on PATH.
        cuda: The site's CUDA toolkit or NVIDIA's packages; else what is found.
    """
    environment.install()
    is_other, asked = bool(gpu or mpi or cuda), bool(retry or gpu or mpi or cuda)
    try:
        build = choose(gpu, mpi, cuda) if is_other else chosen()
        install(build, again=asked)
    except NotBuilt as failure:
        print(failure)
        # Without Horovod most of the course works; who asks for Horovod itself must know that it is not there.
        return 1 if asked else 0
    if asked:
        print(build)
    return 0


def choose(gpu: str | None, mpi: str | None, cuda: str | None) -> Build:
    """The build that was asked for, with what this machine has; see `nvidia.find`. Raises NotBuilt."""
    toolkit, nccl = nvidia.find(cuda) if gpu else (None, None)
    if mpi != "system":
        return Build(toolkit, nccl)
    own, places = Path(sys.prefix).resolve(), os.environ["PATH"].split(os.pathsep)
    others = [place for place in places if not Path(place).resolve().is_relative_to(own)]
    program = shutil.which("mpicc", path=os.pathsep.join(others))
    if not program:
        raise NotBuilt("There is no mpicc on PATH: load your site's module for MPI, or install libopenmpi-dev.")
    return Build(toolkit, nccl, str(Path(program).parent))


def chosen() -> Build:
    """What the installed Horovod was built with, or what the last attempt was to build."""
    return Build(*record().get("build", ()))


def compiler() -> str | None:
    """The path of the C++ compiler: $CXX if it is set, else the first of c++, g++, clang++."""
    names = os.environ.get("CXX", "").split()[:1] or ["c++", "g++", "clang++"]
    return next(filter(None, map(shutil.which, names)), None)


def wheel_name(build: Build) -> str:
    """The name of the cached build: versions, platform, and a digest of all that it is made of."""
    recipe = [EDITS, SWITCHES, build, [EDITS_FOR_NCCL, nvidia.NCCL] if build.nccl else None]
    return built_for() + hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:12]


def install(build: Build, again: bool = False) -> None:
    """Install Horovod from the cached wheel, built first if it is not there. Raises NotBuilt.

    What is installed stays, and what was tried in vain with the same compiler is not tried again, unless `again`: then
    the last build is made again.
    """
    name, last, problem = wheel_name(build), record(), horovod_problem()
    attempt = {"name": name, "build": list(build), "compiler": compiler()}
    if not again and last.get("name") == name:
        if not problem:
            return
        if "problem" in last and last.get("compiler") == attempt["compiler"]:
            raise NotBuilt(problem)
    try:
        wheel = next((cache_folder() / "wheels" / name).glob("*.whl"), None)
        if not wheel or (again and build == chosen()):
            wheel = _build_wheel(name, build)
        if build.nccl == nvidia.PACKAGES:
            nvidia.install_nccl()
        subprocess.run([*nvidia.UV, "--compile-bytecode", "--reinstall", str(wheel)], check=True)
        _prefer_mpi(build.mpi)
    except (NotBuilt, OSError, subprocess.CalledProcessError) as error:
        what = error if isinstance(error, NotBuilt) else f"Horovod was not installed: {error}"
        failure = f"{what}; `make horovod` tries again, and until then what needs Horovod is skipped."
        if problem:  # else the one that is installed stays
            write_record(**attempt, problem=failure)
        raise NotBuilt(failure) from error
    write_record(**attempt)
    print("Ready: `make lab` opens the course.")


def _build_wheel(name: str, build: Build) -> Path:
    """Build the wheel into the cache; a few minutes of processor time. Raises NotBuilt, after which the log remains."""
    if not compiler():
        raise NotBuilt("Horovod was not built because there is no C++ compiler: install g++ or clang++, or correct CXX")
    cache = cache_folder()
    log, cached = cache / f"{name}.log", cache / "wheels" / name
    cached.mkdir(parents=True, exist_ok=True)
    print(f"Building Horovod: some minutes, once per machine; the log is {log}.", flush=True)
    with tempfile.TemporaryDirectory(prefix="horovod-") as folder, log.open("w", encoding="utf-8") as output:
        # CMake's scripts cut the paths of TensorFlow and MPI at a space: they get a path without one.
        prefix = Path(folder) / "environment"
        prefix.symlink_to(sys.prefix)
        try:
            source = unpack(cache, Path(folder), [*EDITS, *(EDITS_FOR_NCCL if build.nccl else ())], output)
            command = [f"{prefix}/bin/python", "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--verbose"]
            command += ["--no-cache-dir", "--wheel-dir", folder, str(source)]
            subprocess.run(command, check=True, env=_variables(build, prefix), stdout=output, stderr=output)
            wheel = next(Path(folder).glob("*.whl"))
            return Path(shutil.copy(wheel, cached / "copy")).replace(cached / wheel.name)
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            output.write(f"\nerror: {error}\n")
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    first = next(number for number, line in enumerate(lines) if re.search(r"\berror:|CMake Error", line))
    print("\n".join(lines[first : first + 10]), flush=True)
    raise NotBuilt(f"Horovod could not be built ({lines[first].strip()}), the log is {log}")


def _variables(build: Build, prefix: Path) -> dict[str, str]:
    """The variables of the build by the environment that is reached by the path `prefix`."""
    # The user's own variables for Horovod would change the build; what is set for the packaged MPI misleads another.
    variables = _variables_without("HOROVOD_", *(["OPAL_"] if build.mpi else []))
    variables |= {f"HOROVOD_{name}": value for name, value in SWITCHES.items()}
    # Not the jobserver of a make that has started this: the build could not reach it, and would use one core. Two jobs
    # of the compiler need 3 GB.
    variables["MAKEFLAGS"] = f"-j{min(devices.cores(), 8)}"
    variables["PATH"] = f"{prefix}/bin{os.pathsep}{variables['PATH']}"
    if build.mpi:
        variables["MPI_HOME"] = str(Path(build.mpi).parent)
        searched = _library_folders(build.mpi)
    else:
        # mpicxx would resolve the link by which it is reached.
        variables |= {"OPAL_INCLUDEDIR": f"{prefix}/include", "OPAL_LIBDIR": f"{prefix}/lib"}
        # The wheel goes to other environments: libmpi is four folders above Horovod's library.
        searched = ["@loader_path/../../../.." if sys.platform == "darwin" else "$ORIGIN/../../../.."]
    if build.cuda and build.nccl:
        found, folder = nvidia.prepare(build.cuda, build.nccl, prefix.parent)
        variables, searched = variables | found, [*searched, folder]
    return variables | {"LDFLAGS": " ".join(f"-Wl,-rpath,{place}" for place in searched)}


def _library_folders(mpi: str) -> list[str]:
    """The folders that the compiler of a site's MPI links from."""
    command = [f"{mpi}/mpicxx", "-show"]
    said = subprocess.run(command, capture_output=True, text=True, env=_variables_without("OPAL_")).stdout
    return re.findall(r"(?:^|\s)-L ?(\S+)", said)


def _variables_without(*beginnings: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(beginnings)}


def _prefer_mpi(mpi: str | None) -> None:
    """Write the folder by which `distlab.runtime.environment` prefers the site's MPI; none for the packaged one."""
    folder = site_mpi_folder()
    shutil.rmtree(folder, ignore_errors=True)
    if not mpi:
        return
    (folder / "bin").mkdir(parents=True)
    for name in ("mpirun", "mpiexec", "mpicc", "mpicxx"):
        script = folder / "bin" / name
        # By their own paths, by which some find their other files; their folder itself may hold another Python.
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(f"{mpi}/{name}")} "$@"\n')
        script.chmod(0o755)
    places = [*map(Path, _library_folders(mpi)), Path(mpi).parent / "lib"]
    # With its number: libmpi.so may be a text for the linker that names the library.
    libraries = [file for place in places for pattern in ("libmpi.so.*", "libmpi.so") for file in place.glob(pattern)]
    if libraries:
        (folder / SITE_MPI_LIBRARY).symlink_to(libraries[0])

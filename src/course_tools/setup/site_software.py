"""The CUDA, NCCL and MPI that a site has installed: where they are, which versions, and whether they are complete."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# TensorFlow's packages need a driver for CUDA 12 or newer, and so no site with GPUs for them has only an older one.
OLDEST_CUDA = (12, 0)
CUDA_VARIABLES = ("CUDA_HOME", "CUDA_PATH")
NCCL_VARIABLES = ("NCCL_HOME", "NCCL_ROOT")
USUAL_CUDA = Path("/usr/local/cuda")
SYSTEM = Path("/usr")
SECONDS_TO_ANSWER = 30


class SoftwareMissing(Exception):
    """What was asked for is not there, or not complete; the message is one sentence that says what to do."""


@dataclass(frozen=True)
class Software:
    """Its version, and the folder that it is in; None for NVIDIA's packages of the package index."""

    version: str
    folder: str | None = None


def find_cuda() -> Software | None:
    """The site's CUDA toolkit: in $CUDA_HOME, of the nvcc on PATH, or in /usr/local/cuda; None if there is none.

    Raises SoftwareMissing when the user names a folder without a complete toolkit, or with one that is too old.
    """
    if named := _named(CUDA_VARIABLES):
        variable, folder = named
        if problem := _problem_of_cuda(folder):
            raise SoftwareMissing(
                f"{variable} is {folder}, {problem}; load your site's module for CUDA or set {variable} to the folder "
                "of a toolkit, or add CUDA=packages to take NVIDIA's packages instead."
            )
        return Software(_version_of_nvcc(folder / "bin" / "nvcc"), str(folder))
    program = shutil.which("nvcc")
    for folder in filter(None, [_folder_of_nvcc(program) if program else None, USUAL_CUDA]):
        if not _problem_of_cuda(folder):
            return Software(_version_of_nvcc(folder / "bin" / "nvcc"), str(folder))
    return None


def find_nccl(cuda: Software | None) -> Software | None:
    """The site's NCCL: in $NCCL_HOME, in the folder of CUDA, or among the system's libraries; None if there is none.

    Raises SoftwareMissing when the user names a folder without it.
    """
    if named := _named(NCCL_VARIABLES):
        variable, folder = named
        if not _version_of_nccl(folder):
            raise SoftwareMissing(
                f"{variable} is {folder}, where include/nccl.h or the library libnccl.so is missing; set it to the "
                "folder of NCCL, or unset it to take NVIDIA's package."
            )
        return Software(_version_of_nccl(folder), str(folder))
    for folder in [*([Path(cuda.folder)] if cuda and cuda.folder else []), SYSTEM]:
        if version := _version_of_nccl(folder):
            return Software(version, str(folder))
    return None


def find_mpi() -> Software:
    """The site's MPI, whose compiler mpicc is on PATH; this environment's own does not count.

    Raises SoftwareMissing when there is none, or one without mpicxx or mpirun.
    """
    program = shutil.which("mpicc", path=path_of_the_site())
    if not program:
        raise SoftwareMissing(
            "MPI=system needs the site's MPI, and there is no mpicc on PATH; load your site's module for MPI, or on "
            "Debian and Ubuntu install libopenmpi-dev and openmpi-bin."
        )
    folder = Path(program).parent
    if missing := [name for name in ("mpicxx", "mpirun") if not shutil.which(name, path=str(folder))]:
        raise SoftwareMissing(f"{folder} has mpicc but no {' and no '.join(missing)}; install the rest of that MPI.")
    return Software(_version_of_mpi(folder), str(folder))


def path_of_the_site() -> str:
    """PATH without the programs of this environment."""
    own = Path(sys.prefix).resolve()
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if folder and not Path(folder).resolve().is_relative_to(own))


def without_packaged_mpi(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables without the folders of the packaged Open MPI, which would mislead another one."""
    return {
        name: value
        for name, value in variables.items()
        if not (name.startswith("OPAL_") and Path(value).is_relative_to(sys.prefix))
    }


def library_folder(folder: Path, pattern: str) -> Path | None:
    """The folder with a library such as `libnccl.so*`, below the folder of a toolkit; None if there is none."""
    # Last the places of NVIDIA's toolkit and of Debian's packages.
    for place in (folder / "lib64", folder / "lib", *folder.glob("targets/*/lib"), *folder.glob("lib/*-linux-gnu")):
        if any(place.glob(pattern)):
            return place
    return None


def library_folders_of_mpi(mpi: Software) -> list[str]:
    """The folders that its compiler links from, without those that the system searches anyway."""
    link_command = _output([str(Path(str(mpi.folder)) / "mpicxx"), "-show"])
    folders = re.findall(r"(?:^|\s)-L ?(\S+)", link_command)
    return [folder for folder in dict.fromkeys(folders) if Path(folder).resolve() not in _searched_folders()]


def library_of_mpi(mpi: Software) -> str | None:
    """The path of the library, for programs that open it by themselves; None if the system finds it by its name."""
    places = [*map(Path, library_folders_of_mpi(mpi)), Path(str(mpi.folder)).parent / "lib"]
    # With its number: libmpi.so may be a text for the linker that names the library.
    files = [file for place in places for file in (*sorted(place.glob("libmpi.so.*")), *place.glob("libmpi.so"))]
    return str(files[0]) if files else None


def _searched_folders() -> set[Path]:
    return {place.resolve() for root in ("/lib", "/usr/lib", "/lib64", "/usr/lib64") for place in _with_multiarch(root)}


def _with_multiarch(root: str) -> list[Path]:
    return [Path(root), *Path(root).glob("*-linux-gnu")]


def _named(variables: tuple[str, ...]) -> tuple[str, Path] | None:
    """The first of the variables that is set, and the folder that it names."""
    return next(((name, Path(os.environ[name])) for name in variables if os.environ.get(name)), None)


def _folder_of_nvcc(program: str) -> Path:
    """The toolkit of an nvcc, which may be a script that starts another: it says itself where it is at home."""
    said = re.search(r"^#\$ TOP=(.+)$", _output([program, "-v", "no-such-file.cu"]), re.MULTILINE)
    return Path(said[1].strip()).resolve() if said else Path(program).resolve().parent.parent


def _problem_of_cuda(folder: Path) -> str | None:
    nvcc = folder / "bin" / "nvcc"
    if not os.access(nvcc, os.X_OK):
        return "where there is no program bin/nvcc"
    if not (version := _version_of_nvcc(nvcc)):
        return "whose bin/nvcc does not say its version"
    if tuple(map(int, version.split("."))) < OLDEST_CUDA:
        return f"which is CUDA {version}, older than {'.'.join(map(str, OLDEST_CUDA))}"
    if not list(folder.glob("include/cuda_runtime.h")) or not library_folder(folder, "libcudart_static.a"):
        return "where include/cuda_runtime.h or the library libcudart_static.a is missing"
    return None


def _version_of_nvcc(nvcc: Path) -> str:
    said = re.search(r"release (\d+\.\d+)", _output([str(nvcc), "--version"]))
    return said[1] if said else ""


def _version_of_nccl(folder: Path) -> str:
    """What nccl.h says; empty where it or the library is missing."""
    header = folder / "include" / "nccl.h"
    if not header.is_file() or not library_folder(folder, "libnccl.so*"):
        return ""
    text = header.read_text(errors="replace")
    numbers = dict(re.findall(r"^\s*#define\s+NCCL_(MAJOR|MINOR|PATCH)\s+(\d+)", text, re.MULTILINE))
    return ".".join(numbers[part] for part in ("MAJOR", "MINOR", "PATCH") if part in numbers)


def _version_of_mpi(folder: Path) -> str:
    said = _output([str(folder / "mpirun"), "--version"])
    for title, pattern in (("Open MPI", r"Open MPI\)? v?(\d[\w.]*)"), ("MPICH", r"Version:\s+(\d[\w.]*)")):
        if number := re.search(pattern, said):
            return f"{title} {number[1]}"
    return said.strip().partition("\n")[0] or "MPI"


def _output(command: list[str]) -> str:
    """What a program of the site prints, on both streams; empty when it does not start or does not end."""
    try:
        finished = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS_TO_ANSWER,
            env=without_packaged_mpi(os.environ) | {"PATH": path_of_the_site()},
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return finished.stdout + finished.stderr

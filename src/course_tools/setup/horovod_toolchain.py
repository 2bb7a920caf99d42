"""The compilers and libraries for one build of Horovod: NVIDIA's packages are fetched, those of the site only named."""

import shutil
from collections.abc import Callable
from pathlib import Path

from course_tools.setup import nvidia_packages, site_software
from course_tools.setup.horovod_build import HorovodBuild, compute_capabilities
from course_tools.setup.nvidia_packages import Package

# Installs packages into a folder; raises CalledProcessError.
Fetch = Callable[[tuple[Package, ...], Path], None]


class NoRoom(Exception):
    """The disk has too little space for NVIDIA's packages; the message is one sentence."""


def variables_for(build: HorovodBuild, folder: Path, fetch: Fetch) -> dict[str, str]:
    """The variables with which Horovod's build finds NCCL, CUDA and MPI; packages go into `folder`.

    Raises NoRoom, and whatever `fetch` raises.
    """
    variables: dict[str, str] = {}
    if build.cuda and build.nccl:
        cuda, nccl = _cuda(build, folder, fetch), _nccl(build, folder, fetch)
        capabilities = compute_capabilities(cuda / "bin" / "nvcc")
        variables |= {
            "HOROVOD_GPU": "CUDA",
            "HOROVOD_GPU_OPERATIONS": "NCCL",
            "HOROVOD_NCCL_LINK": "SHARED",
            "HOROVOD_NCCL_HOME": str(nccl),
            "HOROVOD_BUILD_CUDA_CC_LIST": ",".join(map(str, capabilities)),
            "CUDACXX": str(cuda / "bin" / "nvcc"),
        }
        variables |= dict.fromkeys(("HOROVOD_CUDA_HOME", "CUDAToolkit_ROOT", "CUDA_HOME", "CUDA_PATH"), str(cuda))
    if build.mpi:
        variables["MPI_HOME"] = str(Path(str(build.mpi.folder)).parent)
    return variables


def search_paths(build: HorovodBuild) -> list[str]:
    """Where the library looks for NCCL and for the site's MPI when it is loaded, besides the system's own places."""
    paths = site_software.library_folders_of_mpi(build.mpi) if build.mpi else []
    if build.nccl and not build.nccl.folder:
        # Relative to site-packages/horovod/tensorflow: the wheel moves to other environments.
        paths.append(f"$ORIGIN/../../{nvidia_packages.NCCL_LIBRARIES}")
    elif build.nccl and build.nccl.folder != str(site_software.SYSTEM):
        paths.append(str(site_software.library_folder(Path(str(build.nccl.folder)), "libnccl.so*")))
    return paths


def _cuda(build: HorovodBuild, folder: Path, fetch: Fetch) -> Path:
    if build.cuda and build.cuda.folder:
        return Path(build.cuda.folder)
    free = shutil.disk_usage(folder.parent).free / 1e9
    if free < nvidia_packages.GB_NEEDED:
        raise NoRoom(
            f"NVIDIA's packages need {nvidia_packages.GB_NEEDED} GB, and {folder.parent} has {free:.1f} GB left."
        )
    fetch(nvidia_packages.CUDA, folder / "cuda")
    return nvidia_packages.make_toolkit(folder / "cuda")


def _nccl(build: HorovodBuild, folder: Path, fetch: Fetch) -> Path:
    if build.nccl and build.nccl.folder:
        return Path(build.nccl.folder)
    fetch((nvidia_packages.NCCL,), folder / "nccl")
    return nvidia_packages.make_nccl(folder / "nccl")

"""This machine on the command line: what `distlab setup`, `setup-frameworks` and `doctor` do."""

import subprocess
from typing import Literal

from distlab.frameworks import PARTS
from distlab.runtime import environment


def setup(
    *,
    retry: bool = False,
    gpu: Literal["nccl"] | None = None,
    mpi: Literal["packaged", "system"] | None = None,
    cuda: Literal["site", "packages"] | None = None,
) -> int:
    """Install the start-up file and Horovod; 1 if Horovod was asked for and is not there.

    Args:
        retry: Build Horovod again after a build that failed.
        gpu: Horovod with NCCL, for NVIDIA GPUs.
        mpi: Horovod with the packaged MPI or with the one whose mpicc is on PATH.
        cuda: The site's CUDA toolkit or NVIDIA's packages; else what is found.
    """
    from course_tools.setup import horovod

    environment.install()
    asked = bool(retry or gpu or mpi or cuda)
    try:
        build = horovod.choose(gpu, mpi, cuda) if asked else None
        horovod.install(build)
    except horovod.NotBuilt as failure:
        print(failure)
        # Without Horovod most of the course works; who asks for Horovod itself must know that it is not there.
        return 1 if asked else 0
    if build:
        print(build)
    return 0


def setup_frameworks(*parts: Literal["torch", "deepspeed", "ray", "mxnet"], any_torch: bool = False) -> int:
    """Install the frameworks of notebook 14.

    Args:
        parts: Which; by default all but mxnet.
        any_torch: Take the PyTorch for GPUs if there is no other.
    """
    from course_tools.setup import other_frameworks

    chosen = parts or ("torch", "deepspeed", "ray")
    for part in chosen:
        try:
            other_frameworks.install(part, any_torch)
        except subprocess.CalledProcessError:
            print(f"{PARTS[part].title} was not installed, for the reason above; `{PARTS[part].command}` tries again.")
            return 1
    print(f"{', '.join(PARTS[part].title for part in chosen)}: ready")
    return 0


def doctor(*, json: bool = False) -> int:
    """Print a row for each thing that the course needs; 1 if the course cannot run here.

    Args:
        json: The same for programs.
    """
    from course_tools.setup import doctor

    rows = doctor.examine()
    print(doctor.as_json(rows) if json else doctor.table(rows))
    return 0 if doctor.can_run(rows) else 1

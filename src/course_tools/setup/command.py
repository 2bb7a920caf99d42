"""`distlab setup`, `setup-frameworks` and `doctor`: this machine on the command line."""

import argparse
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING

from distlab.frameworks import PARTS
from distlab.runtime import environment

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def setup(retry: bool = False, gpu: str | None = None, mpi: str | None = None, cuda: str | None = None) -> int:
    """Prepare this Python environment: the start-up file, Horovod. The exit status."""
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


def setup_frameworks(parts: Sequence[str], any_torch: bool = False) -> int:
    """Install other frameworks into their own environments. The exit status."""
    from course_tools.setup import other_frameworks

    for part in parts:
        try:
            other_frameworks.install(part, any_torch)
        except subprocess.CalledProcessError:
            print(f"{PARTS[part].title} was not installed, for the reason above; `{PARTS[part].command}` tries again.")
            return 1
    print(f"{', '.join(PARTS[part].title for part in parts)}: ready")
    return 0


def doctor(as_json: bool = False) -> int:
    """Say what this machine has for the course and how to fix the rest. The exit status."""
    from course_tools.setup import doctor

    rows = doctor.examine()
    print(doctor.as_json(rows) if as_json else doctor.table(rows))
    return 0 if doctor.can_run(rows) else 1


def add_commands(commands: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommands to the parser of `distlab`."""
    parser = commands.add_parser("setup", help="prepare this Python environment: start-up file, Horovod")
    parser.add_argument("--retry", action="store_true", help="build Horovod again")
    parser.add_argument("--gpu", choices=["nccl"], help="Horovod with NCCL, for NVIDIA GPUs")
    parser.add_argument("--mpi", choices=["packaged", "system"], help="Open MPI's package, or the mpicc on PATH")
    parser.add_argument("--cuda", choices=["site", "packages"], help="the site's CUDA or NVIDIA's packages")
    parser.set_defaults(run=lambda options: setup(options.retry, options.gpu, options.mpi, options.cuda))
    parser = commands.add_parser("setup-frameworks", help="install other frameworks into their own environments")
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--any-torch", action="store_true", help="take the PyTorch for GPUs if there is no other")
    parser.set_defaults(run=lambda options: setup_frameworks(options.parts, options.any_torch))
    parser = commands.add_parser("doctor", help="say what this machine has for the course and how to fix the rest")
    parser.add_argument("--json", action="store_true", help="the same for machines")
    parser.set_defaults(run=lambda options: doctor(options.json))

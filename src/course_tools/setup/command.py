"""`distlab setup`, `setup-frameworks` and `doctor`: this machine on the command line."""

import argparse
from typing import TYPE_CHECKING

from course_tools.setup.horovod_build import CUDAS, GPUS, MPIS
from distlab.frameworks import PARTS
from distlab.runtime import environment, processes

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add_commands(commands: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommands to the parser of `distlab`."""
    setup = commands.add_parser("setup", help="prepare this Python environment: start-up file, Horovod")
    setup.add_argument("--retry", action="store_true", help="build Horovod again after a build that failed")
    setup.add_argument("--gpu", choices=GPUS, help="Horovod with NCCL, for NVIDIA GPUs")
    setup.add_argument(
        "--mpi", choices=MPIS, help="Horovod with the packaged MPI or with the one whose mpicc is on PATH"
    )
    setup.add_argument("--cuda", choices=CUDAS, help="the site's CUDA toolkit or NVIDIA's packages; else what is found")
    setup.set_defaults(run=_setup)
    frameworks = commands.add_parser("setup-frameworks", help="install other frameworks into their own environments")
    frameworks.add_argument("parts", nargs="+", choices=PARTS)
    frameworks.add_argument("--any-torch", action="store_true", help="take the PyTorch for GPUs if there is no other")
    frameworks.set_defaults(run=_setup_frameworks)
    doctor = commands.add_parser("doctor", help="say what this machine has for the course and how to fix the rest")
    doctor.add_argument("--json", action="store_true", help="the same for machines")
    doctor.set_defaults(run=_doctor)


def _setup(options: argparse.Namespace) -> int:
    from course_tools.setup import horovod_build, horovod_wheel
    from course_tools.setup.horovod_wheel_cache import BuildFailed
    from course_tools.setup.site_software import SoftwareMissing

    processes.end_on_signals()
    environment.install()
    is_choice = bool(options.retry or options.gpu or options.mpi or options.cuda)
    try:
        build = horovod_build.choose(options.gpu, options.mpi, options.cuda) if is_choice else None
        horovod_wheel.install(retry=is_choice, build=build)
    except (SoftwareMissing, BuildFailed) as failure:
        print(failure)
        # Without Horovod most of the course works; who asks for Horovod itself must know that it is not there.
        return 1 if is_choice else 0
    if build:
        print(build.sentence())
    return 0


def _setup_frameworks(options: argparse.Namespace) -> int:
    from course_tools.setup import install_frameworks

    try:
        for part in options.parts:
            install_frameworks.install(part, options.any_torch)
    except install_frameworks.SetupFailed as failure:
        print(failure)
        return 1
    print(f"{', '.join(PARTS[part].title for part in options.parts)}: ready")
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from course_tools.setup import doctor

    rows = doctor.examine()
    print(doctor.as_json(rows) if options.json else doctor.table(rows))
    return 0 if doctor.can_run(rows) else 1

"""Starting a program with the launcher that a word names, as `distlab launch` does."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from distlab.launch.job import SECONDS, START_SECONDS, LaunchError, Settings
from distlab.launch.starters import PROCESSES, horovodrun, mpirun, mxnet, tensorflow, torchrun
from distlab.runtime import processes

STARTERS = {"mpirun": mpirun, "horovodrun": horovodrun, "torchrun": torchrun}


def launch(
    program: Path,
    /,
    *arguments: str,
    workers: int = PROCESSES,
    parameter_servers: int = 0,
    with_: Literal["mpirun", "horovodrun", "torchrun", "mxnet"] | None = None,
    servers: int = 1,
    options: str | None = None,
    module: Annotated[bool, Parameter(alias="-m")] = False,
    python: str | None = None,
    seconds: float = SECONDS,
    start_seconds: float = START_SECONDS,
) -> int:
    """Launch the program; returns 0, 1 when the job failed, 128 + n after signal n.

    Args:
        program: A Python file, or with -m a module; its own arguments follow after --.
        arguments: Of the program.
        workers: Workers or ranks to start.
        parameter_servers: With TF_CONFIG only; adds a chief as well.
        with_: The launcher to use instead of TF_CONFIG.
        servers: With mxnet only: of the key-value store.
        options: Of mpirun, horovodrun (by default --gloo) or torchrun itself, such as --options='--tag-output'.
        module: The program is a module of a package: `distlab launch -m package.train`.
        python: The interpreter of another environment; by default this one's.
        seconds: Deadline for the job.
        start_seconds: Deadline for connecting.
    """
    processes.end_on_signals()
    settings = Settings(seconds=seconds, start_seconds=start_seconds, module=module, python=python or sys.executable)
    own = {"options": shlex.split(options)} if options is not None else {}
    try:
        if with_ is None:
            tensorflow(program, *arguments, workers=workers, parameter_servers=parameter_servers, **settings)
        elif with_ == "mxnet":
            mxnet(program, *arguments, workers=workers, servers=servers, **settings)
        else:
            STARTERS[with_](program, *arguments, ranks=workers, **own, **settings)
    except LaunchError as error:
        print(error, file=sys.stderr)
        return 1
    except (KeyboardInterrupt, SystemExit) as interrupt:  # SystemExit: see processes.end_on_signals
        print("\nInterrupted; every process of the job is ended.", file=sys.stderr)
        return int(interrupt.code or 0) if isinstance(interrupt, SystemExit) else 130
    return 0

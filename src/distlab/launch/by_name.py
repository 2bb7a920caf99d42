"""Starting a program with the launcher that a word names, as `distlab launch` does."""

import shlex
import sys
from pathlib import Path
from typing import Literal

from distlab.launch.host_starters import srun
from distlab.launch.job import LaunchError
from distlab.launch.launched_program import SECONDS, START_SECONDS, Settings
from distlab.launch.starters import PROCESSES, horovodrun, mpirun, mxnet, tensorflow, torchrun
from distlab.runtime import environment, processes

STARTERS = {"mpirun": mpirun, "horovodrun": horovodrun, "torchrun": torchrun}


def launch(
    program: Path,
    /,
    *arguments: str,
    workers: int | None = None,
    parameter_servers: int = 0,
    with_: Literal["mpirun", "horovodrun", "torchrun", "mxnet", "srun"] | None = None,
    servers: int | None = None,
    hosts: str | None = None,
    nodes: int | None = None,
    options: str | None = None,
    python: str | None = None,
    seconds: float = SECONDS,
    start_seconds: float = START_SECONDS,
) -> int:
    """Launch the program; returns 0, 1 when the job failed, 128 + n after signal n.

    Args:
        program: A Python file; its own arguments follow after --.
        arguments: Of the program.
        workers: Workers or ranks to start; by default 2, or as many as --hosts has places.
        parameter_servers: With TF_CONFIG only; adds a chief as well.
        with_: The launcher to use instead of TF_CONFIG.
        servers: With mxnet only: of the key-value store; by default 1.
        hosts: Run on other hosts, over ssh and with shared folders: node1:2,node2:2 is two processes on each.
        nodes: With srun only: on how many nodes; by default Slurm chooses.
        options: Of mpirun, horovodrun (by default --gloo), torchrun or srun itself, such as --options='--mpi=pmix'.
        python: The interpreter of another environment; by default this one's.
        seconds: Deadline for the job.
        start_seconds: Deadline for connecting.
    """
    processes.end_on_signals()
    if not environment.has_legacy_keras():
        print("TF_USE_LEGACY_KERAS is set in this shell, to Keras 3; the course's programs need 1.", file=sys.stderr)
    settings: Settings = {"seconds": seconds, "start_seconds": start_seconds}
    if python:
        settings["python"] = python
    given = shlex.split(options) if options else []
    ranks = PROCESSES if workers is None else workers
    try:
        _refuse_foreign(with_, parameter_servers, servers, hosts, nodes, options)
        if with_ is None:
            tensorflow(
                program, *arguments, workers=workers, parameter_servers=parameter_servers, hosts=hosts, **settings
            )
        elif with_ == "mxnet":
            mxnet(program, *arguments, workers=ranks, servers=1 if servers is None else servers, **settings)
        elif with_ == "srun":
            srun(program, *arguments, ranks=ranks, nodes=nodes, options=given, **settings)
        else:
            own = {} if options is None else {"options": given}
            STARTERS[with_](program, *arguments, ranks=workers, hosts=hosts, **own, **settings)
    except LaunchError as error:
        print(error, file=sys.stderr)
        return 1
    except (KeyboardInterrupt, SystemExit) as interrupt:  # SystemExit: see processes.end_on_signals
        print("\nInterrupted; every process of the job is ended.", file=sys.stderr)
        return int(interrupt.code or 0) if isinstance(interrupt, SystemExit) else 130
    return 0


def _refuse_foreign(
    starter: str | None,
    parameter_servers: int,
    servers: int | None,
    hosts: str | None,
    nodes: int | None,
    options: str | None,
) -> None:
    """Raise LaunchError for options that belong to another way of starting, and would have no effect."""
    if servers is not None and starter != "mxnet":
        raise LaunchError("--servers needs --with mxnet: leave it out.")
    if parameter_servers and starter:
        raise LaunchError("--parameter-servers needs TF_CONFIG: leave --with out.")
    if nodes is not None and starter != "srun":
        raise LaunchError("--nodes needs --with srun: leave it out.")
    if hosts is not None and starter in ("srun", "mxnet"):
        why = "Slurm chooses the nodes" if starter == "srun" else "it runs on this machine only"
        raise LaunchError(f"--hosts does not go with --with {starter}: {why}.")
    if options is not None and starter not in (*STARTERS, "srun"):
        raise LaunchError(f"--options needs --with {', '.join(STARTERS)} or srun: leave it out.")

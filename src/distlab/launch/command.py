"""`distlab launch`: the launcher on the command line."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from distlab import valid
from distlab.launch import hosts, outer_launcher, starter_options
from distlab.launch.host_starters import srun
from distlab.launch.job import LaunchError
from distlab.launch.launched_program import SECONDS, START_SECONDS, Settings
from distlab.launch.starters import PROCESSES, horovodrun, mpirun, mxnet, tensorflow, torchrun
from distlab.runtime import environment, processes

if TYPE_CHECKING:
    from argparse import _SubParsersAction

STARTERS = {"mpirun": mpirun, "horovodrun": horovodrun, "torchrun": torchrun}


def add_commands(commands: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand to the parser of `distlab`; the program's own arguments follow after `--`."""
    parser = commands.add_parser("launch", help="run a program as several processes: launch PROGRAM -- ITS ARGUMENTS")
    parser.add_argument("program", type=Path, help="a Python file; its own arguments follow after --")
    parser.add_argument(
        "--workers", type=valid.count, help="workers or ranks to start (default: 2, or as many as --hosts has places)"
    )
    parser.add_argument(
        "--parameter-servers", type=valid.whole, default=0, help="with TF_CONFIG only; adds a chief as well"
    )
    parser.add_argument(
        "--with", dest="starter", choices=[*STARTERS, "mxnet", "srun"], help="the launcher to use instead of TF_CONFIG"
    )
    parser.add_argument("--servers", type=valid.count, help="with mxnet only: of the key-value store (default: 1)")
    parser.add_argument(
        "--hosts",
        type=hosts.one_word,
        help="run on other hosts, over ssh: node1:2,node2:2 is two processes on each; they must see the course, the "
        "program and the working folder at the same paths (a shared file system)",
    )
    parser.add_argument("--nodes", type=valid.count, help="with srun only: on how many nodes (default: Slurm chooses)")
    parser.add_argument(
        "--options",
        type=starter_options.split,
        help="of mpirun, horovodrun (default: --gloo), torchrun or srun itself, such as --options='--mpi=pmix'",
    )
    parser.add_argument("--python", help="the interpreter of another environment (default: this one's)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="deadline for the job (default: %(default)g)")
    parser.add_argument(
        "--start-seconds", type=float, default=START_SECONDS, help="deadline for connecting (default: %(default)g)"
    )
    parser.set_defaults(run=run, takes_program=True)


def run(options: argparse.Namespace) -> int:
    """Launch the program; exit status 0, 1 when the job failed or its output had no place, 128 + n after signal n."""
    processes.end_on_signals()
    if not environment.has_legacy_keras():
        print("TF_USE_LEGACY_KERAS is set in this shell, to Keras 3; the course's programs need 1.", file=sys.stderr)
    settings: Settings = {"seconds": options.seconds, "start_seconds": options.start_seconds}
    if options.python:
        settings["python"] = options.python
    try:
        outer_launcher.refuse()
        _check(options)
        _start(options, settings)
    except LaunchError as error:
        print(error, file=sys.stderr)
        return 1
    except (KeyboardInterrupt, SystemExit) as interrupt:  # SystemExit: see processes.end_on_signals
        print("\nInterrupted; every process of the job is ended.", file=sys.stderr)
        return int(interrupt.code or 0) if isinstance(interrupt, SystemExit) else 130
    return 0


def _check(options: argparse.Namespace) -> None:
    """Refuse options that belong to another way of starting."""
    if options.servers is not None and options.starter != "mxnet":
        raise LaunchError("--servers needs --with mxnet: leave it out.")
    if options.parameter_servers and options.starter:
        raise LaunchError("--parameter-servers needs TF_CONFIG: leave --with out.")
    if options.nodes is not None and options.starter != "srun":
        raise LaunchError("--nodes needs --with srun: leave it out.")
    if options.hosts is not None and options.starter in ("srun", "mxnet"):
        why = "Slurm chooses the nodes" if options.starter == "srun" else "it runs on this machine only"
        raise LaunchError(f"--hosts does not go with --with {options.starter}: {why}.")
    if options.options is not None and options.starter not in (*STARTERS, "srun"):
        raise LaunchError(f"--options needs --with {', '.join(STARTERS)} or srun: leave it out.")


def _start(options: argparse.Namespace, settings: Settings) -> None:
    program, arguments, workers = options.program, options.program_arguments, options.workers
    own = {} if options.options is None else {"options": options.options}
    if options.starter is None:
        servers = options.parameter_servers
        tensorflow(program, *arguments, workers=workers, parameter_servers=servers, hosts=options.hosts, **settings)
    elif options.starter == "mxnet":
        servers = 1 if options.servers is None else options.servers
        mxnet(program, *arguments, workers=PROCESSES if workers is None else workers, servers=servers, **settings)
    elif options.starter == "srun":
        ranks = PROCESSES if workers is None else workers
        srun(program, *arguments, ranks=ranks, nodes=options.nodes, **own, **settings)
    else:
        STARTERS[options.starter](program, *arguments, ranks=workers, hosts=options.hosts, **own, **settings)

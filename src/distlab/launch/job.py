"""A job: its program and settings, its commands and addresses, what is left of it, and what can go wrong with it."""

import os
import random
import re
import shlex
import shutil
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from distlab.runtime.errors import PlainError
from distlab.runtime.tables import as_typed

# Importing TensorFlow alone takes a loaded machine most of a minute.
SECONDS, START_SECONDS = 900.0, 300.0
RESULT = "{result}"
"""Stands in a program's arguments for the path of the file of its result."""
HOST = "127.0.0.1"
# Outgoing connections get their ports from the range above, at least on Linux: here only a server can come in between.
_PORTS = 10_000, 32_000
UNTOLD = {"PYTHONUNBUFFERED": "1", "PYTHON_COLORS": "0", "HOROVOD_GLOO_TIMEOUT_SECONDS": "600"}
"""Variables of every job that are not in the printed shell commands.

Lines are read at once, and without the colours of Python 3.13's tracebacks, for which it would take FORCE_COLOR, that
Jupyter sets. Gloo would wait for 30 s only: a loaded machine takes longer to import TensorFlow in every rank, and a
rank that is missing is the launcher's to name.
"""

# What TensorFlow, Open MPI, MPICH and Slurm, Horovod, torchrun and MXNet tell a process about its place in a job; and
# what Slurm, PBS and LSF tell mpirun and horovodrun about the machines of an allocation: these ranks are on this one.
_OF_ANOTHER_JOB = re.compile(
    "TF_CONFIG|OMPI_(COMM|APP|UNIVERSE|FIRST|NUM|FILE|ARGV|COMMAND)_.*|PMI_.*|PMIX_.*|MPI_LOCALRANKID|MPI_LOCALNRANKS"
    "|OMPI_MCA_(ess(_base_(jobid|vpid))?|orte_(ess_.*|.*_uri|.*_session_dir))"
    "|HOROVOD_((LOCAL_|CROSS_)?(RANK|SIZE)|HOSTNAME|GLOO_(IFACE|RENDEZVOUS_.*)|ELASTIC|CONTROLLER|CPU_OPERATIONS)"
    "|(GROUP_|LOCAL_|ROLE_)?RANK|((GROUP|LOCAL|ROLE)_)?WORLD_SIZE|MASTER_(ADDR|PORT)|TORCHELASTIC_.*|DMLC_.*"
    "|(SLURM|PBS|LSB)_.*|CSM_ALLOCATION_ID"
)


@dataclass(frozen=True)
class Command:
    """What is started under a name, with the variables that it gets in addition to those of this process.

    starter: mpirun or its like with its options, which then starts the ranks; without one it is the program itself.
    """

    name: str
    environment: Mapping[str, str]
    starter: Sequence[str] = ()

    def whole_environment(self) -> dict[str, str]:
        """All variables that it gets: this process's, without what another launcher told it, and its own.

        With such a variable a library would take the program for a rank of that other job.
        """
        inherited = {name: value for name, value in os.environ.items() if not _OF_ANOTHER_JOB.fullmatch(name)}
        return inherited | UNTOLD | dict(self.environment)


@dataclass(frozen=True)
class Job:
    """Commands to run side by side, all with the same program.

    ranks: the names of the processes that must connect, in order; either the commands' own, or, where one command
    starts the ranks, those that report over the socket.
    decisive: the commands whose ends are the end of the job; others are ended then.
    addresses: the address of each rank that opens one; empty when a command starts the ranks.
    ranks_may_fail: the job goes on without a rank that fails; only decisive commands count (Horovod Elastic, may_lose).
    """

    commands: Sequence[Command]
    ranks: Sequence[str]
    decisive: Sequence[str]
    addresses: Mapping[str, str] = field(default_factory=dict)
    ranks_may_fail: bool = False


class Settings(TypedDict, total=False):
    """The settings that every way of starting accepts.

    seconds: for the whole job.  start_seconds: until every rank has connected.  echo: print the shell commands that do
    the same by hand, and every line as it comes.  result: add `--result {result}` to the arguments; wherever `{result}`
    is in them, the path of a file takes its place, which is read as JSON afterwards.  environment: variables of all
    processes, which take precedence over those that the launcher sets.
    prepared: fork the processes of a program that imports TensorFlow from an interpreter that has imported it already,
    on Linux; False gives each an interpreter of its own, as a shell does.
    module: the program is the name of a module, such as "package.train", and runs as `python -m` runs it.
    python: the interpreter of another environment that runs the program; torchrun or its like is looked for beside it
    first.
    """

    seconds: float
    start_seconds: float
    echo: bool
    result: bool
    environment: Mapping[str, str]
    prepared: bool
    module: bool
    python: str | Path


@dataclass
class LaunchedProgram:
    """What the processes of a job run, with the `Settings` of the job."""

    file: str | Path
    arguments: Sequence[object]
    python_options: Sequence[str] = ()
    seconds: float = SECONDS
    start_seconds: float = START_SECONDS
    echo: bool = True
    result: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    prepared: bool = True
    module: bool = False
    python: str | Path = sys.executable

    def __post_init__(self) -> None:
        """Raises LaunchError if there is no such program."""
        if not self.module and not Path(self.file).is_file():
            raise LaunchError(f"There is no file {Path(self.file).absolute()}; give one, or -m and a module.")

    def words(self, python: str, file: str | Path, result: str) -> list[str]:
        """The command line, with the program's `file` unless it is a module, and `result` as the file of its result."""
        program = ["-m", str(self.file)] if self.module else [str(file)]
        arguments = [*self.arguments, *(["--result", RESULT] if self.result else [])]
        return [python, *self.python_options, *program, *(str(each).replace(RESULT, result) for each in arguments)]

    def by_hand(self, job: Job) -> str:
        """The shell commands that do the same, side by side, the first one in front."""
        program = self.words("python", min(os.path.relpath(self.file), str(Path(self.file)), key=len), "result.json")
        lines = []
        for command in reversed(job.commands):
            variables = [f"{name}={shlex.quote(value)}" for name, value in command.environment.items()]
            starter = [Path(word).name for word in command.starter[:1]] + [*command.starter[1:]]
            lines.append(as_typed(" ".join([*variables, shlex.join([*starter, *program])])))
        return " &\n".join(lines)

    def starter(self, name: str) -> str:
        """The path of a program such as mpirun, from the environment that runs this program if it is there."""
        beside = str(Path(self.python).parent) if str(self.python) != sys.executable else None
        path = (beside and shutil.which(name, path=beside)) or shutil.which(name)
        if not path:
            fix = "; `make doctor` says what is missing and the fix."
            if name == "torchrun":
                fix = ": run `make setup-frameworks`, then launch with --python .venv-frameworks/bin/python."
            raise LaunchError(f"There is no {name} in this environment{fix}")
        return path


@dataclass
class LaunchedRun:
    """What a job gave.

    exit_codes: by the name of the process, −n after signal n, None for one that the launcher ended.  output: what
    each process printed, on standard output and error, without TensorFlow's C++ notes.  seconds: how long the job
    took.  result: what the JSON file at the place of `{result}` contained.
    """

    exit_codes: dict[str, int | None]
    output: dict[str, str]
    seconds: float
    result: object = None


class LaunchError(PlainError, RuntimeError):
    """The job could not be started or did not end well; `run` holds what there was of it, None if nothing started."""

    def __init__(self, message: str, run: LaunchedRun | None = None) -> None:
        super().__init__(message)
        self.run = run


class WorkerFailed(LaunchError):
    """A process ended with an exit code other than 0; `rank` is its name, `exit_code` is −n after signal n.

    `exit_code` is None when the process that started the rank vanished and nobody could see how.
    """

    def __init__(self, rank: str, exit_code: int | None, message: str, run: LaunchedRun) -> None:
        super().__init__(message, run)
        self.rank = rank
        self.exit_code = exit_code


class WorkerMissing(LaunchError):
    """Within the deadline for starting the ranks in `ranks` did not connect."""

    def __init__(self, ranks: list[str], message: str, run: LaunchedRun) -> None:
        super().__init__(message, run)
        self.ranks = ranks


class DeadlinePassed(LaunchError):
    """The job was not over in time."""


class PortTaken(WorkerFailed):
    """A process could not open its address because somebody else had; the launcher then tries other ports."""


def free_addresses(count: int) -> list[str]:
    """`count` different addresses HOST:PORT of this machine where nobody listens now."""
    with ExitStack() as stack:
        addresses: list[str] = []
        while len(addresses) < count:
            holder = stack.enter_context(socket.socket())
            port = random.SystemRandom().randint(*_PORTS)
            with suppress(OSError):
                holder.bind(("", port))  # on every interface, since that is where TensorFlow's server listens
                addresses.append(f"{HOST}:{port}")
        return addresses


def is_open(address: str) -> bool:
    """Whether somebody listens at HOST:PORT."""
    host, _, port = address.rpartition(":")
    with suppress(OSError), socket.create_connection((host, int(port)), timeout=0.5):
        return True
    return False

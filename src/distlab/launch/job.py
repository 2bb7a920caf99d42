"""A job: what to start, how long it may take, and what is left of it when it is over."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Command:
    """A program to start under a name, with the variables that it gets beside those of this process."""

    name: str
    arguments: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Limits:
    """Seconds for the whole job, and for every rank to connect."""

    seconds: float
    start_seconds: float


@dataclass(frozen=True)
class Job:
    """Commands to run side by side.

    ranks: the names of the processes that must connect, in order; either the commands' own, or, where one command
    starts the ranks (mpirun and its like), those that report over the socket.
    addresses: the address of each rank that opens one; empty when a command starts the ranks.
    decisive: the commands whose ends are the end of the job; others are ended then.
    ranks_may_fail: the starting command deals with failing ranks by itself (Horovod Elastic).
    by_hand: the shell commands that do the same.
    """

    commands: list[Command]
    ranks: list[str]
    decisive: list[str]
    by_hand: str
    addresses: Mapping[str, str] = field(default_factory=dict)
    ranks_may_fail: bool = False


@dataclass
class Run:
    """What a job gave.

    exit_codes: by the name of the process, −n after signal n, None for one that the launcher ended.  output: what
    each process printed, on standard output and error, without TensorFlow's C++ notes.  result: what the JSON file
    named by `--result` held.  seconds: how long the job took.
    """

    exit_codes: dict[str, int | None] = field(default_factory=dict)
    output: dict[str, str] = field(default_factory=dict)
    result: object = None
    seconds: float = 0.0

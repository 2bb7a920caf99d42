"""Which programs run from `.venv`: they would fail if set-up removed or changed it meanwhile.

This module imports the standard library only: nothing is installed yet.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from distlab.setup.virtual_environment import Environment, EnvironmentNotMade

_SET_UP = "distlab.setup.make_environment"  # may run from .venv itself; a second one waits for the first
_MOST, _LONGEST = 3, 60


@dataclass(frozen=True)
class Program:
    """A process, its parent, and the command that it was started by."""

    pid: int
    parent: int
    command: str


def require_none(environment: Environment, reason: str) -> None:
    """Raise EnvironmentNotMade where programs of this user run from the environment; the reason is a sentence.

    Those of other users in a classroom do not count: nobody but an administrator could end them.
    """
    if programs := running(environment):
        names = [f"{program.pid} ({program.command[:_LONGEST]})" for program in programs[:_MOST]]
        more = f" and {len(programs) - _MOST} more" if len(programs) > _MOST else ""
        raise EnvironmentNotMade(
            f"{reason} But programs run from .venv, which would fail: {', '.join(names)}{more}. Wait until they have "
            "ended, or end them, then repeat the command."
        )


def running(environment: Environment) -> list[Program]:
    """This user's programs that were started from the environment, or, on Linux, that have loaded a library of it.

    What one of them has started in turn, such as JupyterLab a kernel, is left out.
    """
    programs, folder = f"{environment.folder}/bin/", f"{environment.folder}/"
    # On macOS some Pythons start themselves again by another path.
    started = re.compile(rf"(\S*/Python )?{re.escape(programs)}")
    using = [
        Program(program.pid, program.parent, program.command.replace(programs, ""))
        for program in _own_processes()
        if _SET_UP not in program.command and (started.match(program.command) or folder in _loaded(program.pid))
    ]
    pids = {program.pid for program in using}
    return [program for program in using if program.parent not in pids]


def _own_processes() -> Iterator[Program]:
    """The other processes of this user; none where there is no `ps` that can tell them."""
    try:
        listed = subprocess.run(["ps", "-A", "-ww", "-o", "pid=,ppid=,uid=,args="], capture_output=True)
    except OSError:
        return
    for line in os.fsdecode(listed.stdout).splitlines():
        pid, parent, user, command = [*line.split(maxsplit=3), "", "", "", ""][:4]
        if user == str(os.getuid()) and int(pid) != os.getpid():
            yield Program(int(pid), int(parent), command)


def _loaded(pid: int) -> str:
    """The files that a process has mapped, on Linux."""
    try:
        return Path(f"/proc/{pid}/maps").read_text(errors="replace")
    except OSError:
        return ""

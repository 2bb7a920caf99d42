"""Which programs run from `.venv`: they would fail if set-up removed or changed it meanwhile.

This module imports the standard library only: nothing is installed yet.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from course_tools.setup.virtual_environment import Environment, EnvironmentNotMade

_SET_UP = "course_tools.setup.make_environment"  # may run from .venv itself; a second one waits for the first
_MOST, _LONGEST, _MOST_USERS = 3, 60, 10


@dataclass(frozen=True)
class Program:
    """A process, its parent, its user's number, and the command that it was started by."""

    pid: int
    parent: int
    user: int
    command: str


def require_none(environment: Environment, reason: str, others_too: bool = True) -> None:
    """Raise EnvironmentNotMade where programs run from the environment; the reason is a sentence.

    Those of other users, whom it names, count with `others_too`.
    """
    programs = running(environment)
    if own := [program for program in programs if program.user == os.getuid()]:
        names = [f"{program.pid} ({program.command[:_LONGEST]})" for program in own[:_MOST]]
        more = f" and {len(own) - _MOST} more" if len(own) > _MOST else ""
        raise EnvironmentNotMade(
            f"{reason} But programs run from .venv, which would fail: {', '.join(names)}{more}. Wait until they have "
            "ended, or end them, then repeat the command."
        )
    if programs and others_too:
        users = sorted({_name(program.user) for program in programs})
        more = f" and {len(users) - _MOST_USERS} more" if len(users) > _MOST_USERS else ""
        raise EnvironmentNotMade(
            f"{reason} But programs of other users run from .venv, which would fail: those of "
            f"{', '.join(users[:_MOST_USERS])}{more}. Ask them to end these; `make setup FORCE=1` does it all the same."
        )


def running(environment: Environment) -> list[Program]:
    """The programs that were started from the environment, or, on Linux, that have loaded a library of it.

    What one of them has started in turn, such as JupyterLab a kernel, is left out.
    """
    programs, folder = f"{environment.folder}/bin/", f"{environment.folder}/"
    # On macOS some Pythons start themselves again by another path.
    started = re.compile(rf"(\S*/Python )?{re.escape(programs)}")
    using = [
        replace(program, command=program.command.replace(programs, ""))
        for program in _other_processes()
        if _SET_UP not in program.command and (started.match(program.command) or folder in _loaded(program.pid))
    ]
    pids = {program.pid for program in using}
    return [program for program in using if program.parent not in pids]


def _other_processes() -> Iterator[Program]:
    """All processes but this one; none where there is no `ps` that can tell them."""
    try:
        listed = subprocess.run(["ps", "-A", "-ww", "-o", "pid=,ppid=,uid=,args="], capture_output=True)
    except OSError:
        return
    for line in os.fsdecode(listed.stdout).splitlines():
        pid, parent, user, command = [*line.split(maxsplit=3), "", "", "", ""][:4]
        if user.isdecimal() and int(pid) != os.getpid():
            yield Program(int(pid), int(parent), int(user), command)


def _name(user: int) -> str:
    import pwd  # not on Windows

    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"


def _loaded(pid: int) -> str:
    """The files that a process has mapped, on Linux."""
    try:
        return Path(f"/proc/{pid}/maps").read_text(errors="replace")
    except OSError:
        return ""

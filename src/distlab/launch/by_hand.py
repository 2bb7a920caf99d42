"""The shell commands that do by hand what the launcher does."""

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path


def shell(arguments: Sequence[str], environment: Mapping[str, str]) -> str:
    """One line for a shell: the variables, then the command."""
    return " ".join([*(f"{name}={shlex.quote(value)}" for name, value in environment.items()), shlex.join(arguments)])


def side_by_side(lines: Sequence[str]) -> str:
    """Commands that run at the same time, the last of them in front."""
    return " &\n".join(lines)


def short_path(program: Path) -> str:
    """The program's path from the working folder where that is shorter."""
    relative = os.path.relpath(program)
    return relative if len(relative) < len(str(program)) else str(program)

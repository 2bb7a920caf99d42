"""The program of a job and its settings."""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TypedDict

from distlab.launch.job import Job, LaunchError
from distlab.runtime.tables import as_typed

# Importing TensorFlow alone takes a loaded machine most of a minute.
SECONDS, START_SECONDS = 900.0, 300.0
RESULT = "{result}"
"""Stands in a program's arguments for the path of the file of its result."""


class Settings(TypedDict, total=False):
    """The settings that every way of starting accepts.

    seconds: for the whole job (900).  start_seconds: until every rank has connected (300).  echo: print the shell
    commands that do the same by hand, and every line as it comes (True).  result: add `--result {result}` to the
    arguments (False); wherever `{result}` is in them, the path of a file takes its place, which is read as JSON
    afterwards.  environment: variables of all processes, which take precedence over those that the launcher sets.
    prepared: fork the processes of a program that imports TensorFlow from an interpreter that has imported it already,
    on Linux (True); False gives each an interpreter of its own, as a shell does.
    module: the program is the name of a module, such as "package.train", and runs as `python -m` runs it (False).
    python: the interpreter of another environment that runs the program; torchrun or its like is looked for beside it
    first (this one's).
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
    """What the processes of a job run, and how long they may; the fields from `seconds` on are those of `Settings`."""

    file: str | Path
    arguments: Sequence[object]
    python_options: Sequence[str] = ()
    _: KW_ONLY
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

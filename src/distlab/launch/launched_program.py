"""The program of a job and its settings, and how the job is run."""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

from distlab import devices
from distlab.launch import prepared_interpreter, program_source
from distlab.launch.job import (
    Job,
    LaunchedRun,
    LaunchError,
    Limits,
    PortTaken,
    short_path,
)
from distlab.launch.rank_process import RESULT, RESULT_NAME, folder_for_sockets
from distlab.launch.supervisor import Supervisor
from distlab.runtime.lookups import seen_from

# Importing TensorFlow alone takes a loaded machine most of a minute.
SECONDS, START_SECONDS = 900.0, 300.0
# How often to try with other ports.
_ATTEMPTS = 3
# The programs that have been launched to get here, the outermost first. One may launch itself with other arguments, but
# a program whose every process launches it again would fill the machine.
_LAUNCHED = "DISTLAB_LAUNCHED"
_MOST_OF_ITSELF = 2


class Settings(TypedDict, total=False):
    """The settings that every way of starting accepts.

    seconds: for the whole job (600).  start_seconds: until every rank has connected (120).  echo: print the shell
    commands that do the same by hand, and every line as it comes (True).  result: add `--result {result}` to the
    arguments (False); wherever `{result}` is in them, the path of a file takes its place, which is read as JSON
    afterwards.  environment: variables of all processes, which take precedence over those that the launcher sets.
    prepared: fork the processes of a program that imports TensorFlow from an interpreter that has imported it already,
    on Linux (True); False gives each an interpreter of its own, as a shell does.
    python: the interpreter of another environment that runs the program, and the torchrun of that environment (this
    one's).
    """

    seconds: float
    start_seconds: float
    echo: bool
    result: bool
    environment: Mapping[str, str]
    prepared: bool
    python: str | Path


class LaunchedProgram:
    """What the processes of a job run: `command`, with RESULT in it, and `as_typed`, the same as a person types it."""

    def __init__(
        self,
        program: str | Path,
        arguments: Sequence[object],
        settings: Settings,
        python_options: Sequence[str] = (),
    ) -> None:
        if not isinstance(program, str | os.PathLike):
            kind = program.__name__ if hasattr(program, "__name__") else repr(program)
            raise LaunchError(f"{kind} is no program: give the path of a Python file, then its arguments one by one.")
        self._file, self._settings = Path(program), settings
        self.name = self._file.name
        if unknown := sorted(set(settings) - set(Settings.__annotations__)):
            raise LaunchError(
                f"{unknown[0]}= is not known: besides its own arguments, which help() shows, each launcher takes "
                f"{', '.join(Settings.__annotations__)}."
            )
        python = str(settings.get("python", sys.executable))
        if not self._file.is_file() or self._file.suffix == ".ipynb":  # the text of a notebook is a Python expression
            kind = "folder" if self._file.is_dir() else "notebook" if self._file.exists() else None
            what = f"{self._file} is a {kind}" if kind else f"There is no program {self._file}{seen_from(self._file)}"
            raise LaunchError(f"{what}; give the path of a Python file.")
        path = str(self._file.resolve())
        outer = list(filter(None, os.environ.get(_LAUNCHED, "").split(os.pathsep)))
        if outer.count(path) >= _MOST_OF_ITSELF:
            raise LaunchError(
                f"{self._file} launches itself in every process that it starts; launch it from another program."
            )
        self._launched = os.pathsep.join([*outer, path])
        if not shutil.which(python):
            what = f"{python} is no interpreter" if Path(python).exists() else f"There is no interpreter {python}"
            raise LaunchError(
                f"{what}; make that environment first (.venv-frameworks by `make setup-frameworks`), or leave out "
                "`python=`, or --python."
            )
        texts = [*map(str, arguments), *(["--result", RESULT] if settings.get("result") else [])]
        typed = [text.replace(RESULT, "result.json") for text in texts]
        self._wants_result = any(RESULT in text for text in texts)
        self.command = [python, *python_options, path, *texts]
        self.as_typed = ["python", *python_options, short_path(self._file), *typed]
        variables = settings.get("environment", {})
        self.environment = dict(variables)

    def begins_with(self, package: str) -> bool:
        """Whether the program imports the package in any case."""
        return program_source.begins_with(self._file, package)

    def starter(self, name: str) -> str:
        """The path of a program such as mpirun, from the environment that runs this program if it is there."""
        own_path = None
        if "python" in self._settings:
            own_path = shutil.which(name, path=str(Path(self._settings["python"]).parent))
        path = own_path or shutil.which(name)
        if not path:
            fix = "; `make doctor` says what is missing and the fix."
            if name == "torchrun":
                fix = ": run `make setup-frameworks`, then launch with --python .venv-frameworks/bin/python."
            raise LaunchError(f"There is no {name} in this environment{fix}")
        return path

    def run(self, job: Job) -> LaunchedRun:
        """Run the job, and read the file whose path took the place of RESULT. Raises devices.NoLoopback."""
        limits = self.limits()
        devices.require_loopback()
        if self._echoes:
            print(job.by_hand, flush=True)
        with tempfile.TemporaryDirectory(prefix="distlab-", dir=folder_for_sockets()) as folder:
            file = Path(folder) / RESULT_NAME
            show = _print if self._echoes else lambda line: None
            run = Supervisor(self._with_paths(job, file), limits, show, Path(folder)).run()
            if self._wants_result:
                run.result = self._read_result(file, run)
        return run

    def limits(self) -> Limits:
        """How long the job may take, and its start; raises LaunchError if that is not above 0."""
        limits = Limits(self._settings.get("seconds", SECONDS), self._settings.get("start_seconds", START_SECONDS))
        for name, seconds in (("seconds", limits.seconds), ("start_seconds", limits.start_seconds)):
            if not isinstance(seconds, int | float) or not seconds > 0:  # nan is not
                raise LaunchError(f"{name}={seconds!r} makes no sense: it must be more than 0.")
        return limits

    def _with_paths(self, job: Job, file: Path) -> Job:
        commands = [
            replace(command, arguments=[argument.replace(RESULT, str(file)) for argument in command.arguments])
            for command in job.commands
        ]
        if self.command[0] == sys.executable and self._settings.get("prepared", True):
            commands = prepared_interpreter.forked(commands, self.command, len(job.ranks), self._file)
        known = {_LAUNCHED: self._launched}
        commands = [replace(command, environment={**command.environment, **known}) for command in commands]
        return replace(job, commands=commands)

    def _read_result(self, file: Path, run: LaunchedRun) -> object:
        if not file.exists():
            raise LaunchError(
                f"{self._file} finished without an error but wrote no result file: the program must take the option "
                "--result FILE, which result=True adds, and one of its processes must write JSON there.",
                run,
            )
        try:
            return json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            what = f"finished without an error, but its result is not a JSON file ({type(error).__name__})"
            raise LaunchError(f"{self._file} {what}.", run) from error

    def with_other_ports(self, run: Callable[[], LaunchedRun]) -> LaunchedRun:
        """Run a job, and one with other ports when another program took a port meanwhile."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return run()
            except PortTaken:
                if self._echoes:
                    _print("Another program took one of the ports meanwhile; starting again with other ports.")
        return run()

    @property
    def _echoes(self) -> bool:
        return self._settings.get("echo", True)


def _print(line: str) -> None:
    print(line, flush=True)

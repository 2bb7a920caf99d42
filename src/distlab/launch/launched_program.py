"""The program of a job and its settings, and how the job is run."""

import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import TypedDict

from distlab.launch import fork_server, rank_process
from distlab.launch.job import Command, Job, LaunchedRun, LaunchError, PortTaken
from distlab.launch.supervisor import Supervisor
from distlab.runtime.lookups import seen_from
from distlab.runtime.tables import as_typed

# Importing TensorFlow alone takes a loaded machine most of a minute.
SECONDS, START_SECONDS = 900.0, 300.0
# How often to try with other ports.
_ATTEMPTS = 3
# Stands in a program's arguments for the path of the file of its result.
_RESULT, _RESULT_NAME = "{result}", "result.json"


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
            raise LaunchError(
                f"There is no program {self.file}{seen_from(self.file)}; give a Python file, or -m and a module."
            )

    def job(
        self,
        commands: Sequence[Command],
        ranks: Sequence[str],
        decisive: Sequence[str],
        addresses: Mapping[str, str] | None = None,
        ranks_may_fail: bool = False,
    ) -> Job:
        """A job of this program; the arguments are fields of `Job`."""
        program = [str(self.python), *self._words(str(Path(self.file).resolve()))]
        limits = self.seconds, self.start_seconds
        return Job(program, commands, ranks, decisive, *limits, addresses or {}, ranks_may_fail)

    def _words(self, file: str) -> list[str]:
        """The command line behind the interpreter, with the program's `file` unless it is a module."""
        program = ["-m", str(self.file)] if self.module else [file]
        result = ["--result", _RESULT] if self.result else []
        return [*self.python_options, *program, *map(str, self.arguments), *result]

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

    def run(self, job: Job) -> LaunchedRun:
        """Run the job, and read the file of the result if its path is among the arguments."""
        if self.echo:
            print(self._by_hand(job), flush=True)
        with tempfile.TemporaryDirectory(prefix="distlab-", dir=rank_process.folder_for_sockets()) as folder:
            file = Path(folder) / _RESULT_NAME
            server = None
            if self.prepared and not self.module and str(self.python) == sys.executable:
                server = fork_server.server_for(Path(self.file), job.commands[0].whole_environment(), len(job.ranks))
            program = [word.replace(_RESULT, str(file)) for word in job.program]
            show = _print if self.echo else lambda line: None
            run = Supervisor(replace(job, program=program), show, Path(folder), server).run()
            if program != job.program:
                if not file.exists():
                    raise LaunchError(
                        f"{self.file} finished without an error but wrote no result file: the program must take the "
                        "option --result FILE, which result=True adds, and one of its processes must write JSON there.",
                        run,
                    )
                run.result = json.loads(file.read_text(encoding="utf-8"))
        return run

    def run_with_free_ports(self, job: Callable[[], Job]) -> LaunchedRun:
        """Run a job, and one with other ports when another program has taken a port meanwhile."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return self.run(job())
            except PortTaken:
                if self.echo:
                    _print("Another program took one of the ports meanwhile; starting again with other ports.")
        return self.run(job())

    def _by_hand(self, job: Job) -> str:
        """The shell commands that do the same, side by side, the first one in front."""
        path = min(os.path.relpath(self.file), str(Path(self.file)), key=len)
        program = ["python", *(word.replace(_RESULT, _RESULT_NAME) for word in self._words(path))]
        lines = []
        for command in reversed(job.commands):
            variables = [f"{name}={shlex.quote(value)}" for name, value in command.environment.items()]
            starter = [Path(word).name for word in command.starter[:1]] + [*command.starter[1:]]
            lines.append(as_typed(" ".join([*variables, shlex.join([*starter, *program])])))
        return " &\n".join(lines)


def _print(line: str) -> None:
    print(line, flush=True)

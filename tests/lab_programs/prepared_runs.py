"""Runs of single programs in forks of one interpreter that has imported TensorFlow.

For tests of what a program prints or computes: a forked program has its own environment, streams, working folder and
exit status (`tests/launch/test_prepared_interpreter.py`), and costs no import of its own. Elsewhere than on Linux each
program gets an interpreter of its own.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from distlab.launch.prepared_interpreter import PreparedInterpreter
from distlab.runtime import processes


@dataclass(frozen=True)
class PreparedRuns:
    """Runs programs; `interpreter` is None where there can be none."""

    interpreter: PreparedInterpreter | None

    def run(
        self, program: Path, *arguments: str | Path, seconds: float = 300, folder: Path, variables: Mapping[str, str]
    ) -> processes.Finished:
        """What `python program.py …` prints, in this folder and with exactly these variables, and its exit status."""
        command = [sys.executable, str(program), *map(str, arguments)]
        if self.interpreter:
            command = self.interpreter.command(command)
        return processes.run(command, seconds, cwd=folder, env=dict(variables))


@contextmanager
def prepared_runs(*packages: str) -> Iterator[PreparedRuns]:
    """Runs in forks of an interpreter with this process's variables, TensorFlow, and these packages too."""
    interpreter = PreparedInterpreter(os.environ) if sys.platform == "linux" else None
    try:
        for package in packages if interpreter else ():
            interpreter.import_too(package)
        yield PreparedRuns(interpreter)
    finally:
        if interpreter:
            interpreter.close()

"""Runs of single programs in forks of one interpreter that has imported TensorFlow.

For tests of what a program prints or computes: a forked program has its own environment, streams, working folder and
exit status, and costs no import of its own. Elsewhere than on Linux each program gets an interpreter of its own.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from distlab.launch import rank_process
from distlab.launch.fork_server import PreparedInterpreter
from distlab.runtime import processes


@dataclass(frozen=True)
class PreparedRuns:
    """Runs programs; `interpreter` is None where there can be none."""

    interpreter: PreparedInterpreter | None

    def run(
        self,
        program: Path,
        *arguments: object,
        seconds: float = 900,
        folder: Path | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> processes.Finished:
        """What `python program.py …` prints, and its exit status, in this folder and with exactly these variables.

        By default in the working folder, with this process's variables.
        """
        command = [sys.executable, str(program), *map(str, arguments)]
        if self.interpreter:
            command = rank_process.command("-", command, self.interpreter.path)
        return processes.run(command, seconds, cwd=folder, env=dict(os.environ if variables is None else variables))


@contextmanager
def prepared_runs() -> Iterator[PreparedRuns]:
    """Runs in forks of an interpreter with this process's variables, TensorFlow and Horovod."""
    interpreter = PreparedInterpreter(os.environ, "horovod.tensorflow.keras") if sys.platform == "linux" else None
    try:
        yield PreparedRuns(interpreter)
    finally:
        if interpreter:
            interpreter.close()

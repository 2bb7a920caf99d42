"""Runs of single programs in forks of one interpreter that has imported TensorFlow."""

import os
import sys
from pathlib import Path

from distlab.launch import rank_process
from distlab.launch.fork_server import PreparedInterpreter
from distlab.runtime import processes


class PreparedRuns:
    """Runs programs with this process's variables.

    For tests of what a program prints or computes: a forked program has its own environment, streams, working folder
    and exit status, and costs no import of its own. Elsewhere than on Linux it gets an interpreter of its own.
    """

    def __init__(self) -> None:
        linux = sys.platform == "linux"
        self._interpreter = PreparedInterpreter(os.environ, "horovod.tensorflow.keras") if linux else None

    def run(self, program: Path, *arguments: object, folder: Path | None = None) -> processes.Finished:
        """What `python program.py …` prints, and its exit status, in this folder, by default in the working one."""
        command = [sys.executable, str(program), *map(str, arguments)]
        if self._interpreter:
            command = rank_process.command(command, server=self._interpreter.path)
        return processes.run(command, 900, cwd=folder)

    def close(self) -> None:
        """End the interpreter."""
        if self._interpreter:
            self._interpreter.close()

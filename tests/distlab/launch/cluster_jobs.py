"""Jobs of the launcher that run on the login node of a cluster, and what they leave on its nodes."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from distlab import cluster
from tests.distlab.cluster.cluster_bench import Bench, until

# Calls a function of `launch` and says what came of it in its last line.
DRIVER = """
import json, sys
from distlab import launch

name, arguments, settings = json.loads(sys.argv[1])
error = None
try:
    run = getattr(launch, name)(*arguments, **settings)
except launch.LaunchError as failure:
    run, error = failure.run, failure
print(json.dumps({
    "run": vars(run) if run else None,
    "error": type(error).__name__ if error else None,
    "message": str(error),
    "place": [getattr(error, name, None) for name in ("host", "rank", "exit_code")],
}))
"""
OF_LAUNCHER = ("host_process.py", "rank_process.py", "orted")


class ClusterJobs:
    """The launcher on a login node, in a folder that all nodes see."""

    def __init__(self, running: cluster.Cluster, bench: Bench, folder: Path) -> None:
        self.running, self._bench, self._folder = running, bench, folder

    @contextmanager
    def started(self, name: str, *arguments: object, **settings: object) -> Iterator[subprocess.Popen[str]]:
        """A job that `launch.NAME` runs, for the block."""
        request = json.dumps([name, list(map(str, arguments)), {"seconds": 500, "start_seconds": 300} | settings])
        with self.entered([sys.executable, "-c", DRIVER, request]) as job:
            yield job

    @contextmanager
    def entered(self, command: list[str]) -> Iterator[subprocess.Popen[str]]:
        """A command on the login node, for the block."""
        options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        with subprocess.Popen(self.running.entering(command), **options) as process:
            try:
                yield process
            finally:
                with suppress(psutil.Error):
                    process.kill()

    def run(self, name: str, *arguments: object, **settings: object) -> dict[str, Any]:
        """What came of a job."""
        with self.started(name, *arguments, **{"echo": False} | settings) as job:
            return came_of(job)

    def left(self, node: str | None = None) -> list[str]:
        """The command lines of what the launcher has started on the nodes, or on one, and is there still."""
        lines = []
        for process in [process for found in self._bench.processes().values() for process in found]:
            with suppress(psutil.Error, OSError):
                line = " ".join(process.cmdline())
                # The driver's own command line names the program, too.
                is_ours = "-c" not in process.cmdline() and str(self._folder) in line
                if (is_ours or any(word in line for word in OF_LAUNCHER)) and node in (None, _node_of(process)):
                    lines.append(line)
        return lines

    def kill(self, node: str, *words: str) -> None:
        """`kill -9` what runs on a node and has one of these words in its command line."""
        for process in [process for found in self._bench.processes().values() for process in found]:
            with suppress(psutil.Error, OSError):
                if _node_of(process) == node and any(word in " ".join(process.cmdline()) for word in words):
                    process.kill()

    def until_nothing_is_left(self, node: str | None = None) -> None:
        until(lambda: not self.left(node), f"{self.left(node)} stay")


def came_of(job: subprocess.Popen[str]) -> dict[str, Any]:
    """What the driver says in its last line."""
    output = job.communicate(timeout=600)[0]
    lines = [line for line in output.splitlines() if line.startswith('{"run"')]
    assert lines, output
    outcome: dict[str, Any] = json.loads(lines[-1])
    return outcome


def wait_for(job: subprocess.Popen[str], text: str, count: int = 2) -> None:
    """Until so many lines of the job have the text."""
    assert job.stdout
    while count:
        line = job.stdout.readline()
        assert line, f"the job ended without {text!r}"
        count -= text in line


def _node_of(process: psutil.Process) -> str:
    """By its interface: every node has its own network."""
    own = set(re.findall(r"-- 10\.99\.0\.(\d+)$", Path(f"/proc/{process.pid}/net/fib_trie").read_text(), re.MULTILINE))
    return "login" if "254" in own else f"node{min(own - {'0', '255'}, default='?')}"

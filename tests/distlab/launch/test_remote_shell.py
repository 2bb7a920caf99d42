"""What takes the place of ssh: which host and which command it is asked for, and what it gives back."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from distlab.launch.remote_shell import ShellServer, parse


@pytest.mark.parametrize(
    ("arguments", "host", "command"),
    [
        (["node1", "orted", "-mca", "x"], "node1", "orted -mca x"),
        (["-x", "node1", " PATH=/bin orted"], "node1", " PATH=/bin orted"),
        (["-o", "StrictHostKeyChecking=no", "-oBatchMode=yes", "node1", "date"], "node1", "date"),
        (["-o", "A=b", "node1", "-p", "22", "-i", "key", "cd /tmp && ls -l"], "node1", "cd /tmp && ls -l"),
        (["-T", "node1"], "node1", ""),
    ],
)
def test_host_and_command_are_those_that_ssh_would_take(arguments: list[str], host: str, command: str) -> None:
    assert parse(arguments) == (host, command)


class Recorded:
    """A host that says what it is told."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []

    def start_shell(self, host: str, text: str, folder: str, take: Callable[[dict[str, Any]], None]) -> str | None:
        self.asked.append((host, text, folder))
        if host != "node1":
            return None
        for message in ({"name": "shell 1", "pid": 5}, {"line": "first"}, {"line": "last"}, {"status": -9}):
            take(message)
        return "shell 1"

    def end_shell(self, host: str, name: str) -> None:
        """Nothing runs."""


def test_a_command_goes_to_its_host_and_its_output_and_status_come_back(tmp_path: Path) -> None:
    shells = Recorded()
    server = ShellServer(shells, tmp_path)
    ssh = str(server.programs / "ssh")
    finished = subprocess.run([ssh, "-x", "node1", "echo 'a b'"], capture_output=True, text=True, timeout=300)
    unknown = subprocess.run([ssh, "node7", "true"], capture_output=True, text=True, timeout=300)
    server.close()
    assert (finished.stdout, finished.returncode) == ("first\nlast\n", 128 + 9)
    assert (unknown.stdout, unknown.returncode) == ("node7 is no host of this job\n", 255)
    assert shells.asked[0] == ("node1", "echo 'a b'", str(tmp_path))

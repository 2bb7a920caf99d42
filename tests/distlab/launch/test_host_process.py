"""The launcher's process on a host, here on this machine: nothing that it has started outlives it or its connection."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from distlab.launch import host_process
from distlab.launch.host_process import FRAME, LONGEST_PIECE
from distlab.launch.job import OUTPUT
from tests.distlab.cluster.cluster_bench import until as until_true
from tests.distlab.launch.launched_program import Launched

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
Process = subprocess.Popen[str]


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    command = [sys.executable, "-I", "-S", host_process.__file__]
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    (tmp_path / "temporary").mkdir()
    with subprocess.Popen(command, env={**os.environ, "TMPDIR": str(tmp_path / "temporary")}, **options) as running:
        yield running
        running.kill()


def send(process: Process, **request: object) -> None:
    assert process.stdin
    process.stdin.write(json.dumps(request) + "\n")
    process.stdin.flush()


def prepare(process: Process, **changes: object) -> None:
    settings = {"folder": "/", "files": [], "environment": OUTPUT, "hosts": [], "ports": 3, "has_one_program": False}
    send(process, prepare=settings | changes)


def start(process: Process, *command: object) -> None:
    send(process, start="rank 0", command=list(map(str, command)), environment={}, address=None)


def reports(process: Process) -> Iterator[dict[str, object]]:
    """All reports, put together from their pieces."""
    text = ""
    assert process.stdout
    for line in process.stdout:
        assert len(line) < LONGEST_PIECE + 40
        _, sign, piece = line.removeprefix(FRAME).rstrip("\n").split(" ", 2)
        text += piece
        if sign == ".":
            yield json.loads(text)
            text = ""


def until(process: Process, key: str) -> dict[str, object]:
    return next(report for report in reports(process) if key in report)


def test_it_says_what_the_host_has_and_what_a_program_prints(process: Process) -> None:
    prepare(process, environment={"GREETING": "ü" * 2000})
    ready = until(process, "ready")["ready"]
    assert isinstance(ready, dict)
    assert len(set(ready["ports"])) == 3
    assert ready["cores"] == len(os.sched_getaffinity(0))
    start(process, "sh", "-c", "echo $GREETING; kill -9 $$")
    assert until(process, "line") == {"name": "rank 0", "line": "ü" * 2000}
    assert until(process, "status") == {"name": "rank 0", "status": -9, "was_asked": False}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"folder": "/no/such"}, "does not have the working folder /no/such; it must be where all hosts see it"),
        ({"files": ["/no/file.py"]}, "does not have the file /no/file.py; it must be where all hosts see it"),
        ({"hosts": ["no-host.invalid"]}, "does not know the address of no-host.invalid"),
    ],
)
def test_it_says_what_the_host_lacks(changes: dict[str, object], problem: str, process: Process) -> None:
    prepare(process, **changes)
    assert until(process, "error")["error"] == problem


def close(process: Process) -> None:
    assert process.stdin
    process.stdin.close()


def kill_working(process: Process) -> None:
    psutil.Process(process.pid).children()[0].kill()


@pytest.mark.slow
@pytest.mark.parametrize(
    "end",
    [
        close,
        kill_working,
        lambda process: process.kill(),
        lambda process: process.send_signal(signal.SIGTERM),
        lambda process: send(process, end=True),
    ],
    ids=["connection closed", "working process killed", "killed", "SIGTERM", "asked"],
)
def test_whatever_ends_it_nothing_stays(
    end: Callable[[Process], None], process: Process, launched: Launched, tmp_path: Path
) -> None:
    """Neither a program that ignores SIGTERM, nor its child in a session of its own, nor temporary files."""
    prepare(process)
    start(process, sys.executable, launched.program, "all=stubborn,child,say:up,wait")
    until(process, "line")
    assert len(launched.left()) == 2
    end(process)
    assert launched.gone_within(60)
    process.wait(60)
    temporary = tmp_path / "temporary"
    until_true(lambda: not list(temporary.iterdir()), "temporary files stay")

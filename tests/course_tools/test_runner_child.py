"""One notebook in a process of its own: what it is blamed for, and what not."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import nbformat
import psutil
import pytest
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager

from course_tools import runner_child
from distlab.runtime import processes

pytestmark = [pytest.mark.slow]

# Looks more often than usual, so that a short stop is one.
CHILD = """
from course_tools import runner_child
from distlab.runtime import own_time
runner_child.SECONDS_BETWEEN_LOOKS, own_time._MOST_SECONDS_BETWEEN_LOOKS = 0.1, 0.5
runner_child.main()
"""
LIMIT = """
import time
from course_tools import runner
from distlab.runtime import own_time, processes
runner.SECONDS_BETWEEN_LOOKS, own_time._MOST_SECONDS_BETWEEN_LOOKS = 0.1, 0.5
limit = runner.NotebookLimit(3, processes.new_mark())
limit.start()
print("counts", flush=True)
input()
time.sleep(0.3)
print(limit.is_reached)
limit.join(300)
print(limit.is_reached)
"""


TAKES_A_PORT = """
import json, pathlib, socket, subprocess, sys
times = pathlib.Path({times!r})
times.write_text(times.read_text() + "x" if times.exists() else "x")
taken = socket.socket()
if len(times.read_text()) <= {starts}:
    taken.bind(("127.0.0.1", json.loads(pathlib.Path(sys.argv[1]).read_text())["shell_port"]))
    taken.listen()
sys.exit(subprocess.call([sys.executable, "-m", "ipykernel_launcher", "-f", sys.argv[1]]))
"""


def stop_for(seconds: float, tree: Sequence[psutil.Process]) -> None:
    for process in tree:
        process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    for process in tree:
        process.send_signal(signal.SIGCONT)


def run(folder: Path, cell: str, seconds_per_cell: int, stop: float = 0) -> dict[str, object]:
    """The outcome of a notebook of one cell; once its file `stop` is there, all its processes stand still so long."""
    notebook, job_file = folder / "00_one.ipynb", folder / "job.json"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)]), notebook)
    job = {"notebook": str(notebook), "executed": str(folder / "executed.ipynb"), "seconds_per_cell": seconds_per_cell}
    job_file.write_text(json.dumps(job))
    mark = processes.new_mark()
    child = processes.start(
        [sys.executable, "-P", "-c", CHILD, str(job_file)],
        mark,
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        while stop and child.poll() is None and not (folder / "stop").exists():
            time.sleep(0.05)
        if stop:
            stop_for(stop, [psutil.Process(child.pid), *psutil.Process(child.pid).children(recursive=True)])
        return dict(json.loads(child.communicate(timeout=300)[0].splitlines()[-1])["outcome"])
    finally:
        processes.end(mark)


def test_the_time_in_which_a_notebook_stands_still_counts_against_no_cell(tmp_path: Path) -> None:
    cell = f"import pathlib, time\npathlib.Path({str(tmp_path / 'stop')!r}).touch()\ntime.sleep(0.3)\n"
    # Its work goes on after the stop, as a training's would: a sleep would be over.
    outcome = run(tmp_path, cell + "time.sleep(0.3)", seconds_per_cell=3, stop=4)
    assert (outcome["status"], outcome["error"]) == ("ok", None)


def test_the_time_in_which_a_run_stands_still_counts_against_no_notebook() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", LIMIT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdin and program.stdout and program.stdout.readline() == "counts\n"
        stop_for(4, [psutil.Process(program.pid)])
        assert program.communicate("\n", timeout=300)[0].split() == ["False", "True"]


def test_a_failure_whose_temporary_files_were_removed_says_so(tmp_path: Path) -> None:
    cell = "import os, pathlib\npathlib.Path(os.environ['TMPDIR'], 'job.json').unlink()\nraise ValueError('a folder')"
    outcome = run(tmp_path, cell, seconds_per_cell=300)
    removed = f"the notebook's temporary files in {tmp_path} were removed while it ran"
    assert outcome["error"] == f"ValueError: a folder; {removed}"


@pytest.mark.parametrize(("starts", "status"), [(1, "ok"), (2, "failed")])
def test_a_kernel_whose_port_is_taken_while_it_starts_is_started_once_more(
    starts: int, status: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program, times = tmp_path / "kernel.py", tmp_path / "times"
    program.write_text(TAKES_A_PORT.format(times=str(times), starts=starts))
    kernel = KernelSpec(argv=[sys.executable, str(program), "{connection_file}"], language="python")
    monkeypatch.setattr(KernelSpecManager, "get_kernel_spec", lambda self, name: kernel)
    monkeypatch.setattr(runner_child.ReportingEngine, "cell", None)
    monkeypatch.setenv(processes.MARK, processes.new_mark())
    notebook, executed = tmp_path / "00_good.ipynb", tmp_path / "executed.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 + 1")]), notebook)
    outcome = runner_child.run(runner_child.NotebookJob(str(notebook), str(executed), 300), io.StringIO())
    assert (outcome.status, times.read_text()) == (status, "xx")
    assert "Address already in use" in capfd.readouterr().err

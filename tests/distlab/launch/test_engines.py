"""Ranks that wait for cells: started by MPI, their files in a temporary folder, gone afterwards whatever happens."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from distlab import launch
from distlab.runtime import environment, processes

environment.apply()  # puts this environment's mpirun on the path

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

KILLED = """
import os, signal
from distlab import launch
started = launch.start_engines(2)
print(started.view.apply_sync(os.getpid), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_engines_are_the_ranks_of_one_job_and_leave_nothing_also_when_a_cell_starts_them_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    first_mark, second_mark, home = processes.new_mark(), processes.new_mark(), tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv(processes.MARK, first_mark)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    first = launch.start_engines(2)
    assert first.view["mpi_rank"] == [0, 1]
    assert first.view["mpi_size"] == [2, 2]
    folders = first.view.apply_sync(lambda: os.environ["IPYTHONDIR"])
    assert {Path(folder).parent for folder in folders} == {tmp_path}
    assert len(processes.alive(first_mark)) >= 2
    monkeypatch.setenv(processes.MARK, second_mark)
    again = launch.start_engines(1)
    try:
        assert processes.alive(first_mark) == [] and again.view["1 + 1"] == [2]
    finally:
        again.stop()
    again.stop()
    assert processes.alive(second_mark) == []
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    assert list(home.iterdir()) == []
    assert capfd.readouterr().err == ""


def test_engines_and_their_files_end_when_the_kernel_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = processes.new_mark()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    process = processes.start([sys.executable, "-c", KILLED], mark, stdout=subprocess.PIPE)
    try:
        output, _ = process.communicate(timeout=600)
        assert len(output.split(",")) == 2
        end = time.monotonic() + 60
        while (left := [*processes.alive(mark), *tmp_path.iterdir()]) and time.monotonic() < end:
            time.sleep(0.1)
        assert not left
    finally:
        processes.end(mark)

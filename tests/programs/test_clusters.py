"""The job scripts of chapter 15 on the cluster: what each is for happens. The launchers have a file of their own."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from distlab import checks, launch
from distlab.runtime import processes
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER, lines_of_ranks
from tests.programs.job_bench import CHAPTER, Jobs, network, running_jobs, serial_weights

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

TELLS_ITS_RANK = """
import os, sys
print(os.environ["SLURM_PROCID"], os.uname().nodename, *sys.argv[1:])
"""
# The number of steps is read when the program starts: attempts of a job have the same command line.
TRAINS_AS_MANY_STEPS_AS_A_FILE_SAYS = f"""
import pathlib, runpy, sys
sys.path.insert(0, {str(CHAPTER)!r})
sys.argv += ["--steps", pathlib.Path("steps").read_text()]
runpy.run_path({str(CHAPTER / "train_resumable.py")!r}, run_name="__main__")
"""
# Has the images per second of its number of ranks squared; two ranks fail.
MEASURES = """
import json, os, sys
ranks = int(os.environ["SLURM_NTASKS"])
if ranks == 2:
    sys.exit("no data for 2 ranks")
if os.environ["SLURM_PROCID"] == "0":
    result = {"ranks": ranks, "step_seconds": 0.5, "images_per_second": 100.0 * ranks**0.5}
    open(sys.argv[sys.argv.index("--result") + 1], "w").write(json.dumps(result))
"""
FINDS_ITS_DATA = """
import os, pathlib
from distlab import data
own = pathlib.Path(os.environ["DISTLAB_DATA"])
print(os.uname().nodename, os.stat(own).st_dev != os.stat("/tmp").st_dev, len(data.load("mnist").train.labels))
"""


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    with running_jobs(tmp_path_factory.mktemp("cache")) as jobs:
        yield jobs


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def submit(jobs: Jobs, script: str, program: str, *words: str, options: tuple[str, ...] = ()) -> str:
    file = Path(f"{Path(script).stem}.py")  # not one for all: a job that is queued again reads it again
    file.write_text(program)
    return jobs.submit(script, file, *words, options=options)


def read_until(terminal: int, text: str, seconds: float = 600.0) -> None:
    """Read what a shell prints, up to this."""
    printed, deadline = "", time.monotonic() + seconds
    while text not in printed:
        readable, _, _ = select.select([terminal], [], [], max(0, deadline - time.monotonic()))
        assert readable, printed
        printed += os.read(terminal, 4096).decode(errors="replace")


@NEEDS_CLUSTER
def test_an_array_fills_a_scaling_table_although_one_task_fails(jobs: Jobs, folder: Path) -> None:
    job = submit(jobs, "array.sbatch", MEASURES)
    output = jobs.wait(job, "COMPLETED", "FAILED")
    assert sorted(jobs.states(job)) == ["COMPLETED", "COMPLETED", "FAILED"]
    assert "no data for 2 ranks" in output
    table = jobs.cluster.run(["python", str(CHAPTER / "scaling_table.py"), f"scaling-{job}"])
    rows = [line.split() for line in table.output.splitlines()]
    assert [row[0] for row in rows] == ["ranks", "1", "3"]
    assert rows[2][-2:] == [f"{3**0.5:.2f}", f"{3**0.5 / 3:.0%}"]


@NEEDS_CLUSTER
def test_every_rank_has_a_log_of_its_own(jobs: Jobs, folder: Path) -> None:
    job = submit(jobs, "ranks.sbatch", TELLS_ITS_RANK)
    jobs.wait(job, "COMPLETED")
    logs = {file.name: file.read_text().splitlines()[-1] for file in folder.glob("*.log")}
    assert logs == {
        f"ranks-{job}-{rank}-{node}.log": f"{rank} {node}"
        for rank, node in enumerate(["node1", "node1", "node2", "node2"])
    }


@pytest.mark.skipif(os.getuid() != 0, reason="sbcast sets the groups of the job's user, which needs root")
@NEEDS_CLUSTER
def test_staged_data_is_on_every_nodes_own_disk_and_goes_with_the_job(
    jobs: Jobs, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, labels = np.zeros((100, 28, 28), np.uint8), np.zeros(100, np.uint8)
    np.savez(folder / "mnist.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
    monkeypatch.setenv("DATA", str(folder / "mnist.npz"))
    monkeypatch.setenv("TMPDIR", "/dev/shm")  # which, unlike /tmp, each node has for itself
    job = submit(jobs, "staging.sbatch", FINDS_ITS_DATA)
    output = jobs.wait(job, "COMPLETED")
    assert lines_of_ranks(output) == [f"node{number} True {len(labels)}" for number in (1, 2)]
    for node in ("node1", "node2"):
        assert jobs.cluster.run(["ssh", node, "ls", "/dev/shm"]).output == ""


@NEEDS_CLUSTER
def test_an_interactive_job_gives_a_shell_on_a_node_of_an_allocation_of_two(jobs: Jobs) -> None:
    terminal, other_end = pty.openpty()
    command = ["setsid", "--ctty", "--wait", *jobs.cluster.entering([str(CHAPTER / "slurm" / "interactive.sh")])]
    shell = subprocess.Popen(command, stdin=other_end, stdout=other_end, stderr=other_end)
    os.close(other_end)
    try:
        os.write(terminal, b"echo I am on $(uname --nodename)\n")
        read_until(terminal, "I am on node1")
        os.write(terminal, b"srun uname --nodename | sort | paste --serial --delimiters=+\n")
        read_until(terminal, "node1+node2")
        os.write(terminal, b"exit\n")
        read_until(terminal, "Relinquishing job allocation")
        assert shell.wait(300) == 0
    finally:
        shell.kill()
        os.close(terminal)
    finished = jobs.cluster.run([str(CHAPTER / "slurm" / "interactive.sh"), "uname", "--nodename"])
    assert "node1" in finished.output.split()


@NEEDS_CLUSTER
@pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem()))
def test_all_ranks_save_the_same_step_and_no_step_is_lost_or_done_twice(jobs: Jobs, folder: Path) -> None:
    Path("steps").write_text("1000000")
    words = ["--checkpoints", "saved", "--weights", "weights.npz", "--log-every", "5"]
    job = submit(jobs, "requeue.sbatch", TRAINS_AS_MANY_STEPS_AS_A_FILE_SAYS, *words, options=("--time=10",))
    jobs.wait_for_line(job, "step 5 of")
    jobs.cluster.run(["scancel", "--signal=USR1", job])  # as Slurm does before the time is over
    jobs.wait_for_line(job, "start me again")
    saved = int(re.findall(r"saved at step (\d+)", jobs.output(job))[0])
    Path("steps").write_text(str(saved + 7))
    output = jobs.wait(job, "COMPLETED")
    assert re.findall(r"attempt \d", output) == ["attempt 0", "attempt 1"]
    assert re.findall(r"begins after step (\d+)", output) == ["0", str(saved)]
    weights = network.read(folder / "weights.npz")
    assert checks.largest_difference(weights, serial_weights(saved + 7)) < checks.TOLERANCE
    # One step more or less, or momentum that begins at zero again, would be another run than this.
    for steps in (saved + 6, saved + 8):
        assert checks.largest_difference(weights, serial_weights(steps)) > 10 * checks.TOLERANCE


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck_has_nothing_to_say() -> None:
    scripts = [str(script) for kind in ("slurm", "pbs") for script in sorted((CHAPTER / kind).iterdir())]
    finished = processes.run(["shellcheck", "--shell=bash", "--exclude=SC2016", *scripts], 300)
    assert (finished.status, finished.output) == (0, "")


@pytest.mark.parametrize("program", ["13_fault_tolerance/train.py", "15_clusters/train_resumable.py"])
def test_a_notice_while_modules_are_imported_does_not_end_the_program(program: str, tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGUSR1)\nos._exit(7)\n")
    variables = {**os.environ, "PYTHONPATH": str(tmp_path)}
    finished = processes.run([sys.executable, str(CHAPTER.parent / program)], 300, env=variables)
    assert finished.status == 7, finished.output

"""The job scripts of chapter 15 on the cluster: what each is for happens. The launchers have a file of their own."""

import datetime
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from distlab import checks, data, launch
from distlab.runtime import processes
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER, lines_of_ranks
from tests.programs.job_bench import CHAPTER, Jobs, network, running_jobs, serial_weights

pytestmark = pytest.mark.slow

SECONDS_UNTIL_THE_LIMIT = 40
TELLS_ITS_RANK = """
import os, sys
print(os.environ["SLURM_PROCID"], os.uname().nodename, *sys.argv[1:])
"""
NEVER_ENDS = """
import signal
print("it runs", flush=True)
while True:
    signal.pause()
"""
SAVES = """
import os, pathlib, signal, sys
saved = pathlib.Path("saved" + os.environ["SLURM_PROCID"])
if saved.exists():
    print("resumed", flush=True)
    sys.exit()
def save(number, frame):
    saved.touch()
    sys.exit(85)
signal.signal(signal.SIGUSR1, save)
print("it runs", flush=True)
while True:
    signal.pause()
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
# The number of steps is read when the program starts: attempts of a job have the same command line.
TRAINS_AS_MANY_STEPS_AS_A_FILE_SAYS = f"""
import pathlib, runpy, sys
sys.path.insert(0, {str(CHAPTER)!r})
sys.argv += ["--steps", pathlib.Path("steps").read_text()]
runpy.run_path({str(CHAPTER / "train_resumable.py")!r}, run_name="__main__")
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


def bring_the_limit_near(jobs: Jobs, job: str) -> None:
    """Slurm counts time limits in minutes; the end of a job that runs can be set to any second."""
    show = jobs.cluster.run(["date", "+%Y-%m-%dT%H:%M:%S"]).output.strip()
    end = datetime.datetime.fromisoformat(show) + datetime.timedelta(seconds=SECONDS_UNTIL_THE_LIMIT)
    update = jobs.cluster.run(["scontrol", "update", f"JobId={job}", f"EndTime={end.isoformat()}"])
    assert update.status == 0, update.output


def read_until(terminal: int, text: str, seconds: float = 600.0) -> None:
    """Read what a shell prints, up to this."""
    printed, deadline = "", time.monotonic() + seconds
    while text not in printed:
        readable, _, _ = select.select([terminal], [], [], max(0, deadline - time.monotonic()))
        assert readable, printed
        printed += os.read(terminal, 4096).decode(errors="replace")


@NEEDS_CLUSTER
def test_a_batch_job_runs_on_two_nodes(jobs: Jobs) -> None:
    job = submit(jobs, "batch.sbatch", TELLS_ITS_RANK)
    assert sorted(jobs.wait(job, "COMPLETED").splitlines()) == ["0 node1", "1 node2"]


@NEEDS_CLUSTER
def test_a_batch_job_fails_with_its_program(jobs: Jobs) -> None:
    job = submit(jobs, "batch.sbatch", "import sys; sys.exit('no data')")
    assert "no data" in jobs.wait(job, "FAILED")


@NEEDS_CLUSTER
def test_a_job_without_a_program_fails_and_says_what_is_missing(jobs: Jobs) -> None:
    """Python without a program reads the empty input of the job, and succeeds."""
    job = jobs.submit("batch.sbatch")
    assert "say which program to run: sbatch SCRIPT PROGRAM.py" in jobs.wait(job, "FAILED")


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
def test_a_scaling_table_of_nothing_is_one_sentence(jobs: Jobs, folder: Path) -> None:
    table = jobs.cluster.run(["python", str(CHAPTER / "scaling_table.py"), "."])
    assert table.status == 2
    assert "there is no result in .: look for the error in the jobs' outputs" in table.output


@NEEDS_CLUSTER
def test_every_rank_has_a_log_of_its_own(jobs: Jobs, folder: Path) -> None:
    job = submit(jobs, "ranks.sbatch", TELLS_ITS_RANK)
    jobs.wait(job, "COMPLETED")
    logs = {file.name: file.read_text().splitlines()[-1] for file in folder.glob("*.log")}
    assert logs == {
        f"ranks-{job}-{rank}-{node}.log": f"{rank} {node}"
        for rank, node in enumerate(["node1", "node1", "node2", "node2"])
    }


@NEEDS_CLUSTER
def test_staged_data_is_on_every_nodes_own_disk_and_goes_with_the_job(
    jobs: Jobs, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, labels = data.load("digits").train
    images = np.round(255 * images).astype(np.uint8)
    labels = labels.astype(np.uint8)
    np.savez(folder / "mnist.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
    monkeypatch.setenv("DATA", str(folder / "mnist.npz"))
    monkeypatch.setenv("TMPDIR", "/dev/shm")  # which, unlike /tmp, each node has for itself
    job = submit(jobs, "staging.sbatch", FINDS_ITS_DATA)
    output = jobs.wait(job, "COMPLETED")
    assert lines_of_ranks(output) == [f"node{number} True {len(labels)}" for number in (1, 2)]
    for node in ("node1", "node2"):
        assert jobs.cluster.run(["ssh", node, "ls", "/dev/shm"]).output == ""
    monkeypatch.delenv("DATA")
    assert "set DATA to the .npz file" in jobs.wait(submit(jobs, "staging.sbatch", FINDS_ITS_DATA), "FAILED")


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
def test_before_the_time_limit_slurm_signals_every_rank_and_at_the_limit_it_ends_the_job(jobs: Jobs) -> None:
    saving = submit(jobs, "requeue.sbatch", SAVES)
    deaf = submit(jobs, "batch.sbatch", NEVER_ENDS)
    for job in (saving, deaf):
        jobs.wait_for_line(job, "it runs")
    for job in (saving, deaf):
        bring_the_limit_near(jobs, job)
    assert "DUE TO TIME LIMIT" in jobs.wait(deaf, "TIMEOUT")
    output = jobs.wait(saving, "COMPLETED")
    assert re.findall(r"attempt \d", output) == ["attempt 0", "attempt 1"]
    assert output.count("resumed") == 2
    assert "DUE TO TIME LIMIT" not in output


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
    assert re.findall(r"begins after step (\d+)", output) == ["0", str(saved)]
    weights = network.read(folder / "weights.npz")
    assert checks.largest_difference(weights, serial_weights(saved + 7)) < checks.TOLERANCE
    # One step more or less, or momentum that begins at zero again, would be another run than this.
    for steps in (saved + 6, saved + 8):
        assert checks.largest_difference(weights, serial_weights(steps)) > 10 * checks.TOLERANCE


SCRIPTS = sorted(file for kind in ("slurm", "pbs") for file in (CHAPTER / kind).iterdir())


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: f"{script.parent.name}/{script.name}")
def test_shellcheck_has_nothing_to_say(script: Path) -> None:
    finished = processes.run(["shellcheck", "--shell=bash", str(script)], 300)
    assert (finished.status, finished.output) == (0, "")


@pytest.mark.parametrize(
    "script", [script for script in SCRIPTS if script.suffix != ".sh"], ids=lambda script: script.name
)
def test_no_script_runs_without_a_program(script: Path, folder: Path) -> None:
    settings = {**os.environ, "PROGRAM": "", "PBS_O_WORKDIR": str(folder), "PBS_JOBID": "17", "DATA": "mnist.npz"}
    finished = processes.run(["bash", str(script)], 300, env=settings)
    assert finished.status != 0
    assert re.fullmatch(r"(attempt 0\n)?.*(say which program to run|set PROGRAM to the program).*\n", finished.output)


@pytest.mark.parametrize("script", [script for script in SCRIPTS if script.suffix == ".sbatch"], ids=lambda s: s.stem)
def test_every_script_says_how_to_submit_it_and_has_a_limit(script: Path) -> None:
    text = script.read_text()
    assert re.search(rf"^# .*sbatch .*notebooks/programs/15_clusters/slurm/{script.name}", text, re.MULTILINE)
    for option in ("--job-name=", "--time=", "--output="):
        assert f"\n#SBATCH {option}" in text


def test_a_checkpoint_beyond_the_steps_that_are_asked_for_is_named(tmp_path: Path) -> None:
    program = [sys.executable, str(CHAPTER / "train_resumable.py"), "--checkpoints", str(tmp_path), "--steps"]
    with subprocess.Popen([*program, "2000000", "--log-every", "5"], stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout
        for line in first.stdout:
            if not line.startswith(("rank", "begins", "saved")):  # the line of step 5
                first.send_signal(signal.SIGUSR1)
            if line.startswith("saved at step"):
                done = int(line.split()[3].rstrip(";"))
    second = subprocess.run([*program, "4"], capture_output=True, text=True, timeout=600)
    assert second.returncode == 1
    assert second.stderr.endswith(f"The checkpoint is of step {done}: ask for more than --steps 4.\n")

"""The bodies of chapter 15's scripts for PBS, with PBS's variables and a file of nodes, over the ssh of the cluster.

Nothing here is PBS: what `qsub` makes of the lines that begin with #PBS is not shown, only that they are of its kind.
"""

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from distlab import checks, launch
from distlab.runtime import processes
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER, lines_of_ranks
from tests.programs.job_bench import CHAPTER, SECONDS, Jobs, network, running_jobs, serial_weights

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

SCRIPTS = sorted((CHAPTER / "pbs").glob("*.pbs"))
JOB = 17
OPTIONS = {"-N": r"[a-z-]+", "-l": r"(select|place|walltime)=\S+", "-j": "oe", "-J": r"\d+-\d+"}
# Each prints its rank and its node, and fails where it is told to.
MEASURES = """
import os, sys
if os.environ["OMPI_COMM_WORLD_SIZE"] == "2":
    sys.exit("no data for 2 ranks")
open(sys.argv[sys.argv.index("--result") + 1], "w").write(os.environ["OMPI_COMM_WORLD_SIZE"])
"""
FINDS_ITS_DATA = """
import os, pathlib
own = pathlib.Path(os.environ["DISTLAB_DATA"]) / "mnist.npz"
print(os.uname().nodename, os.stat(own).st_dev != os.stat("/tmp").st_dev, own.read_text())
"""
SAVES = """
import os, pathlib, signal, sys
saved = pathlib.Path("saved" + os.environ["OMPI_COMM_WORLD_RANK"])
if saved.exists():
    print("resumed on", os.uname().nodename, flush=True)
    sys.exit()
def save(number, frame):
    saved.touch()
    while len(list(pathlib.Path().glob("saved*"))) < 2:
        pass
    sys.exit(85)
signal.signal(signal.SIGUSR1, save)
while True:
    signal.pause()
"""
# Puts the job into the queue and starts it at once: in its folder, with the variables that -v names.
QSUB = """#!/bin/bash
echo "qsub $*" >> submitted
[ "$(wc -l < submitted)" -lt 3 ] && exec bash "${@: -1}"
"""


class Queue:
    """Runs the body of a script as PBS would: on the first node of the job, in the home folder."""

    def __init__(self, jobs: Jobs, folder: Path) -> None:
        self.jobs, self.folder = jobs, folder

    def run(self, script: str, program: str, nodes: tuple[str, ...], **more: str) -> processes.Finished:
        if not program.startswith(str(CHAPTER)):
            (self.folder / "program.py").write_text(program)
            program = "program.py"
        (self.folder / "nodes").write_text("".join(f"{node}\n" for node in nodes))
        variables = {
            "PBS_JOBID": f"{JOB}.server",
            "PBS_NODEFILE": str(self.folder / "nodes"),
            "PBS_O_WORKDIR": str(self.folder),
            "PBS_ENVIRONMENT": "PBS_BATCH",
            "PROGRAM": program,
            "PATH": os.environ["PATH"],
        }
        settings = [f"{name}={shlex.quote(value)}" for name, value in (variables | more).items()]
        body = shlex.quote(str(CHAPTER / "pbs" / script))
        return self.jobs.cluster.run(["ssh", nodes[0], "cd / && env", *settings, f"bash {body}"], SECONDS)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    with running_jobs(tmp_path_factory.mktemp("cache")) as jobs:
        yield jobs


@pytest.fixture
def queue(jobs: Jobs, tmp_path: Path) -> Queue:
    return Queue(jobs, tmp_path)


NEEDS_HOROVOD = pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem()))


@NEEDS_CLUSTER
@pytest.mark.parametrize(
    ("script", "program"),
    [
        ("batch.pbs", "train_multi_worker.py"),
        pytest.param("horovod_mpirun.pbs", "train_horovod.py", marks=NEEDS_HOROVOD),
        pytest.param("horovod_ssh.pbs", "train_horovod.py", marks=NEEDS_HOROVOD),
    ],
)
def test_a_job_trains_the_serial_runs_weights(queue: Queue, script: str, program: str) -> None:
    file = queue.folder / "weights.npz"
    finished = queue.run(script, f"{CHAPTER / program} --weights {file}", ("node1", "node2"))
    assert finished.status == 0, finished.output
    assert all(f"rank {rank} of 2 on node{rank + 1}" in finished.output for rank in range(2))
    assert checks.largest_difference(network.read(file), serial_weights()) < checks.TOLERANCE


@NEEDS_CLUSTER
def test_each_subjob_of_an_array_has_its_number_of_ranks_and_one_may_fail(queue: Queue) -> None:
    nodes = ("node1", "node2", "node3")
    statuses = [
        queue.run("array.pbs", MEASURES, nodes, PBS_ARRAY_INDEX=str(n), PBS_JOBID=f"{JOB}[{n}].server").status
        for n in (1, 2, 3)
    ]
    assert [bool(status) for status in statuses] == [False, True, False]
    results = {file.name: file.read_text() for file in (queue.folder / f"scaling-{JOB}").iterdir()}
    assert results == {"1.json": "1", "3.json": "3"}


@NEEDS_CLUSTER
def test_staged_data_is_on_every_nodes_own_disk_and_goes_with_the_job(queue: Queue) -> None:
    (queue.folder / "mnist.npz").write_text("digits")
    settings = {"DATA": str(queue.folder / "mnist.npz"), "TMPDIR": "/dev/shm"}
    finished = queue.run("staging.pbs", FINDS_ITS_DATA, ("node1", "node2"), **settings)
    assert finished.status == 0, finished.output
    assert lines_of_ranks(finished.output) == ["node1 True digits", "node2 True digits"]
    for node in ("node1", "node2"):
        assert f"job-{JOB}" not in queue.jobs.cluster.run(["ssh", node, "ls", "/dev/shm"]).output


@NEEDS_CLUSTER
def test_a_job_whose_clock_runs_out_saves_and_submits_itself_again(queue: Queue) -> None:
    commands = queue.folder / "bin"
    commands.mkdir()
    (commands / "qsub").write_text(QSUB)
    (commands / "qsub").chmod(0o755)
    path = os.pathsep.join([str(commands), os.environ["PATH"]])
    script = str(CHAPTER / "pbs" / "requeue.pbs")
    finished = queue.run("requeue.pbs", SAVES, ("node1", "node2"), SECONDS_OF_WORK="30", SCRIPT=script, PATH=path)
    assert finished.status == 0, finished.output
    assert re.findall(r"attempt \d|resumed on node\d", "\n".join(sorted(finished.output.splitlines()))) == [
        "attempt 0",
        "attempt 1",
        "resumed on node1",
        "resumed on node2",
    ]
    assert (queue.folder / "submitted").read_text() == f"qsub -v PROGRAM,ATTEMPT,SCRIPT {script}\n"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_options_are_of_pbs(script: Path) -> None:
    lines = [line.split(maxsplit=2)[1:] for line in script.read_text().splitlines() if line.startswith("#PBS")]
    assert {"-N", "-l", "-j"} <= {name for name, _ in lines}
    assert any(value.startswith("walltime=") for _, value in lines)
    for name, value in lines:
        assert re.fullmatch(OPTIONS[name], value), f"{name} {value}"

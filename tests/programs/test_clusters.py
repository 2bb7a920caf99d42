"""The job scripts of chapter 15 on one cluster of this machine: what each is for happens, under every launcher.

Of PBS only the bodies run, with its variables and a file of nodes, over the ssh of the cluster.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from distlab import checks, cluster, costs, frameworks, launch, programs
from distlab.runtime import processes
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER, lines_of_ranks, until
from tests.prepared_runs import PreparedRuns

# isort: split
import tensorflow as tf

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

CHAPTER = Path(__file__).parents[2] / "notebooks/programs/15_clusters"
SECONDS = 900.0  # for a job that trains, on a machine that does much else
OVER = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY"}
NEEDS_HOROVOD = pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem()))

network = programs.module(CHAPTER / "network.py")


@dataclass(frozen=True)
class Jobs:
    """A running cluster, and jobs whose output is in this folder."""

    cluster: cluster.Cluster

    def submit(self, script: Path | str, program: Path | str, *words: str | Path, options: tuple[str, ...] = ()) -> str:
        """Submit a script of slurm/ with a program, or its text; the number of the job."""
        if isinstance(program, str):
            file = Path(f"{Path(script).stem}.py")  # not one for all: a job that is queued again reads it again
            file.write_text(program)
            program = file
        command = ["sbatch", "--parsable", *options, str(CHAPTER / "slurm" / script), str(program), *map(str, words)]
        submitted = self.cluster.run(command)
        assert submitted.status == 0, submitted.output
        return submitted.output.strip()

    def states(self, job: str) -> list[str]:
        """The state of a job, or of each task of an array."""
        return re.findall(r"JobState=(\w+)", self.cluster.run(["scontrol", "show", "job", job]).output)

    def output(self, job: str) -> str:
        return "".join(file.read_text(errors="replace") for file in sorted(Path().glob(f"*-{job}*.out")))

    def wait(self, job: str, *states: str) -> str:
        """Wait until a job has ended, in one of these states; what it has printed."""
        until(lambda: set(self.states(job)) <= OVER, f"job {job} has not ended: {self.output(job)[-2000:]}", SECONDS)
        assert set(self.states(job)) <= set(states), self.output(job)
        return self.output(job)

    def wait_for_line(self, job: str, line: str) -> None:
        """Wait until the job has printed a line with this in it; fail if it ends before."""
        until(lambda: line in self.output(job) or set(self.states(job)) <= OVER, f"job {job}: no {line!r}", SECONDS)
        assert line in self.output(job), self.output(job)

    def run_for_pbs(self, script: str, program: str, **more: str) -> str:
        """What the body of a script of pbs/ prints, run as PBS would: on the first of two nodes, in the home folder.

        `chapter` leads to the programs: PROGRAM is divided at blanks, which the path of the course may have.
        """
        folder = Path().absolute()
        (folder / "chapter").symlink_to(CHAPTER)
        (folder / "nodes").write_text("node1\nnode2\n")
        variables = {
            "PBS_JOBID": "17.server",
            "PBS_NODEFILE": str(folder / "nodes"),
            "PBS_O_WORKDIR": str(folder),
            "PROGRAM": program,
            "PATH": os.environ["PATH"],
        }
        settings = [f"{name}={shlex.quote(value)}" for name, value in (variables | more).items()]
        body = shlex.quote(str(CHAPTER / "pbs" / script))
        finished = self.cluster.run(["ssh", "node1", "cd / && env", *settings, f"bash {body}"], SECONDS)
        assert finished.status == 0, finished.output
        return finished.output


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    """One cluster for all, whose nodes find this Python and Horovod's programs first on their path."""
    mark = processes.new_mark()
    with pytest.MonkeyPatch.context() as patch, processes.guarded(mark), processes.marked(mark):
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
        patch.setenv("CUDA_VISIBLE_DEVICES", "-1")  # three nodes would share this machine's
        with cluster.up() as own:
            yield Jobs(own)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def serial_weights(steps: int = 20, rate: float = 0.05) -> list[np.ndarray]:
    """What Keras trains in this process, batch by batch."""
    layers = [tf.keras.layers.Input((network.INPUTS,)), tf.keras.layers.Dense(64, "relu"), tf.keras.layers.Dense(10)]
    model = tf.keras.Sequential(layers)
    model.set_weights(network.first_weights(64))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.SGD(rate, network.MOMENTUM), loss)
    for batch in network.Batches(argparse.Namespace(dataset="digits", batch=48, steps=steps), rank=0, ranks=1):
        model.train_on_batch(*batch)
    return model.get_weights()


TWO_DEVICES = """
import tensorflow as tf
import train_multi_worker

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)


class OneWorker(tf.distribute.MirroredStrategy):
    cluster_resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(tf.train.ClusterSpec({}))


tf.distribute.MultiWorkerMirroredStrategy = lambda: OneWorker(["CPU:0", "CPU:1"])
train_multi_worker.main()
"""


def test_a_worker_with_two_devices_trains_the_serial_runs_weights(folder: Path) -> None:
    command = [sys.executable, "-c", TWO_DEVICES, "--weights", str(folder / "weights.npz")]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": str(CHAPTER), "TF_USE_LEGACY_KERAS": "1"})
    assert checks.largest_difference(network.read(folder / "weights.npz"), serial_weights()) < checks.TOLERANCE


# The script with its options, the program, the nodes.
LAUNCHERS = [
    ("batch.sbatch", "train_multi_worker.py", 2),
    ("horovod_mpirun.sbatch", "train_horovod.py", 2),
    ("horovod_pmix.sbatch", "train_horovod.py", 3),
    ("horovod_gloo.sbatch", "train_horovod.py", 2),
    ("horovod_ssh.sbatch", "train_horovod.py", 2),
    ("gpus_horovod.sbatch --ntasks-per-node=1", "train_horovod.py", 2),
    ("torch.sbatch", "train_torch.py", 2),
    ("gpus_torch.sbatch --gpus-per-node=1", "train_torch.py", 2),
    ("ray.sbatch", "train_ray.py", 2),
    ("batch.pbs", "train_multi_worker.py", 2),
    ("horovod_mpirun.pbs", "train_horovod.py", 2),
    ("horovod_ssh.pbs", "train_horovod.py", 2),
]


@NEEDS_CLUSTER
@pytest.mark.parametrize(("script", "program", "nodes"), LAUNCHERS)
def test_every_launcher_trains_the_serial_runs_weights(
    jobs: Jobs, folder: Path, monkeypatch: pytest.MonkeyPatch, script: str, program: str, nodes: int
) -> None:
    framework = Path(program).stem.removeprefix("train_")
    if part := frameworks.PARTS.get(framework):
        if missing := frameworks.problem(framework):
            pytest.skip(missing)
        place = frameworks.interpreter(part.folder).parent
        monkeypatch.setenv("PATH", os.pathsep.join([str(place), os.environ["PATH"]]))
        monkeypatch.setenv("TMPDIR", "/dev/shm")  # which, unlike /tmp, each node has for itself
    elif framework == "horovod" and (missing := launch.horovod_problem()):
        pytest.skip(missing)
    file = folder / "weights.npz"
    script, *options = script.split()
    if script.endswith(".pbs"):
        output = jobs.run_for_pbs(script, f"chapter/{program} --weights {file}")
    else:
        job = jobs.submit(script, CHAPTER / program, "--weights", file, options=(f"--nodes={nodes}", *options))
        output = jobs.wait(job, "COMPLETED")
    for rank in range(nodes):
        assert f"rank {rank} of {nodes} on node{rank + 1 if framework != 'ray' else ''}" in output
    assert f"{nodes} ranks, 20 steps, last loss" in output
    weights = network.read(file)
    assert checks.largest_difference(weights, serial_weights()) < checks.TOLERANCE
    # Gradients that are summed instead of averaged would be another run than this.
    assert checks.largest_difference(weights, serial_weights(rate=0.05 * nodes)) > 100 * checks.TOLERANCE


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


@NEEDS_CLUSTER
def test_an_array_fills_a_scaling_table_although_one_task_fails(jobs: Jobs) -> None:
    job = jobs.submit("array.sbatch", MEASURES)
    output = jobs.wait(job, "COMPLETED", "FAILED")
    assert sorted(jobs.states(job)) == ["COMPLETED", "COMPLETED", "FAILED"]
    assert "no data for 2 ranks" in output
    table = jobs.cluster.run(["python", str(CHAPTER / "scaling_table.py"), f"scaling-{job}"])
    rows = [line.split() for line in table.output.splitlines()]
    assert [row[0] for row in rows] == ["ranks", "1", "3"]
    assert rows[2][-2:] == [f"{3**0.5:.2f}", f"{3**0.5 / 3:.0%}"]


@NEEDS_CLUSTER
def test_every_rank_has_a_log_of_its_own(jobs: Jobs, folder: Path) -> None:
    job = jobs.submit("ranks.sbatch", "import os; print(os.environ['SLURM_PROCID'], os.uname().nodename)")
    jobs.wait(job, "COMPLETED")
    logs = {file.name: file.read_text().splitlines()[-1] for file in folder.glob("*.log")}
    nodes = ["node1", "node1", "node2", "node2"]
    assert logs == {f"ranks-{job}-{rank}-{node}.log": f"{rank} {node}" for rank, node in enumerate(nodes)}


FINDS_ITS_DATA = """
import os, pathlib
own = pathlib.Path(os.environ["DISTLAB_DATA"]) / "mnist.npz"
print(os.uname().nodename, os.stat(own).st_dev != os.stat("/tmp").st_dev, own.read_text())
"""


@NEEDS_CLUSTER
@pytest.mark.parametrize("kind", ["slurm", "pbs"])
def test_staged_data_is_on_every_nodes_own_disk_and_goes_with_the_job(
    jobs: Jobs, folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    if kind == "slurm" and os.getuid() != 0:
        pytest.skip("sbcast sets the groups of the job's user, which needs root")
    (folder / "mnist.npz").write_text("digits")
    settings = {"DATA": str(folder / "mnist.npz"), "TMPDIR": "/dev/shm"}  # which, unlike /tmp, each node has for itself
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    if kind == "slurm":
        output = jobs.wait(jobs.submit("staging.sbatch", FINDS_ITS_DATA), "COMPLETED")
    else:
        (folder / "program.py").write_text(FINDS_ITS_DATA)
        output = jobs.run_for_pbs("staging.pbs", "program.py", **settings)
    assert lines_of_ranks(output) == ["node1 True digits", "node2 True digits"]
    for node in ("node1", "node2"):
        assert "job-" not in jobs.cluster.run(["ssh", node, "ls", "/dev/shm"]).output


@NEEDS_CLUSTER
def test_an_interactive_job_runs_on_a_node_of_an_allocation_of_two(jobs: Jobs) -> None:
    words = "uname --nodename; srun uname --nodename | sort | paste --serial --delimiters=+"
    finished = jobs.cluster.run([str(CHAPTER / "slurm" / "interactive.sh"), "bash", "-c", words])
    assert {"node1", "node1+node2"} <= set(finished.output.split())


# The number of steps is read when the program starts: attempts of a job have the same command line.
TRAINS_AS_MANY_STEPS_AS_A_FILE_SAYS = f"""
import pathlib, runpy, sys
sys.path.insert(0, {str(CHAPTER)!r})
sys.argv += ["--steps", pathlib.Path("steps").read_text()]
runpy.run_path({str(CHAPTER / "train_resumable.py")!r}, run_name="__main__")
"""


@NEEDS_CLUSTER
@NEEDS_HOROVOD
def test_all_ranks_save_the_same_step_and_no_step_is_lost_or_done_twice(jobs: Jobs, folder: Path) -> None:
    Path("steps").write_text("1000000")
    words = ["--checkpoints", "saved", "--weights", "weights.npz"]
    job = jobs.submit("requeue.sbatch", TRAINS_AS_MANY_STEPS_AS_A_FILE_SAYS, *words, options=("--time=10",))
    jobs.wait_for_line(job, "begins after step 0")
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


@NEEDS_CLUSTER
def test_a_job_of_pbs_whose_clock_runs_out_saves_and_submits_itself_again(jobs: Jobs, folder: Path) -> None:
    (qsub := folder / "bin" / "qsub").parent.mkdir()
    qsub.write_text(QSUB)
    qsub.chmod(0o755)
    script = str(CHAPTER / "pbs" / "requeue.pbs")
    more = {"SCRIPT": script, "PATH": os.pathsep.join([str(qsub.parent), os.environ["PATH"]])}
    (folder / "saves.py").write_text(SAVES)
    output = jobs.run_for_pbs("requeue.pbs", "saves.py", SECONDS_OF_WORK="20", **more)
    said = re.findall(r"attempt \d|resumed on node\d", output)
    assert sorted(said) == ["attempt 0", "attempt 1", "resumed on node1", "resumed on node2"]
    assert (folder / "submitted").read_text() == f"qsub -v PROGRAM,ATTEMPT,SCRIPT {script}\n"


# Without a cluster


@NEEDS_HOROVOD
def test_every_way_of_sending_gradients_is_timed_and_the_sizes_are_those_of_the_network() -> None:
    layers, width, batch = 20, 100, 32
    sizes = [784 * width, width, *[width * width, width] * (layers - 1), width * 10, 10]
    how = {"ranks": 2, "result": True, "seconds": SECONDS}
    result = launch.horovodrun(CHAPTER / "slow_network.py", "--repeats", 2, **how).result
    assert (result["ranks"], result["gradients"]) == (2, len(sizes))
    assert result["gradient_bytes"] == 4 * sum(sizes)
    assert set(result["ways"]) == {"plain", "fp16", "accumulate"}
    assert all(seconds > 0 for seconds in [*result["ways"].values(), result["alone"]])
    # What the table of the scaling study reads is the first way's.
    assert result["step_seconds"] == result["ways"]["plain"]
    assert result["images_per_second"] == pytest.approx(2 * batch / result["step_seconds"])


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck_has_nothing_to_say() -> None:
    scripts = [str(script) for kind in ("slurm", "pbs") for script in sorted((CHAPTER / kind).iterdir())]
    finished = processes.run(["shellcheck", "--shell=bash", "--exclude=SC2016", *scripts], 300)
    assert (finished.status, finished.output) == (0, "")


def test_speedup_and_efficiency_refer_to_the_smallest_job(folder: Path) -> None:
    for ranks, rate in ((4, 3000.0), (2, 2000.0)):
        measured = {"ranks": ranks, "step_seconds": 64 / rate, "images_per_second": rate}
        (folder / f"{ranks}.json").write_text(json.dumps(measured))
    table = programs.module(CHAPTER / "scaling_table.py")
    assert [row[3:] for row in table.rows(table.read(folder))] == [["1.00", "100%"], ["1.50", "75%"]]


def test_on_the_slow_network_the_prediction_for_three_hosts_holds() -> None:
    two, three = (costs.read_measurement(CHAPTER / f"recorded/measured_{hosts}_hosts_100mbit.json") for hosts in (2, 3))
    [row] = costs.measured_residuals(costs.predict_measured(two, [3]), [three])
    assert abs(row["residual"]) < 0.15
    assert two.step.median < 0.85 * three.step.median  # to change nothing is no prediction
    # No faster than the link, whose bucket lets 62,500 bytes pass at once, there and back.
    assert two.all_reduces[-1].median > (two.sizes[-1] - 125_000) * 8 / 100e6


def test_the_serial_program_trains_what_keras_does(runs: PreparedRuns, folder: Path) -> None:
    finished = runs.run(CHAPTER / "train_serial.py", "--weights", folder / "weights.npz")
    assert finished.status == 0, finished.output
    assert checks.largest_difference(network.read(folder / "weights.npz"), serial_weights()) < checks.TOLERANCE

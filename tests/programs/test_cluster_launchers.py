"""Chapter 15's training under every launcher, on two and three nodes: always the serial run's weights."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from distlab import checks, frameworks, launch
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER
from tests.programs.job_bench import CHAPTER, Jobs, network, running_jobs, serial_weights

pytestmark = [pytest.mark.slow, NEEDS_CLUSTER]

# The script, the program, and what must be installed for it.
LAUNCHERS = {
    "strategy": ("batch.sbatch", "train_multi_worker.py", None),
    "mpirun": ("horovod_mpirun.sbatch", "train_horovod.py", "horovod"),
    "pmix": ("horovod_pmix.sbatch", "train_horovod.py", "horovod"),
    "gloo": ("horovod_gloo.sbatch", "train_horovod.py", "horovod"),
    "ssh": ("horovod_ssh.sbatch", "train_horovod.py", "horovod"),
    "torch": ("torch.sbatch", "train_torch.py", "torch"),
    "ray": ("ray.sbatch", "train_ray.py", "ray"),
}
# Ray takes two minutes, on three nodes as on two.
LONG = ("mpirun", "ssh", "torch", "ray")
CASES = [
    pytest.param(launcher, nodes, marks=[pytest.mark.slow] if nodes == 3 or launcher in LONG else [])
    for launcher in LAUNCHERS
    for nodes in ([3] if launcher == "ray" else [2, 3])
]


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    with running_jobs(tmp_path_factory.mktemp("cache")) as jobs:
        yield jobs


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("launcher", "nodes"), CASES)
def test_every_launcher_trains_the_serial_runs_weights(
    jobs: Jobs, folder: Path, monkeypatch: pytest.MonkeyPatch, launcher: str, nodes: int
) -> None:
    script, program, part = LAUNCHERS[launcher]
    missing = {None: None, "horovod": launch.horovod_problem()}.get(part) if part in (None, "horovod") else None
    if part in frameworks.PARTS:
        missing = frameworks.problem(part)
        place = frameworks.interpreter(frameworks.PARTS[part].folder).parent
        monkeypatch.setenv("PATH", os.pathsep.join([str(place), os.environ["PATH"]]))
        monkeypatch.setenv("TMPDIR", "/dev/shm")  # which, unlike /tmp, each node has for itself
    if missing:
        pytest.skip(missing)
    file = folder / "weights.npz"
    job = jobs.submit(script, CHAPTER / program, "--weights", file, options=(f"--nodes={nodes}",))
    output = jobs.wait(job, "COMPLETED")
    for rank in range(nodes):
        assert f"rank {rank} of {nodes} on node{rank + 1 if launcher != 'ray' else ''}" in output
    assert f"{nodes} ranks, 20 steps, last loss" in output
    weights = network.read(file)
    assert checks.largest_difference(weights, serial_weights()) < checks.TOLERANCE
    # Gradients that are summed instead of averaged would be another run than this.
    assert checks.largest_difference(weights, serial_weights(rate=0.05 * nodes)) > 100 * checks.TOLERANCE


def test_the_serial_program_trains_what_the_derivatives_say(jobs: Jobs, folder: Path) -> None:
    finished = jobs.cluster.run(["srun", "python", str(CHAPTER / "train_serial.py"), "--weights", "weights.npz"], 600)
    assert finished.status == 0, finished.output
    assert "serial: 1 rank, 20 steps" in finished.output
    assert checks.largest_difference(network.read(folder / "weights.npz"), serial_weights()) < checks.TOLERANCE


def test_a_batch_that_cannot_be_split_is_one_sentence(jobs: Jobs) -> None:
    job = jobs.submit("batch.sbatch", CHAPTER / "train_multi_worker.py", "--batch", "47")
    output = jobs.wait(job, "FAILED")
    assert "A batch of 47 cannot be split into 2 equal parts" in output
    assert "Traceback" not in output

"""Chapter 15's training under every launcher, on two nodes or three: always the serial run's weights."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from distlab import checks, frameworks, launch
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER
from tests.programs.job_bench import CHAPTER, Jobs, network, running_jobs, serial_weights

pytestmark = [pytest.mark.slow, NEEDS_CLUSTER, pytest.mark.usefixtures("one_job")]

# The script, the program, the nodes, and what must be installed for it.
LAUNCHERS = {
    "strategy": ("batch.sbatch", "train_multi_worker.py", 3, None),
    "mpirun": ("horovod_mpirun.sbatch", "train_horovod.py", 2, launch.horovod_problem),
    "pmix": ("horovod_pmix.sbatch", "train_horovod.py", 3, launch.horovod_problem),
    "gloo": ("horovod_gloo.sbatch", "train_horovod.py", 2, launch.horovod_problem),
    "ssh": ("horovod_ssh.sbatch", "train_horovod.py", 2, launch.horovod_problem),
    "gpus": ("gpus_horovod.sbatch --ntasks-per-node=1", "train_horovod.py", 2, launch.horovod_problem),
    "torch": ("torch.sbatch", "train_torch.py", 2, lambda: frameworks.problem("torch")),
    "gpus torch": ("gpus_torch.sbatch --gpus-per-node=1", "train_torch.py", 2, lambda: frameworks.problem("torch")),
    "ray": ("ray.sbatch", "train_ray.py", 2, lambda: frameworks.problem("ray")),
}


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    with running_jobs(tmp_path_factory.mktemp("cache")) as jobs:
        yield jobs


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_every_launcher_trains_the_serial_runs_weights(
    jobs: Jobs, folder: Path, monkeypatch: pytest.MonkeyPatch, launcher: str
) -> None:
    script, program, nodes, problem = LAUNCHERS[launcher]
    if problem and (missing := problem()):
        pytest.skip(missing)
    if part := frameworks.PARTS.get(launcher.split()[-1]):
        place = frameworks.interpreter(part.folder).parent
        monkeypatch.setenv("PATH", os.pathsep.join([str(place), os.environ["PATH"]]))
        monkeypatch.setenv("TMPDIR", "/dev/shm")  # which, unlike /tmp, each node has for itself
    file = folder / "weights.npz"
    script, *options = script.split()
    job = jobs.submit(script, CHAPTER / program, "--weights", file, options=(f"--nodes={nodes}", *options))
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

"""What does not fit on the command line of a chapter's program is refused in one sentence, before anything trains."""

import re
from pathlib import Path

import pytest

from distlab import launch
from distlab.runtime import processes
from tests.prepared_runs import PreparedRuns

pytestmark = [pytest.mark.slow]
NEEDS_HOROVOD = pytest.mark.skipif(launch.horovod_problem() is not None, reason="needs Horovod")
TWO_WORKERS = "--workers localhost:1024 localhost:1025"
REFUSED = {
    f"07_multi_worker/minimal.py --index 2 {TWO_WORKERS}": "task.index is 2, but cluster.worker has 2 addresses",
    f"07_multi_worker/minimal.py {TWO_WORKERS}": "task.index is null",
    "07_multi_worker/minimal.py --index 0 --workers here": 'cluster.worker[0] is "here", without a port',
    "07_multi_worker/train.py --images 100000": "--images is 1433 at most: digits has no more for training",
    "07_multi_worker/uneven_data.py --samples 9999": "--samples is 1433 at most: digits has no more for training",
    "07_multi_worker/uneven_data.py --global-batch 96 2000": "--global-batch is 1000 at most",
    "13_fault_tolerance/train_elastic.py --steps-per-epoch 99": "--steps-per-epoch is 22 at most: an epoch of digits",
    "14_other_frameworks/train_tensorflow.py start.npz --global-batch 97": "takes 97 images, and start.npz has 96",
    "14_other_frameworks/train_horovod.py start.npz --batch 97": "takes 97 images, and start.npz has 96",
}


@pytest.fixture(scope="module")
def folder(runs: PreparedRuns, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the file that the programs of chapter 14 start from."""
    folder = tmp_path_factory.mktemp("started")
    (folder / "file").touch()
    assert (
        runs.run(root / "notebooks/programs/14_other_frameworks/start.py", folder / "start.npz", "--images", 96).status
        == 0
    )
    return folder


@pytest.mark.parametrize("line", REFUSED)
def test_what_does_not_fit_is_refused_in_one_sentence(line: str, root: Path, folder: Path, runs: PreparedRuns) -> None:
    program, *arguments = line.split()
    if "orovod" in (root / "notebooks/programs" / program).read_text():
        launch.horovod_problem() and pytest.skip("Horovod is not installed here")
    finished = runs.run(root / "notebooks/programs" / program, *arguments, folder=folder)
    assert finished.status in (1, 2) and "Traceback" not in finished.output, finished.output
    assert REFUSED[line] in finished.output.splitlines()[-1]
    assert sorted(file.name for file in folder.iterdir()) == ["file", "start.npz"]


def test_a_batch_of_all_ranks_is_no_larger_than_the_images(
    root: Path, folder: Path, runs: PreparedRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch.horovod_problem() and pytest.skip("Horovod is not installed here")
    monkeypatch.setenv("HOROVOD_SIZE", "4")
    program = root / "notebooks/programs/14_other_frameworks/train_horovod.py"
    finished = runs.run(program, "start.npz", "--batch", 48, folder=folder)
    assert finished.status == 2 and "takes 192 images, and start.npz has 96" in finished.output.splitlines()[-1]


@pytest.mark.parametrize("script", ["slurm/torch.sbatch", "slurm/ray.sbatch", "pbs/torch.pbs", "pbs/ray.pbs"])
def test_a_job_script_names_the_environment_that_it_needs(script: str, root: Path) -> None:
    variables = {"PATH": "/usr/bin:/bin", "PBS_O_WORKDIR": "/", "PROGRAM": "program.py"}
    finished = processes.run(
        ["bash", root / "notebooks/programs/15_clusters" / script, "program.py"], 300, env=variables
    )
    assert finished.status == 1
    assert re.fullmatch(
        r"There is no (torchrun|ray) here: make setup-frameworks, "
        r"source \.venv-frameworks/bin/activate, (sbatch|qsub) again\.\n",
        finished.output,
    )


@pytest.mark.parametrize("save_every", [2, 3])
def test_a_training_that_ends_before_its_first_save_says_so(
    save_every: int, root: Path, tmp_path: Path, runs: PreparedRuns
) -> None:
    options = ["--epochs", 1, "--steps-per-epoch", 2, "--save-every", save_every, "--backup", "saved"]
    options += ["--steps-done", "none/steps"]
    finished = runs.run(root / "notebooks/programs/13_fault_tolerance/train.py", *options, folder=tmp_path)
    assert finished.status == 0, finished.output
    sentence = "Nothing was saved in saved: all steps were done before --save-every 3."
    assert (sentence in finished.output) == (save_every == 3)
    assert (tmp_path / "none" / "steps" / "worker-0.txt").read_text() == "1\n2\n"


@NEEDS_HOROVOD
def test_a_job_that_may_begin_again_says_that_it_has_saved_nothing(
    root: Path, tmp_path: Path, runs: PreparedRuns
) -> None:
    program = root / "notebooks/programs/15_clusters/train_resumable.py"
    finished = runs.run(program, "--steps", 2, "--checkpoints", "saved", folder=tmp_path)
    assert finished.status == 0, finished.output
    assert "Nothing was saved in saved: all steps were done before a signal came." in finished.output

"""The programs of notebook 11: what they count and record, and that a job goes on where it stopped."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from distlab import devices, launch
from distlab.profiling import horovod_timeline, mpi_profile
from distlab.runtime import environment, processes

environment.apply()  # puts this environment's mpirun on the path

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

AS_ROOT = ["--allow-run-as-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
RANKS, BATCH, IMAGES, EPOCHS = 2, 32, 210, 2
STEPS = IMAGES // RANKS // BATCH
PATIENT = {"echo": False, "result": True, "seconds": 900, "start_seconds": 600}


@pytest.fixture(scope="module")
def chapter_folder(root: Path) -> Path:
    if problem := launch.horovod_problem():
        pytest.skip(problem)
    if not shutil.which("mpirun"):
        pytest.skip("there is no mpirun")
    return root / "notebooks/programs/11_scaling_and_profiling"


@pytest.fixture(scope="module")
def recorded(chapter_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, Path]:
    """The result of a training under every instrument, and the folder with what they wrote."""
    folder = tmp_path_factory.mktemp("recorded")
    variables = {"HOROVOD_TIMELINE": str(folder / "timeline.json"), "HOROVOD_CACHE_CAPACITY": "0"}
    try:
        library = mpi_profile.build(chapter_folder / "mpi_profile.c", folder)
        variables |= {"LD_PRELOAD": str(library), "MPI_PROFILE": str(folder / "profile")}
    except mpi_profile.NoCompiler:
        pass
    arguments = ["--images", IMAGES, "--batch", BATCH, "--epochs", EPOCHS]
    arguments += ["--folder", folder / "saved", "--trace", folder / "trace"]
    run = launch.mpirun(chapter_folder / "train.py", *arguments, ranks=RANKS, environment=variables, **PATIENT)
    return run.result, folder


@pytest.fixture(scope="module")
def result(recorded: tuple[dict, Path]) -> dict:
    return recorded[0]


@pytest.fixture(scope="module")
def timeline(recorded: tuple[dict, Path]) -> horovod_timeline.Timeline:
    return horovod_timeline.read(recorded[1] / "timeline.json")


def reduced(timeline: horovod_timeline.Timeline) -> list[horovod_timeline.Operation]:
    return [operation for operation in timeline.operations if operation.kind == "ALLREDUCE"]


def test_the_images_are_those_of_the_batches_that_were_trained_on(result: dict) -> None:
    part = [BATCH] * 3 + [IMAGES // RANKS - 3 * BATCH]  # a rank's batches, again and again
    assert STEPS == 3
    expected = [
        sum(part[step % len(part)] for step in range(epoch * STEPS, (epoch + 1) * STEPS)) for epoch in range(EPOCHS)
    ]
    for epochs in result["epochs"]:
        assert [images for images, _ in epochs] == expected
        assert all(seconds > 0 for _, seconds in epochs)
    assert sum(expected) < EPOCHS * IMAGES / RANKS
    cores = devices.allowed_cores()
    assert result["cores"] == [[devices.core_of(rank, cores)] for rank in range(RANKS)]
    kinds = {operation["kind"]: operation["calls"] for operation in result["operations"]}  # in TensorFlow's trace
    assert any("Conv2DBackpropFilter" in kind and calls >= STEPS for kind, calls in kinds.items())


def test_the_timeline_has_every_tensor_of_the_gradient_in_every_step(
    result: dict, timeline: horovod_timeline.Timeline
) -> None:
    operations = reduced(timeline)
    steps = STEPS * (EPOCHS + 1)  # with the traced epoch
    by_tensor = {one.tensor: one.nbytes for one in operations}
    assert sum(by_tensor.values()) == result["gradient_bytes"]
    assert {tensor: len(timeline.of(tensor)) for tensor in by_tensor} == dict.fromkeys(by_tensor, steps)


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_a_recording_that_was_cut_gives_what_was_finished(
    recorded: tuple[dict, Path], timeline: horovod_timeline.Timeline, tmp_path: Path, share: float
) -> None:
    text = (recorded[1] / "timeline.json").read_text()
    (tmp_path / "cut.json").write_text(text[: int(share * len(text))])
    cut = horovod_timeline.read(tmp_path / "cut.json")
    assert cut.is_truncated
    assert 0 < len(cut.operations) <= len(timeline.operations)
    assert all(operation in timeline.operations for operation in cut.operations)


def test_the_bytes_that_mpi_reduced_are_the_steps_times_the_model(recorded: tuple[dict, Path]) -> None:
    result, folder = recorded
    if not list(folder.glob("*.so")):
        pytest.skip("there is no C compiler")
    ranks = mpi_profile.read(folder / "profile")
    assert list(ranks) == [0, 1]
    for rows in ranks.values():
        floats = mpi_profile.total(rows, lambda row: row.routine == "MPI_Allreduce" and row.type == "MPI_FLOAT")
        assert floats.bytes == EPOCHS * STEPS * result["gradient_bytes"]
        assert EPOCHS * STEPS <= floats.calls <= EPOCHS * STEPS * 6
        weights = mpi_profile.total(rows, lambda row: row.routine == "MPI_Bcast" and row.type == "MPI_FLOAT")
        assert result["gradient_bytes"] <= weights.bytes < 3 * result["gradient_bytes"]


def test_two_ranks_that_resume_lose_the_same_as_those_that_were_never_interrupted(
    chapter_folder: Path, tmp_path: Path
) -> None:
    """Rank 0 alone restores, so the others must get its weights before the first step."""
    images = 3 * RANKS * BATCH  # every epoch has the same three batches on each rank
    arguments = ["--images", images, "--batch", BATCH, "--epochs", 3, "--learning-rate", 0.1, "--folder", tmp_path]
    whole = launch.mpirun(chapter_folder / "train.py", *arguments, ranks=RANKS, **PATIENT).result
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "ckpt-2"\n')
    resumed = launch.mpirun(chapter_folder / "train.py", *arguments, ranks=RANKS, **PATIENT).result
    assert resumed["first_epoch"] == 2
    assert resumed["losses"] == pytest.approx(whole["losses"][2:], abs=1e-6)


def test_scaling_measures_every_world_size_in_one_launch(chapter_folder: Path) -> None:
    arguments = ["--batch", 32, "--blocks", 2, "--steps", 2]
    result = launch.mpirun(chapter_folder / "scaling.py", *arguments, ranks=RANKS, **PATIENT).result
    assert set(result["sizes"]) == {"1", "2"}
    assert result["parameters"]["dense"] > 5 * result["parameters"]["cnn"]
    cores = devices.allowed_cores()
    assert result["cores"] == len(cores)
    for size, measured in result["sizes"].items():
        assert measured["cores"] == [[devices.core_of(rank, cores)] for rank in range(int(size))]
        assert all(len(measured[part]) == 2 and min(measured[part]) > 0 for part in ("weak", "strong"))
        assert 0 < measured["core_share"] < 3
    of_two = result["sizes"]["2"]
    assert len(of_two["all_reduce"]) == len(result["all_reduce_bytes"])
    assert len(of_two["counted"]) == 2
    assert len(of_two.get("placements", {})) == (4 if len(cores) > 1 else 0)
    for network in ("dense", "cnn"):
        assert [len(blocks) for blocks in of_two["turns"][network]] == [2, 2, 2]
        assert min(map(min, of_two["turns"][network])) > 0
    assert not {"turns", "placements", "counted"} & set(result["sizes"]["1"])


@pytest.mark.skipif(
    "OPAL_PREFIX" not in os.environ, reason="not every Open MPI has hwloc inside, as the packaged one has"
)
def test_mpi_that_starts_before_tensorflow_crashes_at_the_end() -> None:
    code = "import mpi4py.MPI, tensorflow; print('all imported', flush=True)"
    finished = processes.run(["mpirun", *AS_ROOT, "-np", "1", sys.executable, "-c", code], seconds=600)
    assert "all imported" in finished.output
    assert finished.status != 0 and "Caught signal 11" in finished.output

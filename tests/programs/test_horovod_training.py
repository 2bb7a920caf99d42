"""The programs of notebook 09: they equal one process, resume, and notice each step that is forgotten."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

from distlab import checks, launch
from distlab.runtime import environment, processes
from tests.programs.chapter_programs import Chapter

environment.apply()  # puts this environment's mpirun on the path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem())),
]

HOW = {"echo": False, "result": True, "seconds": 900, "start_seconds": 600}
STEPS = (
    "scale the learning rate",
    "wrap the tape",
    "broadcast the variables",
    "checkpoint on rank 0",
    "shard the data",
    "steps per epoch",
)
PROGRAMS = ("tape", "Keras", "Keras 3")
JOBS = [(launch.horovodrun, 2), (launch.mpirun, 3), (launch.mpirun, 4)]


@pytest.fixture(scope="module")
def chapter_folder(root: Path) -> Path:
    return root / "notebooks/programs/09_horovod"


def arrays(weights: list) -> list[np.ndarray]:
    return [np.array(one, np.float32) for one in weights]


# Equality with one process


@pytest.fixture(scope="module", params=JOBS, ids=[f"{start.__name__}-{ranks}" for start, ranks in JOBS])
def equality(request: pytest.FixtureRequest, chapter_folder: Path) -> dict:
    """What equal_to_one_process.py says: over Gloo with two ranks, over MPI with three and four."""
    start, ranks = request.param
    result = start(chapter_folder / "equal_to_one_process.py", ranks=ranks, **HOW).result
    assert result["ranks"] == ranks
    return result["programs"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_ranks_together_equal_one_process(equality: dict, name: str) -> None:
    assert equality[name]["steps"] == 20
    assert equality[name]["from one process"] < checks.TOLERANCE < 0.01 < equality[name]["moved"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_ranks_with_seeds_of_their_own_end_with_identical_weights(equality: dict, name: str) -> None:
    assert equality[name]["between ranks"] == 0


def test_a_program_started_plainly_is_one_rank_and_the_serial_one(
    chapter_folder: Path, chapter_09: Chapter, tmp_path: Path
) -> None:
    file = tmp_path / "result.json"
    finished = processes.run([sys.executable, str(chapter_folder / "train_tape.py"), "--result", str(file)], 300)
    assert finished.status == 0 and "1 ranks, 40 steps" in finished.output, finished.output
    result, serial = json.loads(file.read_text()), chapter_09("train_serial")
    np.testing.assert_allclose(result["losses"], serial.train(serial.parse([]))["losses"], atol=1e-5)


ONE_MODEL_MORE = """
import horovod.tensorflow as hvd
from distlab import models
hvd.init()
if hvd.rank() == 0:
    models.mlp()
hvd.broadcast_variables(models.mlp().variables, root_rank=0)
"""


def test_horovod_waits_for_names_that_one_rank_alone_has(tmp_path: Path) -> None:
    file = tmp_path / "one_model_more.py"
    file.write_text(ONE_MODEL_MORE)
    impatient = {"HOROVOD_STALL_CHECK_TIME_SECONDS": "2", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "4"}
    with pytest.raises(launch.WorkerFailed) as failure:
        launch.mpirun(file, echo=False, seconds=900, start_seconds=600, environment=impatient)
    said = "".join(failure.value.run.output.values())
    assert "One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks" in said
    assert "Missing ranks" in said


# Saving and resuming


@pytest.fixture(scope="module")
def resumed(chapter_folder: Path, root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict:
    folder = tmp_path_factory.mktemp("resumed")
    return launch.mpirun(root / "tests" / "programs" / "horovod_resumed.py", chapter_folder, folder, **HOW).result


@pytest.fixture(scope="module")
def uninterrupted(chapter_09: Chapter, resumed: dict) -> dict[str, list[np.ndarray]]:
    """The weights of two epochs in this process, with the batch and the rate of two ranks, for each program."""
    serial = chapter_09("train_serial")
    options = serial.parse(["--epochs", "2", "--batch", "64", "--learning-rate", "0.04"])
    return {name: serial.train(options, arrays(resumed[name]["first weights"]))["weights"] for name in PROGRAMS}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_resumed_run_is_the_uninterrupted_one(resumed: dict, uninterrupted: dict, name: str) -> None:
    for rank in resumed[name]["of ranks"]:
        checks.assert_equal_weights(arrays(rank), uninterrupted[name])
    between = arrays(resumed[name]["after one epoch"])
    assert checks.largest_difference(between, arrays(resumed[name]["resumed from"])) == 0
    assert checks.largest_difference(between, uninterrupted[name]) > 0.01


@pytest.mark.parametrize("name", PROGRAMS)
def test_rank_0_alone_writes_and_alone_must_be_able_to_read(resumed: dict, name: str) -> None:
    written = {folder.name: any(folder.iterdir()) for folder in Path(resumed[name]["folder"]).iterdir()}
    assert written == {"rank-0": True, "rank-1": False}


def test_horovod_s_broadcast_callback_comes_after_the_first_step(resumed: dict, chapter_09: Chapter) -> None:
    serial = chapter_09("train_serial")
    alone = serial.train(serial.parse(["--batch", "64", "--learning-rate", "0.04"]))["weights"]
    first, second = (arrays(weights) for weights in resumed["late broadcast"]["of ranks"])
    assert checks.largest_difference(first, second) == 0
    assert checks.largest_difference(first, alone) > 1e-3


def test_a_wrapped_optimizer_averages_nothing_in_a_loop_of_one_s_own(resumed: dict) -> None:
    first, second = (arrays(weights) for weights in resumed["optimizer wrapped, tape not"]["of ranks"])
    assert checks.largest_difference(first, second) > 0.01


def test_resuming_without_a_folder_is_refused_in_a_sentence(chapter_09: Chapter, capsys: pytest.CaptureFixture) -> None:
    for name in ("train_serial", "train_tape", "train_serial_keras", "train_keras", "train_keras3"):
        with pytest.raises(SystemExit):
            chapter_09(name).parse(["--resume"])
        assert "--resume needs --folder" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["train_serial", "train_serial_keras", "train_keras"])
def test_resuming_from_an_empty_folder_is_refused_in_a_sentence(chapter_09: Chapter, tmp_path: Path, name: str) -> None:
    module = chapter_09(name)
    options = module.parse(["--folder", str(tmp_path), "--resume"])
    rank_0 = mock.patch.object(module, "hvd", SimpleNamespace(rank=lambda: 0), create=True)
    sentence = r"There is nothing saved in .* to go on from\."
    with rank_0, pytest.raises(SystemExit, match=sentence):
        module.begin(options, None)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_leaves_nothing_to_train_is_refused_in_a_sentence(resumed: dict, name: str) -> None:
    finished, too_few = resumed[name]["refused"]
    assert finished == "All epochs are done; --epochs can ask for more."
    assert too_few == "32 images are too few for 2 ranks with 32 in a step."


@pytest.mark.parametrize("name", ["train_serial", "train_serial_keras"])
def test_one_process_says_when_all_epochs_are_done(chapter_09: Chapter, tmp_path: Path, name: str) -> None:
    module = chapter_09(name)
    module.train(module.parse(["--images", "64", "--folder", str(tmp_path)]))
    with (
        mock.patch.object(sys, "argv", [name, "--images", "64", "--folder", str(tmp_path), "--resume"]),
        pytest.raises(SystemExit, match="All epochs are done"),
    ):
        module.main()


@pytest.mark.parametrize("images", ["20", "5000"])
@pytest.mark.parametrize("name", ["train_serial", "train_serial_keras", "train_tape", "train_keras", "train_keras3"])
def test_images_that_are_too_few_or_not_there_are_refused_in_a_sentence(
    chapter_09: Chapter, capsys: pytest.CaptureFixture, name: str, images: str
) -> None:
    with pytest.raises(SystemExit):
        chapter_09(name).parse(["--images", images])
    assert "--images is from --batch, 32, to 1433" in capsys.readouterr().err


# Forgotten steps


@pytest.fixture(scope="module")
def answers(chapter_folder: Path) -> dict:
    return launch.mpirun(chapter_folder / "forgotten_steps.py", **HOW).result


def test_a_complete_program_is_found_complete(answers: dict, chapter_09: Chapter) -> None:
    assert chapter_09("forgotten_steps").forgotten(answers["nothing"]) == []


@pytest.mark.parametrize("step", STEPS)
def test_a_forgotten_step_is_noticed_and_no_other_is_accused(answers: dict, chapter_09: Chapter, step: str) -> None:
    assert chapter_09("forgotten_steps").forgotten(answers[step]) == [step]


def test_ranks_stay_apart_without_the_broadcast_and_drift_apart_without_the_tape(answers: dict) -> None:
    apart, drifting = (answers[step]["last layer differs by"] for step in STEPS[2:0:-1])
    assert apart[0] > 0.1 and abs(apart[-1] - apart[0]) < 1e-4
    assert drifting[0] == 0 and drifting[-1] > drifting[1] > 1e-4
    assert set(answers["nothing"]["last layer differs by"]) == {0}


def test_without_sharding_a_step_has_the_samples_of_one_rank_only(answers: dict) -> None:
    first, second = answers["shard the data"]["seen"]
    assert first == second
    assert answers["shard the data"]["samples of a step on several ranks"] == 32


def test_each_write_of_two_to_one_path_fails_or_leaves_one_file(answers: dict) -> None:
    race = answers["race"]
    assert len(race["kept"]) <= race["times"] and set(race["kept"]) <= {0, 1, "mixed"}
    assert race["failures"] > 0 or set(race["kept"]) == {0, 1}


def test_every_function_that_can_be_forgotten_differs_between_the_programs(
    chapter_09: Chapter, chapter_folder: Path
) -> None:
    from distlab import programs

    functions = chapter_09("forgotten_steps").FUNCTIONS
    assert tuple(functions) == STEPS
    for name in functions.values():
        assert programs.source(chapter_folder / "train_serial.py", name) != programs.source(
            chapter_folder / "train_tape.py", name
        )


@pytest.mark.parametrize(
    ("seen", "several", "rounds"),
    [
        ([[[0, 1], [2, 3]], [[4, 5], [6, 7]]], 0, 1.0),
        ([[[0, 1], [2, 3]], [[1, 5], [2, 3]]], 2, 1.0),
        ([[[0, 1], [2, 3], [0, 1], [2, 3]], [[4, 5], [6, 7], [4, 5], [6, 7]]], 0, 2.0),
    ],
)
def test_samples_are_counted_by_step_and_by_epoch(chapter_09: Chapter, seen: list, several: int, rounds: float) -> None:
    assert chapter_09("forgotten_steps").seen_by_several(seen) == several
    assert chapter_09("forgotten_steps").rounds_per_epoch(seen, 8) == rounds

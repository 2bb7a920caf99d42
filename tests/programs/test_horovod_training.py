"""The programs of notebook 09: they equal one process, resume, and notice each step that is forgotten."""

from pathlib import Path

import numpy as np
import pytest

from distlab import checks, launch, programs
from tests.programs.chapter_programs import Chapter

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("one_job"),
    pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem())),
]

CHAPTER = programs.FOLDER / "09_horovod"

HOW = {"echo": False, "result": True, "seconds": 900, "start_seconds": 600}
PROGRAMS = ("tape", "Keras", "Keras 3")
JOBS = [(launch.horovodrun, 2), (launch.mpirun, 3)]


def arrays(weights: list) -> list[np.ndarray]:
    return [np.array(one, np.float32) for one in weights]


# The smallest program


# Equality with one process


@pytest.fixture(scope="module", params=JOBS, ids=[f"{start.__name__}-{ranks}" for start, ranks in JOBS])
def equality(request: pytest.FixtureRequest) -> dict:
    """What equal_to_one_process.py says: over Gloo with two ranks, over MPI with three."""
    start, ranks = request.param
    result = start(CHAPTER / "equal_to_one_process.py", ranks=ranks, **HOW).result
    assert result["ranks"] == ranks
    return result["programs"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_ranks_together_equal_one_process(equality: dict, name: str) -> None:
    assert equality[name]["steps"] == 20
    assert equality[name]["from one process"] < checks.TOLERANCE < 0.01 < equality[name]["moved"]
    assert equality[name]["between ranks"] == 0  # though each begins with its own seed


# Saving and resuming


@pytest.fixture(scope="module")
def resumed(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict:
    folder = tmp_path_factory.mktemp("resumed")
    return launch.mpirun(root / "tests" / "programs" / "horovod_resumed.py", CHAPTER, folder, **HOW).result


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
    written = {folder.name: any(folder.iterdir()) for folder in Path(resumed[name]["folder"]).iterdir()}
    assert written == {"rank-0": True, "rank-1": False}


# Forgotten steps


@pytest.fixture(scope="module")
def answers() -> dict:
    return launch.mpirun(CHAPTER / "forgotten_steps.py", **HOW).result


def test_a_forgotten_step_is_noticed_and_no_other_is_accused(answers: dict, chapter_09: Chapter) -> None:
    program = chapter_09("forgotten_steps")
    assert program.forgotten(answers["nothing"]) == []
    assert {step: program.forgotten(answers[step]) for step in program.FUNCTIONS} == {
        step: [step] for step in program.FUNCTIONS
    }
    race = answers["race"]
    assert race["failures"] > 0 or set(race["kept"]) == {0, 1}

"""`parameter_server.py` of notebook 08 as a real cluster; its variables and weights are compared in the notebook."""

import signal

import numpy as np
import pytest

from distlab import launch, programs

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

GRADIENTS, WORKERS, SERVERS = 60, 2, 2


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> launch.LaunchedRun:
    """One launch of a chief, two workers and two parameter servers, for all tests."""
    arguments = ["--gradients", GRADIENTS, "--folder", tmp_path_factory.mktemp("cluster")]
    how = {"seconds": 900, "start_seconds": 600, "echo": False, "result": True, "may_lose": True}
    program = programs.FOLDER / "08_other_strategies" / "parameter_server.py"
    return launch.tensorflow(program, *arguments, workers=WORKERS, parameter_servers=SERVERS, **how)


def test_every_gradient_is_applied_once(run: launch.LaunchedRun) -> None:
    for name, gradients in (("in_order", 20), ("equal", GRADIENTS), ("slow", GRADIENTS)):
        found = run.result["runs"][name]
        assert found["updates"] == gradients
        assert len(found["worker"]) == len(found["staleness"]) == found["scheduled"] == gradients
        assert set(found["worker"]) <= set(range(WORKERS))
        assert np.mean(found["staleness"]) <= WORKERS - 1  # never above the number of other workers


def test_others_do_the_steps_of_a_lost_worker(run: launch.LaunchedRun) -> None:
    lost = run.result["runs"]["lost_worker"]
    assert run.exit_codes[f"worker {WORKERS - 1}"] == -signal.SIGKILL
    # A step may run twice if its worker dies after the update and before the answer.
    assert len(lost["worker"]) == lost["scheduled"] == GRADIENTS <= lost["updates"] <= GRADIENTS + 1
    assert set(lost["worker"][-GRADIENTS // 4 :]) == {0}


def test_a_lost_server_ends_the_job(run: launch.LaunchedRun) -> None:
    assert run.exit_codes[f"ps {SERVERS - 1}"] == -signal.SIGKILL
    assert run.result["runs"]["lost_server"] == {"error": "UnavailableError"}

"""Chapter 14's program for MXNet: with the optimizer on the server and on the workers, with one server and with two."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from distlab import checks, frameworks, launch
from tests.programs.frameworks_chapter import CHAPTER, STEPS, serial, weights_in, write_start

MISSING = frameworks.problem("mxnet")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("one_job"),
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
]

WAYS = {"server": (1, []), "two servers": (2, []), "workers": (1, ["--optimizer-on", "worker"])}


class Trained(NamedTuple):
    """A run, the weights that it left, and the file that it started from."""

    run: launch.LaunchedRun
    weights: list[np.ndarray]
    start: Path


@pytest.fixture(scope="module", params=WAYS)
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("mxnet")
    start, weights = write_start(folder / "start.npz"), folder / "weights.npz"
    servers, options = WAYS[request.param]
    how = {"python": frameworks.python("mxnet"), "result": True, "seconds": 600, "echo": False}
    arguments = [start, "--weights", weights, *options]
    run = launch.mxnet(CHAPTER / "train_mxnet.py", *arguments, workers=2, servers=servers, **how)
    return Trained(run, weights_in(weights), start)


def test_two_workers_equal_one_process_of_tensorflow(trained: Trained) -> None:
    weights, losses = serial(trained.start)
    checks.assert_equal_weights(trained.weights, weights)
    np.testing.assert_allclose(trained.run.result["losses"], losses, atol=1e-5)
    assert (trained.run.result["ranks"], trained.run.result["steps"]) == (2, STEPS)
    assert trained.run.result["store"] == "dist_sync"


def test_gradients_that_are_summed_twice_would_be_seen(trained: Trained) -> None:
    doubled, _ = serial(trained.start, rate=0.04)
    assert checks.largest_difference(trained.weights, doubled) > 100 * checks.TOLERANCE

"""Chapter 14's program for MXNet: with the optimizer on the server and on the workers."""

from pathlib import Path

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


@pytest.mark.parametrize(("servers", "options"), [(2, []), (1, ["--optimizer-on", "worker"])])
def test_two_workers_equal_one_process_of_tensorflow(tmp_path: Path, servers: int, options: list[str]) -> None:
    start, file = write_start(tmp_path / "start.npz"), tmp_path / "weights.npz"
    how = {"python": frameworks.python("mxnet"), "result": True, "seconds": 600, "echo": False}
    arguments = [start, "--weights", file, *options]
    result = launch.mxnet(CHAPTER / "train_mxnet.py", *arguments, workers=2, servers=servers, **how).result
    assert (result["ranks"], result["steps"], result["store"]) == (2, STEPS, "dist_sync")
    weights, losses = serial(start)
    checks.assert_equal_weights(weights_in(file), weights)
    np.testing.assert_allclose(result["losses"], losses, atol=1e-5)
    doubled, _ = serial(start, rate=0.04)  # gradients that are summed twice would be seen
    assert checks.largest_difference(weights_in(file), doubled) > 100 * checks.TOLERANCE

"""The program of notebook 15 that times ways of sending gradients: all of them on two ranks, over Gloo."""

from pathlib import Path

import pytest

from distlab import launch

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

LAYERS, WIDTH, BATCH = 3, 8, 4
SIZES = [784 * WIDTH, WIDTH, *[WIDTH * WIDTH, WIDTH] * (LAYERS - 1), WIDTH * 10, 10]


@pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem()))
def test_every_way_is_timed_and_the_sizes_are_those_of_the_network(root: Path) -> None:
    program = root / "notebooks/programs/15_clusters/slow_network.py"
    network = ["--layers", LAYERS, "--width", WIDTH, "--batch", BATCH, "--repeats", 2, "--batches", 3]
    result = launch.horovodrun(program, *network, ranks=2, result=True, seconds=900).result
    assert (result["ranks"], result["gradients"], result["batches"]) == (2, len(SIZES), 3)
    assert result["gradient_bytes"] == 4 * sum(SIZES)
    assert set(result["ways"]) == {"plain", "fp16", "accumulate"}
    assert all(seconds > 0 for seconds in [*result["ways"].values(), result["alone"]])
    # What the table of the scaling study reads is the first way's.
    assert result["step_seconds"] == result["ways"]["plain"]
    assert result["images_per_second"] == pytest.approx(2 * BATCH / result["step_seconds"])

"""Chapter 14's program for JAX: on several devices, with whole and divided weights, in one process and in two."""

from pathlib import Path

import pytest

from distlab import checks, frameworks, launch
from tests.programs.frameworks_chapter import CHAPTER, serial, weights_in, write_start

MISSING = frameworks.problem("jax")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("one_job"),
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
]

LIMITS = {"result": True, "seconds": 600, "echo": False}
CPU = {"JAX_PLATFORMS": "cpu"}
TWO_DEVICES = CPU | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
RUNS = {
    "whole": (launch.alone, [], {"environment": TWO_DEVICES}),
    "two processes": (launch.mpirun, ["--shard-weights", "--distributed"], {"environment": CPU, "ranks": 2}),
}


@pytest.mark.parametrize("name", RUNS)
def test_two_devices_train_the_serial_runs_weights(tmp_path: Path, name: str) -> None:
    start, weights = write_start(tmp_path / "start.npz"), tmp_path / "weights.npz"
    begin, options, how = RUNS[name]
    how = LIMITS | how | {"python": frameworks.python("jax")}
    result = begin(CHAPTER / "train_jax.py", start, *options, "--weights", weights, **how).result
    expected, _ = serial(start)
    assert checks.largest_difference(weights_in(weights), expected) < checks.TOLERANCE
    part = sum(weight.nbytes for weight in expected) // (2 if options else 1)
    assert result["held"] == [{"parameters": part, "optimizer": part}] * 2
    assert "all-gather" in result["collectives"] if options else result["collectives"] == ["all-reduce"]

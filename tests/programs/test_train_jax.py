"""Chapter 14's program for JAX: on several devices, with whole and divided weights, in one process and in two."""

from pathlib import Path

import pytest

from distlab import checks, frameworks, launch
from tests.programs.frameworks_chapter import CHAPTER, STEPS, serial, weights_in, write_start

MISSING = frameworks.problem("jax")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("one_job"),
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
]

LIMITS = {"result": True, "seconds": 600, "echo": False}
NETWORK_BYTES = 4 * (9 * 16 + 16 + 13 * 13 * 16 * 64 + 64 + 64 * 10 + 10)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_start(tmp_path_factory.mktemp("jax") / "start.npz")


@pytest.mark.parametrize("options", [[], ["--shard-weights"]])
def test_two_devices_train_the_serial_runs_weights_whole_or_divided(start: Path, options: list) -> None:
    file, devices = start.with_name("weights.npz"), "--xla_force_host_platform_device_count=2"
    how = LIMITS | {"python": frameworks.python("jax"), "environment": {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": devices}}
    result = launch.alone(CHAPTER / "train_jax.py", start, *options, "--weights", file, **how).result
    assert (result["ranks"], result["steps"]) == (2, STEPS)
    assert checks.largest_difference(weights_in(file), serial(start)[0]) < checks.TOLERANCE
    part = NETWORK_BYTES // (2 if options else 1)
    assert result["held"] == [{"parameters": part, "optimizer": part}] * 2
    assert "all-gather" in result["collectives"] if options else result["collectives"] == ["all-reduce"]


def test_two_processes_under_mpirun_train_them_too(start: Path) -> None:
    file, how = start.with_name("processes.npz"), {"python": frameworks.python("jax"), "ranks": 2}
    options = ["--distributed", "--shard-weights", "--weights", file]
    how["environment"] = {"JAX_PLATFORMS": "cpu"}
    assert launch.mpirun(CHAPTER / "train_jax.py", start, *options, **LIMITS, **how).result["ranks"] == 2
    assert checks.largest_difference(weights_in(file), serial(start)[0]) < checks.TOLERANCE

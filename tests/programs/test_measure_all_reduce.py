"""The programs of chapter 06 over real processes: every mode of the measurement gives right sums."""

import shutil

import numpy as np
import pytest

from distlab import launch, programs

SIZES = [4, 16, 4096]
HOW = {"echo": False, "seconds": 600, "start_seconds": 300, "prepared": False}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("one_job"),
    pytest.mark.skipif(shutil.which("mpirun") is None, reason="there is no mpirun"),
]

CHAPTER = programs.FOLDER / "06_collectives_and_ring_all_reduce"


def test_every_mode_sums_rightly_and_takes_its_time() -> None:
    options = ["--modes", "mpi", "ring", "--sizes", *SIZES, "--repeats", 3, "--warm-up", 1]
    result = launch.mpirun(CHAPTER / "measure_all_reduce.py", *options, ranks=2, result=True, **HOW).result
    assert (result["ranks"], result["array_bytes"], list(result["modes"])) == (2, SIZES, ["mpi", "ring"])
    for mode in result["modes"].values():
        assert mode["sums_are_right"] is True
        assert len(mode["seconds"]) == len(SIZES) and min(mode["seconds"]) > 0


def test_the_first_program_prints_the_sum_on_every_rank() -> None:
    run = launch.mpirun(CHAPTER / "sum_with_mpi.py", ranks=3, **HOW)
    for rank in range(3):
        assert run.output[f"rank {rank}"] == f"rank {rank} of 3: own {np.full(3, rank + 1.0)}, sum [6. 6. 6.]"

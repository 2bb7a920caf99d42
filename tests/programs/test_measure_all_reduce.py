"""The programs of notebook 06 over real processes: every mode of the measurement gives right sums."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from distlab import launch
from distlab.runtime import environment

environment.apply()  # puts this environment's mpirun on the path

SIZES = [4, 16, 4096]
HOW = {"echo": False, "seconds": 600, "start_seconds": 300}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("one_job"),
    pytest.mark.skipif(shutil.which("mpirun") is None, reason="there is no mpirun"),
]
NEEDS_HOROVOD = pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem()))


@pytest.fixture
def chapter_folder(root: Path) -> Path:
    return root / "notebooks/programs/06_collectives_and_ring_all_reduce"


@pytest.mark.parametrize(
    ("starter", "modes", "name"),
    [
        ("mpirun", ["mpi", "ring"], "distlab.collectives over mpi4py"),
        pytest.param("mpirun", ["horovod"], "Horovod over MPI", marks=NEEDS_HOROVOD),
        pytest.param("horovodrun", ["horovod"], "Horovod over Gloo", marks=NEEDS_HOROVOD),
    ],
)
def test_every_mode_sums_rightly_and_takes_its_time(
    chapter_folder: Path, starter: str, modes: list[str], name: str
) -> None:
    options = ["--modes", *modes, "--sizes", *SIZES, "--repeats", 3, "--warm-up", 1]
    start = getattr(launch, starter)
    result = start(chapter_folder / "measure_all_reduce.py", *options, ranks=2, result=True, **HOW).result
    assert (result["ranks"], result["array_bytes"], list(result["modes"])) == (2, SIZES, modes)
    assert result["modes"][modes[-1]]["name"] == name
    for mode in result["modes"].values():
        assert mode["sums_are_right"] is True and mode["ranks"] == 2
        lower, median, upper = (np.array(mode[key]) for key in ("lower_quartile", "seconds", "upper_quartile"))
        assert lower.shape == (len(SIZES),)
        assert np.all((lower > 0) & (lower <= median) & (median <= upper))


def test_a_wrong_sum_is_reported_and_fails_the_run(chapter_folder: Path, tmp_path: Path) -> None:
    source = (chapter_folder / "measure_all_reduce.py").read_text()
    assert source.count("world.Allreduce(array, total, MPI.SUM)") == 1
    (tmp_path / "wrong.py").write_text(source.replace("MPI.SUM)", "MPI.MAX)"))
    with pytest.raises(launch.WorkerFailed) as failure:
        launch.mpirun(tmp_path / "wrong.py", "--sizes", 16, "--repeats", 1, ranks=2, **HOW)
    assert "mode mpi gave a wrong sum" in str(failure.value.run.output)


def test_the_first_program_prints_the_sum_on_every_rank(chapter_folder: Path) -> None:
    run = launch.mpirun(chapter_folder / "sum_with_mpi.py", ranks=3, prepared=False, echo=False)
    for rank in range(3):
        assert run.output[f"rank {rank}"] == f"rank {rank} of 3: own {np.full(3, rank + 1.0)}, sum [6. 6. 6.]"

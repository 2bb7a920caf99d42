"""`measure_all_reduce.py` of notebook 06 over real processes: every mode gives right sums and a whole result file."""

import importlib.util
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from distlab import launch
from distlab.runtime import environment, processes
from tests.prepared_runs import PreparedRuns

environment.apply()  # puts this environment's mpirun on the path

RANKS = 2
SIZES = [4, 16, 4096]
DEADLINE = 600

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed"),
    pytest.mark.skipif(shutil.which("mpirun") is None, reason="there is no mpirun"),
]


def program(root: Path) -> Path:
    return root / "notebooks/programs/06_collectives_and_ring_all_reduce/measure_all_reduce.py"


def mpirun(root: Path, *arguments: str, ranks: int = RANKS) -> processes.Finished:
    command = ["mpirun", "-np", str(ranks), sys.executable, str(program(root)), *arguments]
    return processes.run(command, DEADLINE)


def measured(root: Path, folder: Path, *modes: str, ranks: int = RANKS) -> dict:
    result = folder / "result.json"
    options = ["--sizes", *map(str, SIZES), "--repeats", "3", "--warm-up", "1", "--result", str(result)]
    finished = mpirun(root, "--modes", *modes, *options, ranks=ranks)
    assert finished.status == 0, finished.output
    return json.loads(result.read_text())


def assert_whole(result: dict, *modes: str, ranks: int = RANKS) -> None:
    assert result["ranks"] == ranks
    assert result["array_bytes"] == SIZES
    assert (result["repeats"], result["warm_up"]) == (3, 1)
    assert list(result["modes"]) == list(modes)
    for mode in result["modes"].values():
        assert mode["sums_are_right"] is True
        assert mode["ranks"] == ranks
        assert mode["name"]
        lower, median, upper = (np.array(mode[key]) for key in ("lower_quartile", "seconds", "upper_quartile"))
        assert len(lower) == len(median) == len(upper) == len(SIZES)
        assert np.all((lower > 0) & (lower <= median) & (median <= upper))


def test_mpi_and_the_course_s_ring_in_one_launch(root: Path, tmp_path: Path) -> None:
    assert_whole(measured(root, tmp_path, "mpi", "ring"), "mpi", "ring")


def test_one_rank_alone_measures_too(root: Path, tmp_path: Path) -> None:
    assert_whole(measured(root, tmp_path, "mpi", "ring", ranks=1), "mpi", "ring", ranks=1)


@pytest.mark.skipif(launch.horovod_problem() is not None, reason=f"no Horovod: {launch.horovod_problem()}")
def test_horovod_over_mpi(root: Path, tmp_path: Path) -> None:
    result = measured(root, tmp_path, "horovod")
    assert_whole(result, "horovod")
    assert result["modes"]["horovod"]["name"] == "Horovod over MPI"


@pytest.mark.skipif(launch.horovod_problem() is not None, reason=f"no Horovod: {launch.horovod_problem()}")
def test_horovod_over_gloo(root: Path, tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    options = ["--sizes", *map(str, SIZES), "--repeats", "3", "--warm-up", "1", "--result", str(result)]
    command = ["horovodrun", "-np", str(RANKS), "--gloo", sys.executable, str(program(root))]
    finished = processes.run([*command, "--modes", "horovod", *options], DEADLINE)
    assert finished.status == 0, finished.output
    assert_whole(json.loads(result.read_text()), "horovod")
    assert json.loads(result.read_text())["modes"]["horovod"]["name"] == "Horovod over Gloo"


def test_a_wrong_sum_is_reported_and_fails_the_run(root: Path, tmp_path: Path) -> None:
    source = program(root).read_text()
    assert source.count("world.Allreduce(array, total, MPI.SUM)") == 1
    program(tmp_path).parent.mkdir(parents=True)
    program(tmp_path).write_text(source.replace("MPI.SUM)", "MPI.MAX)"))
    result = tmp_path / "result.json"
    finished = mpirun(tmp_path, "--sizes", "16", "--repeats", "1", "--result", str(result))
    assert finished.status != 0
    assert "mode mpi gave a wrong sum" in finished.output
    assert json.loads(result.read_text())["modes"]["mpi"]["sums_are_right"] is False


@pytest.mark.parametrize("size", ["6", "many"])
def test_an_impossible_size_is_refused(runs: PreparedRuns, root: Path, size: str) -> None:
    finished = runs.run(program(root), f"--sizes={size}")
    assert finished.status == 2
    assert "--sizes" in finished.output


def test_without_mpirun_the_modes_over_mpi_are_refused(
    runs: PreparedRuns, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOROVOD_GLOO_RENDEZVOUS_ADDR", "127.0.0.1")
    finished = runs.run(program(root), "--modes", "ring")
    assert finished.status == 2
    assert "need mpirun" in finished.output


def test_the_first_program_prints_the_sum_on_every_rank(root: Path) -> None:
    run = launch.mpirun(program(root).with_name("sum_with_mpi.py"), ranks=3, prepared=False, echo=False)
    for rank in range(3):
        assert run.output[f"rank {rank}"] == f"rank {rank} of 3: own {np.full(3, rank + 1.0)}, sum [6. 6. 6.]"


def test_horovod_s_first_program_prints_the_mean_on_every_rank(root: Path) -> None:
    if problem := launch.horovod_problem():
        pytest.skip(problem)
    run = launch.horovodrun(program(root).with_name("average_with_horovod.py"), ranks=2, start_seconds=300, echo=False)
    assert all("mean [1.5 1.5 1.5]" in run.output[f"rank {rank}"] for rank in range(2))

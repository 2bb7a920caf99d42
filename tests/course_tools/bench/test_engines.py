"""The measurements of the virtual cluster and of real all-reduces are whole, or say why not."""

import shutil
from pathlib import Path

import pytest

from course_tools.bench import engines
from distlab import launch

pytestmark = pytest.mark.slow


@pytest.mark.long
def test_the_ring_is_measured_by_size_with_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "SIZES", ((8, True, 2, None, None), (16, False, 1, 30.0, None)))
    measures = engines.measure_virtual_cluster()
    assert [measure.name for measure in measures] == [
        "ring of 8 ranks, events kept",
        "ring of 8 ranks, events kept: memory",
        "ring of 16 ranks, events counted",
        "ring of 16 ranks, events counted: memory",
    ]
    assert [len(measure.values) for measure in measures] == [2, 2, 1, 1]
    assert all(value > 10 for value in measures[1].values)
    assert measures[2].goal == 30.0


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("mpirun"), reason="no mpirun on this machine")
def test_real_all_reduces_are_compared_with_mpi(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    measures = {measure.name.partition(",")[0]: measure for measure in engines.measure_all_reduces()}
    assert list(measures) == ["MPI", "the course's ring over MPI", "horovod over gloo", "horovod over mpi"]
    assert measures["MPI"].ratios == [1.0]
    if problem := launch.horovod_problem():
        assert measures["horovod over mpi"].skipped == problem
    else:
        assert measures["horovod over mpi"].ratios[0] > 0


def test_a_program_that_fails_is_reported_with_its_last_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program.py"
    program.write_text("raise SystemExit('on purpose')")
    monkeypatch.setattr(engines, "ALL_REDUCE_PROGRAM", program)
    assert engines._all_reduce([], ["mpi"]) == " ended with status 1: on purpose"

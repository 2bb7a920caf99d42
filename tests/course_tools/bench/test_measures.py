"""The ring and the ways of training are measured in turns, or say why not."""

from pathlib import Path

import pytest

from course_tools.bench import measures
from course_tools.bench.measures import LECTURE, OURS, RANKS, WORKERS, Way
from distlab import launch


@pytest.mark.slow
def test_the_ring_is_measured_with_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "RINGS", ((8, True, 3.0, 300.0), (16, False, 30.0, None)))
    seconds, memory, counted = measures.measure_virtual_cluster()
    assert [seconds.name, counted.name] == ["ring of 8 ranks, events kept", "ring of 16 ranks, events counted"]
    assert 0 < seconds.values[0] < 60 and 10 < memory.values[0] < 1000


def test_two_ways_are_divided_in_each_round(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = iter([100.0, 20.0, 200.0, 50.0, 90.0, 30.0])
    monkeypatch.setattr(measures, "trained", lambda *way: {"images_per_second": next(rates)})
    measure = measures.ratio("a name", OURS, LECTURE, 4.0)
    assert (measure.values, measure.goal, measure.at_least, measure.skipped) == ([5.0, 4.0, 3.0], 4.0, True, None)


@pytest.mark.slow
@pytest.mark.usefixtures("one_job")
@pytest.mark.parametrize("way", [OURS, RANKS, WORKERS], ids=lambda way: way[0])
def test_the_program_counts_the_images_of_all_processes(root: Path, monkeypatch: pytest.MonkeyPatch, way: Way) -> None:
    if way is RANKS and (problem := launch.horovod_problem()):
        pytest.skip(problem)
    monkeypatch.setattr(measures, "PROGRAM", root / measures.PROGRAM)
    small = ("--images", 96, "--batch", 32, "--epochs", 2)
    result = measures.trained(*way, *small)
    assert result["images"] == [way[1] * 96] * 3
    assert result["images_per_second"] > 0
    assert way is OURS or result["cores"] == 1


@pytest.mark.slow
def test_a_training_that_fails_is_skipped_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program.py"
    program.write_text("raise SystemExit('on purpose')")
    monkeypatch.setattr(measures, "PROGRAM", program)
    assert str(measures.ratio("a name", OURS, LECTURE, 4.0).skipped).startswith("worker 0 failed, exit code 1")

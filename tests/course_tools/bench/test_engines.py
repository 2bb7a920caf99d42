"""The ring and the ways of training are measured in turns, or say why not."""

from pathlib import Path

import pytest

from course_tools.bench import engines
from course_tools.bench.engines import LECTURE, OURS, RANK, RANKS, Way
from distlab import launch


@pytest.mark.slow
def test_the_ring_is_measured_with_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "RINGS", ((8, True, 3.0, 300.0), (16, False, 30.0, None)))
    seconds, memory, counted = engines.measure_virtual_cluster()
    assert [seconds.name, counted.name] == ["ring of 8 ranks, events kept", "ring of 16 ranks, events counted"]
    assert 0 < seconds.values[0] < 60 and 10 < memory.values[0] < 1000
    assert (seconds.goal, memory.goal, counted.goal) == (3.0, 300.0, 30.0)


def test_ratios_are_of_the_same_round_and_a_way_without_a_rate_gives_the_reason() -> None:
    rounds: list[engines.Rates] = [
        {OURS.name: 100.0, LECTURE.name: 20.0, RANK.name: "there is no Horovod", RANKS.name: "there is no Horovod"},
        {OURS.name: 200.0, LECTURE.name: 50.0, RANK.name: "there is no Horovod", RANKS.name: "there is no Horovod"},
    ]
    measure = engines.ratio(OURS, LECTURE, 4.0, rounds)
    assert (measure.values, measure.goal, measure.at_least) == ([5.0, 4.0], 4.0, True)
    without = engines.ratio(RANKS, RANK, 1.7, rounds)
    assert (without.values, without.skipped) == ([], "there is no Horovod")


@pytest.mark.slow
@pytest.mark.parametrize("way", [OURS, RANKS], ids=["one process", "Horovod"])
def test_the_program_gives_images_per_second(root: Path, monkeypatch: pytest.MonkeyPatch, way: Way) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setattr(engines, "ARGUMENTS", ("--images", 1024, "--epochs", 1))
    rate = engines.images_per_second(way)
    if way is RANKS and (problem := launch.horovod_problem()):
        assert rate == problem
    else:
        assert isinstance(rate, float) and rate > 0


@pytest.mark.slow
def test_a_training_that_fails_is_reported_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program.py"
    program.write_text("raise SystemExit('on purpose')")
    monkeypatch.setattr(engines, "PROGRAM", program)
    reason = engines.images_per_second(OURS)
    assert isinstance(reason, str) and reason.startswith("worker 0 failed, exit code 1")

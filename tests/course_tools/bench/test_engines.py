"""The ring, the start of ranks and the ways of training are measured in turns, or say why not."""

import shutil
from pathlib import Path

import pytest

from course_tools.bench import engines
from course_tools.bench.engines import LECTURE, OURS, RANK, RANKS, Way
from distlab import launch


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("mpirun"), reason="no mpirun on this machine")
def test_forked_ranks_are_compared_with_those_of_the_same_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "ROUNDS", 1)
    own, forked = engines.measure_start()
    assert own.ratios == [1.0]
    assert forked.ratios == [forked.values[0] / own.values[0]]


def test_ratios_are_of_the_same_round() -> None:
    rounds = [{OURS.name: 100.0, LECTURE.name: 20.0}, {OURS.name: 200.0, LECTURE.name: 50.0}]
    measure = engines.ratio(OURS, LECTURE, 4.0, rounds)
    assert measure.ratios == [5.0, 4.0]
    assert (measure.goal, measure.less_is_better) == (4.0, False)


def test_a_way_without_a_rate_gives_the_reason() -> None:
    measure = engines.ratio(RANKS, RANK, None, [{RANKS.name: "there is no Horovod", RANK.name: "there is no Horovod"}])
    assert (measure.values, measure.skipped) == ([], "there is no Horovod")


def test_all_ways_are_measured_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[Way] = []

    def measure(way: Way) -> float:
        order.append(way)
        return 100.0 * len(order)

    monkeypatch.setattr(engines, "images_per_second", measure)
    measures = engines.measure_training(say=lambda line: None)
    assert order == list(engines.WAYS) * engines.ROUNDS
    first = {way: 100.0 * (position + 1) for position, way in enumerate(engines.WAYS)}
    [found] = [measure for measure in measures if measure.name == f"{OURS.name}, to {LECTURE.name}"]
    assert found.ratios[0] == first[OURS] / first[LECTURE]


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


def test_a_training_that_fails_is_reported_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program.py"
    program.write_text("raise SystemExit('on purpose')")
    monkeypatch.setattr(engines, "PROGRAM", program)
    reason = engines.images_per_second(OURS)
    assert isinstance(reason, str)
    assert reason.startswith("worker 0 failed, exit code 1")

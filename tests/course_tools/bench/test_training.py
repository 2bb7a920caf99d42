"""Ratios of ways of training: round by round, with their goal; a way that cannot run is skipped with the reason."""

from pathlib import Path

import pytest

from course_tools.bench import training
from course_tools.bench.training import LECTURE, OURS, RANK, RANKS, Way
from distlab import launch


def test_ratios_are_of_the_same_round() -> None:
    rounds = [{OURS.name: 100.0, LECTURE.name: 20.0}, {OURS.name: 200.0, LECTURE.name: 50.0}]
    measure = training.ratio(OURS, LECTURE, 4.0, rounds)
    assert measure.ratios == [5.0, 4.0]
    assert (measure.goal, measure.less_is_better) == (4.0, False)


def test_a_way_without_a_rate_gives_the_reason() -> None:
    measure = training.ratio(RANKS, RANK, None, [{RANKS.name: "there is no Horovod", RANK.name: "there is no Horovod"}])
    assert (measure.values, measure.skipped) == ([], "there is no Horovod")


def test_all_ways_are_measured_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[Way] = []

    def measure(way: Way) -> float:
        order.append(way)
        return 100.0 * len(order)

    monkeypatch.setattr(training, "images_per_second", measure)
    measures = training.measure_training(say=lambda line: None)
    assert order == list(training.WAYS) * training.ROUNDS
    first = {way: 100.0 * (position + 1) for position, way in enumerate(training.WAYS)}
    [found] = [measure for measure in measures if measure.name == f"{OURS.name}, to {LECTURE.name}"]
    assert found.ratios[0] == first[OURS] / first[LECTURE]


@pytest.mark.long
@pytest.mark.parametrize("way", [OURS, RANKS], ids=["one process", "Horovod"])
def test_the_program_gives_images_per_second(root: Path, monkeypatch: pytest.MonkeyPatch, way: Way) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setattr(training, "ARGUMENTS", ("--images", 1024, "--epochs", 1))
    rate = training.images_per_second(way)
    if way is RANKS and (problem := launch.horovod_problem()):
        assert rate == problem
    else:
        assert isinstance(rate, float) and rate > 0


def test_a_training_that_fails_is_reported_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program.py"
    program.write_text("raise SystemExit('on purpose')")
    monkeypatch.setattr(training, "PROGRAM", program)
    reason = training.images_per_second(OURS)
    assert isinstance(reason, str)
    assert reason.startswith("worker 0 failed, exit code 1")

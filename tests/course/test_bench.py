"""The benchmark's report is whole; its figures are nobody's test."""

import json
from pathlib import Path

import pytest

from distlab import launch
from distlab.course import bench


@pytest.mark.slow
def test_the_report_holds_every_measurement_or_the_reason_why_not(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setattr(bench, "REPEATS", {8: 3})
    monkeypatch.setattr(bench, "ROUNDS", 1)
    monkeypatch.setattr(bench, "ARGUMENTS", ("--images", 2048, "--epochs", 1))
    bench.write(tmp_path / "build" / "bench.json")
    report = json.loads((tmp_path / "build" / "bench.json").read_text())
    assert list(report) == ["simulator", "all_reduce", "training"]

    (simulated,) = report["simulator"]
    assert simulated["messages"] == 2 * 7 * 8
    assert simulated["messages_per_second"] == pytest.approx(simulated["messages"] / simulated["seconds"])

    assert list(report["all_reduce"]) == ["mpi and ring", "horovod over gloo", "horovod over mpi"]
    for name, measured in report["all_reduce"].items():
        if "horovod" in name and (problem := launch.horovod_problem()):
            assert measured == {"skipped": problem}
            continue
        assert measured["ranks"] == bench.RANKS
        for mode in measured["modes"].values():
            assert mode["sums_are_right"]
            assert len(mode["seconds"]) == len(measured["array_bytes"])

    assert list(report["training"])[:3] == ["lecture, 1 device", "ours, 1 device", "mirrored, 1 device"]
    assert len(report["training"]) == len(bench.WAYS)
    for name, measured in report["training"].items():
        if "horovod" in name and (problem := launch.horovod_problem()):
            assert measured == {"skipped": problem}
            continue
        (rate,), (ratio,) = measured["images_per_second"], measured["ratios"]
        assert rate > 0
        assert ratio == measured["median"] == measured["least"] == measured["most"]
    assert report["training"]["ours, 1 device"]["ratios"] == [1.0]


def test_a_program_that_fails_is_reported_with_its_last_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program.py"
    program.write_text("raise SystemExit('on purpose')")
    monkeypatch.setattr(bench, "ALL_REDUCE_PROGRAM", program)
    assert bench._all_reduce([], ["mpi"]) == {"skipped": " ended with status 1: on purpose"}


def test_ratios_are_to_ours_of_the_same_round_with_their_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = {"lecture": [20.0, 30.0, 60.0], "ours": [100.0, 200.0, 100.0]}
    taken = {way: iter(of_rounds) for way, of_rounds in rates.items()}
    order: list[str] = []

    def measure(way: str, devices: int) -> float | str:
        order.append(way)
        return next(taken[way]) if way in taken else "on purpose"

    monkeypatch.setattr(bench, "_images_per_second", measure)
    monkeypatch.setattr(bench, "WAYS", (("lecture", 1), ("ours", 1), ("horovod", 2)))
    report = bench.measure_training(say=lambda line: None)
    assert order == ["lecture", "ours", "horovod"] * 3
    found = report["lecture, 1 device"]
    assert found["ratios"] == pytest.approx([0.2, 0.15, 0.6])
    assert (found["median"], found["least"], found["most"]) == pytest.approx((0.2, 0.15, 0.6))
    assert report["horovod, 2 ranks"] == {"skipped": "on purpose"}


def test_a_training_that_fails_is_reported_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program.py"
    program.write_text("raise SystemExit('on purpose')")
    monkeypatch.setattr(bench, "TRAINING_PROGRAM", program)
    reason = bench._images_per_second("ours", 1)
    assert isinstance(reason, str)
    assert reason.startswith("worker 0 failed, exit code 1")

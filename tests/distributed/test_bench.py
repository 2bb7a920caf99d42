"""The benchmark's report is whole; its figures are nobody's test."""

import json
from pathlib import Path

import pytest

from distlab import bench, horovod_wheel


@pytest.mark.slow
def test_the_report_holds_every_measurement_or_the_reason_why_not(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setattr(bench, "REPEATS", {8: 3})
    bench.write(tmp_path / "build" / "bench.json")
    report = json.loads((tmp_path / "build" / "bench.json").read_text())
    (simulated,) = report["simulator"]
    assert simulated["messages"] == 2 * 7 * 8
    assert simulated["messages_per_second"] == pytest.approx(simulated["messages"] / simulated["seconds"])
    assert list(report["all_reduce"]) == ["mpi and ring", "horovod over gloo", "horovod over mpi"]
    for name, measured in report["all_reduce"].items():
        if "horovod" in name and (problem := horovod_wheel.problem()):
            assert measured == {"skipped": problem}
            continue
        assert measured["ranks"] == bench.RANKS
        for mode in measured["modes"].values():
            assert mode["sums_are_right"]
            assert len(mode["seconds"]) == len(measured["array_bytes"])


def test_a_program_that_fails_is_reported_with_its_last_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program.py"
    program.write_text("raise SystemExit('planted')")
    monkeypatch.setattr(bench, "PROGRAM", program)
    assert bench._launch([], ["mpi"]) == {"skipped": " ended with status 1: planted"}

"""A measurement in a file, and the table of a prediction from it."""

from pathlib import Path

import pytest

from distlab.costs.measured.measurement import WrongMeasurement, read, require_same_set_up, write
from distlab.costs.measured.prediction import predict_measured
from distlab.costs.reports import of_measured, residuals
from tests.distlab.costs.measured.synthetic import exactly, measurement


def test_the_table_has_the_numbers_of_the_prediction() -> None:
    prediction = predict_measured(measurement(), [2, 3, 1024])
    lines = of_measured(prediction).splitlines()
    cells, step = lines[3].split(), prediction.step_seconds[2]
    assert cells[:3] == ["1024", f"{1e3 * step:.1f}", "ms"]
    assert cells[-3:-1] == [f"{1024 * 16 / step:,.0f}", f"{2 / step:.1f}%"]  # 0.02 s of computing
    assert cells[-1] == f"{2048 * 1_000_000 / (1024 * 16 / step) / 3600:.3g}"
    assert lines[5].startswith(f"On 1024 ranks a step takes {1e3 * step:.1f} ms (")
    assert lines[5].endswith(f"; 1,000,000 images take {cells[-1]} core hours.")
    assert "core hours: for 1,000,000 images" in lines


def test_a_residual_is_predicted_over_measured() -> None:
    prediction = predict_measured(measurement(), [3])
    predicted = float(prediction.step_seconds[0])
    [row] = residuals(prediction, [measurement(3, step=exactly(predicted / 1.1))])
    assert row["residual"] == pytest.approx(0.1)
    with pytest.raises(WrongMeasurement, match="no prediction for 4 ranks; name them with --ranks"):
        residuals(prediction, [measurement(4)])


def test_it_is_read_as_it_was_written_and_nothing_else_is(tmp_path: Path) -> None:
    file = tmp_path / "three.json"
    write(measurement(3), file)
    assert read(file) == measurement(3)
    file.write_text(file.read_text().replace('"cores"', '"kernels"'))
    with pytest.raises(WrongMeasurement, match="is no measurement"):
        read(file)


def test_only_measurements_of_one_set_up_belong_together() -> None:
    require_same_set_up([measurement(2), measurement(3, date="2026-12-24", step=exactly(1.0))])
    for name, value in {"model": "mlp", "batch": 32, "communication": "Horovod over MPI", "machines": 1}.items():
        with pytest.raises(WrongMeasurement, match="do not belong together"):
            require_same_set_up([measurement(2), measurement(3, **{name: value})])

"""The table and the JSON of a prediction say the same, and residuals are those of the measured steps."""

import json

import pytest

from distlab.costs.measured.measurement import WrongMeasurement
from distlab.costs.measured.prediction import predict_measured
from distlab.costs.measured.report import as_json, as_table, described, residuals
from tests.distlab.costs.measured.synthetic import exactly, measurement


def test_table_and_json_have_the_numbers_of_the_prediction() -> None:
    prediction = predict_measured(measurement(), [2, 3, 1024])
    lines = as_table(prediction, images=500_000).splitlines()
    cells, step = lines[-1].split(), prediction.step_seconds[2]
    assert cells[:3] == ["1024", f"{1e3 * step:.1f}", "ms"]
    assert cells[-3:-1] == [f"{1024 * 16 / step:,.0f}", f"{2 / step:.1f}%"]  # 0.02 s of computing
    assert cells[-1] == f"{2048 * 500_000 / (1024 * 16 / step) / 3600:.3g}"
    assert "core hours: for 500,000 images" in lines
    content = json.loads(as_json(prediction, compare=[measurement(3)]))
    assert content["step_seconds"] == prediction.step_seconds.tolist()
    assert content["residuals"][0]["residual"] == pytest.approx(0)


def test_a_residual_is_predicted_over_measured() -> None:
    prediction = predict_measured(measurement(), [3])
    predicted = float(prediction.step_seconds[0])
    [row] = residuals(prediction, [measurement(3, step=exactly(predicted / 1.1))])
    assert row["residual"] == pytest.approx(0.1)
    with pytest.raises(WrongMeasurement, match="no prediction for 4 ranks; name them with --ranks"):
        residuals(prediction, [measurement(4)])


def test_what_is_assumed_is_said_in_words() -> None:
    shared = measurement(machines=1, cores=2)
    assert "share 2 cores; so do those predicted" in as_table(predict_measured(shared, [3]))
    assert "share 2 cores; here each rank has its own" in as_table(predict_measured(shared, [3], own_cores=True))
    slow = as_table(predict_measured(measurement(hidden=-2.65), [2]))
    assert "overlap: none; a step took longer" in slow and "by 265% of the shorter" in slow
    assert "2,000,000 bytes in 2 gradients" in described(measurement())

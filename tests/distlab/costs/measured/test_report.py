"""The table and the JSON of a prediction say the same, and residuals are those of the measured steps."""

import json

import pytest

from distlab.costs.measured.measurement import WrongMeasurement
from distlab.costs.measured.prediction import predict_measured
from distlab.costs.measured.report import as_json, as_table, residuals
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

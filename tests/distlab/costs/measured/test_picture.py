"""The picture shows the prediction and the measurements, and says so to those who cannot see it."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from distlab.costs.measured.picture import picture
from distlab.costs.measured.prediction import predict_measured
from tests.distlab.costs.measured.synthetic import measurement


def test_it_shows_prediction_and_measurements() -> None:
    prediction = predict_measured(measurement(), [1, 2, 3, 64])
    figure, description = picture(prediction, [measurement(3)])
    times, speeds = figure.axes
    lines = {line.get_label(): line for line in times.lines}
    assert lines["predicted"].get_ydata() == pytest.approx(prediction.step_seconds)
    assert lines["measured"].get_xydata().tolist() == [[2, measurement().step.median]]
    assert lines["measured afterwards"].get_xdata().tolist() == [3]
    ideal = next(line for line in speeds.lines if line.get_label() == "ideal")
    assert ideal.get_ydata() == pytest.approx(np.array([1, 2, 3, 64]) * 16 / 0.02)
    assert f"{1e3 * prediction.step_seconds[-1]:.1f} ms on 64" in description
    plt.close(figure)

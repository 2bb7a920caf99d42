"""Bars, grids and the load of devices have the numbers of their data."""

from types import SimpleNamespace

import numpy as np
import pytest

from distlab import draw


def recording(samples: int, cores: int, gpus: int) -> SimpleNamespace:
    """What `metrics.Utilisation` records; core i is busy 10 i %, GPU i 50 + i %."""
    return SimpleNamespace(
        seconds=0.1 * np.arange(1, samples + 1),
        cores=np.full((samples, cores), 10.0 * np.arange(cores)),
        gpus=np.full((samples, gpus), 50.0 + np.arange(gpus)),
    )


def test_bars_have_the_lengths_names_and_numbers_from_the_top_down() -> None:
    values = {"one device": 1234.5, "two devices": 2000.0, "none": 0.0}
    figure = draw.bars(values, "images per second", highlight="two devices")
    (axes,) = figure.axes
    assert [bar.get_width() for bar in axes.patches] == list(values.values())
    assert [text.get_text() for text in axes.get_yticklabels()] == list(values)
    assert [text.get_text() for text in axes.texts] == ["1,234", "2,000", "0"]
    assert axes.get_xlabel() == "images per second"
    assert axes.yaxis_inverted()
    first, highlighted, last = (bar.get_facecolor() for bar in axes.patches)
    assert first == last != highlighted
    assert "1,000" in [text.get_text() for text in axes.get_xticklabels()]


@pytest.mark.parametrize(("cores", "gpus"), [(1, 0), (4, 2)])
def test_utilisation_has_a_row_with_the_values_of_each_device(cores: int, gpus: int) -> None:
    recorded = recording(5, cores, gpus)
    figure = draw.utilisation(recorded)
    names = [*(f"core {i}" for i in range(cores)), *(f"GPU {i}" for i in range(gpus))]
    assert [axes.get_ylabel() for axes in figure.axes] == names
    columns = [*recorded.cores.T, *recorded.gpus.T]
    for axes, busy in zip(figure.axes, columns, strict=True):
        (line,) = axes.lines
        assert np.array_equal(line.get_xdata(), [0.0, *recorded.seconds])  # a sample is the mean since the one before
        assert np.array_equal(line.get_ydata()[1:], busy)
        assert axes.get_ylim() == (0, 105)
    assert "seconds" in figure.axes[-1].get_xlabel()

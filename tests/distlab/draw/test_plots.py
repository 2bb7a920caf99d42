"""Bars, grids and the load of devices have the numbers of their data."""

from types import SimpleNamespace

import numpy as np

from distlab import draw


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


def test_utilisation_has_a_row_with_the_values_of_each_device() -> None:
    """Core i is busy 10 i %, GPU i 50 + i %."""
    cores, gpus = np.full((5, 2), 10.0 * np.arange(2)), np.full((5, 2), 50.0 + np.arange(2))
    recorded = SimpleNamespace(seconds=0.1 * np.arange(1, 6), cores=cores, gpus=gpus)
    figure = draw.utilisation(recorded)
    assert [axes.get_ylabel() for axes in figure.axes] == ["core 0", "core 1", "GPU 0", "GPU 1"]
    columns = [*recorded.cores.T, *recorded.gpus.T]
    for axes, busy in zip(figure.axes, columns, strict=True):
        (line,) = axes.lines
        assert np.array_equal(line.get_xdata(), [0.0, *recorded.seconds])  # a sample is the mean since the one before
        assert np.array_equal(line.get_ydata()[1:], busy)
        assert axes.get_ylim() == (0, 105)
    assert "seconds" in figure.axes[-1].get_xlabel()

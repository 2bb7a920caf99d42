"""Bars, grids, the load of devices and the bytes per link have the numbers of their data."""

from types import SimpleNamespace

import numpy as np
import pytest

from distlab import draw
from distlab.collectives import halving_doubling_all_reduce, ring_all_reduce
from distlab.draw.plots import traffic
from distlab.simulate import Network, World

NETWORK = Network(latency=1e-5, seconds_per_byte=1e-9, seconds_per_byte_reduced=5e-10)


def recording(samples: int, cores: int, gpus: int) -> SimpleNamespace:
    """What `metrics.Utilisation` records; core i is busy 10 i %, GPU i 50 + i %."""
    return SimpleNamespace(
        seconds=0.1 * np.arange(1, samples + 1),
        cores=np.full((samples, cores), 10.0 * np.arange(cores)),
        gpus=np.full((samples, gpus), 50.0 + np.arange(gpus)),
    )


def test_bars_have_the_lengths_names_and_numbers_from_the_top_down() -> None:
    values = {"one device": 1234.5, "two devices": 2000.0, "none": 0.0}
    figure = draw.bars(values, "images per second")
    (axes,) = figure.axes
    assert [bar.get_width() for bar in axes.patches] == list(values.values())
    assert [text.get_text() for text in axes.get_yticklabels()] == list(values)
    assert [text.get_text() for text in axes.texts] == ["1,234", "2,000", "0"]
    assert axes.get_xlabel() == "images per second"
    assert axes.yaxis_inverted()


@pytest.mark.parametrize(("cores", "gpus"), [(1, 0), (4, 2)])
def test_utilisation_has_a_row_with_the_values_of_each_device(cores: int, gpus: int) -> None:
    recorded = recording(5, cores, gpus)
    figure = draw.utilisation(recorded)
    names = [*(f"core {i}" for i in range(cores)), *(f"GPU {i}" for i in range(gpus))]
    assert [axes.get_ylabel() for axes in figure.axes] == names
    columns = [*recorded.cores.T, *recorded.gpus.T]
    for axes, busy in zip(figure.axes, columns, strict=True):
        (line,) = axes.lines
        assert np.array_equal(line.get_xdata(), recorded.seconds)
        assert np.array_equal(line.get_ydata(), busy)
        assert axes.get_ylim() == (0, 105)
    assert "seconds" in figure.axes[-1].get_xlabel()


@pytest.mark.parametrize("size", [2, 5])
def test_the_bytes_per_link_are_those_of_the_log(size: int) -> None:
    run = World(size, NETWORK).run(halving_doubling_all_reduce, [np.ones(1000)] * size)
    sent, messages = traffic(run)
    assert np.array_equal(sent.sum(1), run.bytes_sent_by_rank)
    assert np.array_equal(messages.sum(1), run.messages_by_rank)
    for source in range(size):
        for to in range(size):
            between = run.events.select("send", source, to)
            assert (sent[source, to], messages[source, to]) == (sum(event.bytes for event in between), len(between))


def test_the_matrix_has_a_number_for_each_link_that_was_used_and_the_sums() -> None:
    run = World(3, NETWORK).run(ring_all_reduce, [np.ones(3000)] * 3)
    figure = draw.bytes_per_link(run)
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts.count("32") == 3 + 3 + 3
    assert texts.count("96") == 1
    assert figure.texts[0].get_text() == "in kB"

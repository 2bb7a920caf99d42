"""Bars, grids, the load of devices and the bytes per link have the numbers of their data."""

from types import SimpleNamespace

import numpy as np
import pytest

from distlab import draw
from distlab.collectives import halving_doubling_all_reduce, ring_all_reduce
from distlab.draw.plots import traffic
from distlab.simulate import Network, Rank, World

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
    heights = [axes.transData.transform((0, tick))[1] for tick in axes.get_yticks()]
    assert heights == sorted(heights, reverse=True)


def test_each_number_is_at_the_end_of_its_bar() -> None:
    figure = draw.bars({"a": 3.0, "b": 1.0}, "seconds", number_format="{:.1f} s")
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.texts] == ["3.0 s", "1.0 s"]
    assert [text.xy for text in axes.texts] == [(3.0, 0), (1.0, 1)]


def test_bars_differ_in_more_than_colour() -> None:
    figure = draw.bars({f"bar {number}": number for number in range(8)}, "length")
    (axes,) = figure.axes
    assert len({bar.get_facecolor() for bar in axes.patches}) == 8
    assert len({bar.get_hatch() for bar in axes.patches}) == 8


def test_more_bars_than_colours_can_be_drawn() -> None:
    figure = draw.bars({f"bar {number}": number for number in range(12)}, "length")
    assert len(figure.axes[0].patches) == 12
    assert draw.svg(figure, "bars")


def test_a_grid_shows_each_answer_at_its_row_and_column() -> None:
    answers = {"weights": {"SavedModel": "yes", "h5 file": "partly"}, "code": {"h5 file": "no", "SavedModel": "no"}}
    looks = {"yes": ("full", "kept"), "partly": ("left", "with more work"), "no": ("none", "not kept")}
    figure = draw.grid(answers, ["SavedModel", "h5 file"], looks)
    (axes,) = figure.axes
    circles = {(line.get_xdata()[0], line.get_ydata()[0]): line.get_fillstyle() for line in axes.lines}
    assert circles == {(0, 0): "full", (1, 0): "left", (0, 1): "none", (1, 1): "none"}
    assert [text.get_text() for text in axes.get_yticklabels()] == ["weights", "code"]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["Saved\nModel", "h5\nfile"]
    assert axes.yaxis_inverted()
    meaning = axes.get_xlabel()
    assert [part in meaning for part in ("full: kept", "half: with more work", "empty: not kept")] == [True] * 3


@pytest.mark.parametrize(("cores", "gpus"), [(1, 0), (2, 0), (4, 2), (10, 0)])
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


@pytest.mark.slow
def test_a_recording_without_samples_can_be_drawn() -> None:
    figure = draw.utilisation(recording(0, 2, 1))
    assert [axes.get_ylabel() for axes in figure.axes] == ["core 0", "core 1", "GPU 0"]
    assert draw.svg(figure, "nothing recorded")


@pytest.mark.parametrize("size", [2, 5, 8])
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


def test_a_matrix_is_byte_equal_when_drawn_again() -> None:
    run = World(4, NETWORK).run(ring_all_reduce, [np.ones(64)] * 4)
    assert draw.svg(draw.bytes_per_link(run), "a run") == draw.svg(draw.bytes_per_link(run), "a run")


def test_an_empty_run_has_a_matrix() -> None:
    async def nothing(rank: Rank) -> None:
        pass

    assert draw.bytes_per_link(World(2).run(nothing)).axes

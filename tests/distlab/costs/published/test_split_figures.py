"""The published figures of model parallelism come out within their tolerance, and wrong ones do not."""

from dataclasses import replace

from distlab.costs.published.split_figures import FIGURES

DESCRIBED = [figure for figure in FIGURES if figure.is_described]


def test_published_figures_come_out_within_their_tolerance() -> None:
    assert [figure.what for figure in DESCRIBED if not figure.is_within] == []
    for kind, count in (("bubble", 24), ("memory", 24), ("throughput", 16)):
        assert sum(figure.kind == kind for figure in DESCRIBED) == count


def test_a_wrong_figure_is_seen() -> None:
    """The bubble is what makes the shares come out, not a wide tolerance."""
    assert not any(replace(figure, predicted=0.0).is_within for figure in DESCRIBED if figure.kind == "bubble")

"""The published figures of model parallelism come out within their tolerance, and wrong ones do not."""

from dataclasses import replace

from distlab.costs.published.split_figures import FIGURES, Figure

# A bubble in points, the others in %. Memory is arithmetic, so that only rounding in print can differ; a bubble misses
# messages; throughput is a model.
TOLERANCES = {"bubble": 3.0, "memory": 1.0, "throughput": 10.0}
DESCRIBED = [figure for figure in FIGURES if figure.is_described]


def is_within(figure: Figure) -> bool:
    return abs(figure.difference) <= TOLERANCES[figure.kind]


def test_published_figures_come_out_within_their_tolerance() -> None:
    assert [figure.what for figure in DESCRIBED if not is_within(figure)] == []
    for kind, count in (("bubble", 24), ("memory", 24), ("throughput", 16)):
        assert sum(figure.kind == kind for figure in DESCRIBED) == count


def test_a_wrong_figure_is_seen() -> None:
    """The bubble is what makes the shares come out, not a wide tolerance."""
    assert not any(is_within(replace(figure, predicted=0.0)) for figure in DESCRIBED if figure.kind == "bubble")

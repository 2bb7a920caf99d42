"""The published figures of model parallelism come out within their tolerance, and wrong ones do not."""

from distlab.costs.published.split_figures import FIGURES, FigureComparison, compare_figures

DESCRIBED = [figure for figure in FIGURES if figure.is_described]


def test_published_figures_come_out_within_their_tolerance() -> None:
    assert [comparison.figure.what for comparison in compare_figures(DESCRIBED) if not comparison.is_within] == []
    for kind, count in (("bubble", 24), ("memory", 24), ("throughput", 16)):
        assert sum(figure.kind == kind for figure in DESCRIBED) == count


def test_a_wrong_figure_is_seen() -> None:
    """The bubble is what makes the shares come out, not a wide tolerance."""
    assert not any(FigureComparison(figure, 0.0).is_within for figure in DESCRIBED if figure.kind == "bubble")

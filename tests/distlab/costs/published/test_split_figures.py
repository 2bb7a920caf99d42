"""The published figures of model parallelism come out within their tolerance, and wrong ones do not."""

from dataclasses import replace

from distlab.costs import Assumptions
from distlab.costs.published.split_figures import FIGURES, FigureComparison, compare_figures, figures_table

DESCRIBED = [figure for figure in FIGURES if figure.is_described]


def test_published_figures_come_out_within_their_tolerance() -> None:
    assert [comparison.figure.what for comparison in compare_figures(DESCRIBED) if not comparison.is_within] == []
    for kind, count in (("bubble", 24), ("memory", 24), ("throughput", 16)):
        assert sum(figure.kind == kind for figure in DESCRIBED) == count


def test_a_wrong_assumption_or_figure_is_seen() -> None:
    """Links ten times slower, or matrix products at half their speed: none of the throughputs comes out."""
    runs = [figure for figure in DESCRIBED if figure.kind == "throughput"]
    for wrong in ({"matrix_share": 0.32}, {"matrix_share": 1.0}):
        assert not any(each.is_within for each in compare_figures(runs, replace(Assumptions(), **wrong)))
    slow = compare_figures(runs[3:], replace(Assumptions(), bandwidth_share=0.082))
    assert not any(each.is_within for each in slow)
    # The bubble is what makes the shares come out, not a wide tolerance.
    assert not any(FigureComparison(figure, 0.0).is_within for figure in DESCRIBED if figure.kind == "bubble")


def test_the_misses_are_those_that_the_report_speaks_of() -> None:
    """Bubbles too small; ZeRO 3 alone too fast, the more so the more devices share a batch."""
    assert max(each.difference for each in compare_figures() if each.figure.kind == "bubble") < 0
    zero = [each for each in compare_figures() if each.figure.kind == "throughput" and not each.figure.is_described]
    for model in ("gpt-175b", "gpt-530b"):
        misses = [each.difference for each in zero if each.figure.what.startswith(model)]
        assert len(misses) == 3 and misses == sorted(misses) and misses[0] > 10


def test_the_table_has_every_figure() -> None:
    lines = figures_table(compare_figures()).splitlines()
    assert len(lines) == len(FIGURES) + 1
    assert sum("not described" in line for line in lines) == len(FIGURES) - len(DESCRIBED)

"""The published figures of model parallelism come out within their tolerance, and wrong ones do not."""

from dataclasses import replace

import pytest

from distlab.costs import Assumptions
from distlab.costs.published.split_figures import (
    FIGURES,
    TOLERANCES,
    Figure,
    FigureComparison,
    compare_figures,
    figures_table,
)

DESCRIBED = [figure for figure in FIGURES if figure.is_described]
NAMES = [f"{figure.kind}-{figure.what}" for figure in DESCRIBED]


@pytest.mark.parametrize("figure", DESCRIBED, ids=NAMES)
def test_published_figures_come_out_within_their_tolerance(figure: Figure) -> None:
    (comparison,) = compare_figures([figure])
    assert abs(comparison.difference) <= TOLERANCES[figure.kind].within
    assert comparison.is_within


def test_each_kind_of_figure_is_there() -> None:
    for kind, least in (("bubble", 24), ("memory", 24), ("throughput", 16)):
        assert sum(figure.kind == kind for figure in DESCRIBED) >= least
    assert {figure.what.partition("ZeRO ")[2][0] for figure in DESCRIBED if figure.kind == "memory"} == {"1", "2", "3"}


def test_a_wrong_assumption_is_seen() -> None:
    """Links ten times slower, or matrix products at half their speed: none of the throughputs comes out."""
    runs = [figure for figure in DESCRIBED if figure.kind == "throughput"]
    for wrong in ({"matrix_share": 0.32}, {"matrix_share": 1.0}):
        assert not any(each.is_within for each in compare_figures(runs, replace(Assumptions(), **wrong)))
    slow = compare_figures(runs[3:], replace(Assumptions(), bandwidth_share=0.082))
    assert not any(each.is_within for each in slow)


def test_a_wrong_figure_is_seen() -> None:
    for figure in (DESCRIBED[0], DESCRIBED[30], DESCRIBED[-1]):
        off = replace(figure, published=1.5 * figure.published)
        assert not FigureComparison(off, figure.predicted(None)).is_within


def test_no_bubble_at_all_would_not_do() -> None:
    """The bubble is what makes the shares come out, not a wide tolerance."""
    missed = [not FigureComparison(figure, 0.0).is_within for figure in DESCRIBED if figure.kind == "bubble"]
    assert all(missed)


def test_the_misses_are_those_that_the_report_speaks_of() -> None:
    """Bubbles too small; ZeRO 3 alone too fast, the more so the more devices share a batch."""
    bubbles = [each.difference for each in compare_figures() if each.figure.kind == "bubble"]
    assert max(bubbles) < 0
    zero = [each for each in compare_figures() if each.figure.kind == "throughput" and not each.figure.is_described]
    for model in ("gpt-175b", "gpt-530b"):
        misses = [each.difference for each in zero if each.figure.what.startswith(model)]
        assert len(misses) == 3 and misses == sorted(misses) and misses[0] > 10


def test_the_table_has_every_figure() -> None:
    comparisons = compare_figures()
    lines = figures_table(comparisons).splitlines()
    assert len(lines) == len(FIGURES) + 1
    assert sum("not described" in line for line in lines) == len(FIGURES) - len(DESCRIBED)

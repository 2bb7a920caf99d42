"""Scaling results that were published, the model's prediction for each, and how far to trust it."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from distlab.costs.prediction.assumptions import DESCRIPTIONS, Assumptions
from distlab.costs.prediction.data_parallel import predict
from distlab.costs.published.results import RESULTS, PublishedResult
from distlab.runtime import tables

WITHIN = 5.0
"""Percentage points: how close a prediction is to be."""


@dataclass(frozen=True)
class Comparison:
    """A published result with its prediction; efficiencies are fractions."""

    published: PublishedResult
    predicted: float

    @property
    def name(self) -> str:
        """Model, machine and GPUs; the batch of one GPU and the program where the row has its own."""
        row = self.published
        batch = f", {row.speed.batch} images each" if row.speed else ""
        program = f", {row.program}" if row.program else ""
        return f"{row.model} on {row.hardware}, {row.baseline_ranks}→{row.ranks} GPUs{batch}{program}"

    @property
    def difference(self) -> float:
        """Predicted minus published, in percentage points: above 0 where the model is too optimistic."""
        return 100 * (self.predicted - self.published.efficiency)

    @property
    def is_within(self) -> bool:
        """Whether the prediction is at most WITHIN points off."""
        return abs(self.difference) <= WITHIN


def compare(results: Sequence[PublishedResult] = RESULTS) -> list[Comparison]:
    """Each published result with its prediction; all under the same assumptions."""
    comparisons = []
    for row in results:
        prediction = predict(
            row.model,
            row.hardware,
            row.ranks,
            overlap=row.overlap,
            baseline_ranks=row.baseline_ranks,
            speed=row.speed,
            bytes_per_parameter=row.bytes_per_parameter,
        )
        comparisons.append(Comparison(row, float(prediction.efficiency)))
    return comparisons


def table(comparisons: Sequence[Comparison]) -> str:
    """The comparisons as text: published and predicted efficiency in %, the difference in points.

    A blind row says so, with the batch of one GPU and the program where it has its own.
    """
    header = (f"{'model':14}", f"{'cluster':22}", f"{'GPUs':>9}", "  published", "  predicted", "  difference", "")
    rows = []
    for comparison in comparisons:
        row = comparison.published
        batch = f", batch {row.speed.batch}" if row.speed else ""
        program = f", {row.program}" if row.program else ""
        rows.append(
            (
                row.model,
                row.hardware,
                f"{row.baseline_ranks}→{row.ranks}",
                f"{100 * row.efficiency:.1f}%",
                f"{100 * comparison.predicted:.1f}%",
                f"{comparison.difference:+.1f}",
                f"  blind {row.blind_test}{batch}{program}" if row.blind_test else "",
            )
        )
    return tables.text(header, rows, right=(2, 3, 4, 5), gap="")


def describe_assumptions() -> str:
    """One line for each assumption: its value and what it means."""
    assumptions = Assumptions()
    return "\n".join(f"{name} = {getattr(assumptions, name):.3g}: {text}" for name, text in DESCRIPTIONS.items())


def summary(comparisons: Sequence[Comparison]) -> str:
    """The medians of the differences' sizes, and the rows that are far off, each with its reason."""
    first, second = ([item for item in comparisons if item.published.blind_test == test] for test in (1, 2))
    blind = first + second
    medians = (
        f"{len(blind)} of {len(comparisons)} rows are blind. Median error: {median_error(first):.1f} points in the "
        f"first blind test ({len(first)} rows),\n{median_error(second):.1f} in the second ({len(second)}), "
        f"{median_error(blind):.1f} in both; {median_error(comparisons):.1f} of all rows."
    )
    far_off = [
        textwrap.fill(f"- {item.name}: {item.difference:+.1f}; {item.published.reason}.", 110, subsequent_indent="  ")
        for item in comparisons
        if not item.is_within
    ]
    return "\n".join([medians, f"The rows that are further off than {WITHIN:g} points:", *far_off])


def median_error(comparisons: Sequence[Comparison]) -> float:
    """The median of |predicted − published|, in percentage points."""
    return float(np.median([abs(item.difference) for item in comparisons]))

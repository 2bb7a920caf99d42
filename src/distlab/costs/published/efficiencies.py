"""Scaling results that were published, the model's prediction for each, and how far to trust it.

Every number in the texts is computed when it is asked for.
"""

import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from distlab.costs.prediction.assumptions import DESCRIPTIONS, Assumptions
from distlab.costs.prediction.data_parallel import predict
from distlab.costs.prediction.hardware import HARDWARE
from distlab.costs.published.results import RESULTS, PublishedResult
from distlab.runtime import tables
from distlab.simulate import Link

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


def compare(
    assumptions: Assumptions | None = None,
    overlap: str | None = None,
    results: Sequence[PublishedResult] = RESULTS,
) -> list[Comparison]:
    """Each published result with its prediction; all under the same assumptions (by default `Assumptions()`).

    overlap: instead of each result's own.
    """
    return [Comparison(result, _efficiency(result, assumptions, overlap)) for result in results]


def _efficiency(
    result: PublishedResult,
    assumptions: Assumptions | None = None,
    overlap: str | None = None,
    latency_factor: float = 1.0,
) -> float:
    machine = HARDWARE[result.hardware]
    inside, between = (
        Link(latency_factor * link.latency, link.seconds_per_byte) for link in (machine.inside, machine.between)
    )
    prediction = predict(
        result.model,
        replace(machine, inside=inside, between=between),
        result.ranks,
        overlap=overlap or result.overlap,
        baseline_ranks=result.baseline_ranks,
        speed=result.speed,
        bytes_per_parameter=result.bytes_per_parameter,
        assumptions=assumptions,
    )
    return float(prediction.efficiency)


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


VARIATIONS: dict[str, tuple[float, float]] = {
    "bandwidth_share": (0.7, 0.95),
    "backward_share": (0.6, 0.75),
    "variation": (0.0, 0.05),
    "slowdown": (0.0, 0.4),
    "fusion_bytes": (16 * 2**20, 256 * 2**20),
    "cycle_seconds": (0.0, 0.02),
}
"""For each assumption that these results depend on, a low and a high value that could also be defended."""


def sensitivity(results: Sequence[PublishedResult] = RESULTS[:4]) -> str:
    """A table: by how many points each prediction changes when one assumption alone takes another value.

    Besides those in VARIATIONS: all latencies, which are the hardware's, halved and doubled, and no overlap at all.
    """
    usual = [_efficiency(result) for result in results]
    rows = []

    def vary(name: str, value: str, **changed: Any) -> None:
        changes = [
            100 * (_efficiency(result, **changed) - before) for result, before in zip(results, usual, strict=True)
        ]
        rows.append((name, value, *(f"{change:+.1f}" for change in changes)))

    for name, values in VARIATIONS.items():
        for value in values:
            text = f"{value / 2**20:g} MiB" if name == "fusion_bytes" else f"{value:g}"
            vary(name, text, assumptions=replace(Assumptions(), **{name: value}))
    for factor in (0.5, 2.0):
        vary("latency", f"× {factor:g}", latency_factor=factor)
    vary("overlap", "none", overlap="none")
    heads = [f"{f'{result.model} {result.ranks}':>18}" for result in results]
    header = (f"{'assumption':18}", f"{'value':>10}", *heads)
    return tables.text(header, rows, range(1, len(header)), gap="")


def describe_assumptions(assumptions: Assumptions | None = None) -> str:
    """One line for each assumption: its value and what it means."""
    assumptions = assumptions or Assumptions()
    return "\n".join(f"{name} = {getattr(assumptions, name):.3g}: {text}" for name, text in DESCRIPTIONS.items())


def summary(comparisons: Sequence[Comparison]) -> str:
    """The medians of the differences' sizes, of each blind test, of both and of all; the worst row with its reason."""
    first, second = ([item for item in comparisons if item.published.blind_test == test] for test in (1, 2))
    blind = first + second
    worst = max(comparisons, key=lambda item: abs(item.difference))
    medians = (
        f"{len(blind)} of {len(comparisons)} rows are blind. Median error: {median_error(first):.1f} points in the "
        f"first blind test ({len(first)} rows),\n{median_error(second):.1f} in the second ({len(second)}), "
        f"{median_error(blind):.1f} in both; {median_error(comparisons):.1f} of all rows."
    )
    reason = f"The worst is {worst.name} with {worst.difference:+.1f}: {worst.published.reason}."
    return f"{medians}\n{textwrap.fill(reason, 110)}"


def median_error(comparisons: Sequence[Comparison]) -> float:
    """The median of |predicted − published|, in percentage points."""
    return float(np.median([abs(item.difference) for item in comparisons]))


def where_it_is_off(comparisons: Sequence[Comparison]) -> str:
    """What the differences say about the model; `comparisons` is what `compare()` gives for all RESULTS."""
    seen, first, second = ([item for item in comparisons if item.published.blind_test == test] for test in range(3))

    def within(rows: Sequence[Comparison]) -> int:
        return sum(item.is_within for item in rows)

    on_one_host = sum(item.published.ranks <= HARDWARE[item.published.hardware].ranks_per_host for item in second)
    guess = float(np.median([item.published.efficiency for item in second]))
    guess_error = median_error([replace(item, predicted=guess) for item in second])

    by_row = {(item.published.model, item.published.hardware, item.published.ranks): item for item in comparisons}
    goyal = by_row["resnet50", "bigbasin-ethernet50", 256].difference
    vgg16 = [by_row["vgg16", "horovod-roce25", ranks] for ranks in (16, 128, 512)]
    published, predicted = (
        ", ".join(f"{100 * value:.0f} %" for value in values)
        for values in ([item.published.efficiency for item in vgg16], [item.predicted for item in vgg16])
    )
    inception, resnet = (by_row[name, "horovod-roce25", 512].difference for name in ("inception_v3", "resnet101"))
    tcp25, tcp40 = by_row["vgg16", "horovod-tcp25", 16], by_row["vgg16", "horovod-tcp40", 64]
    free = replace(Assumptions(), tcp_core_bandwidth=sys.float_info.max)
    rdma25, rdma40 = compare(free, results=[tcp25.published, tcp40.published])
    far_off = [
        f"- {item.name}: {item.difference:+.1f}; {item.published.reason}." for item in comparisons if not item.is_within
    ]
    return "\n".join(
        [
            f"{within(seen)} of the {len(seen)} rows that were in view when the assumptions were chosen come within "
            f"{WITHIN:g} points, {within(first)} of the {len(first)} in the first blind test and {within(second)} of "
            f"the {len(second)} in the second. Those in view are no test: bandwidth_share, variation and that the "
            "copying of TCP adds up were chosen by them. The blind rows are one, and say: trust the model where the "
            "network is known and the framework keeps up; at thousands of GPUs, or in an untuned program, it is too "
            f"optimistic. The second test is large but easy: {on_one_host} of its rows are of one host. Who knew its "
            f"median, {100 * guess:.0f} %, and guessed that for every row would be off by {guess_error:.1f} points in "
            f"the median, the model by {median_error(second):.1f}.",
            f"ResNet-50 on 256 P100 comes out too fast ({goyal:+.1f}). The model hides nearly all of its all-reduce. "
            "There, small gradients were added by the hosts' processors, and images were read while training (Goyal et "
            "al., section 4); neither is in the model. The speed of one device is second-hand.",
            f"VGG-16 is published with {published} on 16, 128, 512 GPUs; the model says {predicted}. The publication "
            "falls more steeply at the end. Its bytes hardly grow with the ranks, so what grows is waiting: latencies "
            "of the ring, congestion, ranks that agree on the order; the latencies here are from a younger NCCL.",
            "Inception V3 and ResNet-101 are published with the same 90 % on 128 and on 512 GPUs; the model goes on "
            f"falling ({inception:+.1f} and {resnet:+.1f} on 512), as lateness and the ring's latency grow. Published "
            "numbers are rounded.",
            f"Over TCP the hosts' processors copy every byte, which costs VGG-16 most: {tcp25.difference:+.1f} and "
            f"{tcp40.difference:+.1f} points with that, {rdma25.difference:+.1f} and {rdma40.difference:+.1f} if the "
            "copying were free.",
            f"The rows that are further off than {WITHIN:g} points:",
            *far_off,
        ]
    )

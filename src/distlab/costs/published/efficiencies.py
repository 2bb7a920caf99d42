"""Scaling results that were published, the model's prediction for each, and how far to trust it.

The results, their sources and the rules by which they were chosen are in `efficiencies.toml`.
"""

import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from distlab.costs.prediction.data_parallel import predict
from distlab.costs.prediction.presets import ASSUMED, BYTES_PER_PARAMETER, MEANINGS, Measurement
from distlab.runtime import tables

WITHIN = 5.0
"""Percentage points: how close a prediction is to be."""


@dataclass(frozen=True)
class PublishedResult:
    """A published scaling efficiency, relative to `baseline_ranks` GPUs.

    speed: of one GPU in this very experiment, where it is not the one that `MODELS` has for the machine.
    blind_test: 0 where the row was in view when the assumptions were chosen; 1 or 2 where the model computed it for the
        first time after all of them had been fixed, in the first blind test or in the second.
    program: what was run, where one machine has rows of several.
    reason: why the row may come out wrong, from what its authors say and the model leaves out.
    """

    model: str
    hardware: str
    ranks: int
    efficiency: float
    source: str
    baseline_ranks: int = 1
    speed: Measurement | None = None
    overlap: str = "fusion"
    bytes_per_parameter: int = BYTES_PER_PARAMETER
    blind_test: int = 0
    program: str = ""
    reason: str = ""

    @property
    def name(self) -> str:
        """Model, machine and GPUs; the batch of one GPU and the program where the row has its own."""
        batch = f", {self.speed.batch} images each" if self.speed else ""
        program = f", {self.program}" if self.program else ""
        return f"{self.model} on {self.hardware}, {self.baseline_ranks}→{self.ranks} GPUs{batch}{program}"

    @cached_property
    def predicted(self) -> float:
        """The predicted efficiency."""
        prediction = predict(
            *(self.model, self.hardware, self.ranks),
            overlap=self.overlap,
            baseline_ranks=self.baseline_ranks,
            speed=self.speed,
            bytes_per_parameter=self.bytes_per_parameter,
        )
        return float(prediction.efficiency[0])

    @property
    def difference(self) -> float:
        """Predicted minus published, in percentage points: above 0 where the model is too optimistic."""
        return 100 * (self.predicted - self.efficiency)

    @property
    def is_within(self) -> bool:
        """Whether the prediction is at most WITHIN points off."""
        return abs(self.difference) <= WITHIN


def _rows(
    source: str,
    efficiency: Mapping[str, float] | None = None,
    images_per_second: Mapping[str, float] | None = None,
    batch: int | None = None,
    one_gpu: float = 0.0,
    one_gpu_source: str = "",
    second_hand: bool = False,
    reason: str = "",
    **entries: Any,
) -> Iterator[PublishedResult]:
    """A row for each number of GPUs above the baseline, from an entry of `efficiencies.toml`."""
    entries |= {"source": _CONTENT["sources"][source], "reason": _CONTENT["reasons"][reason] if reason else ""}
    efficiencies = {int(gpus): of_one for gpus, of_one in (efficiency or {}).items()}
    if images_per_second:
        speeds = {int(gpus): speed for gpus, speed in images_per_second.items()}
        entries["baseline_ranks"] = baseline = min(speeds)
        one_gpu = speeds.pop(baseline) / baseline
        efficiencies = {gpus: speed / gpus / one_gpu for gpus, speed in speeds.items()}
    if batch:
        entries["speed"] = Measurement(one_gpu, batch, one_gpu_source or entries["source"], second_hand)
    for gpus, of_one in efficiencies.items():
        yield PublishedResult(ranks=gpus, efficiency=of_one, **entries)


_CONTENT = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
RESULTS = tuple(row for entry in _CONTENT["results"] for row in _rows(**entry))
"""Every result; the first four are the ones most often quoted."""


def table(results: Sequence[PublishedResult]) -> str:
    """The results as text: published and predicted efficiency in %, the difference in points.

    A blind row says so, with the batch of one GPU and the program where it has its own.
    """
    header = (f"{'model':14}", f"{'cluster':22}", f"{'GPUs':>9}", "  published", "  predicted", "  difference", "")
    rows = []
    for row in results:
        batch = f", batch {row.speed.batch}" if row.speed else ""
        program = f", {row.program}" if row.program else ""
        rows.append(
            (
                *(row.model, row.hardware, f"{row.baseline_ranks}→{row.ranks}"),
                *(f"{100 * row.efficiency:.1f}%", f"{100 * row.predicted:.1f}%", f"{row.difference:+.1f}"),
                f"  blind {row.blind_test}{batch}{program}" if row.blind_test else "",
            )
        )
    return tables.text(header, rows, right=(2, 3, 4, 5), gap="")


def describe_assumptions() -> str:
    """One line for each assumption: its value and what it means."""
    return "\n".join(f"{name} = {getattr(ASSUMED, name):.3g}: {text}" for name, text in MEANINGS.items())


def summary(results: Sequence[PublishedResult] = RESULTS) -> str:
    """The medians of the differences' sizes, and the rows that are far off, each with its reason."""
    first, second = ([row for row in results if row.blind_test == test] for test in (1, 2))
    blind = first + second
    medians = (
        f"{len(blind)} of {len(results)} rows are blind. Median error: {median_error(first):.1f} points in the "
        f"first blind test ({len(first)} rows),\n{median_error(second):.1f} in the second ({len(second)}), "
        f"{median_error(blind):.1f} in both; {median_error(results):.1f} of all rows."
    )
    far_off = [
        textwrap.fill(f"- {row.name}: {row.difference:+.1f}; {row.reason}.", 110, subsequent_indent="  ")
        for row in results
        if not row.is_within
    ]
    return "\n".join([medians, f"The rows that are further off than {WITHIN:g} points:", *far_off])


def median_error(results: Sequence[PublishedResult]) -> float:
    """The median of |predicted − published|, in percentage points."""
    return float(np.median([abs(row.difference) for row in results]))

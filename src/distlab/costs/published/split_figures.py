"""Published figures of model parallelism and what the formulas give: bubble, memory with ZeRO, throughput.

The figures and their sources are in `split_figures.toml`.
"""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from distlab.costs.prediction.hardware import HARDWARE
from distlab.costs.prediction.model_parallel import Split, predict_split
from distlab.model_parallel.pipelines import bubble_fraction
from distlab.model_parallel.sharded_optimizers import model_state_bytes
from distlab.runtime import tables

Kind = Literal["bubble", "memory", "throughput"]


TOLERANCES: dict[Kind, float] = {"bubble": 3.0, "memory": 1.0, "throughput": 10.0}
"""How close the figures of a kind are to be: a bubble in points, the others in %.

Memory is arithmetic, so that only rounding in print can differ; a bubble misses messages; throughput is a model.
"""


@dataclass(frozen=True)
class Figure:
    """One published figure: a share in %, gigabytes on a device, or teraFLOP/s of a device.

    predicted: what the formulas give. is_described: False where the model leaves out what decides.
    """

    kind: Kind
    what: str
    published: float
    predicted: float
    source: str
    is_described: bool = True

    @property
    def difference(self) -> float:
        """Predicted against published: in points for a share, otherwise in % of the published figure."""
        missed = self.predicted - self.published
        return missed if self.kind == "bubble" else 100 * missed / self.published

    @property
    def is_within(self) -> bool:
        """Whether the difference keeps to the tolerance of its kind."""
        return abs(self.difference) <= TOLERANCES[self.kind]


class FigureComparison(NamedTuple):
    """A published figure with the predicted one."""

    figure: Figure
    predicted: float


def _bubbles(size: str, stages: int, deepest: int, rows: Sequence[Sequence[Any]]) -> Iterator[Figure]:
    for micro_batches, *both in rows:
        for chunks, published in zip((1, deepest), both, strict=True):
            name = "1F1B" if chunks == 1 else f"interleaved, {chunks} chunks"
            text = f"{size}, {name}: {stages} stages, {micro_batches} micro-batches"
            predicted = 100 * float(bubble_fraction(stages, micro_batches, chunks))
            source = "QI, table 5: from profiled passes and messages"
            yield Figure("bubble", text, 100 * published, predicted, source)


def _speed_up(stages: int, published: float) -> Figure:
    """The share that devices idle, from throughputs relative to two stages with one micro-batch, half of them idle."""
    text = f"Transformer-48, GPipe: {stages} stages, 32 micro-batches"
    source = "HUANG, table 2: normalised throughput on TPUs against what its stages could do without a bubble"
    predicted = 100 * float(bubble_fraction(stages, 32))
    return Figure("bubble", text, 100 * (1 - published / stages), predicted, source, is_described=False)


def _memory(parameters: float, name: str, rows: Sequence[Sequence[Any]]) -> Iterator[Figure]:
    for ranks, *gigabytes in rows:
        source = "RAJBHANDARI, figure 1 and table 1" if ranks == 64 and name == "7.5B" else "RAJBHANDARI, table 1"
        for stage, published in enumerate(gigabytes, start=1):
            text = f"{name} parameters, ZeRO {stage}, {ranks} device{'s' * (ranks > 1)}"
            predicted = float(model_state_bytes(parameters, ranks, stage)) / 1e9
            yield Figure("memory", text, published, predicted, source)


def _throughput(table: int, model: str, ranks: int, sequences: int, published: float, *of_split: int) -> Figure:
    split = Split(*of_split)
    predicted = predict_split(model, "selene", ranks, split, sequences=sequences).flops_per_device / 1e12
    data = ranks // (split.tensor * split.pipeline)
    text = f"{model}, tensor {split.tensor} × pipeline {split.pipeline} × data {data}"
    text += f", ZeRO {split.zero}" if split.zero else ""
    return Figure("throughput", text, published, predicted, f"NARAYANAN, table {table}", is_described=split.zero < 3)


_CONTENT = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
THROUGHPUTS = tuple(_throughput(*row) for row in _CONTENT["throughputs"])
FIGURES: tuple[Figure, ...] = (
    *(figure for row in _CONTENT["bubbles"] for figure in _bubbles(*row)),
    *(_speed_up(*row) for row in _CONTENT["speed_ups"]),
    *(figure for row in _CONTENT["memory"] for figure in _memory(*row)),
    *THROUGHPUTS,
)


def compare_figures(figures: Sequence[Figure] = FIGURES) -> list[FigureComparison]:
    """Each published figure with the predicted one."""
    return [FigureComparison(figure, figure.predicted) for figure in figures]


def figures_table(figures: Sequence[Figure]) -> str:
    """The figures as text: share in %, GB on a device or teraFLOP/s of a device; difference in points or %."""
    header = (f"{'figure':58}", "  published", "  predicted", "  difference", "")
    rows = []
    for figure in figures:
        digits = 1 if figure.published >= 10 else 2
        numbers = (f"{value:.{digits}f}" for value in (figure.published, figure.predicted))
        mark = "" if figure.is_described else "  not described"
        rows.append((figure.what, *numbers, f"{figure.difference:+.1f}", mark))
    return tables.text(header, rows, right=(1, 2, 3), gap="")


TITLES: dict[Kind, str] = {
    "bubble": "Bubble: share of the devices' time in %",
    "memory": "Model states: GB on a device",
    "throughput": f"Throughput: teraFLOP/s of a device (A100, peak {HARDWARE['selene'].matrix_flops / 1e12:g})",
}


def split_sections() -> list[tuple[str, str]]:
    """Titles and texts: one table for each kind of figure."""
    return [
        (title, figures_table([figure for figure in FIGURES if figure.kind == kind])) for kind, title in TITLES.items()
    ]

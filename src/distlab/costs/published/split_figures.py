"""Published figures of model parallelism and what the formulas give: bubble, memory with ZeRO, throughput.

The figures, the arguments of their formulas and their sources are in `split_figures.toml`.
"""

import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distlab.costs.prediction.model_parallel import Split, predict_split
from distlab.costs.prediction.presets import HARDWARE
from distlab.model_parallel.pipelines import bubble_fraction
from distlab.model_parallel.sharded_optimizers import model_state_bytes
from distlab.runtime import tables

TITLES = {
    "bubble": "Bubble: share of the devices' time in %",
    "memory": "Model states: GB on a device",
    "throughput": f"Throughput: teraFLOP/s of a device (A100, peak {HARDWARE['selene'].matrix_flops / 1e12:g})",
}
"""The kinds of figures."""


@dataclass(frozen=True)
class Figure:
    """One published figure: a share in %, gigabytes on a device, or teraFLOP/s of a device.

    predicted: what the formulas give. is_described: False where the model leaves out what decides.
    """

    kind: str
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


def _throughput(model: str, ranks: int, sequences: int, *split: int) -> float:
    return predict_split(model, "selene", ranks, Split(*split), sequences=sequences).flops_per_device / 1e12


_FORMULAS: dict[str, Callable[..., float]] = {
    "bubble": lambda *shape: 100 * float(bubble_fraction(*shape)),
    "memory": lambda *of_device: float(model_state_bytes(*of_device)) / 1e9,
    "throughput": _throughput,
}


def _figures(kind: str, source: str, rows: Sequence[Sequence[Any]], is_described: bool = True) -> Iterator[Figure]:
    unit = 100 if kind == "bubble" else 1  # the file has shares
    for what, published, *arguments in rows:
        yield Figure(kind, what, unit * published, _FORMULAS[kind](*arguments), source, is_described)


_CONTENT = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
FIGURES = tuple(figure for entry in _CONTENT["figures"] for figure in _figures(**entry))
THROUGHPUTS = tuple(figure for figure in FIGURES if figure.kind == "throughput")


def split_sections() -> list[tuple[str, str]]:
    """Titles and texts: one table for each kind of figure."""
    return [(title, figures_table([each for each in FIGURES if each.kind == kind])) for kind, title in TITLES.items()]


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

"""Published figures of model parallelism and what the formulas give: bubble, memory with ZeRO, throughput.

Every figure was read in a copy of the paper's own text. HUANG is arXiv:1811.06965, RAJBHANDARI arXiv:1910.02054,
NARAYANAN arXiv:2104.04473 and QI arXiv:2401.10241.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from distlab.costs.prediction.assumptions import Assumptions
from distlab.costs.prediction.hardware import HARDWARE
from distlab.costs.prediction.model_parallel import Split, predict_split
from distlab.model_parallel.pipelines import bubble_fraction
from distlab.model_parallel.sharded_optimizers import model_state_bytes
from distlab.runtime import tables

Kind = Literal["bubble", "memory", "throughput"]


@dataclass(frozen=True)
class Tolerance:
    """How close the figures of one kind are to be: `within`, in `unit`."""

    within: float
    unit: str


TOLERANCES: dict[Kind, Tolerance] = {
    "bubble": Tolerance(3.0, "points"),
    "memory": Tolerance(1.0, "%"),
    "throughput": Tolerance(10.0, "%"),
}
"""Memory is arithmetic, so that only rounding in print can differ; a bubble misses messages; throughput is a model."""


@dataclass(frozen=True)
class Figure:
    """One published figure: a share in %, gigabytes on a device, or teraFLOP/s of a device.

    is_described: False where the model leaves out what decides.
    """

    kind: Kind
    what: str
    published: float
    predicted: Callable[[Assumptions | None], float]
    source: str
    is_described: bool = True


@dataclass(frozen=True)
class FigureComparison:
    """A published figure with the predicted one."""

    figure: Figure
    predicted: float

    @property
    def difference(self) -> float:
        """Predicted against published: in points for a share, otherwise in % of the published figure."""
        missed = self.predicted - self.figure.published
        return missed if self.figure.kind == "bubble" else 100 * missed / self.figure.published

    @property
    def is_within(self) -> bool:
        """Whether the difference keeps to the tolerance of its kind."""
        return abs(self.difference) <= TOLERANCES[self.figure.kind].within


def _bubble(what: str, stages: int, micro_batches: int, chunks: int, published: float) -> Figure:
    def predicted(assumptions: Assumptions | None) -> float:
        return 100 * float(bubble_fraction(stages, micro_batches, chunks))

    name = "1F1B" if chunks == 1 else f"interleaved, {chunks} chunks"
    text = f"{what}, {name}: {stages} stages, {micro_batches} micro-batches"
    return Figure("bubble", text, 100 * published, predicted, "QI, table 5: from profiled passes and messages")


def _speed_up(stages: int, published: float) -> Figure:
    """The share that devices idle, from throughputs relative to two stages with one micro-batch, half of them idle."""

    def predicted(assumptions: Assumptions | None) -> float:
        return 100 * float(bubble_fraction(stages, 32))

    text = f"Transformer-48, GPipe: {stages} stages, 32 micro-batches"
    source = "HUANG, table 2: normalised throughput on TPUs against what its stages could do without a bubble"
    return Figure("bubble", text, 100 * (1 - published / stages), predicted, source, is_described=False)


def _memory(parameters: float, name: str, ranks: int, stage: int, published: float) -> Figure:
    def predicted(assumptions: Assumptions | None) -> float:
        return float(model_state_bytes(parameters, ranks, stage)) / 1e9

    source = "RAJBHANDARI, figure 1 and table 1" if ranks == 64 and name == "7.5B" else "RAJBHANDARI, table 1"
    return Figure(
        "memory", f"{name} parameters, ZeRO {stage}, {ranks} device{'s' * (ranks > 1)}", published, predicted, source
    )


def _throughput(
    model: str, ranks: int, sequences: int, split: Split, published: float, table: int, is_described: bool = True
) -> Figure:
    def predicted(assumptions: Assumptions | None) -> float:
        prediction = predict_split(model, "selene", ranks, split, sequences=sequences, assumptions=assumptions)
        return prediction.flops_per_device / 1e12

    data = ranks // (split.tensor * split.pipeline)
    text = f"{model}, tensor {split.tensor} × pipeline {split.pipeline} × data {data}"
    text += f", ZeRO {split.zero}" if split.zero else ""
    return Figure("throughput", text, published, predicted, f"NARAYANAN, table {table}", is_described)


BUBBLES = (
    *(
        _bubble(f"{size}", stages, micro_batches, chunks, published)
        for size, stages, deepest, rows in (
            ("1.5B", 8, 3, ((24, 0.2431, 0.1055), (32, 0.1985, 0.0818), (64, 0.1240, 0.0443))),
            ("6.2B", 8, 4, ((24, 0.2347, 0.0808), (32, 0.1898, 0.0628), (64, 0.1091, 0.0320))),
            ("14.6B", 16, 3, ((48, 0.2552, 0.1104), (64, 0.2082, 0.0852), (128, 0.1251, 0.0445))),
            ("28.3B", 32, 2, ((96, 0.2646, 0.1493), (128, 0.2168, 0.1164), (256, 0.1352, 0.0624))),
        )
        for micro_batches, *both in rows
        for chunks, published in zip((1, deepest), both, strict=True)
    ),
    *(_speed_up(stages, published) for stages, published in ((2, 1.8), (4, 3.4), (8, 6.3))),
)
"""QI's rates take profiled times and messages; each chunk is one layer, the first and the last stage have one less."""

MEMORY = tuple(
    _memory(parameters, name, ranks, stage, published)
    for parameters, name, rows in (
        (
            7.5e9,
            "7.5B",
            ((1, 120, 120, 120), (4, 52.5, 41.3, 30), (16, 35.6, 21.6, 7.5), (64, 31.4, 16.6, 1.88)),
        ),
        (128e9, "128B", ((64, 536, 284, 32), (1024, 513, 257, 2))),
        (1e12, "1T", ((64, 4187, 2218, 250), (1024, 4011, 2013, 15.6))),
    )
    for ranks, *gigabytes in rows
    for stage, published in enumerate(gigabytes, start=1)
)

THROUGHPUTS = (
    *(
        _throughput(model, ranks, sequences, Split(*split), published, table=1)
        for model, split, ranks, sequences, published in (
            # tensor, pipeline, ZeRO, sequences in a micro-batch, chunks
            ("gpt-1.7b", (1, 1, 0, 4, 1), 32, 512, 137),
            ("gpt-3.6b", (2, 1, 0, 4, 1), 64, 512, 138),
            ("gpt-7.5b", (4, 1, 0, 4, 1), 128, 512, 142),
            ("gpt-18b", (8, 1, 0, 4, 1), 256, 1024, 135),
            ("gpt-39b", (8, 2, 0, 1, 2), 512, 1536, 138),
            ("gpt-76b", (8, 4, 0, 1, 3), 1024, 1792, 140),
            ("gpt-146b", (8, 8, 0, 1, 2), 1536, 2304, 148),
            ("gpt-310b", (8, 16, 0, 1, 2), 1920, 2160, 155),
            ("gpt-530b", (8, 35, 0, 1, 3), 2520, 2520, 163),
            ("gpt-1t", (8, 64, 0, 1, 2), 3072, 3072, 163),
        )
    ),
    *(
        _throughput(model, ranks, sequences, Split(8, pipeline, chunks=chunks), published, table=2)
        for model, pipeline, chunks, sequences, rows in (
            ("gpt-175b", 12, 2, 1536, ((384, 153), (768, 149), (1536, 141))),
            ("gpt-530b", 35, 3, 2240, ((560, 171), (1120, 167), (2240, 159))),
        )
        for ranks, published in rows
    ),
    *(
        _throughput(model, ranks, sequences, Split(zero=3, micro_batch=size), published, 2, is_described=False)
        for model, ranks, sequences, size, published in (
            ("gpt-175b", 384, 1536, 4, 144),
            ("gpt-175b", 768, 1536, 2, 88),
            ("gpt-175b", 1536, 1536, 1, 44),
            ("gpt-530b", 640, 2560, 4, 138),
            ("gpt-530b", 1120, 2240, 2, 98),
            ("gpt-530b", 2240, 2240, 1, 48),
        )
    ),
)
"""Table 1 does not give micro-batches and chunks: assumed are micro-batches of one sequence in a pipeline (as in table
2), of four without one, and the fewest chunks that interleave. Table 2 gives tensor × pipeline as one number."""

FIGURES: tuple[Figure, ...] = (*BUBBLES, *MEMORY, *THROUGHPUTS)


def compare_figures(
    figures: Sequence[Figure] = FIGURES, assumptions: Assumptions | None = None
) -> list[FigureComparison]:
    """Each published figure with the predicted one, all under the same assumptions."""
    return [FigureComparison(figure, figure.predicted(assumptions)) for figure in figures]


def figures_table(comparisons: Sequence[FigureComparison]) -> str:
    """The comparisons as text: share in %, GB on a device or teraFLOP/s of a device; difference in points or %."""
    header = (f"{'figure':58}", "  published", "  predicted", "  difference", "")
    rows = []
    for comparison in comparisons:
        figure, digits = comparison.figure, 1 if comparison.figure.published >= 10 else 2
        numbers = (f"{value:.{digits}f}" for value in (figure.published, comparison.predicted))
        mark = "" if figure.is_described else "  not described"
        rows.append((figure.what, *numbers, f"{comparison.difference:+.1f}", mark))
    return tables.text(header, rows, right=(1, 2, 3), gap="")


TITLES: dict[Kind, str] = {
    "bubble": "Bubble: share of the devices' time in %",
    "memory": "Model states: GB on a device",
    "throughput": f"Throughput: teraFLOP/s of a device (A100, peak {HARDWARE['selene'].matrix_flops / 1e12:g})",
}

WHERE_THEY_ARE_OFF = """\
The bubbles come out too small, since messages and unequal stages keep devices waiting, too. GPipe's own \
throughputs ({gpipe} points) hold everything else besides that costs time.
Not a blind test: matrix_share was chosen with the throughputs in view. One number for all of them leaves room to fail.
ZeRO 3 without any other split comes out too fast ({zero} %), the more so the more devices share a \
batch: it gathers all parameters over the network for every micro-batch, and the model grants it the whole \
link, without congestion."""


def split_sections() -> list[tuple[str, str]]:
    """Titles and texts: one table for each kind of figure, and where the formulas are off."""
    comparisons = compare_figures()
    texts = [
        (title, figures_table([comparison for comparison in comparisons if comparison.figure.kind == kind]))
        for kind, title in TITLES.items()
    ]
    return [*texts, ("Where they are off", where_they_are_off(comparisons))]


def where_they_are_off(comparisons: Sequence[FigureComparison]) -> str:
    """What the differences say; `comparisons` is what `compare_figures()` gives."""

    def of(kind: Kind, is_described: bool) -> list[FigureComparison]:
        return [item for item in comparisons if (item.figure.kind, item.figure.is_described) == (kind, is_described)]

    lines = []
    for kind, tolerance in TOLERANCES.items():
        described = of(kind, True)
        worst = max(described, key=lambda item: abs(item.difference))
        lines.append(
            f"{kind}: {sum(item.is_within for item in described)} of {len(described)} figures come within "
            f"{tolerance.within:g} {tolerance.unit}; the worst is {worst.difference:+.1f} ({worst.figure.what})."
        )
    gpipe, zero = (
        ", ".join(f"{item.difference:+.1f}" for item in not_described)
        for not_described in (of("bubble", False), of("throughput", False))
    )
    return "\n".join([*lines, WHERE_THEY_ARE_OFF.format(gpipe=gpipe, zero=zero)])

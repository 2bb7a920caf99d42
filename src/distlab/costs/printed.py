"""What `distlab predict` prints: the prediction for images, for a transformer, from measurements, or the published."""

import inspect
import shutil
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from distlab.costs import reports
from distlab.costs.measured.measurement import read
from distlab.costs.measured.prediction import predict_measured
from distlab.costs.prediction.data_parallel import predict
from distlab.costs.prediction.model_parallel import Split, predict_split
from distlab.costs.prediction.presets import MODELS, TRANSFORMERS
from distlab.costs.published import efficiencies
from distlab.costs.published.split_figures import split_sections
from distlab.runtime.errors import PlainError
from distlab.runtime.lookups import require_name

RANKS, MOST_RANKS, MOST_MEASURED_RANKS = "1..1024", 10**9, 1024


class WrongPrediction(PlainError, ValueError):
    """The command line asks for a prediction that cannot be; the message is one sentence."""


def print_prediction(
    *,
    model: str | None = None,
    hardware: str | None = None,
    ranks: str | None = None,
    algorithm: str | None = None,
    overlap: str | None = None,
    batch: int | None = None,
    baseline: int | None = None,
    pipeline: int | None = None,
    tensor: int | None = None,
    zero: int | None = None,
    micro_batch: int | None = None,
    chunks: int | None = None,
    sequences: int | None = None,
    published: bool = False,
    measured: list[Path] | None = None,
    compare: list[Path] | None = None,
) -> None:
    """Print a prediction. Raises WrongPrediction.

    Args:
        model: A network of images or a transformer of docs/sources.md, or your own in a file; by default resnet50.
        hardware: A machine of docs/sources.md or your own in a file; by default bigbasin-ethernet50, for transformers
            selene.
        ranks: "8", "1,2,4" or by default "1..1024", of which its powers of two.
        algorithm: Of the all-reduce, such as ring or hierarchical; by default what the hardware's users ran.
        overlap: fusion, layers or none; by default fusion.
        batch: Images per rank and step; by default the published one.
        baseline: Ranks that efficiency is relative to; by default 1.
        pipeline: Transformers: stages that the layers are divided among.
        tensor: Transformers: ranks that share each layer.
        zero: Transformers: how far model states are sharded, 0 to 3.
        micro_batch: Transformers: sequences in a micro-batch; by default 1.
        chunks: Transformers: chunks a stage, above 1 interleaved; by default 1.
        sequences: Transformers: of all ranks in a step; by default 4 micro-batches a stage.
        published: Instead compare the model with published results.
        measured: Predict from these files of `distlab measure`, of different numbers of ranks.
        compare: With --measured: measurements to compare the prediction with.
    """
    options = {name: value for name, value in locals().items() if value is not None and value is not False}
    form: Callable[..., str] = _of_transformer if model in TRANSFORMERS else _of_network
    if measured:
        form = _of_measurements
    elif options.pop("published", False):
        form = comparison_with_published
    if unused := options.keys() - inspect.signature(form).parameters:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(unused))
        kinds = {_of_network: "a network of images", _of_transformer: "a transformer"}
        why = f": this predicts {kinds[form]}" if form in kinds else ""
        raise WrongPrediction(f"{names} would change nothing here{why}; docs/commands.md says what goes together.")
    try:
        text = form(**options)
    except ValueError as error:
        raise WrongPrediction(str(error)) from error
    print(text if published else _wrapped(text))


def _wrapped(text: str) -> str:
    """Its sentences in the width of the terminal, 100 columns where there is none; tables, which have gaps, stay."""
    lines = textwrap.TextWrapper(shutil.get_terminal_size((100, 24)).columns, subsequent_indent="  ")
    lines.break_long_words = lines.break_on_hyphens = False
    return "\n".join(line if "  " in line.strip() else lines.fill(line) for line in text.splitlines())


def ranks_in(text: str) -> NDArray[np.int64]:
    """Numbers of ranks from "8", "1,2,4" or "1..1024"; int64 (n,), ascending.

    Of a range with more than 16 numbers only both ends and the powers of two between them. Raises ValueError, with
    what is understood, for anything else.
    """
    ranks: set[int] = set()
    try:
        for part in text.split(","):
            first, dots, last = part.partition("..")
            low, high = int(first), int(last if dots else first)
            if not 1 <= low <= high <= MOST_RANKS:
                raise ValueError
            powers = {2**power for power in range(high.bit_length()) if low <= 2**power}
            ranks.update(range(low, high + 1) if high - low < 16 else {low, high} | powers)
    except ValueError:
        raise ValueError(
            f"ranks are written 8, 1,2,4 or 1..1024, with whole numbers from 1 to {MOST_RANKS:,}, not {text!r}"
        ) from None
    return np.array(sorted(ranks))


def _of_network(
    model: str = "resnet50",
    hardware: str = "bigbasin-ethernet50",
    ranks: str = RANKS,
    algorithm: str | None = None,
    overlap: str = "fusion",
    batch: int | None = None,
    baseline: int = 1,
) -> str:
    if not model.endswith(".toml"):
        require_name([*MODELS, *TRANSFORMERS], model, "model")
    return reports.of_network(
        predict(model, hardware, ranks_in(ranks), algorithm, overlap, batch=batch, baseline_ranks=baseline)
    )


def _of_transformer(
    model: str,
    hardware: str = "selene",
    ranks: str | None = None,
    tensor: int = 1,
    pipeline: int = 1,
    zero: int = 0,
    micro_batch: int = 1,
    chunks: int = 1,
    sequences: int | None = None,
) -> str:
    """Without `ranks` of the usual numbers those that make whole replicas; of one replica where there are none."""
    split, counts = Split(tensor, pipeline, zero, micro_batch, chunks), ranks_in(ranks or RANKS)
    if ranks is None:
        replica = split.tensor * split.pipeline
        counts = counts[counts % replica == 0] if np.any(counts % replica == 0) else np.array([replica])
    return reports.of_splits(
        [predict_split(model, hardware, int(count), split, sequences=sequences) for count in counts]
    )


def _of_measurements(measured: Sequence[Path], ranks: str | None = None, compare: Sequence[Path] = ()) -> str:
    """Without `ranks` for powers of two and those that were measured."""
    measurements, compared = ([read(file) for file in files] for files in (measured, compare))
    if ranks is None:
        limit = min(measurement.most_ranks or MOST_MEASURED_RANKS for measurement in measurements)
        powers = {2**power for power in range(limit.bit_length())}
        counts = np.array(sorted(powers | {each.ranks for each in (*measurements, *compared)}))
    else:
        counts = ranks_in(ranks)
    return reports.of_measured(predict_measured(measurements, counts), compared)


def comparison_with_published() -> str:
    """Published and predicted efficiencies and the assumptions; then bubble, memory and throughput of split models."""
    compared = f"{efficiencies.table(efficiencies.RESULTS)}\n\n{efficiencies.summary()}"
    sections = (
        ("Published and predicted scaling efficiency", compared),
        ("The assumptions, the same for every row", efficiencies.describe_assumptions()),
        *split_sections(),
    )
    return "\n\n".join(f"{title}\n{'-' * len(title)}\n{text}" for title, text in sections)

"""What `distlab predict` prints: the prediction for images, for a transformer, from measurements, or the published."""

import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from distlab.costs.measured import report as measured_report
from distlab.costs.measured.measurement import read
from distlab.costs.measured.prediction import predict_measured
from distlab.costs.prediction.data_parallel import predict
from distlab.costs.prediction.hardware import Hardware
from distlab.costs.prediction.model_parallel import Split, predict_split
from distlab.costs.prediction.networks import MODELS, Measurement, Model
from distlab.costs.prediction.own_files import own_machine, own_network
from distlab.costs.prediction.report import as_json, as_table, ranks_in, splits_as_json, splits_as_table
from distlab.costs.prediction.transformers import TRANSFORMERS
from distlab.costs.published import efficiencies
from distlab.costs.published.split_figures import split_sections
from distlab.runtime.errors import PlainError
from distlab.runtime.lookups import require_name

RANKS, MOST_MEASURED_RANKS = "1..1024", 1024


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
    json: bool = False,
    published: bool = False,
    measured: list[Path] | None = None,
    compare: list[Path] | None = None,
    images: int | None = None,
    own_cores: bool = False,
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
        json: The same for programs.
        published: Instead compare the model with published results.
        measured: Predict from these files of `distlab measure`, of different numbers of ranks.
        compare: With --measured: measurements to compare the prediction with.
        images: With --measured: that the core or GPU hours are for; by default 1,000,000.
        own_cores: With --measured: as if measured hosts that share cores had their own.
    """
    named = _given(model=model, hardware=hardware)
    of_images = _given(algorithm=algorithm, overlap=overlap, batch=batch, baseline_ranks=baseline)
    of_split = _given(tensor=tensor, pipeline=pipeline, zero=zero, micro_batch=micro_batch, chunks=chunks)
    of_transformers = of_split | _given(sequences=sequences)
    of_measurements = _given(compare=compare, images=images, own_cores=own_cores or None)
    try:
        if measured:
            text = _from_measurements(measured, ranks, json, **of_measurements)
            unused = named | of_images | of_transformers
        elif published:
            text, unused = comparison_with_published(), named | of_images | of_transformers | of_measurements
        elif model in TRANSFORMERS:
            text = _of_transformer(model, _machine(hardware or "selene"), ranks, Split(**of_split), sequences, json)
            unused = of_images | of_measurements
        else:
            network, speed = _network(model or "resnet50")
            machine = _machine(hardware or "bigbasin-ethernet50")
            prediction = predict(network, machine, ranks_in(ranks or RANKS), speed=speed, **of_images)
            text, unused = as_json(prediction) if json else as_table(prediction), of_transformers | of_measurements
    except ValueError as error:
        raise WrongPrediction(str(error)) from error
    if unused:
        options = ", ".join(f"--{name.removesuffix('_ranks').replace('_', '-')}" for name in unused)
        raise WrongPrediction(f"{options} would change nothing here; docs/commands.md says what goes together.")
    print(text if json or published else _wrapped(text))


def _wrapped(text: str) -> str:
    """Its sentences in the width of the terminal, 100 columns where there is none; tables, which have gaps, stay."""
    lines = textwrap.TextWrapper(shutil.get_terminal_size((100, 24)).columns, subsequent_indent="  ")
    lines.break_long_words = lines.break_on_hyphens = False
    return "\n".join(line if "  " in line.strip() else lines.fill(line) for line in text.splitlines())


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _network(name: str) -> tuple[str | Model, Measurement | None]:
    if name.endswith(".toml"):
        return own_network(Path(name))
    require_name([*MODELS, *TRANSFORMERS], name, "model")
    return name, None


def _machine(name: str) -> str | Hardware:
    return own_machine(Path(name)) if name.endswith(".toml") else name


def _of_transformer(
    model: str, hardware: str | Hardware, ranks: str | None, split: Split, sequences: int | None, json: bool
) -> str:
    """Without `ranks` of the usual numbers those that make whole replicas; of one replica where there are none."""
    counts = ranks_in(ranks or RANKS)
    if ranks is None:
        replica = split.tensor * split.pipeline
        counts = counts[counts % replica == 0] if np.any(counts % replica == 0) else np.array([replica])
    predictions = [predict_split(model, hardware, int(count), split, sequences=sequences) for count in counts]
    return splits_as_json(predictions) if json else splits_as_table(predictions)


def _from_measurements(
    measured: Sequence[Path],
    ranks: str | None,
    json: bool,
    compare: Sequence[Path] = (),
    images: int = measured_report.IMAGES,
    own_cores: bool | None = None,
) -> str:
    """Without `ranks` for powers of two and those that were measured."""
    measurements, compared = ([read(file) for file in files] for files in (measured, compare))
    if ranks is None:
        limit = min(measurement.most_ranks or MOST_MEASURED_RANKS for measurement in measurements)
        powers = {2**power for power in range(limit.bit_length()) if 2**power <= limit}
        counts = np.array(sorted(powers | {each.ranks for each in (*measurements, *compared)}))
    else:
        counts = ranks_in(ranks)
    prediction = predict_measured(measurements, counts, own_cores=own_cores)
    form = measured_report.as_json if json else measured_report.as_table
    return form(prediction, images, compared)


def comparison_with_published() -> str:
    """Published and predicted efficiencies and the assumptions; then bubble, memory and throughput of split models."""
    comparisons = efficiencies.compare()
    sections = (
        (
            "Published and predicted scaling efficiency",
            f"{efficiencies.table(comparisons)}\n\n{efficiencies.summary(comparisons)}",
        ),
        ("The assumptions, the same for every row", efficiencies.describe_assumptions()),
        *split_sections(),
    )
    return "\n\n".join(f"{title}\n{'-' * len(title)}\n{text}" for title, text in sections)

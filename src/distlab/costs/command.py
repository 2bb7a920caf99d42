"""`distlab predict`: step time and scaling efficiency, or a split transformer's step time and memory, as a table."""

import argparse
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from distlab.costs.measured import command as measured_command
from distlab.costs.prediction.data_parallel import CHOICES, OVERLAPS, Prediction, predict
from distlab.costs.prediction.hardware import HARDWARE
from distlab.costs.prediction.model_parallel import PARTS, Split, SplitPrediction, predict_split
from distlab.costs.prediction.networks import MODELS
from distlab.costs.prediction.transformers import TRANSFORMERS
from distlab.costs.published import efficiencies
from distlab.costs.published.split_figures import split_sections
from distlab.model_parallel.sharded_optimizers import STAGES
from distlab.runtime import tables
from distlab.runtime.errors import PlainError
from distlab.runtime.lookups import require_name

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_SHORT = 16
MOST_RANKS = 10**9
_RANKS = "1..1024"
_MODEL, _HARDWARE, _HARDWARE_OF_TRANSFORMERS = "resnet50", "bigbasin-ethernet50", "selene"
_OF_SPLIT = ("tensor", "pipeline", "zero", "micro_batch", "chunks")
_ONLY_TRANSFORMERS = (*_OF_SPLIT, "sequences")
_ONLY_IMAGES = ("algorithm", "overlap", "batch", "baseline")
_ONLY_MEASURED = ("compare", "images", "own_cores", "picture")


class WrongPrediction(PlainError, ValueError):
    """The command line asks for a prediction that cannot be; the message is one sentence."""


def add_commands(commands: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `predict` to the parser of `distlab`."""
    parser = commands.add_parser(
        "predict",
        help="step time and efficiency on a cluster, by formula",
        description="Predict step time and scaling efficiency of synchronous data-parallel training, and step time and "
        "memory of transformers on tensor × pipeline × data ranks.",
    )
    parser.add_argument("--model", help=f"by default {_MODEL}; {_among([*MODELS, *TRANSFORMERS])}")
    parser.add_argument(
        "--hardware", help=f"by default {_HARDWARE}, for transformers {_HARDWARE_OF_TRANSFORMERS}; {_among(HARDWARE)}"
    )
    parser.add_argument("--ranks", help=f'"8", "1,2,4" or by default "{_RANKS}" (its powers of two)')
    parser.add_argument("--algorithm", help=f"by default what the hardware's users ran; {_among(CHOICES)}")
    parser.add_argument("--overlap", help=f"by default fusion; {_among(OVERLAPS)}")
    parser.add_argument("--batch", type=int, help="images per rank and step; by default the published one")
    parser.add_argument("--baseline", type=int, help="ranks that efficiency is relative to; by default 1")
    parser.add_argument("--pipeline", type=int, help="transformers: stages that the layers are divided among")
    parser.add_argument("--tensor", type=int, help="transformers: ranks that share each layer")
    parser.add_argument("--zero", type=int, choices=STAGES, help="transformers: how far model states are sharded")
    parser.add_argument("--micro-batch", type=int, help="transformers: sequences in a micro-batch; by default 1")
    parser.add_argument("--chunks", type=int, help="transformers: chunks a stage, above 1 interleaved; by default 1")
    parser.add_argument(
        "--sequences", type=int, help="transformers: of all ranks in a step; by default 4 micro-batches a stage"
    )
    parser.add_argument("--json", action="store_true", help="the same for programs")
    parser.add_argument("--published", action="store_true", help="instead compare the model with published results")
    measured_command.add_prediction_options(parser)
    parser.set_defaults(run=_print_prediction)


def _among(names: Iterable[str]) -> str:
    return "one of " + ", ".join(names)


def _print_prediction(options: argparse.Namespace) -> int:
    """Print the prediction that the options ask for. Raises WrongPrediction."""
    try:
        if options.measured:
            _refuse(options, ("model", "hardware", "published", *_ONLY_IMAGES, *_ONLY_TRANSFORMERS), "formulas alone")
            ranks = None if options.ranks is None else ranks_in(options.ranks)
            return measured_command.print_prediction(options, ranks)
        _refuse(options, _ONLY_MEASURED, "measurements (--measured)")
        if options.published:
            _refuse(options, ("model", "hardware", "ranks", "json", *_ONLY_IMAGES, *_ONLY_TRANSFORMERS), "predictions")
        options.model = options.model or _MODEL
        if options.published:
            print(report())
        elif options.model in TRANSFORMERS:
            splits = _splits(options)
            print(splits_as_json(splits) if options.json else splits_as_table(splits))
        else:
            prediction = _prediction(options)
            print(as_json(prediction) if options.json else as_table(prediction))
    except ValueError as error:
        raise WrongPrediction(str(error)) from error
    return 0


def _prediction(options: argparse.Namespace) -> Prediction:
    require_name([*MODELS, *TRANSFORMERS], options.model, "model")
    _refuse(options, _ONLY_TRANSFORMERS, f"transformers ({', '.join(TRANSFORMERS)})")
    return predict(
        options.model,
        options.hardware or _HARDWARE,
        ranks_in(_RANKS if options.ranks is None else options.ranks),
        options.algorithm,
        options.overlap or "fusion",
        batch=options.batch,
        baseline_ranks=1 if options.baseline is None else options.baseline,
    )


def _splits(options: argparse.Namespace) -> list[SplitPrediction]:
    """The prediction for a transformer, for each number of ranks."""
    _refuse(options, _ONLY_IMAGES, f"networks of images ({', '.join(MODELS)})")
    split = Split(**{name: value for name in _OF_SPLIT if (value := getattr(options, name)) is not None})
    ranks = ranks_in(_RANKS if options.ranks is None else options.ranks)
    if options.ranks is None:
        # Of the usual numbers only those that make whole replicas; a single replica where there are none.
        replica = split.tensor * split.pipeline
        ranks = ranks[ranks % replica == 0] if np.any(ranks % replica == 0) else np.array([replica])
    hardware = options.hardware or _HARDWARE_OF_TRANSFORMERS
    return [predict_split(options.model, hardware, int(count), split, sequences=options.sequences) for count in ranks]


def _refuse(options: argparse.Namespace, names: Iterable[str], models: str) -> None:
    """Raise WrongPrediction if the user has set one of these options, which are only for `models`."""
    for name in names:
        if getattr(options, name) not in (None, False):
            basis = "--published" if options.published else options.model or _MODEL
            basis = "measurements" if options.measured else basis
            raise WrongPrediction(f"--{name.replace('_', '-')} is for {models}, not for {basis}")


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
            if high - low < _SHORT:
                ranks.update(range(low, high + 1))
            else:
                ranks.update({low, high} | {2**power for power in range(high.bit_length()) if low <= 2**power <= high})
    except ValueError:
        raise ValueError(
            f"ranks are written 8, 1,2,4 or 1..1024, with whole numbers from 1 to {MOST_RANKS:,}, not {text!r}"
        ) from None
    return np.array(sorted(ranks))


def as_table(prediction: Prediction) -> str:
    """One line per number of ranks, below what it is about."""
    lines = [
        f"{prediction.model.title}: {prediction.model.parameters:,} parameters, "
        f"{prediction.model.gradient_bytes / 1e6:.1f} MB of gradient, {prediction.batch} images per rank and step",
        f"{prediction.hardware.title}",
        f"all-reduce: {prediction.algorithm}; overlap: {prediction.overlap}, {OVERLAPS[prediction.overlap]}",
        f"speed of one device {prediction.speed_source}",
        f"efficiency relative to {prediction.baseline_ranks} rank{'s' if prediction.baseline_ranks > 1 else ''}",
        "",
    ]
    columns = {
        f"{'ranks':>7}": [f"{count}" for count in prediction.ranks],
        f"{'step':>12}": _milliseconds(prediction.step_seconds),
        f"{'computing':>12}": _milliseconds(prediction.compute_seconds),
        f"{'all-reduce':>12}": _milliseconds(prediction.communication_seconds),
        f"{'not hidden':>12}": _milliseconds(prediction.exposed_seconds),
        f"{'images/s':>14}": [f"{speed:,.0f}" for speed in prediction.images_per_second],
        f"{'efficiency':>12}": [f"{100 * efficiency:.1f}%" for efficiency in prediction.efficiency],
    }
    rows = list(zip(*columns.values(), strict=True))
    return "\n".join([*lines, tables.text(tuple(columns), rows, range(len(columns)), gap="")])


def as_json(prediction: Prediction) -> str:
    """The same for programs: names, the assumptions, and one list per quantity (seconds, images/s, fractions)."""
    quantities = ("step_seconds", "compute_seconds", "communication_seconds", "exposed_seconds", "images_per_second")
    return _json(
        {
            "model": prediction.model.name,
            "hardware": prediction.hardware.name,
            "algorithm": prediction.algorithm,
            "overlap": prediction.overlap,
            "batch": prediction.batch,
            "baseline_ranks": prediction.baseline_ranks,
            "speed_source": prediction.speed_source,
            "assumptions": asdict(prediction.assumptions),
            "ranks": prediction.ranks.tolist(),
            **{name: getattr(prediction, name).tolist() for name in quantities},
            "all_reduces": prediction.all_reduces.tolist(),
            "efficiency": prediction.efficiency.tolist(),
        }
    )


def splits_as_table(predictions: Sequence[SplitPrediction]) -> str:
    """One line per number of ranks, below what it is about; `predictions` are of one model, cluster and split."""
    first = predictions[0]
    split = first.split
    schedule = f" (1F1B, interleaved, {split.chunks} chunks a stage)" if split.chunks > 1 else " (1F1B)"
    pipeline = f"{split.pipeline}{schedule if split.pipeline > 1 else ''}"
    lines = [
        f"{first.transformer.title}: {first.transformer.parameters:,} parameters in {first.transformer.layers} layers",
        f"{first.hardware.title}, {first.hardware.memory_bytes / 1e9:g} GB a device",
        f"tensor {split.tensor} × pipeline {pipeline}, micro-batches of {split.micro_batch}",
        f"ZeRO {split.zero}: {STAGES[split.zero]}; mixed precision, Adam, activations recomputed",
        "batch: sequences in a step; in %: matrix products, other computing, communication by split, bubble",
        "",
    ]
    header = (
        *("  ranks", " data", "  batch", "      step"),
        # The parts of a step, in the order of PARTS.
        *("  matrices", "   other", "  tensor", "  pipeline", "  bubble", "   data"),
        *("  TFLOP/s", "   states", "  activations", ""),
    )
    rows = [
        (
            *(prediction.ranks, prediction.data, prediction.sequences, f"{prediction.step_seconds:.2f} s"),
            *(f"{100 * getattr(prediction, part) / prediction.step_seconds:.1f}%" for part in PARTS),
            f"{prediction.flops_per_device / 1e12:.1f}",
            f" {prediction.state_bytes / 1e9:.1f} GB",
            f" {prediction.activation_bytes / 1e9:.1f} GB",
            "" if prediction.fits else "  does not fit",
        )
        for prediction in predictions
    ]
    bubble = f"\nthe bubble is {100 * first.bubble_fraction:.1f} % of the pipeline's time on {first.ranks} ranks"
    return "\n".join([*lines, tables.text(header, rows, range(len(header) - 1), gap=""), bubble])


def splits_as_json(predictions: Sequence[SplitPrediction]) -> str:
    """The same for programs: names, the split, and one object per number of ranks."""
    first = predictions[0]
    quantities = (
        *("ranks", "data", "sequences", "micro_batches", "step_seconds", *PARTS, "bubble_fraction"),
        *("flops_per_device", "tokens_per_second", "state_bytes", "activation_bytes", "fits"),
    )
    return _json(
        {
            "model": first.transformer.name,
            "hardware": first.hardware.name,
            "parameters": first.transformer.parameters,
            "split": asdict(first.split),
            "predictions": [{name: getattr(prediction, name) for name in quantities} for prediction in predictions],
        }
    )


def report() -> str:
    """Published and predicted efficiencies, the assumptions, where the model is off, what each assumption matters.

    Then bubble, memory and throughput of split models in the same way.
    """
    comparisons = efficiencies.compare()
    sections = (
        (
            "Published and predicted scaling efficiency",
            f"{efficiencies.table(comparisons)}\n\n{efficiencies.summary(comparisons)}",
        ),
        ("The assumptions, the same for every row", efficiencies.describe_assumptions()),
        ("Where the model is off", efficiencies.where_it_is_off(comparisons)),
        (
            "If one assumption were another: change of the prediction in points",
            efficiencies.describe_sensitivity(),
        ),
        *split_sections(),
    )
    return "\n\n".join(f"{title}\n{'-' * len(title)}\n{text}" for title, text in sections)


def _json(content: dict[str, object]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False)


def _milliseconds(seconds: NDArray[np.float64]) -> list[str]:
    return [f"{1e3 * value:.1f} ms" for value in seconds]

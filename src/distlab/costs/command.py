"""`distlab predict`: step time and scaling efficiency, or a split transformer's step time and memory, as a table."""

import argparse
import json
import sys
from collections.abc import Iterable
from typing import NoReturn

import numpy as np

from distlab.costs.prediction.data_parallel import CHOICES, Prediction, predict
from distlab.costs.prediction.hardware import HARDWARE
from distlab.costs.prediction.model_parallel import Split, SplitPrediction, predict_split
from distlab.costs.prediction.networks import MODELS
from distlab.costs.prediction.overlap import OVERLAPS
from distlab.costs.prediction.transformers import TRANSFORMERS
from distlab.costs.published import split_table
from distlab.costs.published.report import report
from distlab.model_parallel.sharded_optimizers import STAGES

_SHORT = 16
_RANKS = "1..1024"
_HARDWARE, _HARDWARE_OF_TRANSFORMERS = "bigbasin-ethernet50", "selene"


class UsageError(Exception):
    """The command line asks for something that does not exist; the message is one sentence."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        options = (name for action in self._actions for name in action.option_strings if name.startswith("--"))
        raise UsageError(f"{message}; the options are {', '.join(options)}")


def main(arguments: list[str] | None = None) -> int:
    """Print the prediction that `arguments` ask for; 0, or 2 after one sentence on the error stream."""
    try:
        options = _parser().parse_args(arguments)
        if options.published:
            print(report())
            return 0
        if options.model in TRANSFORMERS:
            splits = _splits(options)
            print(_as_text(split_table.as_json(splits)) if options.json else split_table.as_table(splits))
            return 0
        _check_only_images(options)
        prediction = predict(
            options.model,
            options.hardware or _HARDWARE,
            ranks_in(options.ranks or _RANKS),
            options.algorithm,
            options.overlap or "fusion",
            batch=options.batch,
            baseline_ranks=1 if options.baseline is None else options.baseline,
        )
    except (UsageError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    print(_as_text(as_json(prediction)) if options.json else as_table(prediction))
    return 0


def _splits(options: argparse.Namespace) -> list[SplitPrediction]:
    """The prediction for a transformer, for each number of ranks."""
    given = [name for name in _ONLY_IMAGES if getattr(options, name) is not None]
    if given:
        raise UsageError(f"--{given[0]} is for networks of images ({', '.join(MODELS)}), not for {options.model}")
    split = Split(**{name: value for name in _OF_SPLIT if (value := getattr(options, name)) is not None})
    ranks = ranks_in(options.ranks or _RANKS)
    if options.ranks is None:
        # Of the usual numbers only those that make whole replicas; one replica where there are none.
        one = split.tensor * split.pipeline
        ranks = ranks[ranks % one == 0] if np.any(ranks % one == 0) else np.array([one])
    hardware = options.hardware or _HARDWARE_OF_TRANSFORMERS
    return [predict_split(options.model, hardware, int(each), split, sequences=options.sequences) for each in ranks]


def _check_only_images(options: argparse.Namespace) -> None:
    if options.model not in MODELS:
        raise UsageError(f"there is no model {options.model!r}; there are {', '.join([*MODELS, *TRANSFORMERS])}")
    for name in _ONLY_TRANSFORMERS:
        if getattr(options, name) is not None:
            known = ", ".join(TRANSFORMERS)
            raise UsageError(f"--{name.replace('_', '-')} is for transformers ({known}), not for {options.model}")


_OF_SPLIT = ("tensor", "pipeline", "zero", "micro_batch", "chunks")
_ONLY_TRANSFORMERS = (*_OF_SPLIT, "sequences")
_ONLY_IMAGES = ("algorithm", "overlap", "batch", "baseline")


def _as_text(found: dict) -> str:
    return json.dumps(found, indent=2, ensure_ascii=False)


def ranks_in(text: str) -> np.ndarray:
    """Numbers of ranks from "8", "1,2,4" or "1..1024"; int64 (n,), ascending.

    Of a range with more than 16 numbers only both ends and the powers of two between them. Raises ValueError, with
    what is understood, for anything else.
    """
    found: set[int] = set()
    try:
        for part in text.split(","):
            first, dots, last = part.partition("..")
            low, high = int(first), int(last if dots else first)
            if not 1 <= low <= high:
                raise ValueError
            if high - low < _SHORT:
                found.update(range(low, high + 1))
            else:
                found.update({low, high} | {2**power for power in range(high.bit_length()) if low <= 2**power <= high})
    except ValueError:
        raise ValueError(
            f"ranks are written 8, 1,2,4 or 1..1024, with whole numbers of at least 1, not {text!r}"
        ) from None
    return np.array(sorted(found))


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
        f"{'ranks':>7}{'step':>12}{'computing':>12}{'all-reduce':>12}{'not hidden':>12}"
        f"{'images/s':>14}{'efficiency':>12}",
    ]
    for row in range(len(prediction.ranks)):
        lines.append(
            f"{prediction.ranks[row]:7d}"
            f"{_milliseconds(prediction.step_seconds[row])}{_milliseconds(prediction.compute_seconds[row])}"
            f"{_milliseconds(prediction.communication_seconds[row])}{_milliseconds(prediction.exposed_seconds[row])}"
            f"{prediction.images_per_second[row]:14,.0f}{100 * prediction.efficiency[row]:11.1f}%"
        )
    return "\n".join(lines)


def as_json(prediction: Prediction) -> dict:
    """The same for programs: names, the assumptions, and one list per quantity (seconds, images/s, fractions)."""
    quantities = ("step_seconds", "compute_seconds", "communication_seconds", "exposed_seconds", "images_per_second")
    return {
        "model": prediction.model.name,
        "hardware": prediction.hardware.name,
        "algorithm": prediction.algorithm,
        "overlap": prediction.overlap,
        "batch": prediction.batch,
        "baseline_ranks": prediction.baseline_ranks,
        "speed_source": prediction.speed_source,
        "assumptions": vars(prediction.assumptions),
        "ranks": prediction.ranks.tolist(),
        **{name: getattr(prediction, name).tolist() for name in quantities},
        "all_reduces": prediction.all_reduces.tolist(),
        "efficiency": prediction.efficiency.tolist(),
    }


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:9.1f} ms"


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="distlab predict",
        description="Predict step time and scaling efficiency of synchronous data-parallel training, and step time and "
        "memory of transformers on tensor × pipeline × data ranks.",
    )
    parser.add_argument("--model", default="resnet50", help=_among([*MODELS, *TRANSFORMERS]))
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
    return parser


def _among(names: Iterable[str]) -> str:
    return "one of " + ", ".join(names)

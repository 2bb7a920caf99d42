"""`distlab predict`: step time and scaling efficiency as a table."""

import argparse
import json
import sys
from collections.abc import Iterable
from typing import NoReturn

import numpy as np

from distlab.costs.hardware import HARDWARE
from distlab.costs.models import MODELS
from distlab.costs.overlap import OVERLAPS
from distlab.costs.prediction import CHOICES, Prediction, predict
from distlab.costs.report import report

_SHORT = 16


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
        prediction = predict(
            options.model,
            options.hardware,
            ranks_in(options.ranks),
            options.algorithm,
            options.overlap,
            batch=options.batch,
            baseline_ranks=options.baseline,
        )
    except (UsageError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps(as_json(prediction), indent=2, ensure_ascii=False) if options.json else as_table(prediction))
    return 0


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
        description="Predict step time and scaling efficiency of synchronous data-parallel training.",
    )
    parser.add_argument("--model", default="resnet50", help=_among(MODELS))
    parser.add_argument("--hardware", default="bigbasin-ethernet50", help=_among(HARDWARE))
    parser.add_argument("--ranks", default="1..1024", help='"8", "1,2,4" or "1..1024" (its powers of two)')
    parser.add_argument("--algorithm", help=f"by default what the hardware's users ran; {_among(CHOICES)}")
    parser.add_argument("--overlap", default="fusion", help=_among(OVERLAPS))
    parser.add_argument("--batch", type=int, help="images per rank and step; by default the published one")
    parser.add_argument("--baseline", type=int, default=1, help="ranks that efficiency is relative to")
    parser.add_argument("--json", action="store_true", help="the same for programs")
    parser.add_argument("--published", action="store_true", help="instead compare the model with published results")
    return parser


def _among(names: Iterable[str]) -> str:
    return "one of " + ", ".join(names)

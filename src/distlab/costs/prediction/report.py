"""A prediction as a table, and the numbers of ranks that a person writes."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from distlab.costs.prediction.data_parallel import OVERLAPS, Prediction
from distlab.costs.prediction.model_parallel import PARTS, SplitPrediction
from distlab.model_parallel.sharded_optimizers import STAGES
from distlab.runtime import tables

_SHORT = 16
MOST_RANKS = 10**9


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
    """One line per number of ranks; then one sentence on the last of them, and what all of it assumes."""
    about = [
        "added: all-reduces that the backward pass does not hide, and how much they slow it down",
        f"{prediction.model.title}: {prediction.model.parameters:,} parameters, "
        f"{prediction.model.gradient_bytes / 1e6:.1f} MB of gradient, {prediction.batch} images per rank and step",
        f"{prediction.hardware.title}",
        f"all-reduce: {prediction.algorithm}; overlap: {prediction.overlap}, {OVERLAPS[prediction.overlap]}",
        f"speed of one device {prediction.speed_source}",
        f"efficiency relative to {prediction.baseline_ranks} rank{'s' if prediction.baseline_ranks > 1 else ''}",
    ]
    columns = {
        f"{'ranks':>7}": [str(ranks) for ranks in prediction.ranks],
        f"{'step':>12}": _milliseconds(prediction.step_seconds),
        f"{'computing':>12}": _milliseconds(prediction.compute_seconds),
        f"{'all-reduce':>12}": _milliseconds(prediction.communication_seconds),
        f"{'added':>12}": _milliseconds(prediction.exposed_seconds),
        f"{'images/s':>14}": [f"{speed:,.0f}" for speed in prediction.images_per_second],
        f"{'efficiency':>12}": [f"{100 * efficiency:.1f}%" for efficiency in prediction.efficiency],
    }
    ranks, step, _, _, exposed, speed, efficiency = (column[-1] for column in columns.values())
    network, _, _ = prediction.model.title.partition(",")
    conclusion = (
        f"On {ranks} rank{'s' if ranks != '1' else ''} {network} trains {speed} images/s at an efficiency of "
        f"{efficiency}; a step takes {step}, of which communication adds {exposed}."
    )
    return "\n".join([aligned(columns), "", conclusion, "", *about])


def splits_as_table(predictions: Sequence[SplitPrediction]) -> str:
    """As `as_table`; `predictions` are of one model, cluster and split."""
    first = predictions[0]
    split = first.split
    schedule = f" (1F1B, interleaved, {split.chunks} chunks a stage)" if split.chunks > 1 else " (1F1B)"
    pipeline = f"{split.pipeline}{schedule if split.pipeline > 1 else ''}"
    about = [
        f"{first.transformer.title}: {first.transformer.parameters:,} parameters in {first.transformer.layers} layers",
        f"{first.hardware.title}, {first.hardware.memory_bytes / 1e9:g} GB a device",
        f"tensor {split.tensor} × pipeline {pipeline}, micro-batches of {split.micro_batch}",
        f"ZeRO {split.zero}: {STAGES[split.zero]}; mixed precision, Adam, activations recomputed",
        "batch: sequences in a step; in %: matrix products, other computing, communication by split, bubble",
        f"the bubble is {100 * first.bubble_fraction:.1f} % of the pipeline's time (ranks: {first.ranks})",
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
    ranks, _, _, step, *_, speed, states, activations, _ = rows[-1]
    fits = predictions[-1].fits
    conclusion = (
        f"On {ranks} rank{'s' if ranks != 1 else ''} a step takes {step} at {speed} TFLOP/s a device, whose memory is "
        f"{'enough' if fits else 'too small'} for{states} of states and{activations} of activations"
        f"{'.' if fits else '; --tensor, --pipeline and --zero divide them.'}"
    )
    return "\n".join([tables.text(header, rows, range(len(header) - 1), gap=""), "", conclusion, "", *about])


def aligned(columns: Mapping[str, Iterable[str]]) -> str:
    """Columns by their headers, which have the blanks between them; all aligned to the right."""
    rows = list(zip(*columns.values(), strict=True))
    return tables.text(tuple(columns), rows, range(len(columns)), gap="")


def _milliseconds(seconds: NDArray[np.float64]) -> list[str]:
    return [f"{1e3 * value:.1f} ms" for value in seconds]

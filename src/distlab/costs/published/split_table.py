"""A prediction for a split model as a table and as JSON."""

from collections.abc import Sequence
from dataclasses import asdict

from distlab.costs.prediction.model_parallel import PARTS, SplitPrediction
from distlab.model_parallel.sharded_optimizers import STAGES

# The parts of a step, in the order of PARTS, with the widths of their columns.
_HEADS = {"matrices": 10, "other": 8, "tensor": 8, "pipeline": 10, "bubble": 8, "data": 7}


def as_table(predictions: Sequence[SplitPrediction]) -> str:
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
        f"{'ranks':>7}{'data':>5}{'batch':>7}{'step':>10}"
        + "".join(f"{head:>{width}}" for head, width in _HEADS.items())
        + f"{'TFLOP/s':>9}{'states':>9}{'activations':>13}",
    ]
    for each in predictions:
        memory = _gigabytes(each.state_bytes, 6) + _gigabytes(each.activation_bytes, 10)
        shares = "".join(
            f"{100 * getattr(each, part) / each.step_seconds:{width - 1}.1f}%"
            for part, width in zip(PARTS, _HEADS.values(), strict=True)
        )
        lines.append(
            f"{each.ranks:7d}{each.data:5d}{each.sequences:7d}{each.step_seconds:8.2f} s{shares}"
            f"{each.flops_per_device / 1e12:9.1f}{memory}" + ("" if each.fits else "  does not fit")
        )
    lines.append(f"\nthe bubble is {100 * first.bubble_fraction:.1f} % of the pipeline's time on {first.ranks} ranks")
    return "\n".join(lines)


def as_json(predictions: Sequence[SplitPrediction]) -> dict:
    """The same for programs: names, the split, and one object per number of ranks."""
    first = predictions[0]
    return {
        "model": first.transformer.name,
        "hardware": first.hardware.name,
        "parameters": first.transformer.parameters,
        "split": asdict(first.split),
        "predictions": [
            {
                "ranks": each.ranks,
                "data": each.data,
                "sequences": each.sequences,
                "micro_batches": each.micro_batches,
                "step_seconds": each.step_seconds,
                **{part: getattr(each, part) for part in PARTS},
                "bubble_fraction": each.bubble_fraction,
                "flops_per_device": each.flops_per_device,
                "tokens_per_second": each.tokens_per_second,
                "state_bytes": each.state_bytes,
                "activation_bytes": each.activation_bytes,
                "fits": each.fits,
            }
            for each in predictions
        ],
    }


def _gigabytes(size: float, width: int) -> str:
    return f"{size / 1e9:{width}.1f} GB"

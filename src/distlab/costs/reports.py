"""Predictions and measurements in words: a table, a sentence on its last row, and what all of it is about."""

from collections.abc import Iterable, Sequence

from distlab.costs.measured.measurement import ClusterMeasurement, WrongMeasurement, require_same_set_up
from distlab.costs.measured.prediction import DEVIATIONS, MeasuredPrediction
from distlab.costs.prediction.data_parallel import OVERLAPS, Prediction
from distlab.costs.prediction.model_parallel import SplitPrediction
from distlab.model_parallel.sharded_optimizers import STAGES
from distlab.runtime import tables

IMAGES = 1_000_000
"""That the device hours are for."""


def of_network(prediction: Prediction) -> str:
    """One line per number of ranks; then one sentence on the last of them, and what all of it assumes."""
    model, baseline = prediction.model, prediction.baseline_ranks
    header = ("  ranks", *(f"{part:>12}" for part in ("step", "computing", "all-reduce", "added")), f"{'images/s':>14}")
    parts = (f"{part}_seconds" for part in ("step", "compute", "communication", "exposed"))
    times = ([f"{1e3 * seconds:.1f} ms" for seconds in getattr(prediction, part)] for part in parts)
    speeds = (f"{speed:,.0f}" for speed in prediction.images_per_second)
    rows = list(zip(prediction.ranks, *times, speeds, _percent(prediction.efficiency), strict=True))
    ranks, step, _, _, exposed, speed, efficiency = rows[-1]
    conclusion = (
        f"On {_counted(ranks, 'rank')} {model.title.partition(',')[0]} trains {speed} images/s at an efficiency of "
        f"{efficiency}; a step takes {step}, of which communication adds {exposed}."
    )
    about = [
        "added: all-reduces that the backward pass does not hide, and how much they slow it down",
        f"{model.title}: {model.parameters:,} parameters, {model.gradient_bytes / 1e6:.1f} MB of gradient, "
        f"{prediction.batch} images per rank and step",
        prediction.hardware.title,
        f"all-reduce: {prediction.algorithm}; overlap: {prediction.overlap}, {OVERLAPS[prediction.overlap]}",
        f"speed of one device {prediction.speed_source}",
        f"efficiency relative to {_counted(baseline, 'rank')}",
    ]
    return "\n".join([_aligned((*header, "  efficiency"), rows), "", conclusion, "", *about])


def of_splits(predictions: Sequence[SplitPrediction]) -> str:
    """As `of_network`; `predictions` are of one model, cluster and split."""
    first, last = predictions[0], predictions[-1]
    split, model = first.split, first.transformer
    header = (
        *("  ranks", " data", "  batch", "      step"),
        *("  matrices", "   other", "  tensor", "  pipeline", "  bubble", "   data"),
        *("  TFLOP/s", "   states", "  activations"),
    )
    rows = [
        (
            *(each.ranks, each.data, each.sequences, f"{each.step_seconds:.2f} s"),
            *_percent(seconds / each.step_seconds for seconds in each.seconds.values()),
            f"{each.flops_per_device / 1e12:.1f}",
            *(f" {size / 1e9:.1f} GB" for size in (each.state_bytes, each.activation_bytes)),
        )
        for each in predictions
    ]
    table = _aligned(header, rows).splitlines()
    table[1:] = [line + "  does not fit" * (not each.fits) for line, each in zip(table[1:], predictions, strict=True)]
    _, _, _, step, *_, speed, states, activations = rows[-1]
    conclusion = (
        f"On {_counted(last.ranks, 'rank')} a step takes {step} at {speed} TFLOP/s a device, whose memory is "
        f"{'enough' if last.fits else 'too small'} for{states} of states and{activations} of activations"
        f"{'.' if last.fits else '; --tensor, --pipeline and --zero divide them.'}"
    )
    interleaved = f", interleaved, {split.chunks} chunks a stage" if split.chunks > 1 else ""
    pipeline = f"{split.pipeline} (1F1B{interleaved})" if split.pipeline > 1 else "1"
    about = [
        f"{model.title}: {model.parameters:,} parameters in {model.layers} layers",
        f"{first.hardware.title}, {first.hardware.memory_bytes / 1e9:g} GB a device",
        f"tensor {split.tensor} × pipeline {pipeline}, micro-batches of {split.micro_batch}",
        f"ZeRO {split.zero}: {STAGES[split.zero]}; mixed precision, Adam, activations recomputed",
        "batch: sequences in a step; in %: matrix products, other computing, communication by split, bubble",
        f"the bubble is {100 * first.bubble_fraction:.1f} % of the pipeline's time (ranks: {first.ranks})",
    ]
    return "\n".join([*table, "", conclusion, "", *about])


def of_measured(prediction: MeasuredPrediction, compare: Sequence[ClusterMeasurement] = ()) -> str:
    """As `of_network`, with a line for each measurement of `compare` below."""
    base = prediction.base
    device = "GPU" if base.gpus else "core"
    header = (
        *("  ranks", "      step", f"  {'interval':>21}", "   computing", "  all-reduce", "      images/s"),
        *("  efficiency", f"  {device} hours"),
    )
    lower, upper = map(_times, (prediction.lower_seconds, prediction.upper_seconds))
    columns = (
        *(prediction.ranks, _times(prediction.step_seconds), map(" to ".join, zip(lower, upper, strict=True))),
        *(_times(prediction.compute_seconds), _times(prediction.communication_seconds)),
        *((f"{speed:,.0f}" for speed in prediction.images_per_second), _percent(prediction.efficiency)),
        (f"{hours:.3g}" for hours in prediction.devices * IMAGES / prediction.images_per_second / 3600),
    )
    rows = list(zip(*columns, strict=True))
    ranks, step, interval, _, _, _, efficiency, hours = rows[-1]
    conclusion = (
        f"On {_counted(ranks, 'rank')} a step takes {step} ({interval}) at an efficiency of {efficiency}; "
        f"{IMAGES:,} images take {hours} {device} hours."
    )
    lines = [_aligned(header, rows)]
    if compare:
        compared = [
            (
                *(f"{row['ranks']:g}", *_times((row["measured_seconds"], row["predicted_seconds"]))),
                f"{100 * row['residual']:+.1f}%",
            )
            for row in residuals(prediction, compare)
        ]
        lines += ["", _aligned(("  ranks", "    measured", "   predicted", "    residual"), compared)]
    hidden, count = 100 * prediction.hidden_share, base.fused_all_reduces
    overlap = f"{hidden:.0f} % of the shorter of computing and all-reduce is hidden"
    if hidden < 0:
        overlap = (
            f"none; a step took longer than computing and all-reduce one after the other, by {-hidden:.0f}% of the "
            "shorter"
        )
    fitted = f"latency {1e6 * prediction.fit.latency:.0f} µs, {8e-6 * prediction.fit.bandwidth:,.0f} Mbit/s"
    if prediction.separates_overhead:
        fitted += f", {1e3 * prediction.fit.overhead:.2f} ms for each all-reduce"
    about = [
        f"{base.model}, {base.batch} images per rank and step; {sum(base.gradient_bytes) / 1e6:.2f} MB of gradients in "
        f"{_counted(count, 'all-reduce')}, {base.algorithm.replace('_', ' and ')}",
        *(each.source() for each in prediction.measurements),
        f"fit of the sweep: {fitted}; the gradients took {prediction.correction:.2f} times as long; "
        f"deviation after that {100 * prediction.deviation:.0f} %",
        f"overlap: {overlap}",
        f"interval: {DEVIATIONS} standard errors, of the fit and of the median of the step without communication",
    ]
    if not prediction.separates_overhead:
        about.append("          and what each all-reduce takes may grow with the ranks or not: measure a second number")
    if base.shares_cores:
        about.append(f"the measured hosts share {base.cores} cores; so do those predicted")
    return "\n".join([*lines, "", conclusion, "", *about, f"{device} hours: for {IMAGES:,} images"])


def residuals(prediction: MeasuredPrediction, compare: Sequence[ClusterMeasurement]) -> list[dict[str, float]]:
    """For each measurement: ranks, the measured and the predicted step in seconds, and predicted / measured − 1.

    Raises WrongMeasurement for one that is not of the prediction's set-up or whose ranks were not predicted.
    """
    require_same_set_up([prediction.base, *compare])
    steps = dict(zip(prediction.ranks.tolist(), prediction.step_seconds.tolist(), strict=True))
    rows = []
    for ranks, measured in ((each.ranks, each.step.median) for each in compare):
        if ranks not in steps:
            raise WrongMeasurement(f"There is no prediction for {ranks} ranks; name them with --ranks.")
        residual = steps[ranks] / measured - 1
        rows.append(
            {"ranks": ranks, "measured_seconds": measured, "predicted_seconds": steps[ranks], "residual": residual}
        )
    return rows


def of_measurement(measurement: ClusterMeasurement) -> str:
    """A measurement in a few lines."""
    gradients = measurement.gradient_bytes
    lines = [
        measurement.source(),
        f"{measurement.model}, batch {measurement.batch}: {sum(gradients):,} bytes in {len(gradients)} gradients",
    ]
    for name, spread in (
        ("step without communication", measurement.step_alone),
        ("all-reduce of the gradients", measurement.gradients_alone),
        ("step with communication", measurement.step),
    ):
        median, lower, upper = _times((spread.median, spread.lower_quartile, spread.upper_quartile))
        lines.append(f"{name:27}  {median:>10} (half of them {lower} to {upper})")
    return "\n".join(lines)


def _aligned(header: Sequence[str], rows: Sequence[tuple[object, ...]]) -> str:
    """The table; the header has the blanks between its columns, which are aligned to the right."""
    return tables.text(header, rows, range(len(header)), gap="")


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _percent(shares: Iterable[float]) -> list[str]:
    return [f"{100 * share:.1f}%" for share in shares]


def _times(seconds: Iterable[float]) -> list[str]:
    return [f"{each:.2f} s" if each >= 10 else f"{1e3 * each:.1f} ms" for each in seconds]

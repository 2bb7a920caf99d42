"""A measurement, and a prediction from measurements, in words."""

from collections.abc import Sequence

from distlab.costs.measured.measurement import ClusterMeasurement, WrongMeasurement, require_same_set_up
from distlab.costs.measured.prediction import DEVIATIONS, MeasuredPrediction
from distlab.costs.prediction.report import aligned

IMAGES = 1_000_000
"""That the device hours are for."""


def described(measurement: ClusterMeasurement) -> str:
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
        quartiles = f"{_time(spread.lower_quartile)} to {_time(spread.upper_quartile)}"
        lines.append(f"{name:27}  {_time(spread.median):>10} (half of them {quartiles})")
    return "\n".join(lines)


def as_table(prediction: MeasuredPrediction, compare: Sequence[ClusterMeasurement] = ()) -> str:
    """One line per number of ranks, and per measurement of `compare`; one sentence on the last; what it is about."""
    device = "GPU" if prediction.base.gpus else "core"
    device_hours = prediction.devices * IMAGES / prediction.images_per_second / 3600
    columns = {
        "  ranks": [str(ranks) for ranks in prediction.ranks],
        "      step": list(map(_time, prediction.step_seconds)),
        f"  {'interval':>21}": [
            f"{_time(low)} to {_time(high)}"
            for low, high in zip(prediction.lower_seconds, prediction.upper_seconds, strict=True)
        ],
        "   computing": list(map(_time, prediction.compute_seconds)),
        "  all-reduce": list(map(_time, prediction.communication_seconds)),
        "      images/s": [f"{speed:,.0f}" for speed in prediction.images_per_second],
        "  efficiency": [f"{100 * efficiency:.1f}%" for efficiency in prediction.efficiency],
        f"  {device} hours": [f"{hours:.3g}" for hours in device_hours],
    }
    ranks, step, interval, _, _, _, efficiency, hours = (column[-1] for column in columns.values())
    conclusion = (
        f"On {ranks} rank{'s' if ranks != '1' else ''} a step takes {step} ({interval}) at an efficiency of "
        f"{efficiency}; {IMAGES:,} images take {hours} {device} hours."
    )
    lines = [aligned(columns)]
    if compare:
        rows = residuals(prediction, compare)
        compared = {
            "  ranks": (f"{row['ranks']:g}" for row in rows),
            "    measured": (_time(row["measured_seconds"]) for row in rows),
            "   predicted": (_time(row["predicted_seconds"]) for row in rows),
            "    residual": (f"{100 * row['residual']:+.1f}%" for row in rows),
        }
        lines += ["", aligned(compared)]
    about = [*_about(prediction), f"{device} hours: for {IMAGES:,} images"]
    return "\n".join([*lines, "", conclusion, "", *about])


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


def _about(prediction: MeasuredPrediction) -> list[str]:
    """What is predicted from what."""
    base = prediction.base
    count, hidden = base.fused_all_reduces, 100 * prediction.hidden_share
    gradients = f"{sum(base.gradient_bytes) / 1e6:.2f} MB of gradients in {count} all-reduce{'s' * (count > 1)}"
    overlap = f"{hidden:.0f} % of the shorter of computing and all-reduce is hidden"
    if hidden < 0:
        overlap = "none; a step took longer than computing and all-reduce one after the other, "
        overlap += f"by {-hidden:.0f}% of the shorter"
    fitted = f"latency {1e6 * prediction.fit.latency:.0f} µs, {8e-6 * prediction.fit.bandwidth:,.0f} Mbit/s"
    if prediction.separates_overhead:
        fitted += f", {1e3 * prediction.fit.overhead:.2f} ms for each all-reduce"
    lines = [
        f"{base.model}, {base.batch} images per rank and step; {gradients}, {base.algorithm.replace('_', ' and ')}",
        *(each.source() for each in prediction.measurements),
        f"fit of the sweep: {fitted}; the gradients took {prediction.correction:.2f} times as long; "
        f"deviation after that {100 * prediction.deviation:.0f} %",
        f"overlap: {overlap}",
        f"interval: {DEVIATIONS} standard errors, of the fit and of the median of the step without communication",
    ]
    if not prediction.separates_overhead:
        lines.append("          and what each all-reduce takes may grow with the ranks or not: measure a second number")
    if base.shares_cores:
        lines.append(f"the measured hosts share {base.cores} cores; so do those predicted")
    return lines


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 10 else f"{1e3 * seconds:.1f} ms"

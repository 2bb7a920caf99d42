"""A prediction from measurements as a picture: step time with its interval, and throughput, over the ranks."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from distlab.costs.measured.measurement import ClusterMeasurement, WrongMeasurement
from distlab.costs.measured.prediction import MeasuredPrediction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".svg", ".png")


def picture(prediction: MeasuredPrediction, compare: Sequence[ClusterMeasurement] = ()) -> "tuple[Figure, str]":
    """A figure in the course's style and its text description; measurements of `compare` are points of their own."""
    import matplotlib.pyplot as plt

    from distlab import draw

    draw.apply_style()
    ranks, base = prediction.ranks, prediction.model.base
    figure, (times, speeds) = plt.subplots(1, 2, figsize=(7.2, 3.2))
    colour, measured_colour, ideal_colour = draw.RANK_COLOURS[0], draw.RANK_COLOURS[3], draw.QUIET
    times.fill_between(ranks, prediction.lower_seconds, prediction.upper_seconds, color=draw.tint(colour, 0.25))
    times.plot(ranks, prediction.step_seconds, color=colour, marker="o", label="predicted")
    times.plot(ranks, prediction.compute_seconds, color=ideal_colour, marker="", linestyle=":", label="computing")
    speeds.plot(ranks, prediction.images_per_second, color=colour, marker="o", label="predicted")
    alone = prediction.efficiency[0] * prediction.step_seconds[0]
    speeds.plot(ranks, ranks * base.batch / alone, color=ideal_colour, marker="", linestyle=":", label="ideal")
    for label, colour_of_points, marker, measurements in (
        ("measured", measured_colour, "s", prediction.model.measurements),
        ("measured afterwards", draw.RANK_COLOURS[2], "D", compare),
    ):
        if measurements:
            places = [each.ranks for each in measurements]
            style = {"color": colour_of_points, "marker": marker, "linestyle": "", "label": label, "markersize": 7}
            times.plot(places, [each.step.median for each in measurements], **style)
            speeds.plot(places, [each.ranks * each.batch / each.step.median for each in measurements], **style)
    for axes, title in ((times, "step, seconds"), (speeds, "images per second")):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("ranks")
        axes.set_title(title)
        axes.xaxis.set_major_formatter("{x:.0f}")
        axes.legend(fontsize="small")
    description = (
        f"Predicted step and throughput of {base.model} over the number of ranks: a step takes {_at(prediction, 0)} "
        f"and {_at(prediction, -1)}, where the efficiency is {100 * prediction.efficiency[-1]:.0f} %."
    )
    return figure, description


def save_picture(prediction: MeasuredPrediction, file: Path, compare: Sequence[ClusterMeasurement] = ()) -> None:
    """Write the picture as SVG or PNG, as the file's name ends. Raises WrongMeasurement for another ending."""
    if file.suffix not in FORMATS:
        raise WrongMeasurement(f"{file} does not end in {' or '.join(FORMATS)}.")
    import matplotlib.pyplot as plt

    from distlab import draw

    figure, description = picture(prediction, compare)
    if file.suffix == ".svg":
        draw.save(figure, file, description)
    else:
        figure.savefig(file, dpi=150, metadata={"Description": description, "Software": None})
        plt.close(figure)


def _at(prediction: MeasuredPrediction, place: int) -> str:
    return f"{1e3 * prediction.step_seconds[place]:.1f} ms on {prediction.ranks[place]}"

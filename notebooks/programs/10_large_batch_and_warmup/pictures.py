"""The pictures of notebook 10: steps, learning rates and accuracies.

A module for the notebook, which imports it:

    draw.show(*pictures.steps(best["sgd"], tradeoff))

Each function gives a figure and its description.
"""

from collections.abc import Mapping, Sequence

from distlab import draw
from distlab.large_batch.noise_scale import Tradeoff

import matplotlib.pyplot as plt
import numpy as np
from best_rates import Best
from matplotlib.figure import Figure

BLUE, RED = draw.RANK_COLOURS[0], draw.RANK_COLOURS[3]
LINE, BEND = {"marker": ""}, {"marker": "", "linestyle": ":", "color": RED}
Picture = tuple[Figure, str]


def steps(of_batches: Mapping[int, Best], tradeoff: Tradeoff) -> Picture:
    """Steps to the target against the batch size, the fitted curve and its bend."""
    figure, axes = plt.subplots(figsize=(7.2, 3.2))
    batches, curve = np.array(list(of_batches)), np.geomspace(min(of_batches), max(of_batches))
    measured = [each.steps for each in of_batches.values()]
    bars = {"yerr": [each.deviation for each in of_batches.values()], "capsize": 3}
    axes.errorbar(batches, measured, **bars, linestyle="", color=BLUE, label="measured")
    axes.loglog(curve, tradeoff.steps(curve), "-", color=BLUE, label="fit", **LINE)
    perfect = tradeoff.least_samples / curve
    axes.loglog(curve, perfect, "--", color="grey", label="perfect scaling", **LINE)
    axes.axvline(tradeoff.critical_batch, label="critical batch size", **BEND)
    limits = 0.7 * min(measured), 1.4 * max(measured)
    axes.set(xlabel="batch size", ylabel="steps to the target", ylim=limits)
    axes.minorticks_off()
    axes.set_xticks(batches, batches)
    ticks = [25, 50, 100, 200, 400]
    axes.set_yticks(ticks, ticks)
    axes.legend()
    text = "Steps to the target against batch size, both logarithmic: first along the line of "
    return figure, text + "perfect scaling, then flat."


def rates(best: Mapping[str, Mapping[int, Best]], bend: float) -> Picture:
    """Best learning rates against the batch size, with both rules, and for SGD the bend."""
    figure, panels = plt.subplots(1, 2, figsize=(7.2, 3.8))
    ticks = {"sgd": [0.05, 0.1, 0.2, 0.4], "adam": [0.001, 0.002, 0.005, 0.01]}
    rules = (("--", 1, "linear rule"), ("-.", 0.5, "square-root rule"))
    for axes, (name, title) in zip(panels, (("sgd", "SGD"), ("adam", "Adam")), strict=True):
        batches, of_batches = np.array(list(best[name])), list(best[name].values())
        measured = np.array([each.rate for each in of_batches])
        good = [[each.good_rates[end] for each in of_batches] for end in (0, -1)]
        band = {"color": BLUE, "alpha": 0.35, "linewidth": 5}
        axes.vlines(batches, *good, label="at most 15 % more steps", **band)
        axes.loglog(batches, measured, linestyle="", color=BLUE, label="best rate")
        for dash, exponent, rule in rules:
            line = measured[0] * (batches / batches[0]) ** exponent
            axes.loglog(batches, line, dash, color=draw.INK, label=rule, **LINE)
        if name == "sgd":
            full_rate = np.exp(np.mean(np.log(measured * (1 + bend / batches))))
            curve = full_rate / (1 + bend / batches)
            label = "curve with the bend of the steps"
            axes.loglog(batches, curve, "-", color=RED, label=label, **LINE)
            axes.axvline(bend, label="critical batch size", **BEND)
        axes.set(title=title, xlabel="batch size", ylim=(0.4 * measured[0], 30 * measured[0]))
        axes.minorticks_off()
        axes.set_xticks(batches[::2], batches[::2])
        axes.set_yticks(ticks[name], ticks[name])
    panels[0].set_ylabel("learning rate")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    text = "Best learning rate against batch size for SGD and Adam, and both rules from batch "
    text += "2 on. The best rate rises more slowly than the linear rule, and from about batch "
    return figure, text + "32 on hardly at all."


def three_runs(runs: Mapping[str, Mapping[str, Sequence[float]]]) -> Picture:
    """Test accuracy of each run against epochs and against seconds."""
    figure, (by_epoch, by_time) = plt.subplots(1, 2, sharey=True, figsize=(7.2, 3.2))
    for name, run in runs.items():
        by_epoch.plot(np.arange(1, len(run["accuracy"]) + 1), run["accuracy"], label=name)
        by_time.plot(np.cumsum(run["seconds"]), run["accuracy"])
    by_epoch.set(xlabel="epoch", ylabel="test accuracy", ylim=(0, 1))
    by_time.set(xlabel="seconds of training")
    figure.legend(loc="outside upper center", ncols=2)
    text = "Test accuracy against epochs, left, and against seconds, right, for "
    return figure, f"{text}{', '.join(runs)}."


def seeds(of_datasets: Mapping[str, Mapping[str, Sequence[Sequence[float]]]]) -> Picture:
    """Test accuracy by epoch for each data set and schedule: a line for each seed."""
    figure, panels = plt.subplots(1, len(of_datasets), figsize=(7.2, 2.8), sharey=True)
    for axes, (title, of_schedules) in zip(panels, of_datasets.items(), strict=True):
        for number, (name, rows) in enumerate(of_schedules.items()):
            style = {"color": draw.RANK_COLOURS[number], "marker": draw.MARKERS[number]}
            style |= {"linestyle": "-", "alpha": 0.6, "markersize": 4}
            lines = axes.plot(np.arange(1, len(rows[0]) + 1), np.transpose(rows), **style)
            lines[0].set_label(name)
        axes.set(title=title, xlabel="epoch", ylim=(0, 1))
    panels[0].set_ylabel("test accuracy")
    panels[0].legend(title="warm-up")
    text = "Test accuracy by epoch for two data sets: "
    return figure, f"{text}one line for each of five seeds and schedule."

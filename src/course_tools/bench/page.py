"""The benchmark as a page: what is slow or large, what each way of training gives, what became worse."""

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import jinja2
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from course_tools.bench.measures import ITSELF, Measure, number
from course_tools.bench.notebooks import ALONE, MEMORY_GOAL, SECONDS_GOAL
from course_tools.bench.time_account import KINDS
from course_tools.bench.training import PART as TRAINING
from distlab.draw.style import colour_of, hatch_of

PAGE = jinja2.Environment(autoescape=True).from_string("""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Distributed training: the benchmark</title>
<style>
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #ddd; vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
figure { margin: 1.5rem 0; } figure svg { max-width: 100%; height: auto; }
</style></head><body>
<h1>The benchmark</h1>
<p>{{ about }}</p>
<h2>Worse than the last release</h2>
{% if worse %}<ul>{% for sentence in worse %}<li>{{ sentence }}</li>{% endfor %}</ul>
{% else %}<p>Nothing became worse by more than the measurements scatter.</p>{% endif %}
{% if missed %}<h2>Goals that this run does not reach</h2>
<ul>{% for sentence in missed %}<li>{{ sentence }}</li>{% endfor %}</ul>{% endif %}
{% for caption, picture in pictures %}<figure>{{ picture | safe }}<figcaption>{{ caption }}</figcaption></figure>
{% endfor -%}
<h2>All measurements</h2>
<table>
<tr><th>Part</th><th>What</th><th class="number">Median</th><th>Unit</th><th class="number">Ratio</th><th>to</th>
<th class="number">Last release</th></tr>
{% for row in rows -%}
<tr>{% for kind, text in row %}<td{% if kind %} class="number"{% endif %}>{{ text }}</td>{% endfor %}</tr>
{% endfor -%}
</table>
</body></html>
""")


def write(
    page: Path,
    about: Mapping[str, object],
    measures: Sequence[Measure],
    before: Sequence[Measure],
    accounts: Mapping[str, Mapping[str, float]],
    worse: Sequence[str],
    missed: Sequence[str],
) -> Path:
    """Write the HTML page, everything inside it, and return its path."""
    earlier = {(measure.part, measure.name): measure for measure in before}
    text = PAGE.render(
        about=", ".join(f"{name} {value}" for name, value in about.items()),
        worse=worse,
        missed=missed,
        pictures=[(caption, _svg(figure)) for caption, figure in _pictures(measures, accounts)],
        rows=[_row(measure, earlier.get((measure.part, measure.name))) for measure in measures],
    )
    page.write_text(text)
    return page


def _label(measure: Measure) -> str:
    return measure.name if measure.reference == ITSELF else f"{measure.name}\nto {measure.reference}"


def account_figure(accounts: Mapping[str, Mapping[str, float]]) -> Figure:
    """Bars of processor seconds for each notebook, divided by what they were spent on."""
    figure, axes = plt.subplots(figsize=(7.6, 1.2 + 0.36 * len(accounts)))
    positions, left = np.arange(len(accounts)), np.zeros(len(accounts))
    for index, kind in enumerate(KINDS):
        seconds = np.array([account[kind] for account in accounts.values()])
        axes.barh(
            positions,
            seconds,
            left=left,
            height=0.66,
            color=colour_of(index),
            hatch=hatch_of(index),
            edgecolor="white",
            label=kind,
        )
        left += seconds
    axes.set_yticks(positions, [name.replace("_", " ") for name in accounts])
    axes.invert_yaxis()
    axes.set_xlabel("processor seconds")
    axes.legend(loc="lower right", frameon=False)
    return figure


def _pictures(measures: Sequence[Measure], accounts: Mapping[str, Mapping[str, float]]) -> list[tuple[str, Figure]]:
    alone = [measure for measure in measures if measure.part == ALONE and measure.values]
    seconds = {measure.name: measure.values[0] for measure in alone if ":" not in measure.name}
    memory = {measure.name.partition(":")[0]: measure.values[0] for measure in alone if measure.unit == "MiB"}
    training = [measure for measure in measures if measure.part == TRAINING and measure.ratios]
    pictures = []
    if seconds:
        pictures.append(
            ("Elapsed seconds of each notebook alone; the line is the goal.", _bars(seconds, "s", SECONDS_GOAL))
        )
        pictures.append(("Its peak of memory, over all its processes.", _bars(memory, "MiB", MEMORY_GOAL)))
    if accounts:
        pictures.append(("Where the processor seconds go.", account_figure(accounts)))
    if training:
        pictures.append(("Training, as a ratio: median, least and greatest of the rounds.", _ratios(training)))
    return pictures


def _bars(values: Mapping[str, float], unit: str, goal: float) -> Figure:
    figure, axes = plt.subplots(figsize=(7.6, 0.8 + 0.34 * len(values)))
    positions = np.arange(len(values))
    axes.barh(positions, list(values.values()), height=0.62, color=colour_of(0))
    axes.axvline(goal, color=colour_of(1), linestyle="--")
    axes.set_yticks(positions, [name.replace("_", " ") for name in values])
    axes.invert_yaxis()
    axes.set_xlabel(unit)
    return figure


def _ratios(measures: Sequence[Measure]) -> Figure:
    figure, axes = plt.subplots(figsize=(7.6, 0.8 + 0.34 * len(measures)))
    for position, measure in enumerate(measures):
        axes.plot([min(measure.ratios), max(measure.ratios)], [position, position], color=colour_of(0))
        axes.plot(measure.median, position, "o", color=colour_of(0))
        if measure.goal is not None and measure.values == measure.ratios:
            axes.plot(measure.goal, position, "|", color=colour_of(1), markersize=14)
    axes.set_yticks(range(len(measures)), [_label(measure) for measure in measures])
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel("ratio; the mark is the goal")
    return figure


def _row(measure: Measure, last: Measure | None) -> list[tuple[bool, str]]:
    if not measure.values:
        return [(False, measure.part), (False, measure.name), (False, f"skipped: {measure.skipped}")]
    middle = sorted(measure.values)[len(measure.values) // 2]
    has_ratio = measure.reference != ITSELF
    return [
        (False, measure.part),
        (False, measure.name),
        (True, number(middle)),
        (False, measure.unit),
        (True, f"{measure.median:.3g}" if has_ratio else ""),
        (False, measure.reference if has_ratio else ""),
        (True, f"{last.median:.3g}" if last and last.ratios else ""),
    ]


def _svg(figure: Figure) -> str:
    """The picture as an element to stand in a page."""
    text = io.StringIO()
    figure.savefig(text, format="svg", bbox_inches="tight")
    plt.close(figure)
    return re.sub(r"^.*?(?=<svg)", "", text.getvalue(), flags=re.DOTALL)

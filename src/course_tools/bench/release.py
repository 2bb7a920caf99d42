"""Taking a run's figures over as the release's: docs/performance.json, and the tables of docs/performance.md."""

import json
import statistics
from collections.abc import Mapping
from pathlib import Path

from course_tools.bench.measures import ITSELF, Measure, from_rows, number
from course_tools.bench.notebooks import ALONE
from course_tools.bench.time_account import KINDS
from course_tools.readme_tables import replace_between
from distlab.runtime import tables
from distlab.runtime.errors import PlainError

ABOUT = "<!-- about: written by `distlab bench --release` -->", "<!-- end of about -->"
CHAPTERS = "<!-- chapters: written by `distlab bench --release` -->", "<!-- end of the chapters -->"
MEASURES = "<!-- measures: written by `distlab bench --release` -->", "<!-- end of the measures -->"


class NothingMeasured(PlainError):
    """There is no run of the benchmark to take over; the message says what to run."""


def write(bench: Path, docs: Path) -> Path:
    """Write `docs`/performance.json and the tables of `docs`/performance.md from a run's bench.json.

    Returns the Markdown file. Raises NothingMeasured, and CannotWriteTables when that file lacks its marks.
    """
    if not bench.exists():
        raise NothingMeasured(f"There is no {bench}; run `make bench` first.")
    report = json.loads(bench.read_text())
    page, measures = docs / "performance.md", from_rows(report["measures"])
    replace_between(page, *ABOUT, ", ".join(f"{name} {value}" for name, value in report["about"].items()) + ".")
    if any(measure.part == ALONE for measure in measures):
        replace_between(page, *CHAPTERS, chapters_table(measures, report["accounts"]))
    replace_between(page, *MEASURES, measures_table(measures))
    (docs / "performance.json").write_text(json.dumps(report, indent=1) + "\n")
    return page


def chapters_table(measures: list[Measure], accounts: Mapping[str, Mapping[str, float]]) -> str:
    """A row for each notebook: seconds and memory alone; processor seconds by what they were spent on."""
    alone = {measure.name: measure.values[0] for measure in measures if measure.part == ALONE and measure.values}
    header = ["Notebook", "Elapsed, s", "Longest cell, s", "Memory, MiB", "Processor, s", *KINDS, "idle"]
    rows: list[tuple[object, ...]] = []
    for name in sorted(name for name in alone if ":" not in name):
        account = accounts.get(name, {})
        spent = [f"{account[kind]:.0f}" if kind in account else "–" for kind in (*KINDS, "idle")]
        longest, processor = alone[f"{name}: longest cell"], alone[f"{name}: processor"]
        seconds = [f"{alone[name]:.0f}", f"{longest:.0f}", f"{alone[f'{name}: memory']:,.0f}", f"{processor:.0f}"]
        rows.append((name[:2], *seconds, *spent))
    return tables.markdown(header, rows, right=tuple(range(1, len(header))))


def measures_table(measures: list[Measure]) -> str:
    """A row for everything else that was measured."""
    rows: list[tuple[object, ...]] = []
    for measure in measures:
        if measure.part == ALONE:
            continue
        if measure.skipped:
            rows.append((measure.part, measure.name, f"skipped: {measure.skipped}", "", ""))
            continue
        least, most = min(measure.values), max(measure.values)
        between = f"{number(least)} to {number(most)}" if len(measure.values) > 1 else ""
        goal = "" if measure.goal is None else f"{'≤' if measure.less_is_better else '≥'} {measure.goal:,g}"
        ratio = "" if measure.reference == ITSELF else f"; {measure.median:.3g} × {measure.reference}"
        value = f"{number(statistics.median(measure.values))} {measure.unit}".strip()
        rows.append((measure.part, measure.name, f"{value}{ratio}", between, goal))
    return tables.markdown(["Part", "What", "Median", "Spread", "Goal"], rows)

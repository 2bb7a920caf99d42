"""The parts of the benchmark, and running them; what they give goes to build/bench.json and a page."""

import json
import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import jinja2
import psutil
from cyclopts import Parameter

from course_tools import runner
from course_tools.bench import engines, of_course
from course_tools.bench.measures import ITSELF, Measure, missed_goals, number, worse
from course_tools.course_map import replace_between
from distlab import devices
from distlab.runtime import processes, tables
from distlab.runtime.errors import PlainError
from distlab.runtime.lookups import NoSuchName, require_name

BUILD = Path("build")
ABOUT = "<!-- about: written by `distlab bench --release` -->", "<!-- end of about -->"
CHAPTERS = "<!-- chapters: written by `distlab bench --release` -->", "<!-- end of the chapters -->"
MEASURES = "<!-- measures: written by `distlab bench --release` -->", "<!-- end of the measures -->"

Part = Callable[[Sequence[Path], Path], list[Measure]]

PARTS: Mapping[str, Part] = {
    "virtual-cluster": lambda course, labs: engines.measure_virtual_cluster(),
    "start": lambda course, labs: [*engines.measure_start(2), *engines.measure_start(8)],
    "training": lambda course, labs: engines.measure_training(),
    "doctor": lambda course, labs: of_course.measure_doctor(),
    "checks": lambda course, labs: of_course.measure_checks(labs),
    "grading": lambda course, labs: of_course.measure_grading(labs),
    "notebooks": lambda course, labs: of_course.measure_alone(course),
    "execute": lambda course, labs: of_course.measure_together(course),
}
"""By name, what measures; each takes the notebooks of the course and the folder of the labs."""

PAGE = jinja2.Environment(autoescape=True).from_string("""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Distributed training: the benchmark</title>
<style>
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #ddd; vertical-align: top; }
</style></head><body>
<h1>The benchmark</h1>
<p>{{ about }}</p>
{% for title, sentences in lists.items() %}<h2>{{ title }}</h2>
{% if sentences %}<ul>{% for sentence in sentences %}<li>{{ sentence }}</li>{% endfor %}</ul>{% else %}<p>None.</p>
{% endif %}{% endfor %}<h2>All measurements</h2>
<table>
<tr><th>Part</th><th>What</th><th>Median</th><th>Spread</th><th>Goal</th></tr>
{% for row in rows %}<tr>{% for text in row %}<td>{{ text.replace("`", "") }}</td>{% endfor %}</tr>
{% endfor %}</table>
</body></html>
""")


class NoSuchPart(NoSuchName):
    """The benchmark has no part of that name; the message lists those it has."""


class NothingMeasured(PlainError):
    """There is no run of the benchmark to take over; the message says what to run."""


def bench(*, only: str | None = None, to_docs: Annotated[bool, Parameter(name="--release")] = False) -> None:
    """Measure the course, and print what became worse.

    Args:
        only: Some parts by name: "training,start"; all by default.
        to_docs: Write the figures to docs/, as those of the last release.
    """
    if to_docs:
        print(release(BUILD / "bench.json", Path("docs")))
        return
    names = chosen(only)
    processes.end_on_signals()
    sentences = run(names, Path("notebooks"), Path("labs"), BUILD, lambda line: print(line, flush=True))
    print("\n".join([*sentences, f"{BUILD / 'bench.json'}\n{BUILD / 'bench.html'}"]))


def chosen(only: str | None) -> list[str]:
    """The names of the parts that `only` names, separated by commas; all by default. Raises NoSuchPart."""
    names = [name.strip() for name in (only or "").split(",") if name.strip()]
    for name in names:
        require_name(PARTS, name, "part of the benchmark", NoSuchPart)
    return names or [*PARTS]


def run(names: Sequence[str], course: Path, labs: Path, build: Path, say: Callable[[str], None] = print) -> list[str]:
    """Measure these parts, write `build`/bench.json and bench.html, and return a sentence for what became worse.

    Parts that are not named keep what an earlier bench.json has of them.
    """
    files, file = runner.choose(course), build / "bench.json"
    rows = _read(file) if file.exists() else []
    measures: list[Measure] = []
    build.mkdir(parents=True, exist_ok=True)
    for name in names:
        of_part = PARTS[name](files, labs)
        measures += of_part
        for measure in of_part:
            say(measure.line())
        renewed = {measure.part for measure in measures}
        rows = [measure for measure in rows if measure.part not in renewed] + measures
        report = {"about": about(), "notebooks": by_notebook(rows), "measures": list(map(asdict, rows))}
        file.write_text(json.dumps(report, indent=1) + "\n")  # after each part: the next may be interrupted
    lists = {
        "Worse than the last release": worse(measures, _read(runner.FIGURES)),
        "Goals that this run does not reach": missed_goals(measures),
    }
    page = PAGE.render(about=_in_words(about()), lists=lists, rows=map(_row, rows))
    (build / "bench.html").write_text(page)
    return lists["Worse than the last release"]


def about() -> dict[str, object]:
    """What the figures belong to."""
    return {
        "date": date.today().isoformat(),
        "cores": devices.cores(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "python": platform.python_version(),
        **{package: version(package) for package in ("tensorflow", "tf-keras", "numpy")},
    }


def by_notebook(measures: Sequence[Measure]) -> dict[str, dict[str, float]]:
    """For the scheduler: each notebook's seconds alone and its peak of memory in MiB."""
    alone = _alone(measures)
    return {
        name: {"seconds": round(seconds, 1), "memory_mib": round(alone[f"{name}: memory"])}
        for name, seconds in alone.items()
        if ":" not in name
    }


def release(bench: Path, docs: Path) -> Path:
    """Write `docs`/performance.json and the tables of `docs`/performance.md from a run's bench.json.

    Returns the Markdown file. Raises NothingMeasured, and CannotWriteTables when that file lacks its marks.
    """
    if not bench.exists():
        raise NothingMeasured(f"There is no {bench}; run `make bench` first.")
    page, measures = docs / "performance.md", _read(bench)
    replace_between(page, *ABOUT, f"{_in_words(json.loads(bench.read_text())['about'])}.")
    if _alone(measures):
        replace_between(page, *CHAPTERS, chapters_table(measures))
    others = [_row(measure) for measure in measures if measure.part != of_course.ALONE]
    replace_between(page, *MEASURES, tables.markdown(["Part", "What", "Median", "Spread", "Goal"], others))
    (docs / "performance.json").write_text(bench.read_text())
    return page


def chapters_table(measures: Sequence[Measure]) -> str:
    """A row for each notebook: seconds and memory alone."""
    alone = _alone(measures)
    header = ["Notebook", "Elapsed, s", "Longest cell, s", "Memory, MiB", "Processor, s"]
    rows = [
        (
            name[:2],
            f"{alone[name]:.0f}",
            f"{alone[f'{name}: longest cell']:.0f}",
            f"{alone[f'{name}: memory']:,.0f}",
            f"{alone[f'{name}: processor']:.0f}",
        )
        for name in sorted(name for name in alone if ":" not in name)
    ]
    return tables.markdown(header, rows, right=tuple(range(1, len(header))))


def _row(measure: Measure) -> tuple[str, ...]:
    """Part, what, median, spread and goal, in words."""
    if measure.skipped:
        return measure.part, measure.name, f"skipped: {measure.skipped}", "", ""
    least, most = min(measure.values), max(measure.values)
    between = f"{number(least)} to {number(most)}" if len(measure.values) > 1 else ""
    goal = "" if measure.goal is None else f"{'≤' if measure.less_is_better else '≥'} {measure.goal:,g}"
    ratio = "" if measure.reference == ITSELF else f"; {measure.median:.3g} × {measure.reference}"
    value = f"{number(statistics.median(measure.values))} {measure.unit}".strip()
    return measure.part, measure.name, f"{value}{ratio}", between, goal


def _alone(measures: Sequence[Measure]) -> dict[str, float]:
    """What was measured of each notebook by itself, by name."""
    return {
        measure.name: measure.values[0] for measure in measures if measure.part == of_course.ALONE and measure.values
    }


def _in_words(facts: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items())


def _read(file: Path) -> list[Measure]:
    return [Measure(**row) for row in json.loads(file.read_text())["measures"]]

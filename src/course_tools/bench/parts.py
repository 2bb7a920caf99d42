"""The parts of the benchmark, and running them; what they give goes to build/bench.json, a table and a page."""

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import psutil
from cyclopts import Parameter

from course_tools import runner
from course_tools.bench import engines, of_course
from course_tools.bench.measures import Measure
from course_tools.course_map import replace_between
from course_tools.html_pages import TEMPLATES, from_template
from course_tools.site.chapters import number_of
from distlab import devices
from distlab.runtime import processes, tables
from distlab.runtime.errors import PlainError
from distlab.runtime.lookups import NoSuchName, require_name

BUILD, DOCS = Path("build"), Path("docs")
ABOUT = "<!-- about: written by `distlab bench --release` -->", "<!-- end of about -->"
CHAPTERS = "<!-- chapters: written by `distlab bench --release` -->", "<!-- end of the chapters -->"
MEASURES = "<!-- measures: written by `distlab bench --release` -->", "<!-- end of the measures -->"
HEADER = ["Part", "What", "Median", "Spread", "Goal", "Reached"]

PARTS: Mapping[str, Callable[[Sequence[Path], Path], list[Measure]]] = {
    "virtual-cluster": lambda course, labs: engines.measure_virtual_cluster(),
    "training": lambda course, labs: engines.measure_training(),
    "doctor": lambda course, labs: of_course.measure_doctor(),
    "checks": lambda course, labs: of_course.measure_checks(labs),
    "grading": lambda course, labs: of_course.measure_grading(labs),
    "notebooks": lambda course, labs: of_course.measure_alone(course),
    "execute": lambda course, labs: of_course.measure_together(course),
}
"""By name, what measures; each takes the notebooks of the course and the folder of the labs."""


class NoSuchPart(NoSuchName):
    """The benchmark has no part of that name; the message lists those it has."""


class NothingMeasured(PlainError):
    """There is no run of the benchmark to take over; the message says what to run."""


def bench(*, only: str | None = None, to_docs: Annotated[bool, Parameter(name="--release")] = False) -> None:
    """Measure what has a goal, and print each part as a table.

    Args:
        only: Some parts by name: "training,doctor"; all by default.
        to_docs: Write the figures of the last run to docs/, as those of the release.
    """
    if to_docs:
        print(release(BUILD / "bench.json", DOCS))
        return
    names = [name.strip() for name in (only or ",".join(PARTS)).split(",")]
    for name in names:
        require_name(PARTS, name, "part of the benchmark", NoSuchPart)
    processes.end_on_signals()
    run(names, Path("notebooks"), Path("labs"), BUILD)
    print(f"{BUILD / 'bench.json'}\n{BUILD / 'bench.html'}")


def run(names: Sequence[str], course: Path, labs: Path, build: Path) -> None:
    """Measure these parts, and write `build`/bench.json and bench.html after each, since the next may be interrupted.

    Parts that are not named keep what an earlier bench.json has of them.
    """
    files, file = runner.choose(course), build / "bench.json"
    build.mkdir(parents=True, exist_ok=True)
    measures = read(file) if file.exists() else []
    for name in names:
        of_part = PARTS[name](files, labs)
        print(tables.markdown(HEADER, [measure.row() for measure in of_part]), flush=True)
        measures = [each for each in measures if each.part not in {measure.part for measure in of_part}] + of_part
        report = {"about": about(), "notebooks": by_notebook(measures), "measures": list(map(asdict, measures))}
        file.write_text(json.dumps(report, indent=1) + "\n")
        rows = [measure.row() for measure in measures]
        from_template(TEMPLATES / "bench.html.j2", build / "bench.html", about=about(), header=HEADER, rows=rows)


def read(file: Path) -> list[Measure]:
    """The measurements of a bench.json."""
    return [Measure(**row) for row in json.loads(file.read_text())["measures"]]


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
    """For `make execute`: each notebook's seconds alone and its peak of memory in MiB."""
    return {
        name: {"seconds": round(seconds, 1), "memory_mib": round(memory)}
        for name, seconds, _, memory in _alone(measures)
    }


def chapters_table(measures: Sequence[Measure]) -> str:
    """A row for each notebook: seconds and memory alone."""
    rows = [
        (number_of(name), f"{seconds:.0f}", f"{longest:.0f}", f"{memory:,.0f}")
        for name, seconds, longest, memory in sorted(_alone(measures))
    ]
    return tables.markdown(["Notebook", "Elapsed, s", "Longest cell, s", "Memory, MiB"], rows, right=(1, 2, 3))


def _alone(measures: Sequence[Measure]) -> list[tuple[str, float, float, float]]:
    """Each notebook that was measured by itself: its seconds, those of its longest cell, MiB."""
    values = {each.name: each.values[0] for each in measures if each.part == of_course.ALONE and not each.skipped}
    return [
        (name, values[name], values[f"{name}: longest cell"], values[f"{name}: memory"])
        for name in values
        if ":" not in name
    ]


def release(bench: Path, docs: Path) -> Path:
    """Write `docs`/performance.json and the tables of `docs`/performance.md from a run's bench.json.

    Returns the Markdown file. Raises NothingMeasured, and CannotWriteTables when that file lacks its marks.
    """
    if not bench.exists():
        raise NothingMeasured(f"There is no {bench}; run `make bench` first.")
    page, measures, facts = docs / "performance.md", read(bench), json.loads(bench.read_text())["about"]
    replace_between(page, *ABOUT, ", ".join(f"{name} {value}" for name, value in facts.items()) + ".")
    replace_between(page, *CHAPTERS, chapters_table(measures))
    # Of the labs' checks and of grading the last row counts, which is that of the slowest lab.
    rows = {
        each.part if each.part in (of_course.CHECK, of_course.GRADING) else each.name: each.row()
        for each in sorted(measures, key=lambda each: (each.part, each.values))
        if each.part != of_course.ALONE
    }
    replace_between(page, *MEASURES, tables.markdown(HEADER, [*rows.values()]))
    (docs / "performance.json").write_text(bench.read_text())
    return page

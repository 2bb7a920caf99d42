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

from course_tools.bench import measures as measured
from course_tools.bench.measures import Measure
from course_tools.chapters import chapter_notebooks, number_of
from course_tools.course_map import replace_between
from course_tools.html_pages import TEMPLATES, from_template
from distlab import devices
from distlab.runtime import processes, tables
from distlab.runtime.errors import PlainError
from distlab.runtime.lookups import require_name

BUILD, DOCS = Path("build"), Path("docs")
HEADER = ["Part", "What", "Median", "Spread", "Goal", "Reached"]
HEADER_OF_CHAPTERS = ["Notebook", "Elapsed, s", "Longest cell, s", "Memory, MiB"]

PARTS: Mapping[str, Callable[[], list[Measure]]] = {
    "virtual-cluster": measured.measure_virtual_cluster,
    "training": measured.measure_training,
    "doctor": measured.measure_doctor,
    "checks": measured.measure_checks,
    "grading": measured.measure_grading,
    "notebooks": measured.measure_alone,
    "execute": measured.measure_together,
}
"""By name, what measures in the course's folder, which is the working one."""


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
        require_name(PARTS, name, "part of the benchmark")
    chapter_notebooks(measured.NOTEBOOKS)  # which says where there is no course
    processes.end_on_signals()
    run(names, BUILD)
    print(f"{BUILD / 'bench.json'}\n{BUILD / 'bench.html'}")


def run(names: Sequence[str], build: Path) -> None:
    """Measure these parts, and write `build`/bench.json and bench.html after each, since the next may be interrupted.

    Parts that are not named keep what an earlier bench.json has of them.
    """
    file, facts = build / "bench.json", about()
    build.mkdir(parents=True, exist_ok=True)
    measures = read(file) if file.exists() else []
    for name in names:
        of_part = PARTS[name]()
        print(tables.markdown(HEADER, [measure.row() for measure in of_part]), flush=True)
        measures = [each for each in measures if each.part not in {measure.part for measure in of_part}] + of_part
        file.write_text(json.dumps({"about": facts, "measures": list(map(asdict, measures))}, indent=1) + "\n")
        rows = [measure.row() for measure in measures]
        from_template(TEMPLATES / "bench.html.j2", build / "bench.html", about=facts, header=HEADER, rows=rows)


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


def release(bench: Path, docs: Path) -> Path:
    """Write the tables of `docs`/performance.md, whose file is returned, from a run's bench.json.

    Raises PlainError without a run, and when that file lacks its marks.
    """
    if not bench.exists():
        raise PlainError(f"There is no {bench}; run `make bench` first.")
    page, measures, facts = docs / "performance.md", read(bench), json.loads(bench.read_text())["about"]
    replace_between(page, "about", ", ".join(f"{name} {value}" for name, value in facts.items()) + ".")
    alone = {each.name: each.values[0] for each in measures if each.part == measured.ALONE and not each.skipped}
    chapters = [
        (number_of(name), f"{alone[name]:.0f}", f"{alone[f'{name}: longest cell']:.0f}", f"{memory:,.0f}")
        for name in sorted(alone)
        if (memory := alone.get(f"{name}: memory"))
    ]
    replace_between(page, "chapters", tables.markdown(HEADER_OF_CHAPTERS, chapters, right=(1, 2, 3)))
    # Of the labs' checks and of grading the last row counts, which is that of the slowest lab.
    rows = {
        each.part if each.part in (measured.CHECK, measured.GRADING) else each.name: each.row()
        for each in sorted(measures, key=lambda each: (each.part, each.values))
        if each.part != measured.ALONE
    }
    replace_between(page, "measures", tables.markdown(HEADER, [*rows.values()]))
    return page

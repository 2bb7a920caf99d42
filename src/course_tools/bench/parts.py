"""The parts of the benchmark, and running them; what they give goes to build/bench.json and a page."""

import json
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import psutil
from cyclopts import Parameter

from course_tools import runner, schedule
from course_tools.bench import comparison, engines, labs_and_doctor, notebooks, page, release, start_up, training
from course_tools.bench.measures import Measure, as_rows, from_rows
from course_tools.bench.time_account import account
from distlab import devices
from distlab.runtime import processes
from distlab.runtime.lookups import NoSuchName, require_name

ACCOUNT = "account"
BUILD = Path("build")

Part = Callable[[Sequence[Path], Path], list[Measure]]

PARTS: Mapping[str, Part] = {
    "virtual-cluster": lambda course, labs: engines.measure_virtual_cluster(),
    "all-reduce": lambda course, labs: engines.measure_all_reduces(),
    "start": lambda course, labs: [*start_up.measure_start(2), *start_up.measure_start(8)],
    "training": lambda course, labs: training.measure_training(),
    "doctor": lambda course, labs: labs_and_doctor.measure_doctor(),
    "checks": lambda course, labs: labs_and_doctor.measure_checks(labs),
    "grading": lambda course, labs: labs_and_doctor.measure_grading(labs),
    "notebooks": lambda course, labs: notebooks.measure_alone(course),
    "execute": lambda course, labs: notebooks.measure_together(course),
}
"""By name, what measures; each takes the notebooks of the course and the folder of the labs."""


class NoSuchPart(NoSuchName):
    """The benchmark has no part of that name; the message lists those it has."""


def bench(*, only: str | None = None, to_docs: Annotated[bool, Parameter(name="--release")] = False) -> None:
    """Measure the course, and print what became worse.

    Args:
        only: Some parts by name: "training,start"; all by default.
        to_docs: Write the figures to docs/, as those of the last release.
    """
    if to_docs:
        print(release.write(BUILD / "bench.json", Path("docs")))
        return
    names = chosen(only)
    processes.end_on_signals()
    worse = run(names, Path("notebooks"), Path("labs"), BUILD, lambda line: print(line, flush=True))
    print("\n".join([*worse, f"{BUILD / 'bench.json'}\n{BUILD / 'bench.html'}"]))


def chosen(only: str | None) -> list[str]:
    """The names of the parts that `only` names, separated by commas; all by default. Raises NoSuchPart."""
    names = [name.strip() for name in (only or "").split(",") if name.strip()]
    for name in names:
        require_name([*PARTS, ACCOUNT], name, "part of the benchmark", NoSuchPart)
    return names or [*PARTS, ACCOUNT]


def run(names: Sequence[str], course: Path, labs: Path, build: Path, say: Callable[[str], None] = print) -> list[str]:
    """Measure these parts, write `build`/bench.json and bench.html, and return a sentence for what became worse.

    Parts that are not named keep what an earlier bench.json has of them.
    """
    files = runner.choose(course)
    file = build / "bench.json"
    kept = json.loads(file.read_text()) if file.exists() else {"measures": [], "accounts": {}}
    measures: list[Measure] = []
    rows, accounts = from_rows(kept["measures"]), kept["accounts"]
    build.mkdir(parents=True, exist_ok=True)
    for name in names:
        if name in PARTS:
            of_part = PARTS[name](files, labs)
            measures += of_part
            for measure in of_part:
                say(measure.line())
        else:
            accounts |= _accounts(files, say)
        renewed = {measure.part for measure in measures}
        rows = [measure for measure in rows if measure.part not in renewed] + measures
        report = {"about": about(), "notebooks": by_notebook(rows), "accounts": accounts, "measures": as_rows(rows)}
        file.write_text(json.dumps(report, indent=1) + "\n")  # after each part: the next may be interrupted
    before = from_rows(json.loads(schedule.FIGURES.read_text())["measures"]) if schedule.FIGURES.exists() else []
    worse, missed = comparison.sentences(measures, before), comparison.missed_goals(measures)
    page.write(build / "bench.html", about(), rows, before, accounts, worse, missed)
    return worse


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
    alone = {
        measure.name: measure.values[0] for measure in measures if measure.part == notebooks.ALONE and measure.values
    }
    return {
        name: {"seconds": round(seconds, 1), "memory_mib": round(alone[f"{name}: memory"])}
        for name, seconds in alone.items()
        if ":" not in name
    }


def _accounts(files: Sequence[Path], say: Callable[[str], None]) -> dict[str, dict[str, float]]:
    accounts: dict[str, Any] = {}
    for file in files:
        try:
            accounts[file.stem] = {kind: round(seconds, 1) for kind, seconds in account(sys.executable, file).items()}
            say(f"{file.stem}: " + ", ".join(f"{kind} {seconds:g} s" for kind, seconds in accounts[file.stem].items()))
        except RuntimeError as problem:
            say(f"{file.stem}: no account of its time, {problem}")
    return accounts

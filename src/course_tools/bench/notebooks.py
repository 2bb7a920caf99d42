"""Each notebook alone, and all of them as `make execute` runs them: seconds and memory."""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from course_tools import runner
from course_tools.bench.measures import Measure, import_seconds, plain, skipped, timed
from course_tools.resource_use import MIB, ResourceUse
from distlab import devices
from distlab.runtime import processes

ALONE, TOGETHER = "notebook", "make execute"
SECONDS_GOAL, CELL_GOAL, MEMORY_GOAL = 60.0, 20.0, 2.5 * 1024
TOGETHER_SECONDS_GOAL, TOGETHER_MEMORY_GOAL = 360.0, 4.0 * 1024


def measure_alone(notebooks: Sequence[Path]) -> list[Measure]:
    """Each notebook with nothing beside it: elapsed and processor seconds, the longest cell, peak memory."""
    measures = []
    for notebook in notebooks:
        reference = [import_seconds()]
        with tempfile.TemporaryDirectory(prefix="distlab-") as build:
            [outcome] = runner.execute(runner.ExecutionPlan([notebook], Path(build))).values()
        if outcome.status != runner.OK:
            measures.append(skipped(ALONE, notebook.stem, outcome.error or "it was skipped"))
            continue
        measures += [
            timed(ALONE, notebook.stem, [outcome.seconds], reference, SECONDS_GOAL),
            timed(ALONE, f"{notebook.stem}: processor", [outcome.processor_seconds], reference),
            timed(ALONE, f"{notebook.stem}: longest cell", [max(outcome.cell_seconds)], reference, CELL_GOAL),
            plain(ALONE, f"{notebook.stem}: memory", "MiB", [outcome.peak_memory_mib], MEMORY_GOAL),
        ]
    return measures


def measure_together(notebooks: Sequence[Path]) -> list[Measure]:
    """One run of all notebooks as the scheduler orders them."""
    reference = [import_seconds()]
    with tempfile.TemporaryDirectory(prefix="distlab-") as build:
        plan = runner.ExecutionPlan(notebooks, Path(build), at_once=runner.default_at_once(devices.cores()))
        mark = processes.new_mark()
        begin = time.perf_counter()
        with processes.marked(mark), ResourceUse(mark) as use:
            outcomes = runner.execute(plan)
        seconds = time.perf_counter() - begin
    failed = [name for name, outcome in outcomes.items() if outcome.status == runner.FAILED]
    if failed:
        return [skipped(TOGETHER, "all notebooks", f"{', '.join(failed)} failed")]
    return [
        timed(TOGETHER, "all notebooks", [seconds], reference, TOGETHER_SECONDS_GOAL),
        plain(TOGETHER, "memory", "MiB", [use.peak_memory / MIB], TOGETHER_MEMORY_GOAL),
    ]

"""What a student, an instructor and CI wait for: notebooks, checks, grading a class, the doctor."""

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import nbformat

from course_tools import lab_sources, runner
from course_tools.bench.measures import Measure, import_seconds, plain, skipped, timed
from course_tools.resource_use import MIB, ResourceUse
from distlab import devices
from distlab.runtime import processes

ALONE, TOGETHER = "notebook", "make execute"
SECONDS_GOAL, CELL_GOAL, MEMORY_GOAL = 60.0, 20.0, 2.5 * 1024
TOGETHER_SECONDS_GOAL, TOGETHER_MEMORY_GOAL = 360.0, 4.0 * 1024
GRADING, CHECK, DOCTOR = "grading", "check", "doctor"
STUDENTS = 30
GRADING_GOAL, CHECK_GOAL, DOCTOR_GOAL = 60.0, 1.5, 10.0
SECONDS = 600


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


def measure_grading(labs: Path, students: int = STUDENTS) -> list[Measure]:
    """Elapsed seconds of `distlab grade` for a class whose students all handed in the solution, by lab."""
    measures = []
    for source in lab_sources.chosen(labs):
        reference, topic = [import_seconds()], source.parent.name
        solution = lab_sources.solved(lab_sources.convert(source))
        with tempfile.TemporaryDirectory(prefix="distlab-") as folder:
            Path(folder, "labs").symlink_to(labs.resolve())
            for student in range(students):
                file = Path(folder, "submissions", f"student{student:02d}", topic, lab_sources.STUDENT)
                file.parent.mkdir(parents=True)
                nbformat.write(solution, file)
            command = [sys.executable, "-m", "course_tools", "grade", "submissions", "--only", topic[:2]]
            begin = time.perf_counter()
            finished = processes.run(command, SECONDS, cwd=folder)
            seconds = time.perf_counter() - begin
        name = f"lab {topic[:2]}, {students} notebooks"
        if finished.status == 0:
            measures.append(timed(GRADING, name, [seconds], reference, GRADING_GOAL))
        else:
            measures.append(skipped(GRADING, name, (finished.output.strip().splitlines() or ["no answer"])[-1]))
    return measures


def measure_checks(labs: Path) -> list[Measure]:
    """The slowest check of each lab, in its solution's notebook."""
    measures = []
    for source in lab_sources.chosen(labs):
        reference = [import_seconds()]
        solution = source.with_name(lab_sources.SOLUTION)
        with tempfile.TemporaryDirectory(prefix="distlab-") as build:
            [outcome] = runner.execute(runner.ExecutionPlan([solution], Path(build))).values()
        name = f"lab {source.parent.name[:2]}, the slowest"
        if outcome.status != runner.OK:
            measures.append(skipped(CHECK, name, outcome.error or "it did not run"))
            continue
        cells = nbformat.read(solution, as_version=4).cells
        seconds = [used for cell, used in zip(cells, outcome.cell_seconds, strict=True) if ".check(" in cell.source]
        measures.append(timed(CHECK, name, [max(seconds)], reference, CHECK_GOAL))
    return measures


def measure_doctor() -> list[Measure]:
    """Elapsed seconds of `distlab doctor`, three times."""
    reference, seconds = [], []
    for _ in range(3):
        reference.append(import_seconds())
        begin = time.perf_counter()
        processes.run([sys.executable, "-m", "course_tools", "doctor"], SECONDS, env=os.environ)
        seconds.append(time.perf_counter() - begin)
    return [timed(DOCTOR, "distlab doctor", seconds, reference, DOCTOR_GOAL)]

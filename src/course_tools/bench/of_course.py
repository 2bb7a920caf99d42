"""What a student, an instructor and CI wait for: notebooks, checks, grading a class, the doctor."""

import sys
import tempfile
import time
import timeit
from pathlib import Path

import nbformat

from course_tools import lab_sources, runner
from course_tools.bench.measures import Measure
from course_tools.chapters import chapter_notebooks
from distlab.runtime import processes

NOTEBOOKS = Path("notebooks")
ALONE, TOGETHER, GRADING, CHECK, DOCTOR = "notebook", "make execute", "grading", "check", "doctor"
SECONDS_GOAL, CELL_GOAL, MEMORY_GOAL = 60.0, 20.0, 2.5 * 1024
TOGETHER_SECONDS_GOAL, TOGETHER_MEMORY_GOAL = 360.0, 4.0 * 1024
GRADING_GOAL, CHECK_GOAL, DOCTOR_GOAL = 60.0, 1.5, 10.0
STUDENTS = 30
MOST_SECONDS = 600


def measure_alone() -> list[Measure]:
    """Each notebook with nothing beside it: elapsed seconds, the longest cell, peak memory."""
    measures = []
    for notebook in chapter_notebooks(NOTEBOOKS):
        outcome, name = _run_alone(notebook), notebook.stem
        measures.append(Measure(ALONE, name, "s", [outcome.seconds], SECONDS_GOAL, skipped=outcome.error))
        if not outcome.error:
            measures += [
                Measure(ALONE, f"{name}: longest cell", "s", [max(outcome.cell_seconds)], CELL_GOAL),
                Measure(ALONE, f"{name}: memory", "MiB", [outcome.peak_memory_mib], MEMORY_GOAL),
            ]
    return measures


def measure_together() -> list[Measure]:
    """One run of all notebooks as `make execute` runs them."""
    mark, begin = processes.new_mark(), time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="distlab-") as folder:
        Path(folder, NOTEBOOKS).symlink_to(NOTEBOOKS.resolve())
        run = processes.start([sys.executable, "-m", "course_tools", "execute"], mark, cwd=folder)
        try:
            *_, peak = runner.peak_memory(run, mark)
        finally:
            processes.end(mark)
    seconds, reason = time.perf_counter() - begin, "a notebook failed" if run.returncode else None
    return [
        Measure(TOGETHER, "all notebooks", "s", [seconds], TOGETHER_SECONDS_GOAL, skipped=reason),
        Measure(TOGETHER, "memory", "MiB", [peak], TOGETHER_MEMORY_GOAL, skipped=reason),
    ]


def measure_grading() -> list[Measure]:
    """Elapsed seconds of `distlab grade` for a class whose students all handed in the solution, by lab."""
    measures = []
    for source in lab_sources.chosen(lab_sources.LABS):
        topic = source.parent.name
        with tempfile.TemporaryDirectory(prefix="distlab-") as folder:
            Path(folder, "labs").symlink_to(lab_sources.LABS.resolve())
            for student in range(STUDENTS):
                file = Path(folder, "submissions", f"student{student:02d}", topic, lab_sources.STUDENT)
                file.parent.mkdir(parents=True)
                file.write_bytes(source.with_name(lab_sources.SOLUTION).read_bytes())
            command = [sys.executable, "-m", "course_tools", "grade", "submissions", "--only", topic[:2]]
            begin = time.perf_counter()
            finished = processes.run(command, MOST_SECONDS, cwd=folder)
            seconds = time.perf_counter() - begin
        reason = None if finished.status == 0 else (finished.output.strip().splitlines() or ["no answer"])[-1]
        name = f"lab {topic[:2]}, {STUDENTS} notebooks"
        measures.append(Measure(GRADING, name, "s", [seconds], GRADING_GOAL, skipped=reason))
    return measures


def measure_checks() -> list[Measure]:
    """The slowest check of each lab, in its solution's notebook."""
    measures = []
    for source in lab_sources.chosen(lab_sources.LABS):
        solution = source.with_name(lab_sources.SOLUTION)
        outcome = _run_alone(solution)
        cells = nbformat.read(solution, as_version=4).cells
        seconds = [used for cell, used in zip(cells, outcome.cell_seconds, strict=False) if ".check(" in cell.source]
        name = f"lab {source.parent.name[:2]}, the slowest"
        measures.append(Measure(CHECK, name, "s", [max(seconds, default=0.0)], CHECK_GOAL, skipped=outcome.error))
    return measures


def measure_doctor() -> list[Measure]:
    """Elapsed seconds of `distlab doctor`, three times."""
    command = [sys.executable, "-m", "course_tools", "doctor"]
    seconds = timeit.repeat(lambda: processes.run(command, MOST_SECONDS), number=1, repeat=3)
    return [Measure(DOCTOR, "distlab doctor", "s", seconds, DOCTOR_GOAL)]


def _run_alone(notebook: Path) -> runner.NotebookOutcome:
    with tempfile.TemporaryDirectory(prefix="distlab-") as build:
        [outcome] = runner.execute(runner.ExecutionPlan([notebook], Path(build))).values()
    return outcome

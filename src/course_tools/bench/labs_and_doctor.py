"""What an instructor and a student wait for: grading a class, the answer of a check, the doctor."""

import os
import sys
import tempfile
import time
from pathlib import Path

import nbformat

from course_tools import lab_sources, runner
from course_tools.bench.measures import Measure, import_seconds, skipped, timed
from distlab.runtime import processes

GRADING, CHECK, DOCTOR = "grading", "check", "doctor"
STUDENTS = 30
GRADING_GOAL, CHECK_GOAL, DOCTOR_GOAL = 60.0, 1.5, 10.0
SECONDS = 600


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

"""What is measured: what a student, an instructor and CI wait for, the virtual ring, and ways of training."""

import json
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from course_tools import lab_sources, runner
from course_tools.chapters import chapter_notebooks
from distlab import launch
from distlab.runtime import processes

NOTEBOOKS = Path("notebooks")
PROGRAM = NOTEBOOKS / "programs" / "11_scaling_and_profiling" / "measure_throughput.py"
ALONE, GRADING, CHECK, TRAINING = "notebook", "grading", "check", "training"
DISTLAB = [sys.executable, "-m", "course_tools"]
STUDENTS, ROUNDS = 30, 3
MOST_SECONDS = 600


@dataclass(frozen=True)
class Measure:
    """One line of the benchmark.

    values: in `unit`, one for each round.  goal: the most that their median should be; the least, with `at_least`.
    skipped: why the values do not count.
    """

    part: str
    name: str
    unit: str
    values: list[float]
    goal: float
    at_least: bool = False
    skipped: str | None = None

    def row(self) -> tuple[str, str, str, str, str, str]:
        """Part, what, median, spread, goal and whether it is reached, in words."""
        goal = f"{'≥' if self.at_least else '≤'} {self.goal:,g}"
        if self.skipped:
            return self.part, self.name, f"skipped: {self.skipped}", "", goal, ""
        median = statistics.median(self.values)
        between = f"{number(min(self.values))} to {number(max(self.values))}" if len(self.values) > 1 else ""
        reached = median >= self.goal if self.at_least else median <= self.goal
        return self.part, self.name, f"{number(median)} {self.unit}".strip(), between, goal, "yes" if reached else "no"


def number(value: float) -> str:
    """Three figures, and all digits before the point: 0.178, 5.54, 36,400."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def measure_alone() -> list[Measure]:
    """Each notebook with nothing beside it: elapsed seconds, the longest cell, peak memory."""
    measures = []
    for notebook in chapter_notebooks(NOTEBOOKS):
        outcome, name = _run_alone(notebook), notebook.stem
        measures.append(Measure(ALONE, name, "s", [outcome.seconds], 60.0, skipped=outcome.error))
        if not outcome.error:
            measures += [
                Measure(ALONE, f"{name}: longest cell", "s", [max(outcome.cell_seconds)], 20.0),
                Measure(ALONE, f"{name}: memory", "MiB", [outcome.peak_memory_mib], 2.5 * 1024),
            ]
    return measures


def _run_alone(notebook: Path) -> runner.NotebookOutcome:
    with tempfile.TemporaryDirectory(prefix="distlab-") as build:
        [outcome] = runner.run(runner.ExecutionPlan([notebook], Path(build))).values()
    return outcome


def measure_together() -> list[Measure]:
    """One run of all notebooks as `make execute` runs them."""
    mark, begin = processes.new_mark(), time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="distlab-") as folder:
        Path(folder, NOTEBOOKS).symlink_to(NOTEBOOKS.resolve())
        run = processes.start([*DISTLAB, "execute"], mark, cwd=folder)
        try:
            *_, peak = runner.peak_memory(run, mark)
        finally:
            processes.end(mark)
    seconds, reason = time.perf_counter() - begin, "a notebook failed" if run.returncode else None
    return [
        Measure("make execute", "all notebooks", "s", [seconds], 360.0, skipped=reason),
        Measure("make execute", "memory", "MiB", [peak], 4.0 * 1024, skipped=reason),
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
            begin = time.perf_counter()
            command = [*DISTLAB, "grade", "submissions", "--only", topic[:2]]
            finished = processes.run(command, MOST_SECONDS, cwd=folder)
            seconds = time.perf_counter() - begin
        reason = None if finished.status == 0 else (finished.output.strip().splitlines() or ["no answer"])[-1]
        name = f"lab {topic[:2]}, {STUDENTS} notebooks"
        measures.append(Measure(GRADING, name, "s", [seconds], 60.0, skipped=reason))
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
        measures.append(Measure(CHECK, name, "s", [max(seconds, default=0.0)], 1.5, skipped=outcome.error))
    return measures


def measure_doctor() -> list[Measure]:
    """Elapsed seconds of `distlab doctor`, three times."""
    seconds = timeit.repeat(lambda: processes.run([*DISTLAB, "doctor"], MOST_SECONDS), number=1, repeat=ROUNDS)
    return [Measure("doctor", "distlab doctor", "s", seconds, 10.0)]


RINGS = (1024, True, 3.0, 300.0), (4096, False, 30.0, 0.0)
"""Ranks, whether the events are kept, and the goals: processor seconds, and MiB unless it is 0."""

# In a process of its own, so that its peak is that of this run alone; NumPy is imported before the clock starts.
_RING = """
import json, re, resource, sys, time
from pathlib import Path
import numpy as np
from distlab.collectives import ring_all_reduce
from distlab.simulate import World
size, keep = int(sys.argv[1]), sys.argv[2] == "True"
inputs = [np.full(size, rank, np.float64) for rank in range(size)]
start = time.process_time()
World(size).run(ring_all_reduce, inputs, keep_events=keep)
seconds = time.process_time() - start
if sys.platform == "linux":  # ru_maxrss begins with what the process that started this one had
    peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 2**10
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps([seconds, peak]))
"""


def measure_virtual_cluster() -> list[Measure]:
    """The ring all-reduce by number of ranks: processor seconds, and the process's peak of resident memory."""
    measures = []
    for size, keep, most_seconds, most_memory in RINGS:
        name = f"ring of {size:,} ranks, events {'kept' if keep else 'counted'}"
        command = [sys.executable, "-c", _RING, str(size), str(keep)]
        output = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=MOST_SECONDS).stdout
        seconds, memory = json.loads(output)
        measures.append(Measure("virtual cluster", name, "s", [seconds], most_seconds))
        if most_memory:
            measures.append(Measure("virtual cluster", f"{name}: memory", "MiB", [memory], most_memory))
    return measures


Way = tuple[Any, ...]
"""One run of the program: its `--way`, workers or ranks, and further options."""

CORE_FOR_CORE = ("--model", "cnn", "--cores", 1, "--batch", 1024)
OURS, LECTURE = ("ours", 1), ("lecture", 1)
RANK, RANKS = (("horovod", count, *CORE_FOR_CORE) for count in (1, 2))
WORKER, WORKERS = (("multi_worker", count, *CORE_FOR_CORE) for count in (1, 2))
RATIOS = (
    ("ours, 1 device, to the lecture's, 1 device", OURS, LECTURE, 4.0),
    ("2 ranks of Horovod, a core each, to 1 rank of Horovod, a core", RANKS, RANK, 1.7),
    ("2 workers, a core each, to 1 worker, a core", WORKERS, WORKER, 1.5),
)
"""What is divided by what in the same round, and the least that the median should be."""


def measure_training() -> list[Measure]:
    """For each pair of ways the ratios of their rates."""
    return [ratio(*row) for row in RATIOS]


def ratio(name: str, way: Way, reference: Way, goal: float) -> Measure:
    """Two ways in processes of their own, in turns, ROUNDS times; skipped with the reason where one of them fails."""
    values, reason = [], None
    try:
        for _ in range(ROUNDS):
            values.append(trained(*way)["images_per_second"] / trained(*reference)["images_per_second"])
    except (launch.HorovodMissing, launch.LaunchError) as error:
        reason = str(error).splitlines()[0]
    return Measure(TRAINING, name, "", values, goal, at_least=True, skipped=reason)


def trained(way: str, count: int, *more: object) -> Any:
    """The result of the program's run with these options. Raises HorovodMissing and LaunchError."""
    options: dict[str, Any] = {"echo": False, "result": True, "seconds": MOST_SECONDS, "start_seconds": MOST_SECONDS}
    if way == "horovod":
        launch.require_horovod()
        return launch.horovodrun(PROGRAM, "--way", way, *more, ranks=count, **options).result
    return launch.tensorflow(PROGRAM, "--way", way, *more, workers=count, **options).result

"""`make execute`: every notebook in a fresh kernel, watched and limited, with pages and a report at the end."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from io import FileIO
from pathlib import Path
from typing import IO

import nbformat

from course_tools import schedule
from course_tools.notebook_parameters import parameters_without_effect, tags
from course_tools.notebooks import SECONDS_PER_CELL, NoSuchNotebook, chosen
from course_tools.progress import Progress
from course_tools.resource_use import MEMORY_MEASURE
from course_tools.runner_child import (
    FAILED,
    OK,
    SECONDS_BETWEEN_LOOKS,
    SKIPPED,
    NotebookJob,
    NotebookOutcome,
    first_line,
)
from course_tools.site.chapters import chapter_notebooks, how_to_repair
from distlab import launch
from distlab.launch import rank_process
from distlab.runtime import processes
from distlab.runtime.own_time import WatchedClock
from distlab.runtime.worker_pool import run_all

__all__ = ["FAILED", "OK", "SKIPPED"]

REQUIREMENTS = {"needs-horovod": launch.horovod_problem}
"""By tag of a notebook's first cell: returns None if what it needs is there, else the reason and the fix."""

Outcomes = Mapping[str, NotebookOutcome]
"""How each notebook ended, by name."""

BYTES_PER_LOG = 10_000_000
RUNNER_CHILD = "course_tools.runner_child"
SECONDS_FOR_LOG = 5.0


class ExecutionInterrupted(KeyboardInterrupt):
    """The run was interrupted; it has the names of the notebooks that were `finished`, and of the `unfinished`."""

    def __init__(self, finished: Sequence[str], unfinished: Sequence[str], status: int) -> None:
        """With both lists, and the exit status, 128 + the number of the signal."""
        super().__init__()
        self.finished, self.unfinished, self.status = finished, unfinished, status


@dataclass
class ExecutionPlan:
    """What to run and how: notebooks, folder for results, parameters, limits in seconds, how many at once."""

    notebooks: Sequence[Path]
    build: Path
    parameters: dict[str, object] = field(default_factory=dict)
    seconds_per_cell: int = SECONDS_PER_CELL
    seconds_per_notebook: int = 3600
    at_once: int = 1


class NotebookLimit(threading.Thread):
    """Ends what carries a mark after so many seconds, without those in which this process stands still."""

    def __init__(self, seconds: float, mark: str) -> None:
        """It counts from `start` to `cancel`."""
        super().__init__(daemon=True)
        self.seconds, self.mark = seconds, mark
        self.is_reached = False
        self._cancelled = threading.Event()

    def run(self) -> None:
        """Look at the clock until the end."""
        clock = WatchedClock()
        ends_by = clock.now() + self.seconds
        while not self._cancelled.wait(SECONDS_BETWEEN_LOOKS):
            if clock.now() > ends_by:
                self.is_reached = True
                processes.end(self.mark)
                return

    def cancel(self) -> None:
        """Stop counting."""
        self._cancelled.set()


def choose(folder: Path, only: str | None = None) -> list[Path]:
    """The notebooks of a folder in order; `only` is that of `notebooks.chosen`.

    Raises NoSuchNotebook for one that is not there, or when there is none at all.
    """
    files = chapter_notebooks(folder)
    if not files:
        raise NoSuchNotebook(f"There is no notebook in {folder.resolve()}; run this in the course's folder.")
    return chosen(files, only)


def missing_requirement(notebook: Path) -> str | None:
    """Why this notebook cannot run here, in one sentence; None when it can."""
    first = nbformat.read(notebook, as_version=4).cells[:1]
    of_first = [tag for cell in first for tag in tags(cell)]
    return next(filter(None, (REQUIREMENTS[tag]() for tag in of_first if tag in REQUIREMENTS)), None)


def default_at_once(cores: int) -> int:
    """How many notebooks to run side by side: one for each core, four at most for the memory's sake.

    Of those that start several processes only one runs at a time; the others keep one core busy most of the time.
    """
    return max(1, min(cores, 4))


def execute(plan: ExecutionPlan) -> dict[str, NotebookOutcome]:
    """Run the planned notebooks, report their progress, and return each one's outcome by name, in order.

    Writes `executed/NAME.ipynb` and `logs/NAME.log` under `plan.build`. When this returns or is interrupted, nothing
    that a notebook started is alive.
    """
    mark = processes.new_mark()
    choose = schedule.chooser(schedule.needs(plan.notebooks), schedule.memory_for(plan.at_once))
    ended: list[str] = []
    stopping = threading.Event()

    def stop() -> None:
        stopping.set()
        processes.end(mark)

    with (
        tempfile.TemporaryDirectory(prefix="distlab-") as scratch,
        processes.guarded(mark, scratch),
        Progress(len(plan.notebooks)) as progress,
    ):

        def run(notebook: Path) -> NotebookOutcome:
            try:
                outcome = run_one(notebook, plan, mark, progress, Path(scratch))
            except OSError as fault:  # the folder for results is full, or cannot be written to
                outcome = NotebookOutcome(FAILED, 0, 0, error=f"{fault.filename or plan.build}: {fault.strerror}")
            if not stopping.is_set():
                ended.append(notebook.stem)
                progress.finished(notebook.stem, outcome)
            return outcome

        try:
            outcomes = run_all(plan.notebooks, run, plan.at_once, stop, choose)
        except (KeyboardInterrupt, SystemExit) as interrupt:  # SystemExit: see processes.end_on_signals
            status = int(interrupt.code or 0) if isinstance(interrupt, SystemExit) else 130
            names = [notebook.stem for notebook in plan.notebooks]
            unfinished = [name for name in names if name not in ended]
            raise ExecutionInterrupted([name for name in names if name in ended], unfinished, status) from interrupt
    return {notebook.stem: outcome for notebook, outcome in zip(plan.notebooks, outcomes, strict=True)}


def run_one(notebook: Path, plan: ExecutionPlan, outer_mark: str, progress: Progress, folder: Path) -> NotebookOutcome:
    """Run one notebook in a process of its own within the plan's limits; end whatever it leaves behind.

    Its temporary files are in `folder`.
    """
    executed = plan.build / "executed" / notebook.name
    log = plan.build / "logs" / f"{notebook.stem}.log"
    for file in (executed, log):
        file.parent.mkdir(parents=True, exist_ok=True)
    executed.unlink(missing_ok=True)
    try:
        reason, idle = missing_requirement(notebook), parameters_without_effect(notebook, plan.parameters)
    except Exception as fault:  # whatever lies where a notebook should be
        why = f"{type(fault).__name__}: {first_line(str(fault))[:120]}"
        error = f"it cannot be read as a notebook ({why}); {how_to_repair(notebook)}"
        return NotebookOutcome(FAILED, 0, 0, error=error)
    if reason:
        return NotebookOutcome(SKIPPED, 0, 0, error=reason)
    if idle:
        return NotebookOutcome(FAILED, 0, 0, error=idle)
    mark = processes.new_mark()
    start = time.perf_counter()
    scratch_folder = tempfile.TemporaryDirectory(prefix=f"{notebook.stem[:2]}-", dir=folder)
    with scratch_folder as scratch, log.open("wb", buffering=0) as log_file:
        job_file = Path(scratch) / "job.json"
        job = NotebookJob(str(notebook), str(executed), plan.seconds_per_cell, plan.parameters)
        job_file.write_text(json.dumps(asdict(job)))
        child = [sys.executable, "-P", "-m", RUNNER_CHILD, str(job_file)]
        # Notebooks put their files into the temporary folder, which goes with this block whatever happens to them.
        # IPython's and Keras's own folders are there too: what is set for other notebooks would change the outputs.
        own_folders = {"TMPDIR": scratch, "IPYTHONDIR": str(Path(scratch) / "ipython")}
        own_folders["KERAS_HOME"] = os.environ.get("KERAS_HOME") or str(Path(scratch) / "keras")
        process = processes.start(
            # In a process that ends whatever the kernel leaves, also what has cleaned its environment.
            [sys.executable, "-I", "-S", rank_process.__file__, "-", *child],
            f"{outer_mark} {mark}",
            env=os.environ | own_folders,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            errors="replace",
        )
        limit = NotebookLimit(plan.seconds_per_notebook, mark)
        limit.start()
        logging = threading.Thread(target=_write_log, args=(process.stderr, log_file), daemon=True)
        logging.start()
        try:
            outcome = _follow(process.stdout or (), notebook.stem, progress)
            process.wait()
        finally:
            limit.cancel()
            processes.end(mark)
            logging.join(SECONDS_FOR_LOG)
    seconds = time.perf_counter() - start
    if outcome is None and limit.is_reached:
        error = f"the notebook ran longer than {plan.seconds_per_notebook} s"
        return NotebookOutcome(FAILED, seconds, 0, error=error)
    return outcome or NotebookOutcome(FAILED, seconds, 0, error=f"it ended without an outcome, see {log}")


def _write_log(pipe: IO[str] | None, log: FileIO) -> None:
    """Write what a notebook's processes say on the error stream, up to BYTES_PER_LOG; the rest is read and dropped."""
    while pipe and (piece := os.read(pipe.fileno(), 65_536)):
        with suppress(OSError, ValueError):  # a full disk must not hold up who writes; nor a log that is closed
            if log.tell() < BYTES_PER_LOG:
                log.write(piece)


def _follow(lines: Iterable[str], name: str, progress: Progress) -> NotebookOutcome | None:
    """The outcome that the child process prints in the end; None when it ends without one."""
    outcome = None
    for line in lines:
        event = json.loads(line)
        if "outcome" in event:
            outcome = NotebookOutcome(**event["outcome"])
        else:
            progress.cell(name, event["cell"], event["cells"])
    return outcome


def summary(outcomes: Outcomes) -> str:
    """What failed, with notebook, cell and error, or that nothing did; and what was skipped."""
    lines = []
    skipped = [name for name, outcome in outcomes.items() if outcome.status == SKIPPED]
    for name, outcome in outcomes.items():
        if outcome.status != FAILED:
            continue
        place = "" if outcome.failing_cell is None else f", cell {outcome.failing_cell} ({outcome.failing_line})"
        lines.append(f"FAILED {name}{place}: {outcome.error}")
    left_out = [f"Skipped {name}: {outcomes[name].error}" for name in skipped]
    if not lines:
        ran = len(outcomes) - len(skipped)
        which = {0: "No notebook ran", 1: "The notebook ran"}.get(ran, f"All {ran} notebooks ran")
        return "\n".join([f"{which}{' without an error' if ran else ''}.", *left_out])
    which = "The notebook" if len(outcomes) == 1 else f"{len(lines)} of {len(outcomes)} notebooks"
    return "\n".join([f"{which} failed:", *lines, *left_out])


def write_report(outcomes: Outcomes, plan: ExecutionPlan) -> Path:
    """Write `report.json`: the plan's parameters and limits, and every notebook's seconds, memory, status and fault."""
    report = {
        "parameters": plan.parameters,
        "at_once": plan.at_once,
        "memory_measure": MEMORY_MEASURE,
        "notebooks": [{"notebook": name, **asdict(outcome)} for name, outcome in outcomes.items()],
    }
    file = plan.build / "report.json"
    file.write_text(json.dumps(report, indent=2) + "\n")
    return file

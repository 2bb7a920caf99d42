"""`make execute`: papermill runs every notebook in processes of its own, watched and limited; a report at the end."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

import nbformat
import psutil
from nbformat import NotebookNode
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn

from course_tools.notebooks import SECONDS_PER_CELL, chosen
from course_tools.resource_use import MIB, ResourceUse
from course_tools.site.chapters import chapter_notebooks, how_to_repair
from distlab import launch
from distlab.runtime import processes

OK, FAILED, SKIPPED = "ok", "failed", "skipped"

REQUIREMENTS = {"needs-horovod": launch.horovod_problem}
"""By tag of a notebook's first cell: returns None if what it needs is there, else the reason and the fix."""

FIGURES = Path(__file__).parents[2] / "docs" / "performance.json"
"""What each notebook took when the course was last measured (see `make bench`)."""

UNKNOWN_SECONDS = 60.0  # for a notebook that was never measured
MIB_PER_NOTEBOOK = 2048.0
SECONDS_TO_START, SECONDS_BETWEEN_LOOKS = 300, 0.25
MEGABYTES_PER_LOG = 10

_STARTS = re.compile(
    r"\blaunch\.(tensorflow|mpirun|horovodrun|torchrun|mxnet|start_engines)\(|\bLoginNode\(|\bmpirun\b.*-np"
)
_PAPERMILL = """
import json, logging, papermill, sys
logging.basicConfig(level=logging.INFO, format="%(message)s")
job = json.loads(sys.argv[1])
try:
    papermill.execute_notebook(**job)
except RuntimeError as fault:
    if "Kernel died before replying" not in str(fault):
        raise
    # Its ports were free when they were chosen; a connection may have taken one before it listened.
    papermill.execute_notebook(**job)
"""
_BEGUN = re.compile(rb"^Executing Cell (\d+)-", re.MULTILINE)
_OF_PAPERMILL = "papermill-error-cell-tag"
"""The tag of the cells in which papermill says where a notebook has failed."""


@dataclass
class NotebookOutcome:
    """How a run ended: OK, FAILED or SKIPPED, the error or the reason; number and first line of the failing cell.

    cell_seconds: elapsed, of each cell that has run, 0 of text.
    """

    status: str
    seconds: float = 0
    peak_memory_mib: float = 0
    cell_seconds: list[float] = field(default_factory=list)
    failing_cell: int | None = None
    failing_line: str | None = None
    error: str | None = None


Outcomes = Mapping[str, NotebookOutcome]
"""How each notebook ended, by name."""


@dataclass
class ExecutionPlan:
    """What to run and how: notebooks, folder for results, parameters, the limit of a cell, how many at once."""

    notebooks: Sequence[Path]
    build: Path
    parameters: dict[str, object] = field(default_factory=dict)
    seconds_per_cell: int = SECONDS_PER_CELL
    at_once: int = 1


def choose(folder: Path, only: str | None = None) -> list[Path]:
    """The notebooks of a folder in order; `only` is that of `notebooks.chosen`."""
    return chosen(chapter_notebooks(folder), only)


def missing_requirement(notebook: Path) -> str | None:
    """Why this notebook cannot run here, in one sentence; None when it can."""
    tags = [tag for cell in _cells(notebook)[:1] for tag in cell.metadata.get("tags", [])]
    return next(filter(None, (REQUIREMENTS[tag]() for tag in tags if tag in REQUIREMENTS)), None)


def default_at_once(cores: int) -> int:
    """How many notebooks to run side by side: one for each core, four at most, and as many as the free memory holds."""
    return max(1, min(cores, 4, int(psutil.virtual_memory().available / MIB / MIB_PER_NOTEBOOK)))


def in_lanes(notebooks: Sequence[Path], figures: Path = FIGURES) -> tuple[list[Path], list[Path]]:
    """The notebooks that start several processes, of which one runs at a time, and the others; the longest first."""
    measures = json.loads(figures.read_text())["measures"] if figures.exists() else []
    seconds = {each["name"]: each["values"][0] for each in measures if each["values"]}
    lanes: tuple[list[Path], list[Path]] = [], []
    for notebook in sorted(notebooks, key=lambda each: seconds.get(each.stem, UNKNOWN_SECONDS), reverse=True):
        starts = any(_STARTS.search(cell.source) for cell in _cells(notebook) if cell.cell_type == "code")
        lanes[0 if starts else 1].append(notebook)
    return lanes


def execute(plan: ExecutionPlan) -> dict[str, NotebookOutcome]:
    """Run the planned notebooks, report their progress, and return each one's outcome by name, in order.

    Writes `executed/NAME.ipynb` and `logs/NAME.log` under `plan.build`. When this returns or is interrupted, nothing
    that a notebook started is alive; the outputs of earlier runs stay until a notebook has ended.
    """
    for name in ("executed", "logs"):
        (plan.build / name).mkdir(parents=True, exist_ok=True)
    mark, stopping = processes.new_mark(), threading.Event()
    crowded, others = map(deque, in_lanes(plan.notebooks))
    outcomes: dict[Path, NotebookOutcome] = {}
    # A kernel sets FORCE_COLOR for its programs, which makes no terminal of a file.
    console = Console(highlight=False, soft_wrap=True, force_terminal=sys.stdout.isatty())
    columns = (TextColumn("{task.description}"), MofNCompleteColumn())
    with (
        tempfile.TemporaryDirectory(prefix="distlab-") as scratch,
        processes.guarded(mark, scratch),
        Progress(
            *columns, console=console, refresh_per_second=2, transient=True, disable=not console.is_terminal
        ) as bars,
        ThreadPoolExecutor(plan.at_once) as pool,
    ):
        together = bars.add_task("notebooks done", total=len(plan.notebooks))

        def run(notebook: Path) -> None:
            name = notebook.stem
            cells = len(_cells(notebook)) + bool(plan.parameters)  # for which papermill adds a cell
            bar = bars.add_task(f"{name}: cell", total=cells)
            folder = Path(tempfile.mkdtemp(prefix=f"{name[:2]}-", dir=scratch))
            outcome = run_one(notebook, plan, mark, folder, stopping, lambda cell: bars.update(bar, completed=cell))
            bars.remove_task(bar)
            if not stopping.is_set():
                if (executed := folder / notebook.name).exists():
                    shutil.move(executed, plan.build / "executed" / notebook.name)
                outcomes[notebook] = outcome
                bars.advance(together)
                used = f"{outcome.seconds:.0f} s, {outcome.peak_memory_mib:,.0f} MiB"
                console.print(f"{name}: {outcome.status}, {outcome.error if outcome.status == SKIPPED else used}")

        def work(*lanes: deque[Path]) -> None:
            for lane in lanes:
                while lane and not stopping.is_set():
                    with suppress(IndexError):  # another thread has taken the last one
                        run(lane.popleft())

        try:
            threads = [pool.submit(work, *lanes) for lanes in [(crowded, others), *[(others,)] * (plan.at_once - 1)]]
            for thread in threads:
                thread.result()
        except (KeyboardInterrupt, SystemExit):  # SystemExit: see processes.end_on_signals
            stopping.set()
            pool.shutdown()
            unfinished = ", ".join(notebook.stem for notebook in plan.notebooks if notebook not in outcomes)
            print(f"\nInterrupted; everything that the notebooks had started is ended. Not finished: {unfinished}.")
            print(f"Finished: {', '.join(sorted(notebook.stem for notebook in outcomes)) or 'none'}.", flush=True)
            raise
    return {notebook.stem: outcomes[notebook] for notebook in plan.notebooks}


def run_one(
    notebook: Path,
    plan: ExecutionPlan,
    outer_mark: str,
    folder: Path,
    stopping: threading.Event,
    on_cell: Callable[[int], object],
) -> NotebookOutcome:
    """Run one notebook within the plan's limits, and end whatever it leaves behind; `on_cell` gets each cell's number.

    The executed notebook and its temporary files are in `folder`.
    """
    if reason := missing_requirement(notebook):
        return NotebookOutcome(SKIPPED, error=reason)
    log, mark, start = plan.build / "logs" / f"{notebook.stem}.log", processes.new_mark(), time.perf_counter()
    with log.open("w") as stream, ResourceUse(mark) as use:
        process = _started(notebook, plan, f"{outer_mark} {mark}", folder, stream)
        try:
            limit = _watch(process, log, stopping, on_cell)
        finally:
            processes.end(mark)
    outcome = NotebookOutcome(OK, time.perf_counter() - start, use.peak_memory / MIB)
    cells, said = _cells(folder / notebook.name), log.read_text(errors="replace")
    notes = [cell.metadata.get("papermill", {}) for cell in cells]
    outcome.cell_seconds = [round(note.get("duration") or 0.0, 2) for note in notes]
    begun = [number for number, note in enumerate(notes, start=1) if note.get("start_time")]
    # A cell that has not begun is missing, whatever has ended the notebook: an error, a limit or `sys.exit`.
    if limit or process.returncode or len(begun) < len(cells):
        outcome.status, last = FAILED, cells[begun[-1] - 1] if begun else None
        if last:
            outcome.failing_cell = begun[-1]
            outcome.failing_line = next(filter(None, map(str.strip, last.source.splitlines())), "")
        if "nbclient.exceptions.CellTimeoutError" in said:
            limit = f"the cell ran longer than {plan.seconds_per_cell} s"
        outcome.error = limit or _error(last, said)
        if not _cells(notebook):
            outcome.error = f"it cannot be read as a notebook ({outcome.error}); {how_to_repair(notebook)}"
    return outcome


def _started(notebook: Path, plan: ExecutionPlan, marks: str, folder: Path, log: IO[str]) -> subprocess.Popen[str]:
    """papermill, which logs what each cell prints, and when it begins."""
    job = {
        "input_path": str(notebook),
        "output_path": str(folder / notebook.name),
        "parameters": plan.parameters,
        "cwd": str(notebook.parent),
        "kernel_name": "python3",
        "language": "python",
        "progress_bar": False,
        "log_output": True,
        "start_timeout": SECONDS_TO_START,
        "execution_timeout": plan.seconds_per_cell,
        "iopub_timeout": plan.seconds_per_cell,  # what a cell shows may come long after its end
    }
    # Notebooks put their files into the temporary folder, which goes whatever happens to them. IPython's and Keras's
    # own folders are there too: what is set for other notebooks would change the outputs.
    own_folders = {"TMPDIR": str(folder), "IPYTHONDIR": str(folder / "ipython")}
    own_folders["KERAS_HOME"] = os.environ.get("KERAS_HOME") or str(folder / "keras")
    command = [sys.executable, "-P", "-c", _PAPERMILL, json.dumps(job)]
    return processes.start(command, marks, env=os.environ | own_folders, stdout=log, stderr=subprocess.STDOUT)


def _watch(
    process: subprocess.Popen[str],
    log: Path,
    stopping: threading.Event,
    on_cell: Callable[[int], object],
) -> str | None:
    """Wait until papermill has ended, has said too much or is to stop; returns the sentence about too much."""
    with log.open("rb") as reading:
        while process.poll() is None and not stopping.wait(SECONDS_BETWEEN_LOOKS):
            for number in _BEGUN.findall(reading.read()):
                on_cell(int(number))
            if log.stat().st_size > MEGABYTES_PER_LOG * 10**6:
                return f"the cell printed more than {MEGABYTES_PER_LOG} MB"
    return None


def _error(cell: NotebookNode | None, said: str) -> str:
    """What the cell at which a notebook has ended says is wrong with it, else the last words of papermill's log."""
    outputs = cell.get("outputs", []) if cell else []
    for output in outputs:
        if output.output_type == "error":
            return f"{output.ename}: {output.evalue}".rstrip(": ")
    lines = [line for line in said.splitlines() if line.strip(" -")] or ["it ended without a word"]
    if lines[-1].startswith("Exception encountered"):  # of a magic IPython says on the error stream what is wrong
        lines += [line for output in outputs for line in output.get("text", "").splitlines() if line.strip()]
    return lines[-1]


def _cells(notebook: Path) -> list[NotebookNode]:
    """The cells of a notebook without those that papermill adds; none of a file that is missing or no notebook."""
    try:
        cells = nbformat.read(notebook, as_version=4).cells
        return [cell for cell in cells if _OF_PAPERMILL not in cell.metadata.get("tags", [])]
    except Exception:  # whatever is wrong with it: it fails when its turn comes, and says why
        return []


def summary(outcomes: Outcomes) -> str:
    """What failed, with notebook, cell and error, or that nothing did; and what was skipped."""
    lines = []
    for name, outcome in outcomes.items():
        if outcome.status == FAILED:
            place = "" if outcome.failing_cell is None else f", cell {outcome.failing_cell} ({outcome.failing_line})"
            lines.append(f"FAILED {name}{place}: {outcome.error}")
    skipped = [f"Skipped {name}: {each.error}" for name, each in outcomes.items() if each.status == SKIPPED]
    if lines:
        which = "The notebook" if len(outcomes) == 1 else f"{len(lines)} of {len(outcomes)} notebooks"
        return "\n".join([f"{which} failed:", *lines, *skipped])
    ran = len(outcomes) - len(skipped)
    which = {0: "No notebook ran", 1: "The notebook ran"}.get(ran, f"All {ran} notebooks ran")
    return "\n".join([f"{which}{' without an error' if ran else ''}.", *skipped])


def write_report(outcomes: Outcomes, plan: ExecutionPlan) -> Path:
    """Write `report.json`: parameters, how many ran at once, every notebook's seconds, memory, status and fault."""
    report = {
        "parameters": plan.parameters,
        "at_once": plan.at_once,
        "notebooks": [{"notebook": name, **asdict(outcome)} for name, outcome in outcomes.items()],
    }
    file = plan.build / "report.json"
    file.write_text(json.dumps(report, indent=2) + "\n")
    return file

"""`make execute`: papermill runs every notebook in processes of its own, watched and limited; a report at the end."""

import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import IO, Annotated

import nbformat
import psutil
from cyclopts import Parameter
from cyclopts.types import PositiveInt
from cyclopts.validators import Number
from nbformat import NotebookNode

from course_tools import user_folders
from course_tools.chapters import chapter_notebooks
from course_tools.notebooks import SECONDS_PER_CELL
from distlab import data, devices, launch
from distlab.runtime import environment, processes
from distlab.runtime.errors import PlainError

OK, FAILED, SKIPPED = "ok", "failed", "skipped"
NEEDS_HOROVOD = "needs-horovod"
"""The tag of the first cell of a notebook that does."""

MIB, MIB_PER_NOTEBOOK = 2**20, 2048.0
SECONDS_TO_START, SECONDS_BETWEEN_LOOKS = 300, 0.25
# Reading the memory of many processes takes a tenth of a second, and that from them.
LOOKS_PER_READING = 8
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


def execute(
    *,
    dataset: str | None = None,
    epochs: PositiveInt | None = None,
    workers: Annotated[int | None, Parameter(validator=Number(gte=1, lte=8))] = None,
    only: str | None = None,
    at_once: PositiveInt | None = None,
    no_site: bool = False,
    seconds_per_cell: PositiveInt = SECONDS_PER_CELL,
) -> int:
    """Run the notebooks and write what they give to `build`; returns the exit status.

    Args:
        dataset: digits, mnist or fashion_mnist.
        epochs: How long each training takes.
        workers: Devices or processes of each training, at most 8.
        only: Some notebooks by number or name: "03" or "02,04".
        at_once: Notebooks at a time; by default one per core, at most 4.
        no_site: Do not write the course's site at the end, which takes a minute.
        seconds_per_cell: The longest that a cell may take.
    """
    parameters = {"dataset": dataset, "epochs": epochs, "workers": workers}
    fit_into_memory = int(psutil.virtual_memory().available / MIB / MIB_PER_NOTEBOOK)
    notebooks = chapter_notebooks(Path("notebooks"), only)
    if dataset:
        print(data.describe(dataset))
    plan = ExecutionPlan(
        notebooks,
        user_folders.announced("build", "results go"),
        {name: value for name, value in parameters.items() if value is not None},
        seconds_per_cell,
        at_once or max(1, min(devices.cores(), 4, fit_into_memory)),
    )
    environment.choose_legacy_keras()
    processes.end_on_signals()
    outcomes = run(plan)
    print(f"Report: {write_report(outcomes, plan)}", flush=True)
    problems = []
    if Path("README.md").is_file() and not no_site:
        from course_tools.site import build

        try:
            print(f"Site: {build.build(Path.cwd(), plan.build, plan.build / 'executed')[0]}", flush=True)
        except PlainError as fault:
            problems.append(f"The site was not written: {fault}")
    print("\n".join([summary(outcomes), *problems]), flush=True)
    return 1 if problems or any(outcome.status == FAILED for outcome in outcomes.values()) else 0


def missing_requirement(notebook: Path) -> str | None:
    """Why this notebook cannot run here, in one sentence; None when it can."""
    needs_horovod = any(NEEDS_HOROVOD in cell.metadata.get("tags", []) for cell in _cells(notebook)[:1])
    return launch.horovod_problem() if needs_horovod else None


def in_lanes(notebooks: Sequence[Path]) -> list[list[Path]]:
    """Lanes that may run side by side: first all notebooks that start several processes, then each other one."""
    crowded: list[Path] = []
    others: list[list[Path]] = []
    for notebook in notebooks:
        if any(_STARTS.search(cell.source) for cell in _cells(notebook) if cell.cell_type == "code"):
            crowded.append(notebook)
        else:
            others.append([notebook])
    return [crowded, *others]


def run(plan: ExecutionPlan) -> dict[str, NotebookOutcome]:
    """Run the planned notebooks, say how each ended, and return the outcomes by name, in order.

    Writes `executed/NAME.ipynb` and `logs/NAME.log` under `plan.build`. When this returns or is interrupted, nothing
    that a notebook started is alive.
    """
    for name in ("executed", "logs"):
        (plan.build / name).mkdir(parents=True, exist_ok=True)
    mark, stopping = processes.new_mark(), threading.Event()
    outcomes: dict[str, NotebookOutcome] = {}

    def run_lane(lane: Sequence[Path]) -> None:
        for notebook in lane:
            if stopping.is_set():
                return
            outcome = run_one(notebook, plan, mark, scratch, stopping)
            if not stopping.is_set():
                outcomes[notebook.stem] = outcome
                used = f"{outcome.seconds:.0f} s, {outcome.peak_memory_mib:,.0f} MiB"
                said = outcome.error if outcome.status == SKIPPED else used
                done = f"{len(outcomes)} of {len(plan.notebooks)}"
                print(f"[{done}] {notebook.stem}: {outcome.status}, {said}", flush=True)

    names = [notebook.stem for notebook in plan.notebooks]
    with (
        tempfile.TemporaryDirectory(prefix="distlab-") as scratch,
        processes.guarded(mark, scratch),
        ThreadPoolExecutor(plan.at_once) as pool,
    ):
        try:
            for lane in [pool.submit(run_lane, lane) for lane in in_lanes(plan.notebooks)]:
                lane.result()
        except (KeyboardInterrupt, SystemExit):  # SystemExit: see processes.end_on_signals
            stopping.set()
            pool.shutdown()
            unfinished = ", ".join(name for name in names if name not in outcomes)
            print(f"\nInterrupted; everything that the notebooks had started is ended. Not finished: {unfinished}.")
            print(f"Finished: {', '.join(sorted(outcomes)) or 'none'}.", flush=True)
            raise
    return {name: outcomes[name] for name in names}


def run_one(
    notebook: Path, plan: ExecutionPlan, outer_mark: str, scratch: str, stopping: threading.Event
) -> NotebookOutcome:
    """Run one notebook within the plan's limits, and end whatever it leaves behind.

    Its temporary files are in a new folder in `scratch`.
    """
    if reason := missing_requirement(notebook):
        return NotebookOutcome(SKIPPED, error=reason)
    executed, log = plan.build / "executed" / notebook.name, plan.build / "logs" / f"{notebook.stem}.log"
    executed.unlink(missing_ok=True)  # of an earlier run
    outcome, mark, start = NotebookOutcome(OK), processes.new_mark(), perf_counter()
    with log.open("w") as stream:
        process = _started(notebook, executed, plan, f"{outer_mark} {mark}", scratch, stream)
        try:
            for peak in peak_memory(process, mark):
                outcome.peak_memory_mib = peak
                if stopping.is_set() or log.stat().st_size > MEGABYTES_PER_LOG * 10**6:
                    break
            status = process.poll()
        finally:
            processes.end(mark)
    outcome.seconds = perf_counter() - start
    cells = _cells(executed)
    notes = [cell.metadata.get("papermill", {}) for cell in cells]
    outcome.cell_seconds = [round(note.get("duration") or 0.0, 2) for note in notes]
    begun = [number for number, note in enumerate(notes, start=1) if note.get("start_time")]
    # A cell that has not begun is missing, whatever has ended the notebook: an error, a limit or `sys.exit`.
    if status != 0 or len(begun) < len(cells):
        last = cells[begun[-1] - 1] if begun else None
        outcome.status, outcome.error = FAILED, _error(last, log.read_text(errors="replace"), plan.seconds_per_cell)
        if last:
            outcome.failing_cell = begun[-1]
            outcome.failing_line = next(filter(None, map(str.strip, last.source.splitlines())), "")
        elif not _cells(notebook):
            outcome.error = f"it cannot be read as a notebook ({outcome.error})"
    return outcome


def peak_memory(process: subprocess.Popen[str], mark: str) -> Iterator[float]:
    """Until the process has ended, the most MiB so far of all that carries the mark, again and again.

    On Linux a page that n processes share counts 1/n for each.
    """
    peak = 0
    for look in itertools.count():
        if look % LOOKS_PER_READING == 0:
            peak = max(peak, sum(map(_memory, processes.alive(mark))))
        yield peak / MIB
        with suppress(subprocess.TimeoutExpired):
            process.wait(SECONDS_BETWEEN_LOOKS)
            return


def _memory(process: psutil.Process) -> int:
    try:
        return process.memory_full_info().pss if psutil.LINUX else process.memory_info().rss
    except psutil.Error:  # it has ended
        return 0


def _started(
    notebook: Path, executed: Path, plan: ExecutionPlan, marks: str, scratch: str, log: IO[str]
) -> subprocess.Popen[str]:
    """papermill, which logs what each cell prints, and when it begins."""
    job = {
        "input_path": str(notebook),
        "output_path": str(executed),
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
    folder = tempfile.mkdtemp(prefix=f"{notebook.stem[:2]}-", dir=scratch)
    own_folders = {"TMPDIR": folder, "IPYTHONDIR": f"{folder}/ipython"}
    own_folders["KERAS_HOME"] = os.environ.get("KERAS_HOME") or f"{folder}/keras"
    command = [sys.executable, "-P", "-c", _PAPERMILL, json.dumps(job)]
    return processes.start(command, marks, env=os.environ | own_folders, stdout=log, stderr=subprocess.STDOUT)


def _error(cell: NotebookNode | None, said: str, seconds_per_cell: int) -> str:
    """What the cell at which a notebook has ended says is wrong with it, else the last words of papermill's log."""
    if "nbclient.exceptions.CellTimeoutError" in said:
        return f"the cell ran longer than {seconds_per_cell} s"
    if len(said) > MEGABYTES_PER_LOG * 10**6:
        return f"the cell printed more than {MEGABYTES_PER_LOG} MB"
    for output in cell.get("outputs", []) if cell else []:
        if output.output_type == "error":
            return f"{output.ename}: {output.evalue}".rstrip(": ")
    return next((line for line in reversed(said.splitlines()) if line.strip(" -")), "it ended without a word")


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

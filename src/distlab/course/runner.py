"""`make execute`: every notebook in a fresh kernel, watched and limited, with pages and a report at the end."""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from distlab.course import notebooks, requirements
from distlab.course.runner_child import Job, Outcome
from distlab.runtime import processes


class UnknownNotebook(ValueError):
    """No notebook has that number or name; the message lists those there are."""


@dataclass(frozen=True)
class Plan:
    """What to run and how: notebooks, folder for results, parameters, limits in seconds, how many at once."""

    notebooks: list[Path]
    build: Path
    parameters: dict[str, object] = field(default_factory=dict)
    seconds_per_cell: int = notebooks.SECONDS_PER_CELL
    seconds_per_notebook: int = 600
    at_once: int = 1


def choose(folder: Path, only: str | None = None) -> list[Path]:
    """The notebooks of a folder in order; `only` names some by number or name, separated by commas ("03" or "02,04").

    Raises UnknownNotebook for one that is not there.
    """
    notebooks = sorted(folder.glob("[0-9][0-9]_*.ipynb"))
    if not only:
        return notebooks
    wanted = [name.strip().zfill(2) for name in only.split(",") if name.strip()]
    chosen = []
    for name in wanted:
        matching = [notebook for notebook in notebooks if name in (notebook.stem, notebook.stem[:2])]
        if not matching:
            raise UnknownNotebook(f"There is no notebook {name}; there are {', '.join(n.stem for n in notebooks)}.")
        chosen += matching
    return sorted(set(chosen))


def default_at_once(cores: int) -> int:
    """How many notebooks to run side by side: one for each core, four at most for the memory's sake.

    On two cores two at a time take about half as long in all, since a notebook keeps one core busy most of the time.
    """
    return max(1, min(cores, 4))


def execute(plan: Plan) -> dict[str, Outcome]:
    """Run the planned notebooks, say how they come along, and return each one's outcome by name, in order.

    Writes `executed/NAME.ipynb` and `logs/NAME.log` under `plan.build`. When this returns or is interrupted, nothing
    that a notebook started is alive.
    """
    mark = processes.new_mark()
    waiting: queue.Queue[Path] = queue.Queue()
    for notebook in plan.notebooks:
        waiting.put(notebook)
    outcomes: dict[str, Outcome] = {}
    progress = Progress(len(plan.notebooks))

    def work() -> None:
        while True:
            try:
                notebook = waiting.get_nowait()
            except queue.Empty:
                return
            outcomes[notebook.stem] = run_one(notebook, plan, mark, progress)
            progress.finished(notebook.stem, outcomes[notebook.stem])

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(plan.at_once, len(plan.notebooks)))]
    with processes.guarded(mark):
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            with waiting.mutex:
                waiting.queue.clear()
    return {notebook.stem: outcomes[notebook.stem] for notebook in plan.notebooks}


def run_one(notebook: Path, plan: Plan, outer_mark: str, progress: "Progress") -> Outcome:
    """Run one notebook in a process of its own within the plan's limits; end whatever it leaves behind."""
    executed = plan.build / "executed" / notebook.name
    log = plan.build / "logs" / f"{notebook.stem}.log"
    for file in (executed, log):
        file.parent.mkdir(parents=True, exist_ok=True)
    executed.unlink(missing_ok=True)
    if reason := requirements.missing(notebook):
        return Outcome("skipped", 0, 0, error=reason)
    mark = processes.new_mark()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="distlab-") as scratch, log.open("w") as errors:
        job = Path(scratch) / "job.json"
        parameters = asdict(Job(str(notebook), str(executed), plan.seconds_per_cell, plan.parameters))
        job.write_text(json.dumps(parameters))
        # Notebooks put their files into the temporary folder, which goes with this block whatever happens to them.
        environment = os.environ | {"TMPDIR": scratch}
        process = processes.start(
            [sys.executable, "-m", "distlab.course.runner_child", str(job)],
            f"{outer_mark} {mark}",
            env=environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        limit = threading.Timer(plan.seconds_per_notebook, processes.end, [mark])
        limit.start()
        try:
            outcome = _follow(process.stdout, notebook.stem, progress)
            process.wait()
        finally:
            limit.cancel()
            processes.end(mark)
    seconds = time.perf_counter() - start
    if outcome is None and seconds >= plan.seconds_per_notebook:
        return Outcome("failed", seconds, 0, error=f"the notebook ran longer than {plan.seconds_per_notebook} s")
    return outcome or Outcome("failed", seconds, 0, error=f"it ended without an outcome, see {log}")


def _follow(lines: Iterable[str], name: str, progress: "Progress") -> Outcome | None:
    outcome = None
    for line in lines:
        event = json.loads(line)
        if "outcome" in event:
            outcome = Outcome(**event["outcome"])
        else:
            progress.cell(name, event["cell"], event["cells"])
    return outcome


class Progress:
    """Says how the notebooks come along: one line that is renewed on a terminal, else a line at each quarter."""

    def __init__(self, total: int) -> None:
        """For `total` notebooks."""
        self._total, self._done = total, 0
        self._running: dict[str, tuple[int, int]] = {}
        self._terminal = sys.stdout.isatty()
        self._lock = threading.Lock()

    def cell(self, name: str, number: int, total: int) -> None:
        """Notebook `name` has started its cell `number` of `total`."""
        with self._lock:
            before = self._running.get(name, (0, total))[0]
            self._running[name] = (number, total)
            if self._terminal:
                running = ", ".join(f"{name} cell {at}/{of}" for name, (at, of) in self._running.items())
                print(f"\r\033[K{self._done}/{self._total} done · {running}"[:160], end="", flush=True)
            elif before * 4 // total != number * 4 // total or before == 0:
                print(f"  {name}: cell {number} of {total}", flush=True)

    def finished(self, name: str, outcome: Outcome) -> None:
        """Notebook `name` has ended."""
        with self._lock:
            self._running.pop(name, None)
            self._done += 1
            renew = "\r\033[K" if self._terminal else ""
            used = f"{outcome.seconds:.0f} s, {outcome.peak_memory_mib:,.0f} MiB"
            if outcome.status == "skipped":
                used = outcome.error
            print(f"{renew}{name}: {outcome.status}, {used}", flush=True)


def summary(outcomes: dict[str, Outcome]) -> str:
    """What failed, with notebook, cell and error, or that nothing did; and what was skipped."""
    lines = []
    skipped = [name for name, outcome in outcomes.items() if outcome.status == "skipped"]
    for name, outcome in outcomes.items():
        if outcome.status != "failed":
            continue
        place = "" if outcome.failing_cell is None else f", cell {outcome.failing_cell} ({outcome.failing_line})"
        lines.append(f"FAILED {name}{place}: {outcome.error}")
    left_out = [f"Skipped {name}: {outcomes[name].error}" for name in skipped]
    if not lines:
        return "\n".join([f"All {len(outcomes) - len(skipped)} notebooks ran without an error.", *left_out])
    return "\n".join([f"{len(lines)} of {len(outcomes)} notebooks failed:", *lines, *left_out])


def write_report(outcomes: dict[str, Outcome], plan: Plan) -> Path:
    """Write `report.json`: the plan's parameters and limits, and every notebook's seconds, memory, status and fault."""
    report = {
        "parameters": plan.parameters,
        "at_once": plan.at_once,
        "notebooks": [{"notebook": name, **asdict(outcome)} for name, outcome in outcomes.items()],
    }
    file = plan.build / "report.json"
    file.write_text(json.dumps(report, indent=2) + "\n")
    return file

"""Running one notebook with papermill in a process of its own: `python -m course_tools.runner_child JOB.json`.

Prints one JSON line for each cell that starts and, at the end, one with the outcome; `runner` reads them.
"""

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import Awaitable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO, TypeVar

import nbformat
import papermill
from jupyter_client.client import KernelClient
from jupyter_client.utils import ensure_async, run_sync
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import Engine, NotebookExecutionManager, papermill_engines
from papermill.exceptions import PapermillExecutionError

from course_tools.resource_use import MIB, ResourceUse
from distlab.runtime import processes
from distlab.runtime.own_time import WatchedClock

SECONDS_TO_START = 300
MEGABYTES_PER_CELL = 10
SECONDS_BETWEEN_LOOKS = 1.0
NEVER_STARTED = "Kernel died before replying"
"""What jupyter_client says of a kernel that ends while it starts."""

OK, FAILED, SKIPPED = "ok", "failed", "skipped"

Result = TypeVar("Result")


@dataclass(frozen=True)
class NotebookJob:
    """One notebook to run: its file, the file for the executed one, the limit per cell, papermill's parameters."""

    notebook: str
    executed: str
    seconds_per_cell: int
    parameters: dict[str, object] = field(default_factory=dict)


@dataclass
class NotebookOutcome:
    """How a run ended: status OK, FAILED or SKIPPED, the error or the reason, the failing cell (from 0).

    processor_seconds is of all its processes. cell_seconds: elapsed, of each cell that has run, 0 of text.
    """

    status: str
    seconds: float
    peak_memory_mib: float
    processor_seconds: float = 0
    cell_seconds: list[float] = field(default_factory=list)
    failing_cell: int | None = None
    failing_line: str | None = None
    error: str | None = None


class BoundedClient(PapermillNotebookClient):
    """Papermill's client for cells that may print only so much: a cell that prints more is interrupted.

    Time in which this process stands still, as after Ctrl-Z, counts against no limit: all of nbclient's own are off.
    """

    cell_index: int | None = None
    printed = 0
    has_interrupted = False
    interruption: asyncio.Future[None] | None = None

    def process_message(self, msg: dict[str, Any], cell: NotebookNode, cell_index: int) -> NotebookNode | None:
        """Take a message of the kernel; what is printed beyond the limit is dropped."""
        if cell_index != self.cell_index:
            self.cell_index, self.printed, self.has_interrupted = cell_index, 0, False
        content = msg["content"]
        self.printed += len(content.get("text", "")) + sum(map(len, map(str, content.get("data", {}).values())))
        if self.printed <= MEGABYTES_PER_CELL * 10**6 or msg["msg_type"] not in ("stream", "display_data"):
            return super().process_message(msg, cell, cell_index)
        if not self.has_interrupted:
            self.has_interrupted = True
            self.interruption = asyncio.ensure_future(ensure_async(self.km.interrupt_kernel()))
        return None

    async def async_start_new_kernel_client(self) -> KernelClient:
        """Wait until the kernel answers, at most SECONDS_TO_START."""
        try:
            return await _within(SECONDS_TO_START, super().async_start_new_kernel_client())
        except TimeoutError:
            await self._async_cleanup_kernel()
            raise NotebookStopped(f"the kernel did not start within {SECONDS_TO_START} s") from None

    start_new_kernel_client = run_sync(async_start_new_kernel_client)

    async def _async_poll_for_reply(
        self,
        msg_id: str,
        cell: NotebookNode,
        timeout: int | None,
        task_poll_output_msg: asyncio.Future[Any],
        task_poll_kernel_alive: asyncio.Future[Any],
    ) -> dict[str, Any]:
        """Wait at most `timeout` for the cell's end, and as long again for what it shows.

        That may take longer to come than the cell itself, as after thousands of `clear_output`.
        """
        assert timeout is not None
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)  # so that nbclient waits neither for the output nor with a limit
        try:
            reply = await _within(timeout, super()._async_poll_for_reply(msg_id, cell, None, done, done))
            await _within(timeout, task_poll_output_msg)
            return reply
        except TimeoutError:
            await self._async_check_alive()
            raise CellTimeoutError.error_from_timeout_and_cell("The cell has not ended", timeout, cell) from None
        finally:
            task_poll_kernel_alive.cancel()


async def _within(seconds: float, awaitable: Awaitable[Result]) -> Result:
    """Its result; raises TimeoutError after so many seconds in which this process did not stand still."""
    task, clock = asyncio.ensure_future(awaitable), WatchedClock()
    ends_by = clock.now() + seconds
    try:
        while not (await asyncio.wait([task], timeout=SECONDS_BETWEEN_LOOKS))[0]:
            if clock.now() > ends_by:
                raise TimeoutError
        return task.result()
    finally:
        task.cancel()


class NotebookStopped(Exception):
    """The notebook does not go on; the message says why.

    So after a cell that has asked the kernel to end, which it does after the cell: the next one would be blamed.
    """


class ReportingEngine(Engine):
    """Executes with a BoundedClient, reports the cell that runs to `events`, and remembers it."""

    events: TextIO
    cell: NotebookNode | None = None
    number: int | None = None
    printed_too_much = False

    @classmethod
    def execute_managed_notebook(cls, nb_man: NotebookExecutionManager, kernel_name: str, **options: Any) -> None:
        """Run the notebook's cells; see papermill.engines.Engine."""
        start_cell, total = nb_man.cell_start, len(nb_man.nb.cells)

        def report_and_start(cell: NotebookNode, cell_index: int, **more: object) -> None:
            cls.cell, cls.number = cell, cell_index + 1
            _report(cls.events, cell=cls.number, cells=total)
            start_cell(cell, cell_index, **more)

        def execute() -> None:
            client = BoundedClient(
                nb_man,
                kernel_name=kernel_name,
                timeout=options["execution_timeout"],
                startup_timeout=sys.maxsize,  # it is the client's own: SECONDS_TO_START
                on_cell_executed=_stay,
            )
            try:
                client.execute()
            finally:
                cls.printed_too_much = client.has_interrupted

        nb_man.cell_start = report_and_start
        try:
            execute()
        except RuntimeError as fault:
            if cls.cell is not None or NEVER_STARTED not in str(fault):
                raise
            # The kernel's ports were free when they were chosen; a connection may have taken one before it listened.
            execute()


def run(job: NotebookJob, events: TextIO) -> NotebookOutcome:
    """Execute the notebook, one event per cell; a fault in the notebook becomes the outcome and is never raised."""
    ReportingEngine.events = events
    papermill_engines.register("reporting", ReportingEngine)
    notebook = Path(job.notebook)
    start = time.perf_counter()
    error = None
    with ResourceUse(os.environ[processes.MARK].split()[-1]) as use:
        try:
            papermill.execute_notebook(
                str(notebook),
                job.executed,
                parameters=job.parameters,
                engine_name="reporting",
                kernel_name="python3",
                language="python",
                cwd=str(notebook.parent),
                progress_bar=False,
                execution_timeout=job.seconds_per_cell,
            )
            error = _left_early(Path(job.executed))
        except PapermillExecutionError as fault:
            error = f"{fault.ename}: {fault.evalue}" if fault.evalue else _last_error_line(ReportingEngine.cell)
            error = error or fault.ename + _line_of(fault.traceback)
            if fault.ename == "StdinNotImplementedError":
                error = "the cell asks for input, and nobody is there to answer"
            if ReportingEngine.printed_too_much:
                error = f"the cell printed more than {MEGABYTES_PER_CELL} MB"
        except CellTimeoutError:
            error = f"the cell ran longer than {job.seconds_per_cell} s"
        except NotebookStopped as stopped:
            error = str(stopped)
        except DeadKernelError:
            error = "the kernel died"
        except Exception as fault:  # a file that is no notebook, a parameter that papermill cannot write, …
            error = f"{type(fault).__name__}: {first_line(str(fault))}"
    seconds = time.perf_counter() - start
    outcome = NotebookOutcome(FAILED if error else OK, seconds, use.peak_memory / MIB, use.processor_seconds)
    outcome.error = error
    outcome.cell_seconds = _cell_seconds(Path(job.executed))
    if error and ReportingEngine.cell is not None:
        outcome.failing_cell = ReportingEngine.number
        outcome.failing_line = first_line(ReportingEngine.cell.source)
    return outcome


def _stay(cell: NotebookNode, cell_index: int, execute_reply: dict[str, Any]) -> None:
    """Raise NotebookStopped if the cell that has run called `exit` or `quit`."""
    if any(payload.get("source") == "ask_exit" for payload in execute_reply["content"].get("payload", [])):
        raise NotebookStopped("exit() or quit() ends the notebook, and the cells below it did not run")


def _cell_seconds(executed: Path) -> list[float]:
    """What papermill noted for each cell; the parameters' cell that it may have added counts."""
    if not executed.exists():
        return []
    cells = nbformat.read(executed, as_version=4).cells
    return [round(cell.metadata.get("papermill", {}).get("duration") or 0.0, 2) for cell in cells]


def _left_early(executed: Path) -> str | None:
    """What is wrong if a cell has raised SystemExit, after which papermill runs no other and sees no error."""
    cells = [cell for cell in nbformat.read(executed, as_version=4).cells if cell.cell_type == "code"]
    left = any(output.get("ename") == "SystemExit" for cell in cells for output in cell.outputs)
    return "SystemExit: the cell ends the notebook, and the cells below it did not run" if left else None


def _line_of(traceback: list[str]) -> str:
    """The line of the cell at which an error without a message came, as IPython's traceback marks it."""
    lines = re.findall(r"^-+> *\d+ (.*)", re.sub(r"\x1b\[[\d;]*m", "", "\n".join(traceback)), re.MULTILINE)
    return f" at `{lines[0].strip()}`" if lines else ""


def _last_error_line(cell: NotebookNode | None) -> str:
    """What the cell wrote on the error stream last: IPython says there what is wrong with a magic."""
    outputs = cell.outputs if cell is not None else []
    texts = [output.text for output in outputs if output.get("name") == "stderr"]
    lines = [line.strip(" |+-") for text in texts for line in text.splitlines()]  # without a group's frame
    return next((line for line in reversed(lines) if line), "")


def first_line(text: str) -> str:
    """The first line of the text that has something in it."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _report(events: TextIO, **event: object) -> None:
    print(json.dumps(event), file=events, flush=True)


def main() -> None:
    """Run the job described by the JSON file named on the command line."""
    # The kernel inherits standard output: keep a copy for the events, and send everything else to standard error.
    events = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    job_file = Path(sys.argv[1])
    job = NotebookJob(**json.loads(job_file.read_text()))
    processes.end_on_signals()
    outcome = run(job, events)
    if outcome.error and not job_file.exists():  # by a program that cleans the folder for temporary files
        outcome.error += f"; the notebook's temporary files in {job_file.parent} were removed while it ran"
    _report(events, outcome=asdict(outcome))


if __name__ == "__main__":
    main()

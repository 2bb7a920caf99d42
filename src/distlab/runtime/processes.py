"""Starting programs that can be ended whole: every process of a run carries a mark, so that none is forgotten.

`python -m distlab.runtime.processes MARK [FOLDER]` waits until its standard input is closed, then ends what carries the
mark, and removes the folder if nothing came over the input.
"""

import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

MARK = "DISTLAB_RUN"
SECONDS_TO_END = 2.0


@dataclass(frozen=True)
class Finished:
    """What a program printed (standard output and error together) and its exit status; None when its time was over."""

    output: str
    status: int | None


def new_mark() -> str:
    """A mark that no other run has."""
    return uuid.uuid4().hex


def start(command: list[str], mark: str, **options: Any) -> subprocess.Popen[str]:
    """Start a program, in a new session, whose processes and all that they start carry the mark.

    `mark` may be several marks with spaces between; those of this process itself are added, so that ending an outer run
    ends what it started in turn. `options` go to subprocess.Popen. A Ctrl-C in the terminal does not reach the program:
    who starts it ends it, with `end`.
    """
    options["env"] = {**(options.get("env") or os.environ), MARK: _with_marks_of_this_process(mark)}
    return subprocess.Popen(command, start_new_session=True, text=True, **options)


def _with_marks_of_this_process(mark: str) -> str:
    return f"{os.environ.get(MARK, '')} {mark}".strip()


def alive(mark: str) -> list[psutil.Process]:
    """The living processes that carry the mark; never this process itself."""
    return [process for process in psutil.process_iter() if _is_alive(process, mark)]


def _is_alive(process: psutil.Process, mark: str | None = None) -> bool:
    """Whether it is another process than this one, not over, and carries the mark if one is given."""
    with suppress(psutil.Error):
        carries = mark is None or mark in process.environ().get(MARK, "").split()
        return carries and process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE
    return False


def end(mark: str) -> None:
    """End every process that carries the mark or comes from one that does, first by SIGTERM, then by SIGKILL."""
    # Who loses its parent here would be forgotten, if it has cleaned its environment: `processes` keeps it.
    processes: set[psutil.Process] = set()
    for number in (signal.SIGTERM, signal.SIGKILL):
        # A process may start another while it is being ended: look again until none is left.
        while processes := _with_descendants({*alive(mark), *processes}):
            for process in processes:
                with suppress(psutil.Error):
                    process.send_signal(number)
            _, left = psutil.wait_procs(processes, timeout=SECONDS_TO_END)
            if number == signal.SIGTERM and left:
                break


def _with_descendants(processes: set[psutil.Process]) -> set[psutil.Process]:
    """Those of these processes, and of all that come from them, that are alive: also of a cleaned environment."""
    together = set(processes)
    for process in processes:
        with suppress(psutil.Error):
            together.update(process.children(recursive=True))
    return set(filter(_is_alive, together))


@contextmanager
def guarded(mark: str, folder: str | Path | None = None) -> Iterator[None]:
    """Whatever carries the mark is ended after the block, and also when this process dies in it, even by `kill -9`.

    A temporary folder of the block is removed in that case, too. For that a process that outlives this one holds the
    other end of a pipe, which the system closes when this one ends.
    """
    command = [sys.executable, "-P", "-m", "distlab.runtime.processes", mark, *([str(folder)] if folder else [])]
    guard = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield
    finally:
        try:
            end(mark)
        finally:
            # If a second Ctrl-C has cut `end` short, the guard completes it.
            guard.communicate(b"over")


@contextmanager
def marked(mark: str) -> Iterator[None]:
    """Whatever this process starts in the block carries the mark."""
    before = os.environ.get(MARK)
    os.environ[MARK] = _with_marks_of_this_process(mark)
    try:
        yield
    finally:
        del os.environ[MARK]
        if before:
            os.environ[MARK] = before


def run(command: list[str], seconds: float, **options: Any) -> Finished:
    """Run a program for at most `seconds`; whatever it started is ended when this returns or is interrupted."""
    mark = new_mark()
    options |= {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    process = start(command, mark, **options)
    try:
        output, _ = process.communicate(timeout=seconds)
        return Finished(output, process.returncode)
    except subprocess.TimeoutExpired:
        end(mark)
        output, _ = process.communicate()
        return Finished(output, None)
    finally:
        end(mark)
        process.wait()


def end_on_signals() -> None:
    """Let SIGTERM and SIGHUP end this program as Ctrl-C does, by an exception, so that `finally` blocks run.

    SIGUSR1 and SIGUSR2 do the same: a job scheduler's notices that the time is nearly over. Only the first counts:
    `timeout make execute` sends two, and the second would cut short what the first has begun. Under nohup, which
    ignores SIGHUP, that stays ignored.
    """
    numbers = [signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2]
    numbers += [signal.SIGHUP] if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN else []

    def interrupt(number: int, frame: object) -> None:
        for each in numbers:
            signal.signal(each, lambda number, frame: None)
        sys.exit(128 + number)

    for number in numbers:
        signal.signal(number, interrupt)


if __name__ == "__main__":
    was_over = sys.stdin.read()
    end(sys.argv[1])
    for own_folder in [] if was_over else sys.argv[2:]:
        shutil.rmtree(own_folder, ignore_errors=True)

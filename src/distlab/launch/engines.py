"""Ranks that wait for cells: ipyparallel's engines under MPI, so that `%%px` runs a notebook's cell on every rank.

    ranks = launch.start_engines(2)
    %%px                                  # in a separate cell: it runs on both
    ranks.view["name"]                    # what that name is on each rank
    ranks.stop()

Their files are in a temporary folder. None of their processes is left after `stop`, nor when the kernel ends or is
killed.
"""

import atexit
import logging
import math
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ipykernel.iostream import OutStream

from distlab import devices
from distlab.launch.job import is_of_another_job
from distlab.runtime import processes
from distlab.runtime.errors import PlainError

if TYPE_CHECKING:
    from ipyparallel import Client, DirectView
    from IPython.core.interactiveshell import InteractiveShell

START_SECONDS = 300.0
OUTPUT = "--IPEngine.out_stream_factory=distlab.launch.engines.PythonOutput"


class EnginesFailed(PlainError, RuntimeError):
    """The engines did not start, or cannot run a cell; the message says why."""


class PythonOutput(OutStream):
    """What an engine shows as its output: what Python prints, as in a notebook's kernel; C++ messages go to its log."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments, watchfd=False)  # type: ignore[no-untyped-call]  # ipykernel declares no types here


class Engines:
    """Running engines; `view` is ipyparallel's view of all of them, engine n is rank n of MPI."""

    running: ClassVar[list["Engines"]] = []

    def __init__(self, client: "Client", stack: ExitStack) -> None:
        """`stack` ends the engines when it is closed."""
        self.view: DirectView = client[:]
        self._client, self._stack = client, stack
        atexit.register(self.stop)
        self.running.append(self)

    def stop(self) -> None:
        """End the engines and remove their files; calling it again does nothing."""
        atexit.unregister(self.stop)
        if self in self.running:
            self.running.remove(self)
        self._client.close(linger=0)
        self._stack.close()


def start_engines(ranks: int) -> Engines:
    """Start that many engines as ranks of one MPI job; raises EnginesFailed when they are not there in time.

    Engines that this process started before are ended first: a cell that runs again would else pile them up.
    """
    import ipyparallel
    from ipyparallel.client.magics import ParallelMagics
    from IPython import get_ipython
    from traitlets.config import Config

    for former in [*Engines.running]:
        former.stop()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="distlab-", ignore_cleanup_errors=True)))
        mark = processes.new_mark()
        stack.enter_context(processes.guarded(mark, folder))
        threads = str(max(1, devices.cores() // ranks))
        before = dict(os.environ)
        for name in filter(is_of_another_job, before):
            del os.environ[name]
        os.environ |= {
            processes.MARK: " ".join(filter(None, [before.get(processes.MARK), mark])),
            "IPYTHONDIR": str(folder),  # else they write into the user's profile
            "OMP_NUM_THREADS": threads,
            "TF_NUM_INTRAOP_THREADS": threads,
        }
        try:
            cluster = ipyparallel.Cluster(
                engines="mpi",
                n=ranks,
                profile_dir=str(folder / "profile"),
                shutdown_atexit=False,
                log=logging.Logger(__name__, logging.CRITICAL),  # a cell shows what the ranks print, no announcements
                config=Config(_settings()),
            )
            cluster.start_cluster_sync()
            client = cluster.connect_client_sync()
            client.wait_for_engines(ranks, timeout=START_SECONDS, interactive=False)
        except Exception as error:
            raise EnginesFailed(f"{ranks} engines did not start: {error}.{_logged(folder)}") from error
        finally:
            os.environ.clear()
            os.environ.update(before)
        if shell := get_ipython():
            client.activate()
            ParallelMagics.progress_after_seconds = -1  # no bars: they would go into the outputs
            ParallelMagics.stream_output = False  # rank by rank when the cell is done, not while it runs
            _name_busy_ranks(shell, client)
        return Engines(client, stack.pop_all())


def _name_busy_ranks(shell: "InteractiveShell", client: "Client") -> None:
    """Let %%px say which ranks go on with an interrupted cell: a later cell would wait for them without a word."""
    run = shell.find_cell_magic("px")  # type: ignore[no-untyped-call]  # IPython declares no types here
    interrupted: set[str] = set()

    def require_free_ranks() -> None:
        if waiting := interrupted & client.outstanding:
            ranks = sorted({client.metadata[message]["engine_id"] for message in waiting})
            raise EnginesFailed(
                f"{'Rank' if len(ranks) == 1 else 'Ranks'} {', '.join(map(str, ranks))} still "
                f"{'runs' if len(ranks) == 1 else 'run'} the interrupted cell, perhaps in a collective that another "
                "rank did not call: run the cell with launch.start_engines again, and those after it."
            )

    def px(line: str, cell: str) -> object:
        require_free_ranks()
        try:
            return run(line, cell)
        except (KeyboardInterrupt, TimeoutError):
            interrupted.update(client.outstanding)
            require_free_ranks()
            raise

    shell.register_magic_function(px, "cell", "px")  # type: ignore[arg-type]


def _settings() -> dict[str, dict[str, object]]:
    """For ipyparallel, whose own limits for parts of the start are a few seconds: too short for a busy machine."""
    return {
        "EngineLauncher": {"engine_args": [OUTPUT, f"--IPEngine.timeout={START_SECONDS}"]},
        "ControllerLauncher": {
            "controller_args": [f"--IPController.registration_timeout={math.ceil(START_SECONDS)}"],
            "connection_info_timeout": START_SECONDS,
        },
    }


def _logged(folder: Path) -> str:
    lines = [line for file in sorted(folder.rglob("*.log")) for line in file.read_text(errors="replace").splitlines()]
    return "".join(f"\n    {line}" for line in lines[-20:])

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
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from unittest.mock import patch

from ipykernel.iostream import OutStream

from distlab.launch.job import Command
from distlab.launch.starters import thread_variables
from distlab.runtime import processes
from distlab.runtime.errors import PlainError

if TYPE_CHECKING:
    from ipyparallel import Client, DirectView

START_SECONDS = 300
# ipyparallel's own limits for parts of the start are a few seconds: too short for a busy machine.
SETTINGS: dict[str, dict[str, object]] = {
    "EngineLauncher": {
        "engine_args": [
            "--IPEngine.out_stream_factory=distlab.launch.engines.PythonOutput",
            f"--IPEngine.timeout={START_SECONDS}",
        ]
    },
    "ControllerLauncher": {
        "controller_args": [f"--IPController.registration_timeout={START_SECONDS}"],
        "connection_info_timeout": START_SECONDS,
    },
}


class EnginesFailed(PlainError, RuntimeError):
    """The engines did not start; the message says why."""


class PythonOutput(OutStream):
    """What an engine shows as its output: what Python prints, as in a notebook's kernel; C++ messages go to its log."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments, watchfd=False)  # type: ignore[no-untyped-call]  # ipykernel declares no types here


class Engines:
    """Running engines; `view` is ipyparallel's view of all of them, engine n is rank n of MPI."""

    latest: ClassVar["Engines | None"] = None

    def __init__(self, client: "Client", stack: ExitStack) -> None:
        """`stack` ends the engines when it is closed."""
        self.view: DirectView = client[:]
        self._client, self._stack = client, stack
        atexit.register(self.stop)
        Engines.latest = self

    def stop(self) -> None:
        """End the engines and remove their files; calling it again does nothing."""
        atexit.unregister(self.stop)
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

    if Engines.latest:
        Engines.latest.stop()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="distlab-", ignore_cleanup_errors=True)))
        mark = processes.new_mark()
        stack.enter_context(processes.guarded(mark, folder))
        own = {"IPYTHONDIR": str(folder), **thread_variables(ranks)}  # else they write into the user's profile
        try:
            with (
                patch.dict(os.environ, Command("engines", own).whole_environment(), clear=True),
                processes.marked(mark),
            ):
                cluster = ipyparallel.Cluster(
                    engines="mpi",
                    n=ranks,
                    profile_dir=str(folder / "profile"),
                    shutdown_atexit=False,
                    log=logging.Logger(__name__, logging.CRITICAL),  # a cell shows what the ranks print, nothing else
                    config=Config(SETTINGS),
                )
                cluster.start_cluster_sync()
                client = cluster.connect_client_sync()
                client.wait_for_engines(ranks, timeout=START_SECONDS, interactive=False)
        except Exception as error:
            logs = "\n".join(log.read_text(errors="replace") for log in sorted(folder.rglob("*.log")))
            last = "".join(f"\n    {line}" for line in logs.splitlines()[-20:])
            raise EnginesFailed(f"{ranks} engines did not start: {error}.{last}") from error
        if get_ipython():
            client.activate()
            ParallelMagics.progress_after_seconds = -1  # no bars: they would go into the outputs
            ParallelMagics.stream_output = False  # rank by rank when the cell is done, not while it runs
        return Engines(client, stack.pop_all())

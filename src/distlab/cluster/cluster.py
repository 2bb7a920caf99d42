"""A cluster: start it, run commands on it, change its links, end it."""

import json
import os
import shlex
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from pwd import getpwuid

import psutil

from distlab.cluster import namespaces, network
from distlab.cluster.namespaces import STATE, ClusterError, checked
from distlab.cluster.network import Link
from distlab.runtime import processes
from distlab.runtime.lookups import look_up
from distlab.runtime.processes import Finished

DEFAULT_NAME = "default"
NODES, MOST_NODES = 3, 9
SECONDS_FOR_AN_ANSWER = 600.0
SECONDS_TO_START, SECONDS_TO_END = 300.0, 60.0
SECONDS_BETWEEN_LOOKS = 0.1
LINES_OF_A_LOG = 5
NOT_RUNNING = "The cluster does not run; start it with 'make cluster' or 'distlab cluster up'."


class Cluster:
    """A running cluster; a `with` block ends it."""

    def __init__(self, holder: psutil.Process) -> None:
        self._holder = holder
        self._state = Path(f"/proc/{holder.pid}/root{STATE}")

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *error: object) -> None:
        self.down()

    def entering(self, command: Sequence[str]) -> list[str]:
        """The command line that runs a command on the login node, in this folder and with these variables.

        The command is ended with the process that carries the command line out.
        """
        # Without the mark: a job that the command submits outlives it.
        conditions = ["setpriv", "--pdeathsig", "TERM", "env", f"--unset={processes.MARK}", f"--chdir={Path.cwd()}"]
        variables = [f"SLURM_CONF={STATE}/slurm.conf", f"PATH={namespaces.search_path()}"]
        return [*self._enter(), *namespaces.as_user(), *conditions, *variables, *command]

    def run(self, command: Sequence[str], seconds: float = SECONDS_FOR_AN_ANSWER) -> Finished:
        """Run a command on the login node; what it prints, and its exit status (None when its time was over)."""
        return processes.run(self.entering(command), seconds)

    def nodes(self) -> list[str]:
        """The names of the compute nodes."""
        return list(self.links())

    def links(self) -> dict[str, Link]:
        """What each node's link lets through."""
        written = json.loads((self._state / "links.json").read_text())
        return {node: Link(**fields) for node, fields in written.items()}

    def link(self, node: str, rate: str | None = None, latency: str | None = None) -> None:
        """Limit a node's link in each direction, to a rate such as "100mbit" and by a latency such as "5ms".

        What is left out is not limited: `link(node)` takes all limits away.
        """
        self._change(node, network.limit, rate, latency)

    def cut(self, node: str) -> None:
        """Unplug a node's cable."""
        self._change(node, network.connect, False)

    def restore(self, node: str) -> None:
        """Plug it in again; the limits of the link stay."""
        self._change(node, network.connect, True)

    def down(self) -> None:
        """End the cluster with every job; nothing of it stays."""
        with suppress(psutil.NoSuchProcess):
            self._holder.kill()
            self._holder.wait(SECONDS_TO_END)  # it is over when all the others are

    def start(self, nodes: Sequence[str]) -> None:
        """Everything, until every node is idle; `up` calls it for a holder that has just started."""
        folder, user = Path(__file__).parent, getpwuid(os.geteuid()).pw_name
        script = ["env", f"--chdir={STATE}", "sh", "-ex", str(folder / "start.sh"), str(folder), user]
        try:
            pids = checked([*self._enter(), *script, shlex.join(namespaces.as_user()), *nodes]).split()
            self._write({node: Link(int(pid)) for node, pid in zip(nodes, pids, strict=True)})
            self._wait_until_idle()
        except (ClusterError, subprocess.TimeoutExpired) as error:
            logs = "\n".join(f"{log.name}: {line}" for log, line in self._last_lines())
            raise ClusterError(f"The cluster did not start: {error}\n{logs}".strip()) from error

    def _wait_until_idle(self) -> None:
        deadline = time.monotonic() + SECONDS_TO_START
        look = self.entering(["sinfo", "--noheader", "--Node", "--format=%T"])
        while time.monotonic() < deadline:
            with suppress(ClusterError, subprocess.TimeoutExpired):
                if checked(look).split() == ["idle"] * len(self.nodes()):
                    return
            time.sleep(SECONDS_BETWEEN_LOOKS)
        raise ClusterError(f"the nodes were not ready after {SECONDS_TO_START:g} s")

    def _last_lines(self) -> list[tuple[Path, str]]:
        """The ends of the daemons' logs."""
        logs = sorted((self._state / "log").glob("*.log"))
        return [(log, line) for log in logs for line in log.read_text(errors="replace").splitlines()[-LINES_OF_A_LOG:]]

    def _enter(self) -> list[str]:
        if not self._holder.is_running():
            raise ClusterError(NOT_RUNNING)
        return namespaces.entering(self._holder.pid)

    def _change(self, node: str, change: Callable[..., Link], *arguments: object) -> None:
        links = self.links()
        self._write(links | {node: change(self._enter(), node, look_up(links, node, "node"), *arguments)})

    def _write(self, links: dict[str, Link]) -> None:
        (self._state / "links.json").write_text(json.dumps({node: asdict(link) for node, link in links.items()}))


def up(name: str = DEFAULT_NAME, nodes: int = NODES) -> Cluster:
    """Start a cluster and wait until Slurm has work for it; ClusterError if it cannot, or runs already."""
    if not 1 <= nodes <= MOST_NODES:
        raise ClusterError(f"A cluster has 1 to {MOST_NODES} nodes, not {nodes}.")
    if sentence := namespaces.missing():
        raise ClusterError(sentence)
    if find(name):
        raise ClusterError("The cluster runs already; end it with 'distlab cluster down'.")
    try:
        cluster = Cluster(namespaces.start_holder(name))
        cluster.start([f"node{number}" for number in range(1, nodes + 1)])
    except BaseException:
        if begun := find(name):
            begun.down()
        raise
    return cluster


def find(name: str = DEFAULT_NAME) -> Cluster | None:
    """The cluster of that name, if it runs; ClusterError inside a cluster, from where most of it cannot be seen."""
    if Path(namespaces.MUNGE_SOCKET).is_socket():
        raise ClusterError(f"You are on {os.uname().nodename}, inside a cluster: leave it first.")
    holder = namespaces.find_holder(name)
    return Cluster(holder) if holder else None

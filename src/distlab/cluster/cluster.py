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

import psutil

from distlab.cluster import configuration, namespaces, network
from distlab.cluster.configuration import LOGS
from distlab.cluster.namespaces import MUNGE_SOCKET, STATE, ClusterError, checked
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


class Cluster:
    """A running cluster; a `with` block ends it."""

    def __init__(self, name: str, holder: psutil.Process) -> None:
        self.name = name
        self._holder = holder
        self._root = Path(f"/proc/{holder.pid}/root")
        self._links = self._root / STATE[1:] / "links.json"

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
        self._enter()
        try:
            written = json.loads(self._links.read_text())
        except FileNotFoundError:
            raise ClusterError(f"The cluster {self.name!r} is not ready: wait, or end it and start it again.") from None
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
        try:
            self._holder.kill()
            self._holder.wait(SECONDS_TO_END)  # it is over when all the others are
        except psutil.NoSuchProcess:
            pass
        except psutil.TimeoutExpired:
            raise ClusterError(f"Process {self._holder.pid} holds the cluster and does not end.") from None

    def start(self, nodes: Sequence[str]) -> None:
        """Everything, until every node is idle; `up` calls it for a holder that has just started."""
        try:
            configuration.write(self._root, nodes)
            script = ["env", f"--chdir={STATE}", "sh", "-ex", str(Path(__file__).with_name("start.sh"))]
            words = [namespaces.FIRST_PROCESS, shlex.join(namespaces.as_user()), *nodes]
            pids = checked([*self._enter(), *script, *words]).split()
            self._write({node: Link(int(pid)) for node, pid in zip(nodes, pids, strict=True)})
            self._wait_until_idle()
        except (ClusterError, OSError, subprocess.TimeoutExpired) as error:
            raise ClusterError(f"The cluster did not start: {error}\n{self._last_lines()}".strip()) from error

    def _wait_until_idle(self) -> None:
        deadline = time.monotonic() + SECONDS_TO_START
        look = self.entering(["sinfo", "--noheader", "--Node", "--format=%T"])
        while time.monotonic() < deadline:
            with suppress(ClusterError, subprocess.TimeoutExpired):
                if checked(look).split() == ["idle"] * len(self.nodes()):
                    return
            time.sleep(SECONDS_BETWEEN_LOOKS)
        raise ClusterError(f"the nodes were not ready after {SECONDS_TO_START:g} s")

    def _last_lines(self) -> str:
        """The ends of the daemons' logs."""
        lines = []
        for log in sorted((self._root / LOGS[1:]).glob("*.log")):
            lines += [f"{log.name}: {line}" for line in log.read_text(errors="replace").splitlines()[-LINES_OF_A_LOG:]]
        return "\n".join(lines)

    def _enter(self) -> list[str]:
        if not self._holder.is_running():
            raise ClusterError(not_running(self.name))
        return namespaces.entering(self._holder.pid)

    def _change(self, node: str, change: Callable[..., Link], *arguments: object) -> None:
        links = self.links()
        self._write(links | {node: change(self._enter(), node, look_up(links, node, "node"), *arguments)})

    def _write(self, links: dict[str, Link]) -> None:
        self._links.write_text(json.dumps({node: asdict(link) for node, link in links.items()}))


def up(name: str = DEFAULT_NAME, nodes: int = NODES) -> Cluster:
    """Start a cluster and wait until Slurm has work for it; ClusterError if it cannot, or runs already."""
    if not 1 <= nodes <= MOST_NODES:
        raise ClusterError(f"A cluster has 1 to {MOST_NODES} nodes, not {nodes}.")
    require_outside()
    if sentence := namespaces.missing():
        raise ClusterError(sentence)
    if find(name):
        raise ClusterError(f"The cluster {name!r} runs already; end it with 'distlab cluster down'.")
    try:
        cluster = Cluster(name, namespaces.start_holder(name))
        cluster.start([f"node{number}" for number in range(1, nodes + 1)])
    except BaseException:
        if begun := find(name):
            begun.down()
        raise
    return cluster


def find(name: str = DEFAULT_NAME) -> Cluster | None:
    """The cluster of that name, if it runs."""
    holder = namespaces.find_holder(name)
    return Cluster(name, holder) if holder else None


def require_outside() -> None:
    """Raise ClusterError inside a cluster: most of its processes cannot be seen from there, and it would end itself."""
    if Path(MUNGE_SOCKET).is_socket():
        host = os.uname().nodename
        raise ClusterError(f"You are on {host}, inside a cluster: leave it first, and repeat the command from outside.")


def not_running(name: str) -> str:
    """That the cluster does not run, and the command that starts it."""
    if name == DEFAULT_NAME:
        return f"The cluster {name!r} does not run; start it with 'make cluster' or 'distlab cluster up'."
    return f"The cluster {name!r} does not run; start it with 'distlab cluster up --name {name}'."

"""A cluster that runs, from outside: start it, run commands on it, change its links, end it."""

import json
import shlex
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from distlab.cluster import holder, layout, requirements
from distlab.cluster.limits import LinkLimits
from distlab.cluster.record import DEFAULT_NAME, ClusterError, ClusterRecord, RunsAlready
from distlab.runtime import processes
from distlab.runtime.lookups import require_name
from distlab.runtime.processes import Finished

SECONDS_FOR_AN_ANSWER = 600.0
NODES = 3


@dataclass(frozen=True)
class LinkState:
    """What a node's link lets through, in each direction."""

    limits: LinkLimits
    is_up: bool


class Cluster:
    """A running cluster; a `with` block ends it."""

    def __init__(self, record: ClusterRecord, name: str) -> None:
        self.name = name
        self._record = record

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.down()

    def entering(self, command: Sequence[str]) -> list[str]:
        """The command line that runs a command on the login node, in this folder and with these variables.

        The command is ended with the process that carries the command line out.
        """
        inside = ["--mount", "--uts", "--ipc", "--net", "--pid"]
        if user := holder.as_user():
            inside += ["--user", "--preserve-credentials"]
        # Without the mark: a job that the command submits outlives it.
        conditions = ["setpriv", "--pdeathsig", "TERM", "env", f"--unset={processes.MARK}", f"--chdir={Path.cwd()}"]
        variables = [f"SLURM_CONF={layout.STATE}/slurm.conf", f"PATH={layout.search_path()}"]
        return ["nsenter", "--target", str(self._holder()), *inside, "--", *user, *conditions, *variables, *command]

    def run(self, command: Sequence[str], seconds: float = SECONDS_FOR_AN_ANSWER) -> Finished:
        """Run a command on the login node; what it prints, and its exit status (None when its time was over)."""
        return processes.run(self.entering(command), seconds)

    def nodes(self) -> list[str]:
        """The names of the compute nodes."""
        return list(self.links())

    def links(self) -> dict[str, LinkState]:
        """The state of each node's link."""
        return self._ask({"links": True})

    def link(self, node: str, rate: str | None = None, latency: str | None = None) -> None:
        """Limit a node's link in each direction, to a rate such as "100mbit" and by a latency such as "5ms".

        What is left out is not limited: `link(node)` takes all limits away.
        """
        limits = LinkLimits.parse(rate, latency)
        self._ask_about(node, limits={"rate": limits.rate, "latency": limits.latency})

    def cut(self, node: str) -> None:
        """Unplug a node's cable."""
        self._ask_about(node, is_up=False)

    def restore(self, node: str) -> None:
        """Plug it in again; the limits of the link stay."""
        self._ask_about(node, is_up=True)

    def down(self) -> None:
        """End the cluster with every job; nothing of it stays."""
        with self._record.locked():
            holder.end(self._record)

    def _holder(self) -> int:
        number = self._record.holder()
        if number is None:
            raise ClusterError(not_running(self.name))
        return number

    def _ask_about(self, node: str, **request: object) -> None:
        require_name(self.nodes(), node, "node")
        self._ask({"node": node, **request})

    def _ask(self, request: Mapping[str, object]) -> dict[str, LinkState]:
        """Let the cluster do something; returns the state of its links."""
        path = f"/proc/{self._holder()}/root{layout.CONTROL_SOCKET}"
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(SECONDS_FOR_AN_ANSWER)
                connection.connect(path)
                connection.sendall(json.dumps(request).encode() + b"\n")
                with connection.makefile() as reply_file:
                    reply = json.loads(reply_file.read())
        except (OSError, ValueError) as error:
            raise ClusterError(f"The cluster does not answer ({error}); end it with 'distlab cluster down'.") from error
        if "error" in reply:
            raise ClusterError(f"The cluster could not do that: {reply['error']}.")
        return {node: LinkState(LinkLimits(**link["limits"]), link["is_up"]) for node, link in reply["links"].items()}


def up(name: str = DEFAULT_NAME, nodes: int = NODES) -> Cluster:
    """Start a cluster and wait until Slurm has work for it; RunsAlready if it runs, ClusterError if it cannot."""
    if not 1 <= nodes <= layout.MOST_NODES:
        raise ClusterError(f"A cluster has 1 to {layout.MOST_NODES} nodes, not {nodes}.")
    check_place()
    if sentence := requirements.missing():
        raise ClusterError(sentence)
    record = ClusterRecord(name)
    with record.locked():
        if record.holder():
            raise RunsAlready(f"The cluster {name!r} runs already; end it with 'distlab cluster down'.")
        holder.start(record, layout.node_names(nodes))
    return Cluster(record, name)


def check_place() -> None:
    """Raise ClusterError on a node of a cluster: the process that holds the cluster cannot be seen from there."""
    host = socket.gethostname()
    if host in layout.node_names(layout.MOST_NODES) and Path(layout.CONTROL_SOCKET).exists():
        raise ClusterError(f"You are on {host}, inside a cluster: leave it first, and repeat the command from outside.")


def find(name: str = DEFAULT_NAME) -> Cluster | None:
    """The cluster of that name, if it runs."""
    record = ClusterRecord(name)
    return Cluster(record, name) if record.holder() else None


def not_running(name: str) -> str:
    """That the cluster does not run, and the command that starts it."""
    by_make = "'make cluster' or " if name == DEFAULT_NAME else ""
    option = "" if name == DEFAULT_NAME else f" --name {shlex.quote(name)}"
    return f"The cluster {name!r} does not run; start it with {by_make}'distlab cluster up{option}'."

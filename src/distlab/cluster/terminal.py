"""A cluster from the terminal: what `distlab cluster up`, `run`, `status`, `link` and `down` do and print."""

import time

from distlab.cluster import holder
from distlab.cluster.cluster import NODES, Cluster, check_place, find, not_running, up
from distlab.cluster.record import DEFAULT_NAME, ClusterError, ClusterRecord, RunsAlready
from distlab.cluster.running import carry_out
from distlab.cluster.status import status
from distlab.runtime import processes

ALL = "all"


def start(*, name: str = DEFAULT_NAME, nodes: int | None = None) -> int:
    """Start it, or say that it runs already; 1 if it runs with another number of nodes, or takes no jobs.

    Args:
        name: Which cluster, if there are several.
        nodes: How many nodes, 1 to 9; by default 3.
    """
    processes.end_on_signals()
    began = time.monotonic()
    try:
        cluster = up(name, NODES if nodes is None else nodes)
    except RunsAlready:
        return _runs_already(_running(name), nodes)
    option = "" if name == DEFAULT_NAME else f"--name {name} "
    command = f"distlab cluster run {option}-- srun --nodes {len(cluster.nodes())} hostname"
    seconds = time.monotonic() - began
    print(f"The cluster is ready after {seconds:.1f} s.\n\n{status(cluster).text}\n\nTry: {command}", flush=True)
    return 0


def run(*command: str, name: str = DEFAULT_NAME) -> int:
    """Run a command on the login node, in this folder and with these variables; returns its exit status.

    Args:
        command: After --, such as srun --nodes 3 hostname.
        name: Which cluster, if there are several.
    """
    if not command:
        raise ClusterError("Say which command to run: distlab cluster run -- srun --nodes 3 hostname")
    return carry_out(_running(name), list(command))


def show(*, name: str = DEFAULT_NAME) -> int:
    """Print nodes, links and jobs; 1 if the cluster takes no jobs.

    Args:
        name: Which cluster, if there are several.
    """
    state = status(_running(name))
    print(state.text)
    return 0 if state.takes_jobs else 1


def link(
    node: str,
    /,
    *,
    name: str = DEFAULT_NAME,
    rate: str | None = None,
    latency: str | None = None,
    cut: bool = False,
    restore: bool = False,
) -> int:
    """Change the link of a node, and print what there is then.

    Args:
        node: The node, or all.
        name: Which cluster, if there are several.
        rate: In each direction, such as 100mbit; by default unlimited.
        latency: Added in each direction, such as 5ms; by default none.
        cut: Unplug the cable.
        restore: Plug it in again.
    """
    if (cut and restore) or ((cut or restore) and (rate or latency)):
        raise ClusterError("Cut or restore a link first; then say its limits in a second command.")
    cluster = _running(name)
    for each in cluster.nodes() if node == ALL else [node]:
        if cut:
            cluster.cut(each)
        elif restore:
            cluster.restore(each)
        else:
            cluster.link(each, rate, latency)
    return show(name=name)


def end(*, name: str = DEFAULT_NAME) -> None:
    """End it with every job.

    Args:
        name: Which cluster, if there are several.
    """
    check_place()
    record = ClusterRecord(name)
    ran = record.holder() is not None
    if ran or record.folder.exists():
        with record.locked():
            holder.end(record)
    print("The cluster has ended; nothing of it stays." if ran else f"The cluster {name!r} does not run.")


def _running(name: str) -> Cluster:
    check_place()
    cluster = find(name)
    if cluster is None:
        raise ClusterError(not_running(name))
    return cluster


def _runs_already(cluster: Cluster, nodes_asked: int | None) -> int:
    nodes, state = len(cluster.nodes()), status(cluster)
    print(f"The cluster {cluster.name!r} runs already.\n\n{state.text}")
    if nodes_asked in (None, nodes):
        return 0 if state.takes_jobs else 1
    print(f"\nIt has {nodes} nodes, not {nodes_asked}: end it first, or start another one with --name.")
    return 1

"""A cluster from the terminal: what `distlab cluster up`, `run`, `status`, `link` and `down` do and print."""

import os
import signal
import time

from distlab.cluster.cluster import NODES, NOT_RUNNING, Cluster, find, up
from distlab.cluster.namespaces import STATE, ClusterError
from distlab.runtime import processes, tables

ALL = "all"
SECONDS_FOR_SLURM = 120.0
# Slurm forgets jobs that failed after an hour; only slurmd's log says why such a job has no output.
JOBS = rf"""
squeue --format='%.8i %.20j %.10T %.10M %R' || exit
echo
echo 'Failed in the last hour:'
squeue --states=FAILED,NODE_FAIL,OUT_OF_MEMORY,TIMEOUT --sort=-e,-i --format='%.8i %.20j %.14T %r'
sed -n 's/.*\[\([0-9]*\).batch\] error: \(Could not open std.*\)/Job \1: \2/p' {STATE}/log/slurmd.*.log
"""


def start(*, nodes: int = NODES) -> int:
    """Start it, or say that it runs already; 1 if it takes no jobs.

    Args:
        nodes: How many nodes, 1 to 9.
    """
    processes.end_on_signals()
    if find():
        print("The cluster runs already.\n")
        return show()
    began = time.monotonic()
    up(nodes=nodes)
    print(f"The cluster is ready after {time.monotonic() - began:.1f} s.\n")
    show()
    print(f"\nTry: distlab cluster run -- srun --nodes {nodes} hostname", flush=True)
    return 0


def run(*command: str) -> int:
    """Run a command on the login node, in this folder and with these variables; returns its exit status.

    Args:
        command: After --, such as srun --nodes 3 hostname.
    """
    if not command:
        raise ClusterError("Say which command to run: distlab cluster run -- srun --nodes 3 hostname")
    words = _running().entering(command)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # which Python ignores, and the command would, too
    os.execvp(words[0], words)


def show() -> int:
    """Print nodes, links and jobs; 1 if the cluster takes no jobs."""
    cluster = _running()
    answer = cluster.run(["sinfo", "--noheader", "--Node", "--format=%N %T"], SECONDS_FOR_SLURM)
    states = dict(line.split() for line in answer.output.splitlines()) if answer.status == 0 else {}
    rows = []
    for node, link in cluster.links().items():
        rate = f"{link.rate / 1e6:g} Mbit/s" if link.rate else "unlimited"
        latency = f"+{1e3 * link.latency:g} ms" if link.latency else ""
        address = f"10.99.0.{node.removeprefix('node')}"
        rows.append((node, address, states.get(node, "no answer"), rate if link.is_up else "cut", latency))
    print(tables.text(("node", "address", "Slurm says", "rate", "latency"), rows) + "\n")
    print(cluster.run(["sh", "-c", JOBS], SECONDS_FOR_SLURM).output.rstrip())
    return 0 if states else 1


def link(
    node: str,
    /,
    *,
    rate: str | None = None,
    latency: str | None = None,
    cut: bool = False,
    restore: bool = False,
) -> int:
    """Change the link of a node, and print what there is then.

    Args:
        node: The node, or all.
        rate: In each direction, such as 100mbit; by default unlimited.
        latency: Added in each direction, such as 5ms; by default none.
        cut: Unplug the cable.
        restore: Plug it in again.
    """
    cluster = _running()
    for each in cluster.nodes() if node == ALL else [node]:
        if rate or latency or not (cut or restore):
            cluster.link(each, rate, latency)
        if cut or restore:
            (cluster.cut if cut else cluster.restore)(each)
    return show()


def end() -> None:
    """End it with every job."""
    if cluster := find():
        cluster.down()
    print("The cluster has ended; nothing of it stays." if cluster else "The cluster does not run.")


def _running() -> Cluster:
    if cluster := find():
        return cluster
    raise ClusterError(NOT_RUNNING)

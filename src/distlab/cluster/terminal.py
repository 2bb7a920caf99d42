"""A cluster from the terminal: what `distlab cluster up`, `run`, `status`, `link` and `down` do and print."""

import os
import signal
import time

from distlab.cluster.cluster import DEFAULT_NAME, NODES, Cluster, find, not_running, require_outside, up
from distlab.cluster.configuration import LOGS
from distlab.cluster.namespaces import ClusterError
from distlab.cluster.network import Link, address
from distlab.runtime import processes, tables

ALL = "all"
SECONDS_FOR_SLURM = 120.0
FAILED = "FAILED,NODE_FAIL,OUT_OF_MEMORY,TIMEOUT"


def start(*, name: str = DEFAULT_NAME, nodes: int = NODES) -> int:
    """Start it, or say that it runs already; 1 if it takes no jobs.

    Args:
        name: Which cluster, if there are several.
        nodes: How many nodes, 1 to 9.
    """
    processes.end_on_signals()
    require_outside()
    if find(name):
        print(f"The cluster {name!r} runs already.\n")
        return show(name=name)
    began = time.monotonic()
    cluster = up(name, nodes)
    print(f"The cluster is ready after {time.monotonic() - began:.1f} s.\n")
    show(name=name)
    option = "" if name == DEFAULT_NAME else f"--name {name} "
    print(f"\nTry: distlab cluster run {option}-- srun --nodes {len(cluster.nodes())} hostname", flush=True)
    return 0


def run(*command: str, name: str = DEFAULT_NAME) -> int:
    """Run a command on the login node, in this folder and with these variables; returns its exit status.

    Args:
        command: After --, such as srun --nodes 3 hostname.
        name: Which cluster, if there are several.
    """
    if not command:
        raise ClusterError("Say which command to run: distlab cluster run -- srun --nodes 3 hostname")
    words = _running(name).entering(command)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # which Python ignores, and the command would, too
    os.execvp(words[0], words)


def show(*, name: str = DEFAULT_NAME) -> int:
    """Print nodes, links and jobs; 1 if the cluster takes no jobs.

    Args:
        name: Which cluster, if there are several.
    """
    cluster = _running(name)
    answer = cluster.run(["sinfo", "--noheader", "--Node", "--format=%N %T"], SECONDS_FOR_SLURM)
    takes_jobs = answer.status == 0
    states = dict(line.split() for line in answer.output.splitlines()) if takes_jobs else {}
    rows = [
        (
            node,
            address(node),
            states.get(node, "no answer"),
            _rate(link),
            f"+{1e3 * link.latency:g} ms" if link.latency else "",
        )
        for node, link in cluster.links().items()
    ]
    print(tables.text(("node", "address", "Slurm says", "rate", "latency"), rows) + "\n")
    if takes_jobs:
        print(_jobs(cluster))
        return 0
    option = "" if name == DEFAULT_NAME else f" --name {name}"
    print(
        "slurmctld does not answer, so that no job can start: end the cluster with "
        f"'distlab cluster down{option}', then start it again."
    )
    return 1


def _jobs(cluster: Cluster) -> str:
    """Those that wait or run, and those that failed, which Slurm forgets after an hour, with what slurmd says."""
    queue = cluster.run(["squeue", "--format=%.8i %.20j %.10T %.10M %R"], SECONDS_FOR_SLURM).output.rstrip()
    text = queue if len(queue.splitlines()) > 1 else "No job waits or runs."
    columns = ["--sort=-e,-i", "--format=%.8i %.20j %.14T %r"]
    failed = cluster.run(["squeue", f"--states={FAILED}", *columns], SECONDS_FOR_SLURM).output.rstrip()
    if len(failed.splitlines()) > 1:
        text += f"\n\nFailed in the last hour:\n{failed}"
    # Only slurmd's log says why such a job has no output.
    search = (
        f"sed -n 's/.*\\[\\([0-9]*\\).batch\\] error: \\(Could not open std.*\\)/Job \\1: \\2/p' {LOGS}/slurmd.*.log"
    )
    said = cluster.run(["sh", "-c", search], SECONDS_FOR_SLURM).output.rstrip()
    return f"{text}\n\n{said}" if said else text


def _rate(link: Link) -> str:
    if not link.is_up:
        return "cut"
    return f"{link.rate / 1e6:g} Mbit/s" if link.rate else "unlimited"


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
    require_outside()
    if cluster := find(name):
        cluster.down()
    print("The cluster has ended; nothing of it stays." if cluster else f"The cluster {name!r} does not run.")


def _running(name: str) -> Cluster:
    require_outside()
    cluster = find(name)
    if cluster is None:
        raise ClusterError(not_running(name))
    return cluster

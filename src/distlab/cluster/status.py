"""What a cluster does, as text: its nodes with their links, and the jobs."""

import shlex
from typing import NamedTuple

from distlab.cluster.cluster import Cluster, LinkState
from distlab.cluster.layout import address
from distlab.cluster.record import DEFAULT_NAME
from distlab.runtime import tables

SECONDS_FOR_SLURM = 20.0
NO_ANSWER = "no answer"


class ClusterStatus(NamedTuple):
    """What the cluster does, as `text`, and whether its Slurm answers, so that it `takes_jobs`."""

    text: str
    takes_jobs: bool


def status(cluster: Cluster) -> ClusterStatus:
    """A table of the nodes and Slurm's list of the jobs."""
    states = _slurm_states(cluster)
    rows = [
        (node, address(node), states.get(node, NO_ANSWER), _rate(link), _latency(link))
        for node, link in cluster.links().items()
    ]
    nodes = tables.text(("node", "address", "Slurm says", "rate", "latency"), rows)
    jobs = _jobs(cluster) if states else _no_controller(cluster.name)
    return ClusterStatus(f"{nodes}\n\n{jobs}", bool(states))


def _no_controller(name: str) -> str:
    """That Slurm is gone though the cluster runs, and how to get it back."""
    option = "" if name == DEFAULT_NAME else f" --name {shlex.quote(name)}"
    return (
        "slurmctld does not answer, so that no job can start: end the cluster with "
        f"'distlab cluster down{option}', then start it again."
    )


def _slurm_states(cluster: Cluster) -> dict[str, str]:
    finished = cluster.run(["sinfo", "--noheader", "--Node", "--format=%N %T"], SECONDS_FOR_SLURM)
    if finished.status != 0:
        return {}
    words = [line.split() for line in finished.output.splitlines()]
    return {pair[0]: pair[1] for pair in words if len(pair) == 2}


def _jobs(cluster: Cluster) -> str:
    finished = cluster.run(["squeue", "--format=%.8i %.20j %.10T %.10M %.16R"], SECONDS_FOR_SLURM)
    if finished.status != 0:
        return _no_controller(cluster.name)
    return finished.output.rstrip() if len(finished.output.splitlines()) > 1 else "No job waits or runs."


def _rate(link: LinkState) -> str:
    if not link.is_up:
        return "cut"
    return f"{link.limits.rate / 1e6:g} Mbit/s" if link.limits.rate else "unlimited"


def _latency(link: LinkState) -> str:
    return f"+{1e3 * link.limits.latency:g} ms" if link.limits.latency else ""

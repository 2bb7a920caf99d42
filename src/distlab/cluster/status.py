"""What a cluster does, as text: its nodes with their links, and the jobs."""

import re
import shlex
import signal
from pathlib import Path
from typing import NamedTuple

from distlab.cluster.cluster import Cluster, LinkState
from distlab.cluster.layout import LOGS, address
from distlab.cluster.record import DEFAULT_NAME
from distlab.runtime import tables

SECONDS_FOR_SLURM = 120.0
NO_ANSWER = "no answer"
MOST_FAILED = 5
_FAILED = "FAILED,NODE_FAIL,OUT_OF_MEMORY,TIMEOUT"
# What slurmd writes into its log, and nowhere else: such a job has no output that could say it.
_NO_OUTPUT_FILE = re.compile(r"\[(\d+)\.batch\] error: (Could not open std\w+ file (.+): (.+))")


class ClusterStatus(NamedTuple):
    """What the cluster does, as `text`, and whether its Slurm answers, so that it `takes_jobs`."""

    text: str
    takes_jobs: bool


def status(cluster: Cluster) -> ClusterStatus:
    """A table of the nodes, Slurm's list of the jobs, and those that failed in the last hour."""
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
    finished = cluster.run(["squeue", "--format=%.8i %.20j %.10T %.10M %R"], SECONDS_FOR_SLURM)
    if finished.status != 0:
        return _no_controller(cluster.name)
    jobs = finished.output.rstrip() if len(finished.output.splitlines()) > 1 else "No job waits or runs."
    return jobs + _failed_jobs(cluster)


def _failed_jobs(cluster: Cluster) -> str:
    """The last jobs that failed and why; Slurm forgets them after an hour."""
    columns = "JobID:|,JobArrayID:|,exit_code:|,Reason:|,Name:|"  # of a job in an array JobArrayID is 5_1
    words = ["squeue", f"--states={_FAILED}", "--sort=-e,-i", "--noheader", f"--Format={columns}"]
    lines = cluster.run(words, SECONDS_FOR_SLURM).output.splitlines()
    jobs = [line.removesuffix("|").split("|", 4) for line in lines if line.count("|") >= 5][:MOST_FAILED]
    if not jobs:
        return ""
    reasons = _reasons(cluster)
    rows = [
        (job, name, reasons.get(number) or _signal(int(code)) or reason) for number, job, code, reason, name in jobs
    ]
    return f"\n\nFailed in the last hour:\n{tables.text(('job', 'name', 'reason'), rows)}"


def _signal(exit_code: int) -> str:
    """Which signal has ended a job: Slurm says JobLaunchFailure of it, and sets 53 if there was none."""
    try:
        name = signal.Signals(exit_code & 0x7F).name
    except ValueError:
        return ""
    return f"ended by {name}" + (", as by Ctrl-C" if name == "SIGKILL" else "")


def _reasons(cluster: Cluster) -> dict[str, str]:
    """Why jobs could not begin, by their numbers."""
    search = f"grep --no-filename 'error: Could not open' {LOGS}/slurmd.*.log"
    reasons = {}
    for number, sentence, file, error in _NO_OUTPUT_FILE.findall(cluster.run(["sh", "-c", search]).output):
        folder = shlex.quote(str(Path(file).parent))
        reasons[number] = f"{sentence}; run `mkdir -p {folder}`" if "No such file" in error else sentence
    return reasons


def _rate(link: LinkState) -> str:
    if not link.is_up:
        return "cut"
    return f"{link.limits.rate / 1e6:g} Mbit/s" if link.limits.rate else "unlimited"


def _latency(link: LinkState) -> str:
    return f"+{1e3 * link.limits.latency:g} ms" if link.limits.latency else ""

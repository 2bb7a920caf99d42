"""TF_CONFIG of a task that Slurm has started, from the variables that srun sets."""

import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence

from distlab.cluster_spec.spec import fail, quoted

# Each step of each job has a block of ports of its own, below those that Linux gives to connections (from 32768).
FIRST_PORT, PORTS_PER_STEP, BLOCKS = 20_000, 64, 191
STEPS_PER_JOB = 8


def slurm_task(environment: Mapping[str, str] = os.environ) -> tuple[dict[str, list[str]], int]:
    """The addresses of all tasks of this step, in the order of their ranks, and the rank of this one."""
    hosts = host_names(_variable(environment, "SLURM_STEP_NODELIST"))
    counts = tasks_per_node(_variable(environment, "SLURM_STEP_TASKS_PER_NODE"))
    rank = _number(environment, "SLURM_PROCID")
    if len(hosts) != len(counts):
        fail(
            f"SLURM_STEP_NODELIST names {len(hosts)} nodes and SLURM_STEP_TASKS_PER_NODE {len(counts)}: "
            "start the program with srun, which sets both"
        )
    if max(counts) > PORTS_PER_STEP:
        fail(f"SLURM_STEP_TASKS_PER_NODE is {max(counts)} tasks on one node: start at most {PORTS_PER_STEP}")
    nodes = _nodes_of_ranks(environment, counts)
    _check_own_place(environment, hosts, nodes, rank)
    port = first_port(_number(environment, "SLURM_JOB_ID"), _number(environment, "SLURM_STEP_ID"))
    tasks_so_far = [0] * len(hosts)
    addresses = []
    for node in nodes:
        addresses.append(f"{hosts[node]}:{port + tasks_so_far[node]}")
        tasks_so_far[node] += 1
    return {"worker": addresses}, rank


def first_port(job: int, step: int) -> int:
    """The same in every task of a step; steps that run side by side have different ones."""
    return FIRST_PORT + PORTS_PER_STEP * ((STEPS_PER_JOB * job + step) % BLOCKS)


def host_names(text: str) -> list[str]:
    """The hosts of a list as Slurm writes it, in its order: "node[09-10],gpu-a1" is node09, node10 and gpu-a1."""
    names: list[str] = []
    for pattern in re.findall(r"(?:[^,\[\]]|\[[^\[\]]*\])+", text):
        parts = re.split(r"\[([^\[\]]*)\]", pattern)  # text, numbers, text, numbers, …, text
        choices = [list(_numbers(part, text)) if place % 2 else [part] for place, part in enumerate(parts)]
        names += ["".join(choice) for choice in itertools.product(*choices)]
    if not names or text.count("[") != text.count("]"):
        fail(f"SLURM_STEP_NODELIST is {quoted(text)}, not a list of hosts such as node[1-3]: let srun set it")
    return names


def _numbers(ranges: str, text: str) -> Iterator[str]:
    for part in ranges.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if not match:
            fail(f"SLURM_STEP_NODELIST is {quoted(text)}, where {quoted(part)} is no range of numbers: let srun set it")
        first, last = match[1], match[2] or match[1]
        for number in range(int(first), int(last) + 1):
            yield str(number).zfill(len(first))


def tasks_per_node(text: str) -> list[int]:
    """How many tasks each node has: "2(x3),1" is 2, 2, 2 and 1."""
    counts = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
        if not match:
            fail(f"SLURM_STEP_TASKS_PER_NODE is {quoted(text)}, not counts such as 2(x3),1: let srun set it")
        counts += [int(match[1])] * int(match[2] or 1)
    return counts


def _nodes_of_ranks(environment: Mapping[str, str], counts: Sequence[int]) -> list[int]:
    """The number of each rank's node."""
    distribution = re.split("[:,]", environment.get("SLURM_DISTRIBUTION") or "block")[0].lower()
    if distribution == "block":
        return [node for node, count in enumerate(counts) for _ in range(count)]
    if distribution == "cyclic":
        rounds = range(max(counts))
        return [node for finished in rounds for node, count in enumerate(counts) if count > finished]
    return fail(
        f"SLURM_DISTRIBUTION is {quoted(distribution)}, which does not say which rank is where: "
        "start the program with srun --distribution=block"
    )


def _check_own_place(environment: Mapping[str, str], hosts: Sequence[str], nodes: Sequence[int], rank: int) -> None:
    """Compare with what this task knows about itself: a wrong address would show only as a job that waits forever."""
    if not 0 <= rank < len(nodes):
        fail(f"SLURM_PROCID is {rank}, but the step has {len(nodes)} tasks: let srun set it")
    own = environment.get("SLURMD_NODENAME", hosts[nodes[rank]])
    if own != hosts[nodes[rank]]:
        fail(
            f"SLURMD_NODENAME is {quoted(own)}, but rank {rank} is expected on {quoted(hosts[nodes[rank]])}: "
            "start the program with srun --distribution=block"
        )


def _variable(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name)
    if not value:
        fail(
            f"{name} is not set: start the program with srun, in a batch script or after salloc, or leave out "
            "the option that asks Slurm, such as --slurm"
        )
    return value


def _number(environment: Mapping[str, str], name: str) -> int:
    text = _variable(environment, name)
    if not (text.isascii() and text.isdigit()):
        fail(f"{name} is {quoted(text)}, not a number: let srun set it")
    return int(text)

"""TF_CONFIG of a task that Slurm has started, from the variables that srun sets."""

import itertools
import os
import re
from collections.abc import Iterator, Mapping

from distlab.cluster_spec.spec import fail, quoted, tf_config

# Each step of each job has a block of ports of its own, below those that Linux gives to connections (from 32768). The
# golden ratio of the blocks keeps twelve neighbouring jobs with eleven steps each apart.
FIRST_PORT, PORTS_PER_STEP, BLOCKS = 20_000, 64, 199
BLOCKS_PER_JOB = 123


def from_slurm() -> str:
    """The text of TF_CONFIG for this task of a Slurm job; ClusterSpecError where srun has not started it.

    It needs neither GPUs nor Slurm's programs. Each task is a worker, in the order of the ranks.
    """
    cluster, rank = slurm_task()
    return tf_config(cluster, "worker", rank)


def slurm_task(environment: Mapping[str, str] = os.environ) -> tuple[dict[str, list[str]], int]:
    """The addresses of all tasks of this step, in the order of their ranks, and the rank of this one."""
    hosts = host_names(_variable(environment, "SLURM_STEP_NODELIST"))
    counts = tasks_per_node(_variable(environment, "SLURM_STEP_TASKS_PER_NODE"))
    rank = int(_variable(environment, "SLURM_PROCID"))
    port = first_port(int(_variable(environment, "SLURM_JOB_ID")), int(_variable(environment, "SLURM_STEP_ID")))
    places = [(host, place) for host, count in zip(hosts, counts, strict=True) for place in range(count)]
    distribution = re.split("[:,=]", environment.get("SLURM_DISTRIBUTION") or "block")[0].lower()
    if distribution in ("cyclic", "plane"):  # some tasks of each node, then the next ones of each
        together = int(environment.get("SLURM_DIST_PLANESIZE", 1)) if distribution == "plane" else 1
        places.sort(key=lambda place: place[1] // together)
    if rank >= len(places):
        fail(f"SLURM_PROCID is {rank} of {len(places)} tasks: start only one component of a heterogeneous job")
    # A wrong address would show only as a job that waits forever.
    own = environment.get("SLURMD_NODENAME", places[rank][0])
    if distribution not in ("block", "pack", "nopack", "cyclic", "plane") or own != places[rank][0]:
        fail(f"SLURM_DISTRIBUTION is {distribution}, and rank {rank} is on {own}: start with srun --distribution=block")
    return {"worker": [f"{host}:{port + place}" for host, place in places]}, rank


def first_port(job: int, step: int) -> int:
    """The same in every task of a step; steps that run side by side have different ones."""
    return FIRST_PORT + PORTS_PER_STEP * ((BLOCKS_PER_JOB * job + step) % BLOCKS)


def host_names(text: str) -> list[str]:
    """The hosts of a list as Slurm writes it, in its order: "node[09-10],gpu-a1" is node09, node10 and gpu-a1."""
    if not re.fullmatch(r"(?:[^][\s()]|\[\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*\])+", text):
        fail(f"SLURM_STEP_NODELIST is {quoted(text)}, not a list of hosts such as node[1-3]: let srun set it")
    names: list[str] = []
    for pattern in re.findall(r"(?:[^,\[\]]|\[[^\[\]]*\])+", text):
        parts = re.split(r"\[([^\[\]]*)\]", pattern)  # text, numbers, text, numbers, …, text
        choices = [list(_numbers(part)) if place % 2 else [part] for place, part in enumerate(parts)]
        names += ["".join(choice) for choice in itertools.product(*choices)]
    return names


def _numbers(ranges: str) -> Iterator[str]:
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        for number in range(int(first), int(last or first) + 1):
            yield str(number).zfill(len(first))


def tasks_per_node(text: str) -> list[int]:
    """How many tasks each node has: "2(x3),1" is 2, 2, 2 and 1."""
    counts = []
    for count, _, nodes in (part.rstrip(")").partition("(x") for part in text.split(",")):
        counts += [int(count)] * int(nodes or 1)
    return counts


def _variable(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name)
    if not value:
        fail(f"{name} is not set: start the program with srun, or leave out the option that asks Slurm (--slurm)")
    return value

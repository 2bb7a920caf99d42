"""The hosts of a job: node1:2,node2:2 is two processes on each of two hosts; and which variables go there."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from distlab.launch.job import LaunchError, is_of_another_job
from distlab.runtime.processes import MARK

EXAMPLE = "node1:2,node2:2"
_HOST = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?::([0-9]{1,4}))?")
# What Python, the course, TensorFlow, MPI, Horovod, NCCL, PyTorch and numerical libraries read. Another host has a
# home, a terminal and a proxy of its own.
_TRAVELS = re.compile(
    "(PYTHON|DISTLAB_|TF_|XLA_|KERAS_|OMP_|KMP_|MKL_|OPENBLAS_|OMPI_|OPAL_|UCX_|FI_|HOROVOD_|GLOO_|NCCL_|CUDA_"
    "|TORCH_|GRPC_|LC_).*|PATH|LD_LIBRARY_PATH|LANG|no_grpc_proxy|MPLBACKEND"
)

# Which run this process belongs to, and which GPUs of this machine it uses.
_STAYS = (MARK, "CUDA_VISIBLE_DEVICES")


@dataclass(frozen=True)
class Host:
    """A host and how many processes run there."""

    name: str
    count: int


def parse(text: str | Sequence[str]) -> list[Host]:
    """The hosts of "node1:2,node2:2", or of a list of such names; without a number a host has one place."""
    if not isinstance(text, str | Sequence) or not all(isinstance(part, str) for part in text):
        raise LaunchError(f"hosts={text!r} makes no sense: write {EXAMPLE}.")
    parts = text.split(",") if isinstance(text, str) else list(text)
    hosts = []
    for part in parts:
        match = _HOST.fullmatch(part.strip())
        if not match or (match[2] and not int(match[2])):
            raise LaunchError(f"{part!r} is no host with its number of processes; write {EXAMPLE}.")
        hosts.append(Host(match[1], int(match[2] or 1)))
    names = [host.name for host in hosts]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise LaunchError(f"{twice} is named twice; write it once, with all its processes: {twice}:2.")
    if not hosts:
        raise LaunchError(f"There are no hosts; write {EXAMPLE}.")
    return hosts


def fill(hosts: Sequence[Host], count: int | None, what: str) -> list[Host]:
    """The first hosts with places for `count` processes; for None as many as there are places."""
    places = sum(host.count for host in hosts)
    count = places if count is None else count
    if count > places:
        named = ",".join(f"{host.name}:{host.count}" for host in hosts)
        raise LaunchError(
            f"{what}={count} is too many for {named}, which is {places}; name more hosts, or more of each."
        )
    filled = []
    for host in hosts:
        if count > 0:
            filled.append(Host(host.name, min(host.count, count)))
            count -= host.count
    return filled


def travelling_environment() -> dict[str, str]:
    """Those of this process's variables that the programs on other hosts get."""
    return {
        name: value
        for name, value in os.environ.items()
        if _TRAVELS.fullmatch(name) and not is_of_another_job(name) and name not in _STAYS
    }

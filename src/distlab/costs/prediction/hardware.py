"""Machines, by name: how many ranks share a host, how fast they reach each other, how fast a device trains.

The numbers and their sources are in `hardware.toml`.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distlab.costs.prediction.assumptions import ASSUMED
from distlab.costs.prediction.networks import MODELS
from distlab.simulate import Link


@dataclass(frozen=True)
class Hardware:
    """A cluster of equal hosts.

    inside: the link between two ranks of one host. between: the connection of a host to all others.
    flops: floating-point operations per second of one device in training.
    memory_bandwidth: of one device, in bytes per second.
    algorithm: the all-reduce that its users published results with, or "fastest": NCCL chooses by size and ranks.
    source: where the facts are from; second_hand: True when they were not read in the maker's or authors' own text.
    matrix_flops: the peak of one device in half-precision matrix products with single-precision sums, by its data
        sheet; 0 where it has no units for them. memory_bytes: of one device.
    uses_tcp: True where hosts reach each other by TCP, so that their processors copy every byte; False for RDMA.
    """

    name: str
    title: str
    ranks_per_host: int
    inside: Link
    between: Link
    flops: float
    memory_bandwidth: float
    algorithm: str
    source: str
    second_hand: bool = True
    matrix_flops: float = 0.0
    memory_bytes: float = 0.0
    uses_tcp: bool = False

    @property
    def seconds_per_byte_reduced(self) -> float:
        """γ: adding one array to another reads two bytes and writes one for each byte of it, at memory speed."""
        return 3 / self.memory_bandwidth

    def reached_links(self) -> tuple[Link, Link]:
        """`inside` and `between` at the speed that an all-reduce reaches on them."""
        inside, between = (link.seconds_per_byte / ASSUMED.bandwidth_share for link in (self.inside, self.between))
        copying = 1 / ASSUMED.tcp_core_bandwidth if self.uses_tcp else 0.0
        return Link(self.inside.latency, inside), Link(self.between.latency, between + copying)


_CONTENT = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def machine(name: str, own: dict[str, Any]) -> Hardware:
    """The machine with these entries, as `hardware.toml` has them; one that is `like` another has its other ones."""
    entries = {**(_CONTENT["machines"][own["like"]] if "like" in own else {}), **own}
    entries.pop("like", None)
    if images_per_second := entries.pop("resnet50", None):
        entries["flops"] = images_per_second * MODELS["resnet50"].training_flops
    inside, between = (_link(**entries.pop(place)) for place in ("inside", "between"))
    return Hardware(name=name, inside=inside, between=between, **entries)


def _link(latency: float | str, gigabytes_per_second: float = 0, gigabits_per_second: float = 0) -> Link:
    latencies = _CONTENT["latencies"]
    seconds = latencies["large_messages"] * latencies[latency] if isinstance(latency, str) else latency
    if not (gigabits_per_second or gigabytes_per_second):
        raise ValueError("a link needs gigabits_per_second or gigabytes_per_second")
    return Link(seconds, 8e-9 / gigabits_per_second if gigabits_per_second else 1e-9 / gigabytes_per_second)


HARDWARE = {name: machine(name, entries) for name, entries in _CONTENT["machines"].items()}
"""Every preset by its name."""

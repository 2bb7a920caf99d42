"""What messages and additions cost: the α-β-γ model, with the same speed for every link or a speed for each."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self


@dataclass(frozen=True)
class Link:
    """The way from one rank to another: `latency` α in seconds per message, `seconds_per_byte` β."""

    latency: float
    seconds_per_byte: float

    def seconds(self, message_bytes: int) -> float:
        """The seconds that a message occupies each port: α + nβ (Hockney 1994)."""
        return self.latency + message_bytes * self.seconds_per_byte


@dataclass(frozen=True)
class Network:
    """The speeds of a cluster's links and of adding two arrays.

    latency, seconds_per_byte: α and β of every link without an exception below.
    seconds_per_byte_reduced: γ, the seconds per byte of the array that is added to.
    ranks_per_host, inside_host: with both, ranks 0…k−1 share host 0, k…2k−1 host 1, and so on; links inside a host are
        then `inside_host`, and those between hosts have the network's own α and β.
    links: exceptions by (source, to); each holds in that direction only.
    """

    latency: float = 5e-6
    seconds_per_byte: float = 1e-9
    seconds_per_byte_reduced: float = 0.0
    ranks_per_host: int | None = None
    inside_host: Link | None = None
    links: Mapping[tuple[int, int], Link] = field(default_factory=dict)

    @cached_property
    def default_link(self) -> Link:
        """The link between two ranks without an exception."""
        return Link(self.latency, self.seconds_per_byte)

    def link(self, source: int, to: int) -> Link:
        """The link from rank `source` to rank `to`."""
        if (source, to) in self.links:
            return self.links[source, to]
        if self.inside_host is None or self.ranks_per_host is None:
            return self.default_link
        is_inside = source // self.ranks_per_host == to // self.ranks_per_host
        return self.inside_host if is_inside else self.default_link

    def with_slow_link(self, first: int, second: int, factor: float) -> Self:
        """The same network, but α and β between these two ranks are `factor` times as large, in both directions."""
        slow = {}
        for ends in ((first, second), (second, first)):
            link = self.link(*ends)
            slow[ends] = Link(factor * link.latency, factor * link.seconds_per_byte)
        return replace(self, links={**self.links, **slow})

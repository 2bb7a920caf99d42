"""The network of a cluster: a bridge on the login node and a cable to each node; tc limits its rate, a relay delays."""

import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from distlab.cluster import relay
from distlab.cluster.namespaces import ClusterError, checked, entering_node
from distlab.runtime import processes

_UNITS = {
    "rate": {"bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9},
    "latency": {"us": 1e-6, "ms": 1e-3, "s": 1.0},
}
# How much may pass at once at full speed, and how long a full queue may get.
_BURST_SECONDS, _LEAST_BURST_BYTES, _QUEUE = 0.005, 32_000, "50ms"


@dataclass(frozen=True)
class Link:
    """The cable of a node: what it lets through in each direction, and whether it is plugged in.

    rate: bits per second, None is unlimited.  latency: seconds that are added.  node_pid, relay_pid: the node's first
    process and the relay that delays, as the login node counts processes.
    """

    node_pid: int
    rate: float | None = None
    latency: float | None = None
    is_up: bool = True
    relay_pid: int | None = None


def amount(kind: str, text: str) -> float:
    """A "rate" in bits per second, or a "latency" in seconds, written as tc writes it; ClusterError if it is not."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]+)", text.strip().lower())
    if not match or match[2] not in _UNITS[kind]:
        raise ClusterError(f"{text!r} is no {kind}; write a number and one of {', '.join(_UNITS[kind])}.")
    return float(match[1]) * _UNITS[kind][match[2]]


def connect(enter: Sequence[str], node: str, link: Link, is_up: bool) -> Link:
    """Plug a cable in, or out."""
    checked([*enter, "ip", "link", "set", f"to-{node}", "up" if is_up else "down"])
    return replace(link, is_up=is_up)


def limit(enter: Sequence[str], node: str, link: Link, rate: str | None, latency: str | None) -> Link:
    """Replace the limits that a link has, in each direction, by those that are written as tc writes them."""
    bits = amount("rate", rate) if rate else None
    seconds = amount("latency", latency) if latency else None
    if link.relay_pid:
        checked([*enter, "sh", "-c", f"kill {link.relay_pid}"])
        checked([*enter, "ip", "link", "delete", f"to-{node}-a"])
        checked([*enter, "ip", "link", "set", f"to-{node}", "master", "switch"])
    relay_pid = _start_relay(enter, node, seconds) if seconds else None
    # Where the node sends, and where it is sent to.
    for interface, where in (("eth0", [*enter, *entering_node(link.node_pid, "net")]), (f"to-{node}", enter)):
        with suppress(ClusterError):  # there is nothing to delete
            checked([*where, "tc", "qdisc", "delete", "dev", interface, "root"])
        if bits:
            burst = max(_LEAST_BURST_BYTES, bits / 8 * _BURST_SECONDS)
            bucket = ["tbf", "rate", f"{bits:.0f}bit", "burst", f"{burst:.0f}", "latency", _QUEUE]
            checked([*where, "tc", "qdisc", "add", "dev", interface, "root", *bucket])
    return replace(link, rate=bits, latency=seconds, relay_pid=relay_pid)


def _start_relay(enter: Sequence[str], node: str, latency: float) -> int:
    """Between a cable and the switch; the relay's process, which is ready."""
    port, near, far = f"to-{node}", f"to-{node}-a", f"to-{node}-b"
    checked([*enter, "ip", "link", "add", near, "type", "veth", "peer", "name", far])
    checked([*enter, "ip", "link", "set", port, "nomaster"])
    checked([*enter, "ip", "link", "set", far, "master", "switch", "up"])
    checked([*enter, "ip", "link", "set", near, "up"])
    # Without the mark: the relay outlives who asks for it.
    background = ["env", f"--unset={processes.MARK}", "setsid", "--fork"]
    # Until it tells its number nothing passes, and a connection that is opened meanwhile may fail.
    command = [*background, sys.executable, "-IS", relay.__file__, str(latency), port, near]
    return int(checked([*enter, *command]))

"""Ports of this machine where nobody listens."""

import random
import socket
from contextlib import ExitStack
from pathlib import Path

# Outgoing connections get their ports from the ephemeral range: below it only a server can come in between.
_LOWEST = 10_000
_EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(count: int) -> list[int]:
    """`count` different ports where nobody listens now."""
    highest = _first_ephemeral() - 1
    with ExitStack() as stack:
        ports: list[int] = []
        while len(ports) < count:
            holder = stack.enter_context(socket.socket())
            port = random.SystemRandom().randint(_LOWEST, highest)
            try:
                # On every interface, since that is where TensorFlow's server listens.
                holder.bind(("", port))
            except OSError:
                continue
            ports.append(port)
        return ports


def is_open(address: str) -> bool:
    """Whether somebody listens at HOST:PORT."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=0.5):
            return True
    except OSError:
        return False


def _first_ephemeral() -> int:
    try:
        first = int(_EPHEMERAL_RANGE.read_text().split()[0])
    except (OSError, ValueError):
        first = 32_768
    return first if first > _LOWEST + 1000 else 65_536

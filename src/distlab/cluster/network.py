"""The network of a cluster, from inside: a bridge on the login node and a cable to each node, shaped by tc."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from distlab.cluster import relay
from distlab.cluster.layout import LOGIN, address
from distlab.cluster.limits import LinkLimits

BRIDGE = "switch"
# How much may pass at once at full speed, and how long a full queue may get.
BURST_SECONDS, LEAST_BURST_BYTES, QUEUE_MILLISECONDS = 0.005, 32_000, 50
SECONDS_FOR_A_COMMAND = 120
# Ports below 1024, in this network alone: sshd of an ordinary user's cluster listens on port 22.
LET_EVERYBODY_LISTEN = "echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start"


def command(*words: str) -> None:
    """Run a command; RuntimeError has what it printed when it fails."""
    finished = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS_FOR_A_COMMAND, check=False)
    if finished.returncode:
        raise RuntimeError(f"'{' '.join(words)}' failed: {(finished.stderr or finished.stdout).strip()}")


def in_node(pid: int, *namespaces: str) -> list[str]:
    """Nsenter into namespaces of the node whose first process is `pid`."""
    return ["nsenter", "--target", str(pid), *(f"--{namespace}" for namespace in namespaces)]


def make_switch() -> None:
    """The bridge that all cables end at, and the login node's own cable."""
    # Otherwise any end of a cable here would answer for the login node's address, and frames would pass by the relay.
    command("sh", "-c", "echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore")
    command("ip", "link", "set", "lo", "up")
    command("ip", "link", "add", BRIDGE, "type", "bridge")
    command("ip", "link", "set", BRIDGE, "up")
    command("ip", "link", "add", f"to-{LOGIN}", "type", "veth", "peer", "name", "eth0")
    command("ip", "link", "set", f"to-{LOGIN}", "master", BRIDGE, "up")
    command("ip", "address", "add", f"{address(LOGIN)}/24", "dev", "eth0")
    command("ip", "link", "set", "eth0", "up")


class Cable:
    """The cable between a node and the switch; the limits hold in each direction."""

    def __init__(self, node: str, pid: int) -> None:
        self.node = node
        self.limits = LinkLimits()
        self.is_up = True
        self._in_node = in_node(pid, "net")
        self._port = f"to-{node}"  # the switch's end of the cable
        self._relay: subprocess.Popen[bytes] | None = None
        command("ip", "link", "add", self._port, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        command("ip", "link", "set", self._port, "master", BRIDGE, "up")
        own_end = f"ip link set lo up && ip address add {address(node)}/24 dev eth0 && ip link set eth0 up"
        command(*self._in_node, "sh", "-c", f"{own_end} && {LET_EVERYBODY_LISTEN}")

    def connect(self, is_up: bool) -> None:
        """Plug the cable in, or out."""
        command("ip", "link", "set", self._port, "up" if is_up else "down")
        self.is_up = is_up

    def limit(self, limits: LinkLimits) -> None:
        """Replace the limits that the link has."""
        self._end_relay()
        for where in self._ends():
            # Fails where there is nothing to delete.
            words = where.qdisc("delete", "root")
            subprocess.run(words, stderr=subprocess.DEVNULL, timeout=SECONDS_FOR_A_COMMAND, check=False)
        self.limits = LinkLimits()
        needs_relay = bool(limits.latency) and not self._delay_by_kernel(limits)
        if limits.rate:
            position = ["root"] if needs_relay or not limits.latency else ["parent", "1:1"]
            for where in self._ends():
                command(*where.qdisc("add", *position, *_token_bucket(limits.rate)))
        if limits.latency and needs_relay:
            self._start_relay(limits.latency)
        self.limits = limits

    def _ends(self) -> "list[_End]":
        """Where the node sends, and where it is sent to."""
        return [_End("eth0", self._in_node), _End(self._port, [])]

    def _delay_by_kernel(self, limits: LinkLimits) -> bool:
        """Let netem delay what passes; False where the kernel does not have it."""
        delay = f"{1e6 * (limits.latency or 0):.0f}us"
        try:
            for where in self._ends():
                command(*where.qdisc("add", "root", "handle", "1:", "netem", "delay", delay, "limit", "100000"))
        except RuntimeError as error:
            if "unknown" in str(error).lower() or "no such file" in str(error).lower():
                return False
            raise
        return True

    def _start_relay(self, seconds: float) -> None:
        """Between the cable and the switch."""
        near, far = f"{self._port}-a", f"{self._port}-b"
        command("ip", "link", "add", near, "type", "veth", "peer", "name", far)
        command("ip", "link", "set", self._port, "nomaster")
        command("ip", "link", "set", far, "master", BRIDGE, "up")
        command("ip", "link", "set", near, "up")
        words = [sys.executable, "-IS", relay.__file__, str(seconds), self._port, near]
        self._relay = subprocess.Popen(words, stdout=subprocess.PIPE)
        # Until the relay is ready nothing passes, and a connection that is opened meanwhile may fail.
        if not (self._relay.stdout and self._relay.stdout.readline()):
            raise RuntimeError(f"the relay of {self.node} did not start")

    def _end_relay(self) -> None:
        if self._relay:
            self._relay.kill()
            self._relay.wait()
            self._relay = None
            command("ip", "link", "delete", f"{self._port}-a")
            command("ip", "link", "set", self._port, "master", BRIDGE)


@dataclass(frozen=True)
class _End:
    """An interface and how to get to where it is."""

    interface: str
    prefix: Sequence[str]

    def qdisc(self, action: str, *words: str) -> list[str]:
        """A command of tc about what leaves through this interface."""
        return [*self.prefix, "tc", "qdisc", action, "dev", self.interface, *words]


def _token_bucket(rate: float) -> Sequence[str]:
    burst = max(LEAST_BURST_BYTES, rate / 8 * BURST_SECONDS)
    return ["tbf", "rate", f"{rate:.0f}bit", "burst", f"{burst:.0f}", "latency", f"{QUEUE_MILLISECONDS}ms"]

"""What runs inside: sets the cluster up, then answers requests about its links until it is ended.

`python -m distlab.cluster.server SETTINGS` is started by `holder` in the namespaces of the login node and prints one
line: that the cluster is ready, or why it is not. With it the cluster ends.
"""

import json
import os
import signal
import socketserver
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from distlab.cluster import configuration, layout, network
from distlab.cluster.limits import LinkLimits

SECONDS_TO_START = 300
SECONDS_BETWEEN_LOOKS = 0.1
LINES_OF_A_LOG = 5
# The node's first process. It tells its id as the login node sees it, before it mounts a /proc of its own.
NODE_INIT = """\
read -r pid rest </proc/self/stat
mount -t proc proc /proc && mount -t tmpfs tmpfs /run && mkdir /run/sshd && mount -t tmpfs tmpfs /dev/shm || exit 1
hostname "$1" && echo "$pid"
exec >/dev/null
trap '' INT
while :; do sleep infinity & wait $!; done
"""
# On the login node `pkill python` is meant for a user's own programs; this process has another name.
NAME = "cluster-holder"
# These signals end it only if they come from outside of the cluster.
ASKED_TO_END = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


@dataclass(frozen=True)
class ClusterSettings:
    """What the outside decides: the nodes, and as which user everything runs."""

    nodes: tuple[str, ...]
    user: str
    as_user: tuple[str, ...]  # the command that becomes this user again, in a cluster of an ordinary user


class ClusterServer:
    """The running cluster."""

    def __init__(self, settings: ClusterSettings) -> None:
        self.settings = settings
        self.first_processes: dict[str, int] = {}
        self.links: dict[str, network.Cable] = {}

    def start(self) -> None:
        """Everything, until every node is idle; RuntimeError says what went wrong."""
        self._write_files()
        network.make_switch()
        # Side by side: each has to create namespaces.
        starting = {node: _start_node(node) for node in self.settings.nodes}
        for node, process in starting.items():
            line = process.stdout.readline() if process.stdout else ""
            if not line.strip().isdigit():
                raise RuntimeError(f"{node} did not start")
            self.first_processes[node] = int(line)
            self.links[node] = network.Cable(node, int(line))
        self._daemon(
            "munged",
            f"--key-file={layout.STATE}/munge.key",
            f"--socket={layout.MUNGE_SOCKET}",
            "--force",
            f"--pid-file={layout.STATE}/munged.pid",
            f"--log-file={layout.LOGS}/munged.log",
            f"--seed-file={layout.STATE}/munge.seed",
        )
        self._daemon("slurmctld")
        for node in self.settings.nodes:
            self._daemon("slurmd", node=node)
            self._daemon("sshd", "-f", f"{layout.SSH}/sshd_config", "-E", f"{layout.LOGS}/sshd.{node}.log", node=node)
        self._wait_until_idle()

    def _write_files(self) -> None:
        network.command("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", layout.STATE)
        state, nodes = Path(layout.STATE), self.settings.nodes
        folders = [f"{kind}.{node}" for kind in ("spool", "tmp") for node in nodes]
        for folder in ("log", "state", "ssh", *folders):
            (state / folder).mkdir()
        (state / "munge.key").touch(mode=0o600)
        (state / "munge.key").write_bytes(os.urandom(128))
        (state / "slurm.conf").write_text(configuration.slurm(nodes, self.settings.user))
        version = subprocess.run(["slurmd", "-V"], capture_output=True, text=True, check=False).stdout
        (state / "cgroup.conf").write_text(configuration.cgroup(version))
        (state / "hosts").write_text(configuration.hosts(nodes))
        for key in ("host_key", "user_key"):
            network.command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", key, "-f", f"{layout.SSH}/{key}")
        public_key = Path(layout.SSH, "host_key.pub").read_text().strip()
        Path(layout.SSH, "known_hosts").write_text(configuration.known_hosts(nodes, public_key))
        Path(layout.SSH, "sshd_config").write_text(configuration.ssh_server(os.environ.get("PATH", os.defpath)))
        Path(layout.SSH, "ssh_config").write_text(configuration.ssh_client())
        network.command("mount", "--bind", f"{layout.STATE}/hosts", "/etc/hosts")
        network.command("mount", "--bind", f"{layout.SSH}/ssh_config", "/etc/ssh/ssh_config")
        _unlock_root()

    def _daemon(self, name: str, *words: str, node: str | None = None) -> None:
        """Start a daemon, on the login node or another; it goes to the background by itself."""
        where = network.in_node(self.first_processes[node], "mount", "uts", "net", "pid") if node else []
        network.command(*where, *self.settings.as_user, layout.program(name) or name, *words)

    def _wait_until_idle(self) -> None:
        deadline = time.monotonic() + SECONDS_TO_START
        look = [*self.settings.as_user, "sinfo", "--noheader", "--Node", "--format=%T"]
        while time.monotonic() < deadline:
            with suppress(subprocess.TimeoutExpired):
                finished = subprocess.run(look, capture_output=True, text=True, timeout=60, check=False)
                if finished.stdout.split() == ["idle"] * len(self.settings.nodes):
                    return
            time.sleep(SECONDS_BETWEEN_LOOKS)
        raise RuntimeError(f"the nodes were not ready after {SECONDS_TO_START} s")

    def answer(self, request: dict[str, object]) -> dict[str, object]:
        """Carry a request out: {"links": true}, or {"node": …} with new limits or whether its cable is plugged in."""
        if "links" not in request:
            link = self.links[str(request["node"])]
            if "limits" in request:
                limits = request["limits"]
                assert isinstance(limits, dict)
                link.limit(LinkLimits(**limits))
            if "is_up" in request:
                link.connect(bool(request["is_up"]))
        return {link.node: {"limits": asdict(link.limits), "is_up": link.is_up} for link in self.links.values()}

    def serve(self) -> None:
        """Answer one request after the other, until a signal comes from outside."""
        server = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                try:
                    reply: dict[str, object] = {"links": server.answer(json.loads(self.rfile.readline()))}
                except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
                    reply = {"error": str(error)}
                self.wfile.write(json.dumps(reply).encode())

        class Listener(socketserver.UnixStreamServer):
            def service_actions(self) -> None:
                received = signal.sigtimedwait(ASKED_TO_END, 0)
                if received and received.si_pid == 0:  # the sender has no number here
                    sys.exit(128 + received.si_signo)

        os.umask(0o077)
        # Not before: the daemons, and through them every job, would inherit it.
        signal.pthread_sigmask(signal.SIG_BLOCK, ASKED_TO_END)
        with Listener(layout.CONTROL_SOCKET, Handler) as listener:
            _say(layout.READY)
            listener.serve_forever()


def _start_node(node: str) -> subprocess.Popen[str]:
    words = ["unshare", "--mount", "--uts", "--net", "--pid", "--fork", "sh", "-c", NODE_INIT, "sh", node]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)


def _unlock_root() -> None:
    """Let sshd accept root: it refuses an account that is locked, as root's is on many systems."""
    try:
        lines = Path("/etc/shadow").read_text().splitlines()
    except OSError:  # an ordinary user's sshd does not read it either
        return
    copy = Path(layout.STATE, "shadow")
    copy.touch(mode=0o600)
    copy.write_text("".join(f"{line.replace(':!', ':*', 1) if line.startswith('root:') else line}\n" for line in lines))
    network.command("mount", "--bind", str(copy), "/etc/shadow")


def _last_lines() -> str:
    """The ends of the daemons' logs."""
    parts = []
    for log in sorted(Path(layout.LOGS).glob("*.log")):
        lines = log.read_text(errors="replace").splitlines()[-LINES_OF_A_LOG:]
        parts += [f"{log.name}: {line}" for line in lines]
    return "\n".join(parts)


def _say(line: str) -> None:
    """To who started the cluster, if still there; then nothing more comes."""
    with suppress(OSError):
        os.write(1, line.encode() + b"\n")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)


def main() -> int:
    """Start, say how it went, serve."""
    settings = json.loads(sys.argv[1])
    Path("/proc/self/comm").write_text(NAME)
    os.environ["PATH"] = layout.search_path()
    os.environ["SLURM_CONF"] = f"{layout.STATE}/slurm.conf"
    server = ClusterServer(ClusterSettings(tuple(settings["nodes"]), settings["user"], tuple(settings["as_user"])))
    try:
        server.start()
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        _say(f"The cluster did not start: {error}.\n{_last_lines()}")
        return 1
    server.serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())

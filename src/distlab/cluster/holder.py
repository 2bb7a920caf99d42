"""Starting and ending the single process that a cluster depends on: the first one of a PID namespace.

When it ends, in whatever way, the kernel kills every process of the namespace; then nothing uses its networks, mounts
and temporary files any more, and the kernel removes them too.
"""

import contextlib
import json
import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence

from distlab.cluster import layout, requirements
from distlab.cluster.record import ClusterError, ClusterRecord

SECONDS_TO_END = 60
SECONDS_BETWEEN_LOOKS = 0.02
# The holder records itself as the outside sees it, before it mounts a /proc of its own; then it waits for the server,
# and takes care of every process that loses its parent. A signal from inside ends no first process of a namespace, but
# a shell takes SIGINT.
HOLDER = """\
read -r line </proc/self/stat
printf '%s\\n' "$line" >"$1" || exit 1
shift
hostname "$1" && mount -t proc proc /proc && mount -t tmpfs tmpfs /dev/shm || exit 1
shift
"$@" & trap '' INT; wait $!
"""


def as_user() -> list[str]:
    """How a command becomes the user again: in an ordinary user's cluster it would be root."""
    if os.geteuid() == 0:
        return []
    return ["unshare", "--user", f"--map-user={os.geteuid()}", f"--map-group={os.getegid()}"]


def start(record: ClusterRecord, nodes: Sequence[str]) -> None:
    """Start the cluster and wait until it is ready; when this is interrupted, nothing stays."""
    user = pwd.getpwuid(os.geteuid()).pw_name
    settings = json.dumps({"nodes": list(nodes), "user": user, "as_user": as_user()})
    server = [sys.executable, "-P", "-m", "distlab.cluster.server", settings]
    shell = ["sh", "-c", HOLDER, "sh", str(record.holder_file), layout.LOGIN]
    # setsid goes on in the background: the cluster is no child of this process, and a Ctrl-C here does not reach it.
    command = ["setsid", "--fork", *requirements.namespaces(), *shell, *server]
    nothing, pipe, together = subprocess.DEVNULL, subprocess.PIPE, subprocess.STDOUT
    try:
        with subprocess.Popen(command, text=True, stdin=nothing, stdout=pipe, stderr=together) as process:
            said = _said(process.stdout or ())
    except BaseException:
        end(record)
        raise
    if said is not None:
        end(record)
        raise ClusterError(said or "The cluster did not start, and nothing says why.")


def _said(lines: Iterable[str]) -> str | None:
    """All that the cluster said when it did not start; None when it is ready."""
    said = []
    for line in lines:
        if line.strip() == layout.READY:
            return None
        said.append(line)
    return "".join(said).strip()


def end(record: ClusterRecord) -> None:
    """End every process of the cluster, and remove what it has left."""
    holder = record.holder()
    if holder == 1:  # the first process of its own namespace, which this process is in
        raise ClusterError("You are inside the cluster: leave it first, with 'exit', and end it from outside.")
    deadline = time.monotonic() + SECONDS_TO_END
    if holder:
        with contextlib.suppress(ProcessLookupError):
            os.kill(holder, signal.SIGKILL)
    # It is over when all the others are.
    while record.holder():
        if time.monotonic() > deadline:
            raise ClusterError(f"Process {holder} holds the cluster and does not end; look at it with 'ps {holder}'.")
        time.sleep(SECONDS_BETWEEN_LOOKS)
    record.remove()

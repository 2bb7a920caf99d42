"""The Linux namespaces of a cluster: starting their first processes, and the commands that enter them.

The first process of a PID namespace is special: when it ends, in whatever way, the kernel kills every process of the
namespace; then nothing uses its networks, mounts and temporary files any more, and the kernel removes them too.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from distlab.runtime.environment import cache_folder
from distlab.runtime.errors import PlainError

# A temporary file system of the cluster, mounted where Slurm looks for slurm.conf; it vanishes with the cluster.
STATE = "/etc/slurm"
MUNGE_SOCKET = f"{STATE}/munge.sock"
LOGIN = "login"
SECONDS_FOR_A_COMMAND = 120.0
_LAST_LINES = 3

_PACKAGES = {
    "slurm-wlm": ("slurmctld", "slurmd", "srun", "sinfo"),
    "munge": ("munged",),
    "openssh-server": ("sshd",),
    "openssh-client": ("ssh", "ssh-keygen"),
    "iproute2": ("ip", "tc"),
    "util-linux": ("unshare", "nsenter", "setpriv"),
}
# Debian keeps daemons where an ordinary user's PATH does not look.
_ADMINISTRATORS_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
FIRST_PROCESS = str(Path(__file__).with_name("first_process.sh"))


class ClusterError(PlainError):
    """A cluster cannot be started, used or ended; the message says why and what to do."""


def missing() -> str | None:
    """One sentence about what a cluster needs and is missing here, and how to get it; None where one can start."""
    if sys.platform != "linux":
        return "The cluster needs Linux: its nodes are namespaces of the Linux kernel."
    if packages := [package for package, names in _PACKAGES.items() if not all(map(program, names))]:
        command = f"{'' if os.geteuid() == 0 else 'sudo '}apt-get install {' '.join(packages)}"
        return f"The cluster needs Debian packages that are not installed; install them with '{command}'."
    # Kernels, containers and security modules each have their own way to refuse: try it.
    finished = subprocess.run([*_unshare(), "mount", "-t", "proc", "proc", "/proc"], capture_output=True, check=False)
    if finished.returncode == 0:
        return None
    return (
        "The cluster needs the right to create namespaces: be root, in a container with --privileged, or allow "
        "users with 'sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 user.max_user_namespaces=10000'."
    )


def search_path() -> str:
    """The user's PATH and the folders of the daemons."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join([*folders, *(folder for folder in _ADMINISTRATORS_FOLDERS if folder not in folders)])


def program(name: str) -> str | None:
    """The full path of a program, or None where it is not installed."""
    return shutil.which(name, path=search_path())


def checked(command: Sequence[str]) -> str:
    """What a command prints; ClusterError has its last lines when the command fails."""
    variables = os.environ | {"PATH": search_path(), "SLURM_CONF": f"{STATE}/slurm.conf"}
    finished = subprocess.run(
        command, capture_output=True, text=True, env=variables, timeout=SECONDS_FOR_A_COMMAND, check=False
    )
    if finished.returncode:
        said = (finished.stderr or finished.stdout).strip().splitlines()[-_LAST_LINES:]
        raise ClusterError("\n".join([f"'{' '.join(command)}' failed:", *said]))
    return finished.stdout


def start_holder(name: str) -> psutil.Process:
    """Start the first process of a cluster, which is the login node's, too."""
    # setsid goes on in the background: a Ctrl-C here does not reach the process.
    words = ["setsid", "--fork", *_unshare(), "sh", FIRST_PROCESS, STATE, LOGIN, _key(name)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout
        said = process.stdout.readline()
        if not said.strip().isdigit():
            raise ClusterError(f"The first process of a node did not start: {said}{process.stdout.read()}".rstrip())
    return psutil.Process(int(said))


def find_holder(name: str) -> psutil.Process | None:
    """The process that holds the cluster of that name."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.cmdline()[2:] == [STATE, LOGIN, _key(name)]:
                return process
    return None


def _key(name: str) -> str:
    """The last word of the holder's command line, which only marks it; the cache folder makes it this user's."""
    return str(cache_folder() / f"cluster-{name}")


def _unshare() -> list[str]:
    """The command that makes the namespaces of a cluster; an ordinary user needs a user namespace for the others."""
    options = ["--mount", "--uts", "--ipc", "--net", "--pid", "--fork"]
    return ["unshare", *options, *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]


def entering(holder: int) -> list[str]:
    """The beginning of a command line that runs on the login node, with the rights of root there."""
    user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
    return ["nsenter", "--target", str(holder), "--mount", "--uts", "--ipc", "--net", "--pid", *user, "--"]


def entering_node(pid: int, *kinds: str) -> list[str]:
    """What follows it to enter namespaces of the node whose first process is `pid`."""
    return ["nsenter", "--target", str(pid), *(f"--{kind}" for kind in kinds), "--"]


def as_user() -> list[str]:
    """What follows these to become the user again: in an ordinary user's cluster a command would be root."""
    if os.geteuid() == 0:
        return []
    return ["unshare", "--user", f"--map-user={os.geteuid()}", f"--map-group={os.getegid()}"]

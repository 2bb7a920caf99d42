"""What a student's process may use, and how it is confined to that.

With namespaces of its own where the system allows them, and the system's limits (setrlimit) everywhere. Without
namespaces (`weak`) there are only the limits, and another user if the grader is root.
"""

import os
import resource
import socket
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from course_tools.sandbox import system_calls

MIB = 2**20
FOLDER = "/lab"
INSIDE_USER = 1000
_OUTSIDE_USER = 1_234_500_000
_NOBODY = 65534

_SYSTEM = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/sys/devices/system"]
_ETC = ["ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "ssl/openssl.cnf"]
_DEVICES = ["null", "zero", "full", "random", "urandom"]


@dataclass(frozen=True)
class SandboxLimits:
    """Sizes in bytes; `threads` counts the threads of all processes, `printed` characters, `files` those on its disk.

    `address_space` is that of each process (None: without limit), `memory` what all of them use together.
    """

    memory: int = 1536 * MIB
    address_space: int | None = 3072 * MIB
    processes: int = 40
    threads: int = 100
    file: int = 32 * MIB
    disk: int = 64 * MIB
    files: int = 2000
    open_files: int = 256
    printed: int = 1_000_000


PLAIN = SandboxLimits()
# TensorFlow reserves address space that it never uses and starts threads by the number of cores.
TENSORFLOW = SandboxLimits(6144 * MIB, None, 60, 4000, 256 * MIB, 512 * MIB, 20_000, 4096)


@dataclass(frozen=True)
class Confinement:
    """How a student's process is confined: `weak` uses no namespaces, `hidden` are files and folders it cannot see."""

    limits: SandboxLimits
    weak: bool = False
    hidden: tuple[str, ...] = ()


def leave_namespaces() -> int:
    """Take namespaces of its own for files, network, host name and messages, and for the processes started from now on.

    Gives the number of the user whom the student's files and processes will belong to. Raises OSError where that is not
    allowed.
    """
    user, group = os.getuid(), os.getgid()
    own = system_calls.NEW_MOUNTS | system_calls.NEW_PIDS | system_calls.NEW_NETWORK
    own |= system_calls.NEW_IPC | system_calls.NEW_HOST_NAME
    if user == 0:
        system_calls.unshare(own)
        return _OUTSIDE_USER
    system_calls.unshare(own | system_calls.NEW_USERS)
    _map_users(0, user, group)
    return 0


def shut_in(scratch: str, confinement: Confinement, user: int) -> None:
    """In the first process of the namespaces: a root of its own, no privileges, the limits. Raises OSError.

    `scratch` is any empty folder; nothing is written there outside of the namespace. `user` is what `leave_namespaces`
    gave.
    """
    limits = confinement.limits
    _make_root(scratch, confinement, user)
    for setting in ("shmmax", "shmall"):  # memory that outlives the processes that use it
        with suppress(OSError):
            Path("/proc/sys/kernel", setting).write_text("0")
    system_calls.loopback_up()
    socket.sethostname("lab")
    os.chdir(FOLDER)
    if user:
        _become(user)
        system_calls.own_process_files()
    with suppress(OSError):
        system_calls.unshare(system_calls.NEW_USERS)
        _map_users(INSIDE_USER, user, user)
    # Namespaces inside this one would bring privileges, and memory that nobody counts. (Where this one has no users of
    # its own, because that is forbidden, so are those.)
    with suppress(OSError):
        Path("/proc/sys/user/max_user_namespaces").write_text("0")
    system_calls.drop_capabilities()
    _set_limits(limits, limits.threads)


def limit_only(folder: str, limits: SandboxLimits) -> None:
    """Without namespaces: a session, a folder and the limits of its own, and if this is root another user."""
    os.chdir(folder)
    os.environ |= {"HOME": folder, "TMPDIR": folder}
    threads = limits.threads + _threads_of(os.getuid())  # the limit counts what the user runs elsewhere too
    if os.getuid() == 0:
        os.chown(folder, _NOBODY, _NOBODY)
        Path(folder).parent.chmod(0o711)
        _become(_NOBODY)
        if not os.access(os.__file__, os.R_OK):
            raise RuntimeError(
                f"no other user than root can read {sys.base_prefix}, where Python is; `rm -rf .venv` and run "
                "`make setup PYTHON=/usr/bin/python3`, or name another Python that all users may read"
            )
        threads = limits.threads
    if sys.platform == "linux":
        system_calls.drop_capabilities()
    _set_limits(limits, threads)


def _threads_of(user: int) -> int:
    import psutil

    count = 0
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            count += process.num_threads() if process.uids().real == user else 0
    return count


def _become(user: int) -> None:
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def _map_users(inside: int, user: int, group: int) -> None:
    """Let `user` and `group` of the outside be user and group `inside` in the new namespace."""
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{inside} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{inside} {group} 1")


def _make_root(root: str, confinement: Confinement, owner: int) -> None:
    system_calls.mount("none", "/", flags=system_calls.RECURSIVE | system_calls.PRIVATE)
    # What the bind mounts need (folders) comes on top of the files that the student may have.
    limits = confinement.limits
    options = f"size={limits.disk},nr_inodes={limits.files + 300},mode=755"
    system_calls.mount("tmpfs", root, "tmpfs", system_calls.NO_SUID, options)
    for path in _visible_paths():
        _make_visible(path, root, read_only=True)
    _hide(root, confinement.hidden)
    for device in _DEVICES:
        _make_visible(f"/dev/{device}", root, read_only=False)
    # Open MPI looks for network devices in the last one, and complains if it is not there.
    for folder in ("proc", "tmp", "dev/shm", FOLDER[1:], "sys/class/net"):
        (Path(root) / folder).mkdir(parents=True, exist_ok=True)
    for folder in ("tmp", "dev/shm", FOLDER[1:]):
        os.chown(f"{root}/{folder}", owner, owner)
    with suppress(OSError):  # a container may forbid it
        system_calls.mount("proc", f"{root}/proc", "proc", system_calls.NO_SUID | system_calls.NO_DEVICES)
    (Path(root) / "etc").mkdir(exist_ok=True)
    users = {"passwd": "{name}:x:{user}:{user}::/tmp:/bin/sh\n", "group": "{name}:x:{user}:\n"}
    for file, line in users.items():
        (Path(root) / "etc" / file).write_text(line.format(name="student", user=INSIDE_USER))
    (Path(root) / "etc" / "hosts").write_text("127.0.0.1 localhost lab\n")
    system_calls.change_root(root)


def _hide(root: str, hidden: Iterable[str]) -> None:
    """Put nothing where there is something that a student's process must neither read nor import."""
    from distlab.labs.registry import judges

    empty = Path(root) / "empty"
    empty.mkdir()
    for path in (*judges(), *map(Path, hidden)):
        if Path(f"{root}{path.absolute()}").exists():
            system_calls.bind(str(empty) if path.is_dir() else "/dev/null", f"{root}{path.absolute()}", read_only=True)


def _visible_paths() -> list[str]:
    """What a student's process sees of this machine: the system's programs, Python and the packages it imports from."""
    import distlab
    from distlab import programs
    from distlab.labs.registry import next_to_students

    python = [sys.prefix, sys.base_prefix, *sys.path, str(Path(distlab.__file__).parents[1])]
    python += [str(programs.FOLDER), *map(str, next_to_students())]
    candidates = [*_SYSTEM, *(f"/etc/{name}" for name in _ETC), *filter(None, python)]
    existing = {str(Path(path).absolute()) for path in candidates if os.path.lexists(path)}
    visible: list[str] = []
    for path in sorted(existing, key=len):
        if not any(Path(path).is_relative_to(parent) for parent in visible):
            visible.append(path)
    return visible


def _make_visible(path: str, root: str, read_only: bool) -> None:
    target = Path(root + path)
    target.parent.mkdir(parents=True, exist_ok=True)
    if Path(path).is_symlink():
        target.symlink_to(Path(path).readlink())
        return
    if not Path(path).exists():
        return
    if Path(path).is_dir():
        target.mkdir(exist_ok=True)
    else:
        target.touch()
    system_calls.bind(path, str(target), read_only)


def _set_limits(limits: SandboxLimits, threads: int) -> None:
    resources = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: limits.file,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_NPROC: threads,
    }
    if limits.address_space is not None:
        resources[resource.RLIMIT_AS] = limits.address_space
    if hasattr(resource, "RLIMIT_MSGQUEUE"):
        resources[resource.RLIMIT_MSGQUEUE] = 0
    for kind, most in resources.items():
        _, hard = resource.getrlimit(kind)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))
    with suppress(OSError):  # if the machine runs out of memory, this process goes first
        Path("/proc/self/oom_score_adj").write_text("1000")

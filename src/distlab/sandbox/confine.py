"""Shutting a process in: namespaces where the system allows them, limits of the system (setrlimit) everywhere.

`FULL`: namespaces of its own. `WEAK`: only the limits, and another user if the grader is root.
"""

import os
import resource
import socket
import sys
from contextlib import suppress
from pathlib import Path

from distlab.sandbox import system_calls
from distlab.sandbox.limits import Limits

FULL, WEAK = "full", "weak"
FOLDER = "/lab"
INSIDE_USER = 1000
_OUTSIDE_USER = 1_234_500_000
_NOBODY = 65534

_SYSTEM = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/sys/devices/system"]
_ETC = ["ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "ssl/openssl.cnf"]
_DEVICES = ["null", "zero", "full", "random", "urandom"]


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


def shut_in(scratch: str, limits: Limits, user: int) -> None:
    """In the first process of the namespaces: a root of its own, no privileges, the limits. Raises OSError.

    `scratch` is any empty folder; nothing is written there outside of the namespace. `user` is what `leave_namespaces`
    gave.
    """
    _make_root(scratch, limits, user)
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


def limit_only(folder: str, limits: Limits) -> None:
    """Without namespaces: a session, a folder and the limits of its own, and if this is root another user."""
    os.chdir(folder)
    os.environ |= {"HOME": folder, "TMPDIR": folder}
    threads = limits.threads + _threads_of(os.getuid())  # the limit counts what the user runs elsewhere too
    if os.getuid() == 0:
        os.chown(folder, _NOBODY, _NOBODY)
        Path(folder).parent.chmod(0o711)
        _become(_NOBODY)
        if not os.access(os.__file__, os.R_OK):
            raise OSError(f"no other user than root can read {sys.base_prefix}, where Python is")
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


def _make_root(root: str, limits: Limits, owner: int) -> None:
    system_calls.mount("none", "/", flags=system_calls.RECURSIVE | system_calls.PRIVATE)
    # What the bind mounts need (folders) comes on top of the files that the student may have.
    options = f"size={limits.disk},nr_inodes={limits.files + 300},mode=755"
    system_calls.mount("tmpfs", root, "tmpfs", system_calls.NO_SUID, options)
    for place in _shown():
        _show(place, root, read_only=True)
    for device in _DEVICES:
        _show(f"/dev/{device}", root, read_only=False)
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


def _shown() -> list[str]:
    """What a student's process sees of this machine: the system's programs, Python and the packages it imports from."""
    import distlab

    python = [sys.prefix, sys.base_prefix, *sys.path, str(Path(distlab.__file__).parents[1])]
    wanted = [*_SYSTEM, *(f"/etc/{name}" for name in _ETC), *filter(None, python)]
    existing = [str(Path(place).absolute()) for place in wanted if os.path.lexists(place)]
    kept: list[str] = []
    for place in sorted(set(existing), key=len):
        if not any(Path(place).is_relative_to(other) for other in kept):
            kept.append(place)
    return kept


def _show(place: str, root: str, read_only: bool) -> None:
    target = Path(root + place)
    target.parent.mkdir(parents=True, exist_ok=True)
    if Path(place).is_symlink():
        target.symlink_to(Path(place).readlink())
        return
    if not Path(place).exists():
        return
    if Path(place).is_dir():
        target.mkdir(exist_ok=True)
    else:
        target.touch()
    system_calls.bind(place, str(target), read_only)


def _set_limits(limits: Limits, threads: int) -> None:
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: limits.file,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_NPROC: threads,
    }
    if limits.address_space is not None:
        wanted[resource.RLIMIT_AS] = limits.address_space
    if hasattr(resource, "RLIMIT_MSGQUEUE"):
        wanted[resource.RLIMIT_MSGQUEUE] = 0
    for kind, most in wanted.items():
        _, hard = resource.getrlimit(kind)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))
    with suppress(OSError):  # if the machine runs out of memory, this process goes first
        Path("/proc/self/oom_score_adj").write_text("1000")

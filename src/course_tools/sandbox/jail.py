"""The jail of a student's code: the command that starts it, what is seen inside, and what it may use.

As root, `unshare` of util-linux makes it: only so has each jail a user of its own and a bounded number of files. Other
users get it from bubblewrap, which distributions allow to make namespaces where they allow nobody else, and without
that from `unshare`. Where neither works there is the weak one: a process of its own with the system's limits.
"""

import importlib.util
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

MIB = 2**20
INSIDE = "/lab"
"""The folder in which a student's code works."""
NOBODY = 65534
_SYSTEM = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/sys/devices/system"]
_ETC = ["ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "ssl/openssl.cnf"]
_DEVICES = ["null", "zero", "full", "random", "urandom"]
_WRITABLE = ["/tmp", "/dev/shm", INSIDE]
_FILES = {
    "/etc/passwd": "student:x:{user}:{user}::/tmp:/bin/sh\n",
    "/etc/group": "student:x:{user}:\n",
    "/etc/hosts": "127.0.0.1 localhost lab\n",
}
_LOOPBACK_UP = 'import fcntl,socket,struct;fcntl.ioctl(socket.socket(),0x8914,struct.pack("16sh14x",b"lo",65))'


class Kind(StrEnum):
    """What makes the jail."""

    UTIL_LINUX = "unshare of util-linux"
    BUBBLEWRAP = "bubblewrap"
    WEAK = "limits alone"


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes; `threads` counts those of all processes, `printed` characters, `files` those on the jail's disk.

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


PLAIN = Limits()
# TensorFlow reserves address space that it never uses and starts threads by the number of cores.
TENSORFLOW = Limits(6144 * MIB, None, 60, 4000, 256 * MIB, 512 * MIB, 20_000, 4096)


@dataclass(frozen=True)
class Setting:
    """A jail as it is asked for: `modules` are imported before the first cell, `files` lie in its folder.

    `seen` are files and folders of the course that are there beside the library, `hidden` those of it that are not.
    """

    limits: Limits = PLAIN
    modules: Sequence[str] = ()
    files: dict[str, bytes] = field(default_factory=dict)
    seen: Sequence[Path] = ()
    hidden: Sequence[Path] = ()
    kind: Kind | None = None


def candidates() -> list[Kind]:
    """The kinds that this machine may have, the best first; whether one works, `protections` tries."""
    order = [Kind.UTIL_LINUX, Kind.BUBBLEWRAP] if os.getuid() == 0 else [Kind.BUBBLEWRAP, Kind.UTIL_LINUX]
    programs = {Kind.UTIL_LINUX: "unshare", Kind.BUBBLEWRAP: "bwrap"}
    return [kind for kind in order if sys.platform == "linux" and shutil.which(programs[kind])] + [Kind.WEAK]


def modules_of_lab(number: str) -> list[str]:
    """The modules of a lab that may run beside a student's code, and those of it that they import."""
    from distlab.labs import registry

    names = registry.observers(number) if number in registry.MODULES else []
    for name in names:  # which grows
        imported = re.findall(rf"^(?:from|import) (lab_{number}\.\w+)", files_of(name)[0].read_text(), re.MULTILINE)
        names += [each for each in dict.fromkeys(imported) if each not in names]
    return names


def files_of(module: str) -> list[Path]:
    """The folder of a package, or the file of a module with its bytecode."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"a lab names {module}, which is not there")
    file = Path(spec.origin)
    if spec.submodule_search_locations:
        return [file.parent]
    return [file, *(file.parent / "__pycache__").glob(f"{file.stem}.*")]


def command(setting: Setting, kind: Kind, scratch: str, user: int, inner: Sequence[str]) -> list[str]:
    """What starts `inner` in a jail of that kind, as `user` where this is root; `scratch` is any empty folder."""
    make: dict[Kind, Callable[[], list[str]]] = {
        Kind.UTIL_LINUX: lambda: _unshare(setting, scratch, user, inner),
        Kind.BUBBLEWRAP: lambda: _bubblewrap(setting, user, inner),
        Kind.WEAK: lambda: [*_without_rights(NOBODY), *inner] if sys.platform == "linux" else list(inner),
    }
    return make[kind]()


def _without_rights(user: int) -> list[str]:
    """Run what follows as that user, if this is root, without any way back; end it with the process that started it."""
    if os.getuid():
        return ["setpriv", "--pdeathsig=KILL", "--no-new-privs"]
    become = [f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    return ["setpriv", "--pdeathsig=KILL", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", *become]


def _bubblewrap(setting: Setting, user: int, inner: Sequence[str]) -> list[str]:
    size = str(setting.limits.disk)
    words = ["bwrap", "--die-with-parent", "--new-session", "--as-pid-1", "--unshare-pid", "--unshare-net"]
    words += ["--unshare-ipc", "--unshare-uts", "--hostname", "lab"]
    if os.getuid():
        words += ["--unshare-user", "--disable-userns", "--uid", "1000", "--gid", "1000"]
    else:
        words += [word for right in ("SETUID", "SETGID", "SETPCAP") for word in ("--cap-add", f"CAP_{right}")]
    words += ["--dev", "/dev", "--proc", "/proc", "--dir", "/sys/class/net"]
    for folder in _WRITABLE:
        words += ["--perms", "1777", "--size", size, "--tmpfs", folder]
    for path in _visible(setting):
        for parent in reversed(Path(path).parents[:-1]):  # which all users may pass
            words += ["--dir", str(parent)]
        link = Path(path).is_symlink()
        words += ["--symlink", str(Path(path).readlink()), path] if link else ["--ro-bind", path, path]
    for hidden in setting.hidden:
        words += ["--tmpfs", str(hidden)] if hidden.is_dir() else ["--ro-bind", "/dev/null", str(hidden)]
    return [*words, "--", *([] if os.getuid() else _without_rights(user)), *inner]


def _unshare(setting: Setting, root: str, user: int, inner: Sequence[str]) -> list[str]:
    """A shell, first in namespaces of its own, mounts what is seen below `root` and goes there for good."""
    limits, is_root = setting.limits, os.getuid() == 0
    # What the mounts need (folders) comes on top of the files that the student may have.
    lines = [
        "umask 022",
        f"mount -t tmpfs -o size={limits.disk},nr_inodes={limits.files + 300},mode=755,nosuid tmpfs {root}",
    ]
    lines += [f"mkdir -p {root}{folder}" for folder in (*_WRITABLE, "/proc", "/etc", "/empty", "/sys/class/net")]
    lines += [f"chmod 1777 {root}{folder}" for folder in _WRITABLE]
    for path in _visible(setting):
        source, target = shlex.quote(path), shlex.quote(root + path)
        lines.append(f"mkdir -p {shlex.quote(str(Path(root + path).parent))}")
        if Path(path).is_symlink():
            lines.append(f"ln -s {shlex.quote(str(Path(path).readlink()))} {target}")
            continue
        lines.append(f"{'mkdir -p' if Path(path).is_dir() else 'touch'} {target}")
        lines.append(f"mount -o {_options(path)} {source} {target}")
    for hidden in setting.hidden:
        nothing = f"{root}/empty" if hidden.is_dir() else "/dev/null"
        lines.append(f"mount --bind {nothing} {shlex.quote(root + str(hidden))}")
    for device in _DEVICES:
        lines.append(f"touch {root}/dev/{device} && mount --bind /dev/{device} {root}/dev/{device}")
    for file, text in _FILES.items():
        lines.append(f"printf %s {shlex.quote(text.format(user=user if is_root else 0))} > {root}{file}")
    lines.append(f"mount -t proc -o nosuid,nodev,noexec proc {root}/proc")
    # Memory that outlives the processes that use it there is none of; a container may forbid to say so.
    lines.append("{ echo lab > /proc/sys/kernel/hostname; echo 0 > /proc/sys/kernel/shmall; } 2>/dev/null || true")
    lines.append(f"{shlex.quote(sys.executable)} -I -S -c {shlex.quote(_LOOPBACK_UP)}")
    leave = ["setpriv", "--pdeathsig=KILL", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
    inside = shlex.join(["chroot", root, *(_without_rights(user) if is_root else leave), *inner])
    own = ["unshare", "--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--kill-child"]
    own += [] if is_root else ["--user", "--map-root-user"]
    outside = ["setpriv", "--pdeathsig=KILL"]  # with whoever asked for it ends `unshare`, and with that all inside
    return [*outside, *own, "sh", "-euc", "\n".join([*lines, f"exec {inside}"])]


def _options(path: str) -> str:
    """How a folder of the machine is mounted: read-only, with the flags that it has and a user may not take away."""
    flags = os.statvfs(path).f_flag
    kept = {"ST_NOEXEC": "noexec", "ST_NOATIME": "noatime", "ST_NODIRATIME": "nodiratime", "ST_RELATIME": "relatime"}
    names = [name for flag, name in kept.items() if flags & getattr(os, flag, 0)]
    return ",".join(["rbind", "ro", "nosuid", "nodev", *names])


def _visible(setting: Setting) -> list[str]:
    """What is seen of this machine: the system's programs, Python, the packages that it imports from, the programs."""
    import distlab
    from distlab import programs

    library = [sys.prefix, sys.base_prefix, str(Path(distlab.__file__).parents[1]), str(programs.FOLDER)]
    names = [*_SYSTEM, *(f"/etc/{name}" for name in _ETC), *library, *map(str, setting.seen)]
    visible: list[str] = []
    for path in sorted({str(Path(name).absolute()) for name in names if os.path.lexists(name)}, key=len):
        if not any(Path(path).is_relative_to(parent) for parent in visible):
            visible.append(path)
    return visible

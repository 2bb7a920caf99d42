"""The jail of a student's code: the command that starts it, what is seen inside, and what it may use.

As root `unshare`, `mount` and `setpriv` of util-linux make it, with a user of its own for each jail. Others get it from
bubblewrap, which distributions allow to make namespaces where they allow nobody else, and without that from `unshare`.
Where neither works there is the weak one: a process of its own with the system's limits.
"""

import os
import secrets
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import distlab
from distlab import programs
from distlab.runtime import environment

MIB = 2**20
INSIDE = "/lab"
"""The folder in which a student's code works."""
WRITABLE = [INSIDE, "/tmp", "/dev/shm"]
_NOBODY, _FIRST_USER = 65534, 10**9
_KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH")
_SWITCHED_ON = [
    *("PYTHONDONTWRITEBYTECODE", "OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"),
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),  # one, for jails that run side by side
]
_SYSTEM = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/sys/devices/system"]
_ETC = ["hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "ssl/openssl.cnf"]


class Kind(StrEnum):
    """What makes the jail."""

    BUBBLEWRAP = "bubblewrap"
    UTIL_LINUX = "unshare of util-linux"
    WEAK = "limits alone"


@dataclass(frozen=True)
class Limits:
    """On what all processes of a jail use together: bytes of memory and disk, processes, files on the disk.

    files: bubblewrap makes disks without this limit.
    each: those that the system keeps for each process, as `resource` names them.
    """

    memory: int
    disk: int
    processes: int
    files: int
    each: dict[str, int]


_EACH = {"CORE": 0, "AS": 3072 * MIB, "NPROC": 100, "FSIZE": 32 * MIB, "NOFILE": 256}  # NPROC counts threads
PLAIN = Limits(1536 * MIB, 64 * MIB, 40, 2500, _EACH)
# TensorFlow reserves address space that it never uses and starts threads by the number of cores.
_EACH_WITH_TENSORFLOW = {"CORE": 0, "NPROC": 4000, "FSIZE": 256 * MIB, "NOFILE": 4096}
TENSORFLOW = Limits(6144 * MIB, 512 * MIB, 60, 20_000, _EACH_WITH_TENSORFLOW)


@dataclass(frozen=True)
class Setting:
    """A jail as it is asked for: `modules` are imported before the first cell, `files` lie in its folder.

    `seen` are files and folders of the course that are there beside the library, `hidden` those that are not.
    """

    limits: Limits = PLAIN
    modules: Sequence[str] = ()
    files: dict[str, bytes] = field(default_factory=dict)
    seen: Sequence[Path] = ()
    hidden: Sequence[Path] = ()
    kind: Kind = field(default_factory=lambda: candidates()[0])


def candidates() -> list[Kind]:
    """The kinds that this machine may have, the best first; whether one works, `protections` tries."""
    # As root not bubblewrap: it has no right to end what runs as another user.
    programs = {Kind.BUBBLEWRAP: "bwrap"} if os.getuid() else {}
    programs[Kind.UTIL_LINUX] = "unshare"
    return [*(kind for kind, program in programs.items() if shutil.which(program)), Kind.WEAK]


def command(setting: Setting, scratch: str) -> list[str]:
    """What starts `student` in the jail; `scratch` is any empty folder, in which the weak one works."""
    leave = ["setpriv", "--pdeathsig=KILL", "--no-new-privs"]
    # A user that no other jail of this machine has now.
    user = _FIRST_USER + secrets.randbelow(_FIRST_USER)
    if setting.kind is Kind.WEAK and os.getuid() == 0:
        user = _NOBODY
        os.chown(scratch, user, user)
    if os.getuid() == 0:
        leave += [f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    if os.getuid() == 0 or setting.kind is Kind.UTIL_LINUX:
        leave += ["--bounding-set=-all", "--inh-caps=-all"]
    inner = [sys.executable, "-P", "-m", "course_tools.sandbox.student"]
    if sys.platform != "linux":
        return inner
    if setting.kind is Kind.BUBBLEWRAP:
        return [*_bubblewrap(setting), *leave, *inner]
    return [*(_unshare(setting, scratch) if setting.kind is Kind.UTIL_LINUX else []), *leave, *inner]


def options(setting: Setting, scratch: str) -> dict[str, Any]:
    """The first message to `student`: what it does before the first cell."""
    limits, is_weak = dict(setting.limits.each), setting.kind is Kind.WEAK
    if is_weak and os.getuid() != 0:
        del limits["NPROC"]  # it counts what the user runs elsewhere too
    folder = scratch if is_weak else INSIDE
    return {"folder": folder, "files": setting.files, "modules": [*setting.modules], "limits": limits}


def variables(setting: Setting, scratch: str) -> dict[str, str]:
    """The environment in the jail: nothing else of the grader's reaches a student's code."""
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    home = scratch if setting.kind is Kind.WEAK else "/tmp"
    own = {"HOME": home, "MPLBACKEND": "Agg", "PYTHONBREAKPOINT": "0"}  # nobody can answer a forgotten breakpoint()
    return environment.variables() | kept | dict.fromkeys(_SWITCHED_ON, "1") | own


def _bubblewrap(setting: Setting) -> list[str]:
    words = ["bwrap", "--die-with-parent", "--new-session", "--as-pid-1", "--unshare-all", "--unshare-user"]
    words += ["--disable-userns", "--uid", "1000", "--gid", "1000", "--hostname", "lab"]
    words += ["--dev", "/dev", "--proc", "/proc", "--dir", "/sys/class/net"]
    for folder in WRITABLE:
        words += ["--perms", "1777", "--size", str(setting.limits.disk), "--tmpfs", folder]
    for path in _visible(setting):
        for parent in reversed(path.parents[:-1]):  # which all users may pass
            words += ["--dir", str(parent)]
        words += ["--symlink", str(path.readlink())] if path.is_symlink() else ["--ro-bind", str(path)]
        words.append(str(path))
    for hidden in setting.hidden:
        words += ["--tmpfs", str(hidden)] if hidden.is_dir() else ["--ro-bind", "/dev/null", str(hidden)]
    return [*words, "--"]


def _unshare(setting: Setting, root: str) -> list[str]:
    """In namespaces of its own `jail.sh` mounts what is seen below `root` and goes there for good."""
    own = ["unshare", "--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--kill-child"]
    own += ["--user", "--map-root-user"] if os.getuid() else []
    places = ["\n".join(map(str, paths)) for paths in (_visible(setting), setting.hidden)]
    disk = f"size={setting.limits.disk},nr_inodes={setting.limits.files}"
    script = ["sh", str(Path(__file__).with_name("jail.sh")), root, disk, *places, sys.executable]
    # With whoever asked for it ends `unshare`, and with that all inside.
    return ["setpriv", "--pdeathsig=KILL", *own, *script]


def _visible(setting: Setting) -> list[Path]:
    """What is seen of this machine: the system's programs, Python, the packages that it imports from, the programs."""
    library = [sys.prefix, sys.base_prefix, Path(distlab.__file__).parents[1], programs.FOLDER]
    names = [*_SYSTEM, *(f"/etc/{name}" for name in _ETC), *map(str, library), *map(str, setting.seen)]
    visible: list[Path] = []
    for name in sorted({os.path.abspath(name) for name in names if os.path.lexists(name)}, key=len):  # noqa: PTH100
        if not any(Path(name).is_relative_to(parent) for parent in visible):
            visible.append(Path(name))
    return visible

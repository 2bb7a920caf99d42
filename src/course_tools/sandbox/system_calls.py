"""Linux system calls that Python 3.11 has no function for."""

import ctypes
import fcntl
import os
import platform
import signal
import socket
import struct

NEW_MOUNTS, NEW_HOST_NAME, NEW_IPC, NEW_USERS = 0x00020000, 0x04000000, 0x08000000, 0x10000000
NEW_PIDS, NEW_NETWORK = 0x20000000, 0x40000000

BIND, RECURSIVE, PRIVATE = 4096, 16384, 1 << 18
NO_SUID, NO_DEVICES, NO_PROGRAMS = 2, 4, 8

_READ_ONLY_ATTRIBUTE, _NO_SUID_ATTRIBUTE = 1, 2
_MOUNT_SETATTR = 442
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}
_AT_FDCWD, _AT_RECURSIVE, _DETACH = -100, 0x8000, 2
_DEATH_SIGNAL, _SET_DUMPABLE, _DROP_BOUNDING, _SUBREAPER, _NO_NEW_PRIVILEGES = 1, 4, 24, 36, 38
_CAPABILITIES_VERSION_3 = 0x20080522

_library = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(namespaces: int) -> None:
    """Leave these namespaces of the parent for new ones; raises OSError where that is not allowed."""
    _checked(_library.unshare(namespaces), "unshare")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount something; the arguments are those of the system call."""
    arguments = (source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags), options.encode())
    _checked(_library.mount(*arguments), f"mount {target}")


def bind(source: str, target: str, read_only: bool) -> None:
    """Show `source`, and what is mounted under it, at `target` as well."""
    mount(source, target, flags=BIND | RECURSIVE)
    if read_only:
        attributes = struct.pack("=QQQQ", _READ_ONLY_ATTRIBUTE | _NO_SUID_ATTRIBUTE, 0, 0, 0)
        arguments = (_AT_FDCWD, target.encode(), _AT_RECURSIVE, attributes, ctypes.c_size_t(len(attributes)))
        _checked(_library.syscall(ctypes.c_long(_MOUNT_SETATTR), *arguments), f"make {target} read-only")


def change_root(root: str) -> None:
    """Make the mounted folder `root` the root; what was there before cannot be reached any more."""
    os.chdir(root)
    number = _PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise OSError(f"pivot_root is not known for {platform.machine()}")
    _checked(_library.syscall(ctypes.c_long(number), b".", b"."), "pivot_root")
    _checked(_library.umount2(b".", _DETACH), "umount")
    os.chdir("/")


def drop_capabilities() -> None:
    """Give up every privilege for good, those that a program on disk could bring as well."""
    _checked(_library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no_new_privs")
    capability = 0
    while _library.prctl(_DROP_BOUNDING, capability, 0, 0, 0) == 0:
        capability += 1
    header, empty = struct.pack("=Ii", _CAPABILITIES_VERSION_3, 0), struct.pack("=6I", *[0] * 6)
    _checked(_library.capset(header, empty), "capset")


def prctl(option: int, first: int, second: int, what: str) -> None:
    """Operations on the calling process; `what` is for the error. Raises OSError."""
    arguments = (ctypes.c_ulong(first), ctypes.c_ulong(second), ctypes.c_ulong(0), ctypes.c_ulong(0))
    _checked(_library.prctl(option, *arguments), what)


def end_with_parent() -> None:
    """Let the kernel kill this process when its parent ends, or has ended already."""
    prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, "death signal")


def adopt_orphans() -> None:
    """Become the parent of all descendants whose own parent has ended."""
    _checked(_library.prctl(_SUBREAPER, 1, 0, 0, 0), "subreaper")


def own_process_files() -> None:
    """Let this process write its own files in /proc again, which it may not after it has changed its user."""
    _checked(_library.prctl(_SET_DUMPABLE, 1, 0, 0, 0), "dumpable")


def loopback_up() -> None:
    """Switch the loopback device of this network namespace on."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        get_flags, set_flags, up = 0x8913, 0x8914, 1
        answer = fcntl.ioctl(any_socket, get_flags, struct.pack("16sh14x", b"lo", 0))
        flags = struct.unpack("16sh14x", answer)[1]
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sh14x", b"lo", flags | up))

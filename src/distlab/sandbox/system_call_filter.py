"""System calls that a student's process must not make, refused by the Linux kernel (seccomp).

Refused is what reaches past the limits: being traced, key rings, files in memory without a name, watching other
processes' files, and sockets other than those of this machine's own kinds. So are locks: sandboxes see the same files
of this machine, and what one locks another could read, so that ranks would know what nobody has sent.
"""

import ctypes
import errno
import platform
import socket
import struct
import sys

from distlab.sandbox import system_calls

_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_NOT_LESS, _RETURN = 0x20, 0x15, 0x35, 0x06  # of the kernel's classic BPF
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24  # offsets in struct seccomp_data
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_SET_SECCOMP, _FILTER = 22, 2
_OTHER_ABI = 0x40000000  # numbers of x86-64's second, 32-bit interface begin here

_AUDIT_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_REFUSED = {
    "x86_64": {
        "ptrace": 101,
        "add_key": 248,
        "request_key": 249,
        "keyctl": 250,
        "inotify_init": 253,
        "inotify_init1": 294,
        "perf_event_open": 298,
        "fanotify_init": 300,
        "memfd_create": 319,
        "bpf": 321,
        "userfaultfd": 323,
        "io_uring_setup": 425,
        "memfd_secret": 447,
    },
    "aarch64": {
        "inotify_init1": 26,
        "ptrace": 117,
        "add_key": 217,
        "request_key": 218,
        "keyctl": 219,
        "perf_event_open": 241,
        "fanotify_init": 262,
        "memfd_create": 279,
        "bpf": 280,
        "userfaultfd": 282,
        "io_uring_setup": 425,
        "memfd_secret": 447,
    },
}
_SOCKET = {"x86_64": 41, "aarch64": 198}
_FLOCK = {"x86_64": 73, "aarch64": 32}
_FCNTL = {"x86_64": 72, "aarch64": 25}
_LOCKS = (6, 7, 37, 38)  # what fcntl is asked for: F_SETLK, F_SETLKW, and the same of an open file
_WATCH_A_FOLDER = 1026
_ALLOWED_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, 16)  # 16, netlink, lists network devices


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


def is_known() -> bool:
    """Whether this machine has system calls that we can refuse."""
    return sys.platform == "linux" and platform.machine() in _REFUSED


def refuse() -> None:
    """Refuse them in this process and all that it starts, for good; it must have given up new privileges.

    Does nothing on a machine whose system calls are not known here. Raises OSError.
    """
    if not is_known():
        return
    instructions = b"".join(_instructions(platform.machine()))
    buffer = ctypes.create_string_buffer(instructions, len(instructions))
    program = _Program(len(instructions) // 8, ctypes.addressof(buffer))
    system_calls.prctl(_SET_SECCOMP, _FILTER, ctypes.addressof(program), "seccomp")


def _instructions(machine: str) -> list[bytes]:
    """The filter: what is not refused is allowed."""
    program = [
        _step(_LOAD, _ARCHITECTURE),
        _step(_JUMP_IF_EQUAL, _AUDIT_ARCHITECTURES[machine], if_true=1),
        _step(_RETURN, _ERROR | errno.ENOSYS),
        _step(_LOAD, _NUMBER),
        _step(_JUMP_IF_NOT_LESS, _OTHER_ABI, if_false=1),
        _step(_RETURN, _ERROR | errno.ENOSYS),
    ]
    for number in _REFUSED[machine].values():
        program += _refusal(number, errno.EPERM)
    # As on a disk that has no locks: HDF5, in which Keras saves weights, then goes on without.
    program += _refusal(_FLOCK[machine], errno.ENOSYS)
    of_fcntl = [_step(_LOAD, _SECOND_ARGUMENT), *_refusal(_WATCH_A_FOLDER, errno.EPERM)]
    for command in _LOCKS:
        of_fcntl += _refusal(command, errno.ENOSYS)
    of_fcntl.append(_step(_RETURN, _ALLOW))
    program += [_step(_JUMP_IF_EQUAL, _FCNTL[machine], if_false=len(of_fcntl)), *of_fcntl]
    program += [
        _step(_JUMP_IF_EQUAL, _SOCKET[machine], if_true=1),
        _step(_RETURN, _ALLOW),
        _step(_LOAD, _FIRST_ARGUMENT),
    ]
    for family in _ALLOWED_FAMILIES:
        program += [_step(_JUMP_IF_EQUAL, family, if_false=1), _step(_RETURN, _ALLOW)]
    return [*program, _step(_RETURN, _ERROR | errno.EAFNOSUPPORT)]


def _refusal(value: int, error: int) -> list[bytes]:
    """Steps that end with this error if what was loaded last is `value`."""
    return [_step(_JUMP_IF_EQUAL, value, if_false=1), _step(_RETURN, _ERROR | error)]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """One instruction; `if_true` and `if_false` are how many of the next are skipped."""
    return struct.pack("=HBBI", code, if_true, if_false, value)

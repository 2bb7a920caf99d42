"""System calls that a student's process must not make, refused by the Linux kernel (seccomp).

Refused is what reaches past the limits: being traced, key rings, files in memory without a name, watching other
processes' files, sockets other than those of this machine's own kinds, larger buffers of sockets, and pipes that keep a
process's memory (vmsplice). So are locks: sandboxes see the same files of this machine, and what one locks another
could read, so that ranks would know what nobody has sent.
"""

import ctypes
import errno
import platform
import socket
import struct
import sys

from course_tools.sandbox import system_calls

_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_NOT_LESS, _RETURN = 0x20, 0x15, 0x35, 0x06  # of the kernel's classic BPF
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT, _THIRD_ARGUMENT = (
    0,
    4,
    16,
    24,
    32,
)  # offsets in struct seccomp_data
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
        "vmsplice": 278,
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
        "vmsplice": 75,
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
_SOCKETS = {"x86_64": (41, 53), "aarch64": (198, 199)}  # socket and socketpair
_SET_OF_SOCKET = {"x86_64": 54, "aarch64": 208}  # setsockopt
_FLOCK = {"x86_64": 73, "aarch64": 32}
_FCNTL = {"x86_64": 72, "aarch64": 25}
_LOCKS = (6, 7, 37, 38)  # what fcntl is asked for: F_SETLK, F_SETLKW, and the same of an open file
_WATCH_A_FOLDER = 1026
# By families of sockets: among the internet's TCP and UDP, and of netlink (16) what lists network devices.
_ALLOWED_PROTOCOLS = {socket.AF_UNIX: None, socket.AF_INET: (0, 6, 17), socket.AF_INET6: (0, 6, 17), 16: (0,)}
_OF_SOCKETS, _BUFFER_SIZES = 1, (7, 8)  # SOL_SOCKET; SO_SNDBUF and SO_RCVBUF


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
    # As on a machine that allows no more: the size stays, and the program is not told.
    of_setsockopt = [
        _step(_LOAD, _SECOND_ARGUMENT),
        _step(_JUMP_IF_EQUAL, _OF_SOCKETS, if_true=1),
        _step(_RETURN, _ALLOW),
    ]
    of_setsockopt.append(_step(_LOAD, _THIRD_ARGUMENT))
    for option in _BUFFER_SIZES:
        of_setsockopt += _refusal(option, 0)
    of_setsockopt.append(_step(_RETURN, _ALLOW))
    program += [_step(_JUMP_IF_EQUAL, _SET_OF_SOCKET[machine], if_false=len(of_setsockopt)), *of_setsockopt]
    alone, pair = _SOCKETS[machine]
    program += [
        _step(_JUMP_IF_EQUAL, alone, if_true=2),
        _step(_JUMP_IF_EQUAL, pair, if_true=1),
        _step(_RETURN, _ALLOW),
    ]
    for family, protocols in _ALLOWED_PROTOCOLS.items():
        of_family = [_step(_LOAD, _THIRD_ARGUMENT)]
        for protocol in protocols or ():
            of_family += [_step(_JUMP_IF_EQUAL, protocol, if_false=1), _step(_RETURN, _ALLOW)]
        of_family.append(_step(_RETURN, _ALLOW if protocols is None else _ERROR | errno.EPROTONOSUPPORT))
        program += [
            _step(_LOAD, _FIRST_ARGUMENT),
            _step(_JUMP_IF_EQUAL, family, if_false=len(of_family)),
            *of_family,
        ]
    return [*program, _step(_RETURN, _ERROR | errno.EAFNOSUPPORT)]


def _refusal(value: int, error: int) -> list[bytes]:
    """Steps that end with this error if what was loaded last is `value`."""
    return [_step(_JUMP_IF_EQUAL, value, if_false=1), _step(_RETURN, _ERROR | error)]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """One instruction; `if_true` and `if_false` are how many of the next are skipped."""
    return struct.pack("=HBBI", code, if_true, if_false, value)

"""The memory in the buffers of sockets, which is in no process's size; Linux tells it by netlink (sock_diag).

It knows all sockets of a network namespace: also those that wait to be accepted, those whose process has ended while
data is on the way, and those that are on the way to a process themselves.
"""

import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_SOCK_DIAG, _BY_FAMILY, _REQUEST_ALL = 4, 20, 0x301
_HEADER = struct.Struct("=IHHII")  # of a message: length, type, flags, sequence, port
_ATTRIBUTE = struct.Struct("=HH")
_ERROR, _DONE = 2, 3
_LONGEST_REPLY = 1 << 17
_SECONDS = 30.0
_ALL_STATES = 0xFFFFFFFF
_INTERNET = [(family, kind) for family in (socket.AF_INET, socket.AF_INET6) for kind in (6, 17)]  # TCP, UDP
_DATAGRAMS_QUEUED = 11  # that a Unix socket holds at most, each perhaps from a socket that is closed


class _Family(NamedTuple):
    """How a kind of socket is asked for, and where in the answer its attributes begin and which of them are meant."""

    request: bytes
    begin: int
    memory: int
    queues: int | None = None


_FAMILIES = [
    _Family(struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, _ALL_STATES, 0, 0x20 | 0x10, 0, 0), 16, 5, 4),
    *(_Family(struct.pack("=BBBBI48x", family, kind, 1 << 6, 0, _ALL_STATES), 72, 7) for family, kind in _INTERNET),
]


class SocketMemory:
    """What the sockets of the network namespace hold in which this process is now."""

    def __init__(self, connection: socket.socket | None = None) -> None:
        """By a new connection to the kernel, or one that another process has made there. Raises OSError."""
        self.connection = connection or socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG)
        self.connection.settimeout(_SECONDS)
        self._buffer = 212_992
        with suppress(OSError, ValueError):
            self._buffer = int(Path("/proc/sys/net/core/wmem_default").read_text())

    def read(self) -> int:
        """Bytes. Raises OSError where the kernel does not tell."""
        return sum(self._held(message, family) for family in _FAMILIES for message in self._messages(family))

    def _messages(self, family: _Family) -> Iterator[bytes]:
        """One for each socket."""
        self.connection.send(_HEADER.pack(16 + len(family.request), _BY_FAMILY, _REQUEST_ALL, 0, 0) + family.request)
        while True:
            reply, place = self.connection.recv(_LONGEST_REPLY), 0
            while place < len(reply):
                length, kind, *_ = _HEADER.unpack_from(reply, place)
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    raise OSError(-struct.unpack_from("=i", reply, place + 16)[0], "the kernel does not list sockets")
                yield reply[place + 16 : place + length]
                place += (length + 3) & ~3

    def _held(self, message: bytes, family: _Family) -> int:
        size, place = 0, family.begin
        while place + 4 <= len(message):
            length, kind = _ATTRIBUTE.unpack_from(message, place)
            if kind == family.memory:
                received, _, sent, _, _, queued, options, backlog, *_ = struct.unpack_from("=8I", message, place + 4)
                size = max(size, received + max(sent, queued) + options + backlog)
            elif kind == family.queues and struct.unpack_from("=I", message, place + 4)[0]:
                # It is counted where it was sent from. That socket may be closed, and then in no list.
                is_datagram = message[1] == socket.SOCK_DGRAM
                size = max(size, self._buffer * (_DATAGRAMS_QUEUED if is_datagram else 1))
            place += (max(length, 4) + 3) & ~3
        return size


def is_told() -> bool:
    """Whether the kernel of this machine tells it."""
    with suppress(OSError, AttributeError):
        SocketMemory().read()
        return True
    return False

"""What sockets hold, compared with what was sent into them; in a network of its own where that is allowed."""

import socket
import sys
from collections.abc import Callable

import pytest

from distlab.sandbox import socket_memory
from distlab.sandbox.socket_memory import SocketMemory

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="netlink is Linux's"),
    pytest.mark.skipif(not socket_memory.is_told(), reason="the kernel does not list its sockets"),
]
MOST = 2**20


def fill(sender: socket.socket) -> int:
    """The bytes that it takes, until it would have to wait, at most 1 MiB."""
    sender.setblocking(False)
    sent = 0
    try:
        while sent < MOST:
            sent += sender.send(bytes(4096))
    except BlockingIOError:
        pass
    return sent


def pair(kind: int) -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, kind)


def not_accepted(family: int, address: str) -> tuple[socket.socket, socket.socket]:
    listener = socket.create_server((address, 0), family=family)
    return socket.create_connection(listener.getsockname()[:2]), listener


def datagrams() -> tuple[socket.socket, socket.socket]:
    receiver, sender = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    receiver.bind(("127.0.0.1", 0))
    sender.connect(receiver.getsockname())
    return sender, receiver


PAIRS: dict[str, Callable[[], tuple[socket.socket, socket.socket]]] = {
    "a stream": lambda: pair(socket.SOCK_STREAM),
    "messages": lambda: pair(socket.SOCK_SEQPACKET),
    "a connection that waits": lambda: not_accepted(socket.AF_INET, "127.0.0.1"),
    "UDP": datagrams,
}


@pytest.mark.parametrize("make", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("closes", [False, True], ids=["both open", "the sender is closed"])
def test_what_was_sent_and_not_read_is_counted(make: Callable[..., object], closes: bool) -> None:
    memory = SocketMemory()
    sender, receiver = make()
    with memory.connection, sender, receiver:
        before = memory.read()
        sent = min(fill(sender), 65536)  # of UDP more may be lost
        if closes:
            sender.close()
        # Others on this machine may close something meanwhile, but seldom so much.
        assert memory.read() - before >= sent // 2 > 16384


def test_sockets_that_hold_nothing_take_nothing() -> None:
    memory = SocketMemory()
    with memory.connection:
        before = memory.read()
        pairs = [pair(socket.SOCK_STREAM) for _ in range(50)]
        assert memory.read() - before < 50 * 4096
        for first, second in pairs:
            first.close()
            second.close()

"""What sockets hold, compared with what was sent into them; in a network of its own where that is allowed."""

import socket
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from course_tools.sandbox import socket_memory, system_calls
from course_tools.sandbox.socket_memory import SocketMemory

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


def in_own_network(work: Callable[[], None]) -> None:
    """In a thread whose network is its own, where nobody else opens or closes anything."""

    def enter() -> None:
        system_calls.unshare(system_calls.NEW_NETWORK)
        system_calls.loopback_up()

    with ThreadPoolExecutor(1) as thread:
        try:
            thread.submit(enter).result()
        except OSError as error:
            pytest.skip(f"no network of its own: {error}")
        thread.submit(work).result()


@pytest.mark.parametrize("make", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("closes", [False, True], ids=["both open", "the sender is closed"])
def test_what_was_sent_and_not_read_is_counted(
    make: Callable[[], tuple[socket.socket, socket.socket]], closes: bool
) -> None:
    def compare() -> None:
        memory = SocketMemory()
        sender, receiver = make()
        with memory.connection, sender, receiver:
            assert memory.read() == 0
            sent = fill(sender)
            if closes:
                sender.close()
            assert memory.read() > min(sent, 65536) > 16384  # of UDP more may be lost
            receiver.close()
            sender.close()

    in_own_network(compare)


def test_sockets_that_hold_nothing_take_nothing() -> None:
    def compare() -> None:
        memory = SocketMemory()
        pairs = [pair(socket.SOCK_STREAM) for _ in range(50)]
        with memory.connection:
            assert memory.read() == 0
        for first, second in pairs:
            first.close()
            second.close()

    in_own_network(compare)

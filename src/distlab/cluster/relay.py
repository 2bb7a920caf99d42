"""A long cable for kernels without netem: copies Ethernet frames between two interfaces, each after a delay.

`python relay.py SECONDS INTERFACE INTERFACE` prints a line when it is ready. Both interfaces belong to the relay and to
no bridge. It imports only the standard library, so that it can start without the environment's packages.
"""

import collections
import select
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

SOL_PACKET = 263
# Each frame keeps the kernel's notes about it: senders leave checksums and cutting large frames to the network card,
# and there is none. With the notes the receiving side accepts such frames as they are.
PACKET_VNET_HDR = 15
ALL_PROTOCOLS = 3
OUTGOING = 4
LARGEST_FRAME = 70_000
BUFFER_BYTES = 8 << 20
FRAMES_AT_ONCE = 64


def opened(interface: str) -> socket.socket:
    """A socket with every frame that arrives at the interface."""
    # With a protocol it would hear every interface until it is bound.
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    end.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    end.bind((interface, ALL_PROTOCOLS))
    end.setblocking(False)
    return end


def relay(seconds: float, interfaces: tuple[str, str]) -> None:
    """Copy frames until the process is ended."""
    first, second = map(opened, interfaces)
    opposite = {first: second, second: first}
    print("ready", flush=True)
    waiting: collections.deque[tuple[float, socket.socket, bytes]] = collections.deque()
    while True:
        while waiting and waiting[0][0] <= time.monotonic():
            _, end, frame = waiting.popleft()
            with suppress(OSError):  # a full queue or a cut cable loses the frame
                end.send(frame)
        until_next = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        readable, _, _ = select.select([first, second], [], [], until_next)
        for end in readable:
            for _ in range(FRAMES_AT_ONCE):
                try:
                    frame, sender = end.recvfrom(LARGEST_FRAME)
                except OSError:  # nothing more, or the cable is cut
                    break
                if sender[2] != OUTGOING:
                    waiting.append((time.monotonic() + seconds, opposite[end], frame))


if __name__ == "__main__":
    Path("/proc/self/comm").write_text("cluster-relay")  # `pkill python` in the cluster means a user's own programs
    relay(float(sys.argv[1]), (sys.argv[2], sys.argv[3]))

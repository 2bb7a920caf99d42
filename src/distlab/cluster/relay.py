"""A long cable: copies Ethernet frames between two interfaces, each after a delay (not every kernel has netem).

`python relay.py SECONDS INTERFACE INTERFACE` prints the number of its process when it is ready. Both interfaces belong
to the relay and to no bridge. It imports only the standard library, to start without the environment's packages.
"""

import collections
import os
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


def relay(seconds: float, first: socket.socket, second: socket.socket) -> None:
    """Copy frames until the process is ended."""
    opposite = {first: second, second: first}
    waiting: collections.deque[tuple[float, socket.socket, bytes]] = collections.deque()
    while True:
        while waiting and waiting[0][0] <= time.monotonic():
            _, end, frame = waiting.popleft()
            with suppress(OSError):  # a full queue or a cut cable loses the frame
                end.send(frame)
        until_next = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        readable, _, _ = select.select([first, second], [], [], until_next)
        for end in readable:
            with suppress(OSError):  # nothing more, or the cable is cut
                for _ in range(FRAMES_AT_ONCE):
                    frame, sender = end.recvfrom(LARGEST_FRAME)
                    if sender[2] != OUTGOING:
                        waiting.append((time.monotonic() + seconds, opposite[end], frame))


if __name__ == "__main__":
    Path("/proc/self/comm").write_text("cluster-relay")  # `pkill python` in the cluster means a user's own programs
    ends = opened(sys.argv[2]), opened(sys.argv[3])
    print(os.getpid(), flush=True)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):  # who started it waits for the end of what it prints
        os.dup2(null, descriptor)
    relay(float(sys.argv[1]), *ends)

"""Run a command in a network namespace of its own, where only the loopback device exists.

Use: `without_network.py COMMAND …`. Exit status 77: this machine does not allow it.
"""

import ctypes
import fcntl
import os
import socket
import struct
import sys

NOT_ALLOWED = 77
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1


def cut_network() -> None:
    """Move this process into a fresh network namespace and start its loopback device; raises OSError if refused."""
    unshare = getattr(ctypes.CDLL(None, use_errno=True), "unshare", None)
    if unshare is None:
        raise OSError("no network namespaces on this system")
    if unshare(CLONE_NEWNET) and unshare(CLONE_NEWUSER | CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare refused")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(control, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def assert_cut() -> None:
    """Raise unless an address outside cannot be reached and this machine itself can."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname(), timeout=5):
        pass
    try:
        # 192.0.2.1 is reserved for documentation (RFC 5737): nothing is sent to anybody.
        with socket.create_connection(("192.0.2.1", 80), timeout=5):
            raise AssertionError("the network is not cut")
    except OSError as error:
        assert "unreachable" in str(error), error


if __name__ == "__main__":
    try:
        cut_network()
    except OSError as refusal:
        print(refusal)
        sys.exit(NOT_ALLOWED)
    assert_cut()
    os.execvp(sys.argv[1], sys.argv[1:])

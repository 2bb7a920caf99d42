"""How fast node2 sends to the login node and receives from it, and how long a byte takes there and back."""

import json
import socket
import subprocess
import sys
import time

BYTES, ROUND_TRIPS, LOGIN = 6_000_000, 20, "10.99.0.254"


def receive(connection: socket.socket, count: int) -> float:
    """Bytes per second."""
    start = time.monotonic()
    left = count
    while left:
        left -= len(connection.recv(min(left, 65536)))
    return count / (time.monotonic() - start)


def node(port: int) -> None:
    with socket.create_connection((LOGIN, port)) as connection:
        connection.sendall(bytes(BYTES))
        print(json.dumps(receive(connection, BYTES)))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(ROUND_TRIPS):
            connection.sendall(connection.recv(1))


def login() -> None:
    with socket.create_server((LOGIN, 0)) as server:
        command = ["srun", "--nodelist=node2", sys.executable, __file__, str(server.getsockname()[1])]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            connection, _ = server.accept()
            with connection:
                sent = receive(connection, BYTES)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection.sendall(bytes(BYTES))
                times = []
                for _ in range(ROUND_TRIPS):
                    start = time.monotonic()
                    connection.sendall(b"x")
                    connection.recv(1)
                    times.append(time.monotonic() - start)
            received = json.loads(process.communicate()[0])
    print(json.dumps({"sent": sent, "received": received, "round_trip": min(times)}))


if __name__ == "__main__":
    node(int(sys.argv[1])) if len(sys.argv) > 1 else login()

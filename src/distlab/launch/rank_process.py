"""Runs one rank's command under mpirun, horovodrun or torchrun, and tells the launcher what becomes of it.

    python rank_process.py SOCKET COMMAND...

mpirun and its like mix the lines of their ranks and do not always say which rank failed. Here each rank has a
connection of its own to the launcher, a Unix socket: its number and process id go first, then whatever it prints, and
its exit status last. It imports the standard library only, so that it starts at once.
"""

import os
import signal
import socket
import subprocess
import sys

# The first that is set: horovodrun with Gloo, Open MPI, MPICH, torchrun.
RANK_VARIABLES = ("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK")
# What no program prints by chance.
STATUS = "\x00distlab exit status "


def main() -> int:
    """Run the command; its exit status, 128 + n after signal n, as a shell gives it."""
    path, *command = sys.argv[1:]
    rank = next(os.environ[name] for name in RANK_VARIABLES if name in os.environ)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(f"{rank} {os.getpid()}\n".encode())
        process = subprocess.Popen(command, stdout=connection, stderr=connection)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, _: process.send_signal(number))
        status = process.wait()
        connection.sendall(f"{STATUS}{status}\n".encode())
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())

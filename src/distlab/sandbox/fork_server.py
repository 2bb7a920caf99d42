"""The process that sandboxes are forked from: `python -m distlab.sandbox.fork_server FD SCRATCH MODULE…`.

It has imported what students' code will import, so that a sandbox is ready in milliseconds, and knows nothing else.
"""

import gc
import importlib
import json
import os
import resource
import shutil
import signal
import socket
import sys
import warnings
from contextlib import suppress

from distlab.sandbox import keeper, student
from distlab.sandbox.limits import Limits

__all__ = ["student"]  # imported here so that no sandbox has to


def serve(connection: socket.socket, scratch: str) -> None:
    """Fork a keeper for each order, until the other end is closed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, 4096, 2)
        if not message:
            return
        order = json.loads(message)
        if os.fork() == 0:
            connection.close()
            data, control = (socket.socket(fileno=number) for number in descriptors)
            keeper.keep(data, control, Limits(**order["limits"]), order["weak"], scratch)
        for number in descriptors:
            os.close(number)
        connection.send(b"+")


def main(arguments: list[str]) -> None:
    """Import the modules and serve."""
    descriptor, scratch, *modules = arguments
    warnings.simplefilter("ignore", DeprecationWarning)  # forking beside TensorFlow's idle threads is meant
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))  # the grader's own limit is not the students'
    for module in modules:
        with suppress(Exception):  # whoever needs it will see why it cannot be imported
            importlib.import_module(module)
    gc.collect()
    gc.freeze()  # the collector of a forked process leaves these objects, and so their memory pages, alone
    serve(socket.socket(fileno=int(descriptor)), scratch)
    shutil.rmtree(scratch, ignore_errors=True)  # the grader may have been killed


if __name__ == "__main__":
    main(sys.argv[1:])

"""The keeper: it takes nothing for the end but the end."""

import ctypes
import os
import signal
import socket
import sys

import psutil
import pytest

from course_tools.sandbox import fork_server
from course_tools.sandbox.confine import PLAIN
from course_tools.sandbox.gauge import Gauge
from course_tools.sandbox.meter import Meter

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a keeper's processes are Linux's")


def traced_and_stopped() -> int:
    """A process that has let its parent trace it, and has stopped."""
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).ptrace(0, 0, 0, 0)
        os.kill(os.getpid(), signal.SIGUSR1)
        os._exit(0)
    while psutil.Process(child).status() not in (psutil.STATUS_TRACING_STOP, psutil.STATUS_STOPPED):
        pass
    return child


def test_a_stop_is_not_the_end() -> None:
    child, meter = traced_and_stopped(), Meter()
    keepers, graders = socket.socketpair()
    with keepers, graders:
        graders.shutdown(socket.SHUT_WR)  # the grader asks for the end
        assert fork_server._watch(child, keepers, Gauge(meter, 0), PLAIN) == ("", False)
    fork_server._end(child, weak=False)
    assert not psutil.pid_exists(child)
    meter.close()


def test_the_end_is_told_with_its_reason() -> None:
    child, meter = os.fork(), Meter()
    if child == 0:
        os._exit(3)
    keepers, graders = socket.socketpair()
    with keepers, graders:
        reason = fork_server._watch(child, keepers, Gauge(meter, 0), PLAIN)
    assert reason == ("its process ended by itself with exit status 3", True)
    meter.close()

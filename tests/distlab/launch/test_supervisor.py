"""Whatever ends the launching process, it leaves none of the job's processes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from jupyter_client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from tests.distlab.launch.launched_program import Launched

SECONDS = 60
# A worker that ignores SIGTERM, with a child in a separate session; and an ordinary one.
ACTS = ("0=stubborn,child,listen,wait", "1=listen,wait")
PROCESSES = 3


def launching(launched: Launched, starter: str = "tensorflow") -> str:
    return f"from distlab import launch; launch.{starter}({str(launched.program)!r}, *{ACTS!r}, start_seconds=300)"


@contextmanager
def parent(command: list[str]) -> Iterator[subprocess.Popen]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill -9"])
def test_a_python_program_that_is_ended_leaves_nothing(launched: Launched, number: signal.Signals) -> None:
    with parent([sys.executable, "-c", launching(launched)]) as process:
        launched.wait_for(PROCESSES)
        process.send_signal(number)
        assert launched.gone_within(SECONDS)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_the_command_line_that_is_ended_leaves_nothing(launched: Launched, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "course_tools", "launch", "--start-seconds", "300"]
    with parent([*command, str(launched.program), "--", *ACTS]) as process:
        launched.wait_for(PROCESSES)
        process.send_signal(number)
        assert launched.gone_within(SECONDS)
        output = process.communicate(timeout=300)[0]
    assert "Traceback" not in output
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert "Interrupted; every process of the job is ended." in output


@pytest.mark.slow
def test_a_second_interrupt_while_the_first_is_dealt_with_leaves_nothing(launched: Launched) -> None:
    with parent([sys.executable, "-c", launching(launched)]) as process:
        launched.wait_for(PROCESSES)
        process.send_signal(signal.SIGINT)
        while process.poll() is None:
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
        assert launched.gone_within(SECONDS)


@pytest.fixture
def kernel() -> Iterator[KernelManager]:
    """A kernel of Jupyter as JupyterLab starts it."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    yield manager
    manager.shutdown_kernel(now=True)


def replied_error(client: BlockingKernelClient, request: str) -> str:
    """The name of the exception that ended the cell."""
    while (reply := client.get_shell_msg(timeout=300))["parent_header"]["msg_id"] != request:
        continue
    return reply["content"]["ename"]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["interrupt", "restart", "kill -9"])
def test_a_kernel_that_is_ended_in_a_cell_leaves_nothing(launched: Launched, kernel: KernelManager, way: str) -> None:
    client = kernel.client()
    client.start_channels()
    client.wait_for_ready(timeout=300)
    request = client.execute(launching(launched))
    launched.wait_for(PROCESSES)
    if way == "interrupt":
        kernel.interrupt_kernel()
    elif way == "restart":
        kernel.restart_kernel(now=True)
    else:
        os.kill(kernel.provisioner.pid, signal.SIGKILL)
    assert launched.gone_within(SECONDS)
    if way == "interrupt":
        assert replied_error(client, request) == "KeyboardInterrupt"
    client.stop_channels()

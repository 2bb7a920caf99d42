"""Whatever goes wrong, the launcher says which process it was, and none of the job's processes is left."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from jupyter_client.manager import start_new_kernel

from distlab import cluster_spec, launch
from tests.distlab.launch.launched_program import Launched
from tests.distlab.launch.test_starters import LIMITS, needs_horovod, needs_mpi

pytestmark = pytest.mark.slow

SECONDS = 60
# A worker that ignores SIGTERM, with a child in a separate session; and an ordinary one.
ACTS = ("0=stubborn,child,listen,wait", "1=listen,wait")
PROCESSES = 3


# Without help rank 0 of mpirun would wait in MPI's finalisation for rank 1, which waits for rank 0.
FAILURES = [
    ("tensorflow", ("0=stubborn,child,listen,wait", "1=lines25,exit3"), 3),
    ("tensorflow", ("0=listen,wait", "1=child,lines25,kill"), -9),
    pytest.param("mpirun", ("0=mpi,mpi", "1=mpi,lines25,exit1"), 1, marks=needs_mpi),
    pytest.param("mpirun", ("0=mpi,mpi", "1=mpi,lines25,kill"), -9, marks=needs_mpi),
    pytest.param("horovodrun", ("0=wait", "1=lines25,exit3"), 3, marks=needs_horovod),
]


@pytest.mark.parametrize(("starter", "acts", "code"), FAILURES)
def test_a_process_that_fails_ends_the_job_and_is_shown_with_rank_exit_code_and_last_20_lines(
    launched: Launched, starter: str, acts: tuple[str, str], code: int
) -> None:
    with pytest.raises(launch.WorkerFailed) as caught:
        getattr(launch, starter)(launched.program, *acts, **LIMITS)
    name = "worker 1" if starter == "tensorflow" else "rank 1"
    assert (caught.value.rank, caught.value.exit_code) == (name, code)
    message, how = str(caught.value), "was killed by signal 9" if code < 0 else "failed"
    assert message.startswith(f"{name} {how}, exit code {code}; the job was ended.")
    assert re.findall(r"line (\d+) of worker 1", message) == [str(line) for line in range(5, 25)]
    assert launched.left() == []


def test_a_worker_that_never_connects_is_named_with_its_address(launched: Launched) -> None:
    with pytest.raises(launch.WorkerMissing) as caught:
        launch.tensorflow(launched.program, "all=show:TF_CONFIG", "0=listen,wait", **LIMITS | {"start_seconds": 5})
    spec = cluster_spec.check(caught.value.run.output["worker 1"].removeprefix("TF_CONFIG is "))
    assert caught.value.ranks == ["worker 1"]
    address = spec.cluster["worker"][1]
    assert f"worker 1 (nobody listens at {address}, it has ended with exit code 0)" in str(caught.value)
    assert "waiting for it: worker 0" in str(caught.value)
    assert launched.left() == []


@needs_mpi
def test_a_rank_that_never_initialises_mpi_is_named(launched: Launched) -> None:
    with pytest.raises(launch.WorkerMissing) as caught:
        launch.mpirun(launched.program, "0=mpi", "1=say:elsewhere,wait", **LIMITS | {"start_seconds": 15})
    assert caught.value.ranks == ["rank 1"]
    assert re.search(r"rank 1 \(process \d+ on 127\.0\.0\.1 has no connection\)", str(caught.value))
    assert "elsewhere" in str(caught.value)
    assert launched.left() == []


def test_a_job_that_is_not_over_in_time_is_ended(launched: Launched) -> None:
    with pytest.raises(launch.DeadlinePassed, match=r"not over after 5 s .*: worker 0, worker 1") as caught:
        launch.tensorflow(launched.program, "all=say:I wait,listen,child,wait", **LIMITS | {"seconds": 5})
    assert "I wait" in str(caught.value)
    assert launched.left() == []


def test_an_orphan_that_holds_the_output_open_does_not_hold_the_job(launched: Launched) -> None:
    run = launch.tensorflow(launched.program, "all=orphan,lines1", **LIMITS)
    assert run.exit_codes == {"worker 0": 0, "worker 1": 0}
    assert launched.left() == []


def launching(launched: Launched, starter: str = "tensorflow") -> str:
    return f"from distlab import launch; launch.{starter}({str(launched.program)!r}, *{ACTS!r}, start_seconds=300)"


@contextmanager
def parent(command: list[str], **options: object) -> Iterator[subprocess.Popen]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, text=True, **pipes, **options) as process:
        try:
            yield process
        finally:
            process.kill()


@needs_mpi
def test_a_program_that_is_killed_leaves_nothing(launched: Launched, tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    acts = launching(launched, "mpirun").replace("listen,", "")
    with parent([sys.executable, "-c", acts], env=os.environ | {"TMPDIR": str(folder)}) as process:
        launched.wait_for(PROCESSES)
        process.kill()
        assert launched.gone_within(SECONDS)
        process.communicate()  # the guard, too, holds the pipe until it has removed the folder
    assert list(folder.iterdir()) == []


def test_the_command_line_that_is_ended_says_so_once_nothing_is_left(launched: Launched) -> None:
    command = [sys.executable, "-m", "course_tools", "launch", "--start-seconds", "300"]
    with parent([*command, str(launched.program), "--", *ACTS]) as process:
        launched.wait_for(PROCESSES)
        process.send_signal(signal.SIGTERM)
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line == "Interrupted; every process of the job is ended.\n":
                assert launched.left() == []
                break
        assert lines[-1].startswith("Interrupted") and "Traceback" not in "".join(lines)
        assert process.wait(300) == 128 + signal.SIGTERM


def test_a_second_interrupt_while_the_first_is_dealt_with_leaves_nothing(launched: Launched) -> None:
    with parent([sys.executable, "-c", launching(launched)]) as process:
        launched.wait_for(PROCESSES)
        process.send_signal(signal.SIGINT)
        while process.poll() is None:
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
        assert launched.gone_within(SECONDS)


def test_a_kernel_that_is_interrupted_in_a_cell_leaves_nothing(launched: Launched) -> None:
    kernel, client = start_new_kernel(kernel_name="python3", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        request = client.execute(launching(launched))
        launched.wait_for(PROCESSES)
        kernel.interrupt_kernel()
        assert launched.gone_within(SECONDS)
        while (reply := client.get_shell_msg(timeout=300))["parent_header"]["msg_id"] != request:
            continue
        assert reply["content"]["ename"] == "KeyboardInterrupt"
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)

"""Programs forked from one interpreter: like processes of their own in all that a program or the launcher can see."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from distlab import launch
from distlab.runtime import processes
from tests.distlab.launch.test_starters import LIMITS, needs_horovod, needs_mpi

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("one_job"),
    pytest.mark.skipif(sys.platform != "linux", reason="programs are forked on Linux only"),
]

# Does not need TensorFlow at once: only its text says that it imports it.
PROGRAM = """
import json, os, random, sys, time
from pathlib import Path
folder = Path(__file__).parent
config = os.environ.get("TF_CONFIG")
ranks = [os.environ[name] for name in ("OMPI_COMM_WORLD_RANK", "HOROVOD_RANK") if name in os.environ]
rank = json.loads(config)["task"]["index"] if config else ranks[0]
import numpy
imported = "tensorflow" in sys.modules
acts = sys.argv[1].split(",")
if "sum" in acts:
    import tensorflow as tf
    print("sum", float(tf.reduce_sum(tf.ones(3))))
if "describe" in acts:
    about = {
        "arguments": sys.argv, "name": __name__, "file": __file__, "folder": os.getcwd(), "path": sys.path[0],
        "main": sys.modules["__main__"].__dict__ is globals(), "imported": imported, "environment": dict(os.environ),
        "input": sys.stdin.read(), "group": os.getpgrp() != os.getppid(), "numpy": numpy.random.random(),
        "python": random.random(), "processors": sorted(os.sched_getaffinity(0)), "umask": os.umask(0o22),
    }
    (folder / f"rank{rank}.json").write_text(json.dumps(about))
if "error" in acts:
    print("to standard error", file=sys.stderr)
if "pid" in acts:
    (folder / f"{rank}.pid").write_text(str(os.getpid()))
if "raise" in acts and rank in (1, "1"):
    def fault():
        raise ValueError("the shapes do not fit")
    fault()
if "kill" in acts and rank in (1, "1"):
    os.kill(os.getpid(), 9)
if "daemon" in acts:  # in a session of its own, with an empty environment, whose parent has ended
    import subprocess
    sleeps = "(exec sleep 600 > /dev/null 2>&1) & echo $! > " + str(folder / "daemon.pid")
    subprocess.run(["sh", "-c", sleeps], env={}, start_new_session=True)
if "connect" in acts:
    import socket
    address = json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"][rank]
    held = socket.create_server(("", int(address.rpartition(":")[2])))
if "wait" in acts:
    time.sleep(600)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "train.py"
    file.write_text(PROGRAM)
    return file


def ranks_of(program: Path) -> list[dict]:
    return [json.loads((program.parent / f"rank{rank}.json").read_text()) for rank in range(2)]


def described(program: Path, **settings: object) -> list[dict]:
    run = launch.tensorflow(program, "describe,sum", "two words", **(LIMITS | settings))
    assert all(text.endswith("sum 3.0") for text in run.output.values())
    return ranks_of(program)


def left_of(pids: list[int]) -> list[psutil.Process]:
    """Those that are alive after a minute."""
    return psutil.wait_procs([psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)], 60)[1]


def test_a_forked_program_sees_what_one_with_an_interpreter_of_its_own_sees(program: Path) -> None:
    forked, own = described(program), described(program, prepared=False)
    assert forked[0]["numpy"] != forked[1]["numpy"] and forked[0]["python"] != forked[1]["python"]
    for rank in range(2):
        assert forked[rank].pop("imported") and not own[rank].pop("imported")
        for about in (forked[rank], own[rank]):
            about["environment"] = {
                name: value for name, value in about["environment"].items() if name not in (processes.MARK, "TF_CONFIG")
            }
            about.pop("numpy"), about.pop("python")
        assert forked[rank] == own[rank]
    assert forked[0]["main"] and forked[0]["name"] == "__main__"


@pytest.mark.parametrize(("act", "code"), [("raise", 1), ("kill", -9)])
def test_exit_codes_and_last_lines_are_those_of_the_program(program: Path, act: str, code: int) -> None:
    with pytest.raises(launch.WorkerFailed) as caught:
        launch.tensorflow(program, f"error,{act}", **LIMITS)
    assert (caught.value.rank, caught.value.exit_code) == ("worker 1", code)
    lines = caught.value.run.output["worker 1"].splitlines()
    assert lines[0] == "to standard error"
    if act == "raise":
        assert lines[1] == "Traceback (most recent call last):"
        assert str(program) in lines[2] and lines[-1] == "ValueError: the shapes do not fit"


def test_a_program_is_not_forked_where_a_library_would_have_read_another_variable(program: Path) -> None:
    launch.tensorflow(program, "describe", **LIMITS)
    assert all(rank["imported"] for rank in ranks_of(program))
    other = {"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CONFIG": '{"task": {"index": 0}}'}
    launch.alone(program, "describe", environment=other, **LIMITS)
    assert not ranks_of(program)[0]["imported"]
    for line, is_forked in (
        ('os.environ["HOROVOD_CYCLE_TIME"] = "1"', True),
        ('os.environ["OMP_NUM_THREADS"] = "2"', False),
        ('os.environ["TF_USE_LEGACY_KERAS"] = "1"', True),  # which it has already
        ('os.environ["TF_USE_LEGACY_KERAS"] = "0"', False),
    ):
        program.write_text(f"import os\n{line}\n{PROGRAM}")
        launch.tensorflow(program, "describe", **LIMITS)
        assert [rank["imported"] for rank in ranks_of(program)] == [is_forked] * 2


@needs_mpi
def test_ranks_of_mpirun_are_forked_and_one_bound_to_a_processor_is_not(program: Path) -> None:
    launch.mpirun(program, "describe,daemon", **LIMITS)
    assert [rank["imported"] for rank in ranks_of(program)] == [True, True]
    assert left_of([int((program.parent / "daemon.pid").read_text())]) == []
    if len(os.sched_getaffinity(0)) > 1:
        # The server may run on all processors, and a library may have looked at their number.
        launch.mpirun(program, "describe", options=["--bind-to", "core"], **LIMITS)
        assert [(len(rank["processors"]), rank["imported"]) for rank in ranks_of(program)] == [(1, False)] * 2


@needs_horovod
def test_horovodruns_ranks_are_forked_though_it_hands_on_what_its_own_imports_have_set(program: Path) -> None:
    launch.horovodrun(program, "describe", **LIMITS)
    assert [rank["imported"] for rank in ranks_of(program)] == [True, True]


def test_forked_programs_and_their_server_end_with_the_launching_program_and_leave_no_folder(
    program: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    mark = processes.new_mark()
    code = f"from distlab import launch; launch.tensorflow({str(program)!r}, 'pid,connect,wait')"
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    parent = processes.start([sys.executable, "-c", code], mark, env=os.environ | {"TMPDIR": str(folder)}, **pipes)
    try:
        end = time.monotonic() + 300
        while len(files := [file for file in tmp_path.glob("[01].pid") if file.read_text()]) < 2:
            assert time.monotonic() < end
            time.sleep(0.05)
        pids = [*(int(file.read_text()) for file in files), *(process.pid for process in processes.alive(mark))]
        parent.kill()
        parent.wait()
        assert left_of(pids) == []
        assert list(folder.glob("distlab-*")) == []
    finally:
        processes.end(mark)
        parent.wait()

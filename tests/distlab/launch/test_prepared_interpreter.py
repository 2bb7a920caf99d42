"""Programs forked from one interpreter: like processes of their own in all that a program or the launcher can see."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
import pytest

from distlab import launch
from distlab.launch import prepared_interpreter
from distlab.launch.fork_server import early_variables
from distlab.launch.job import OUTPUT
from distlab.runtime import processes
from tests.distlab.cluster.cluster_bench import command_line

pytestmark = [
    pytest.mark.slow,
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
import tensorflow as tf
acts = sys.argv[1].split(",")
if "describe" in acts:
    about = {
        "arguments": sys.argv, "name": __name__, "file": __file__, "folder": os.getcwd(), "path": sys.path[0],
        "main": sys.modules["__main__"].__dict__ is globals(), "imported": imported, "environment": dict(os.environ),
        "input": sys.stdin.read(), "group": os.getpgrp() != os.getppid(), "numpy": numpy.random.random(),
        "python": random.random(), "processors": sorted(os.sched_getaffinity(0)), "umask": os.umask(0o22),
        "sum": float(tf.reduce_sum(tf.ones(3))), "marks": Path(f"/proc/{os.getpid()}/environ").read_text(),
    }
    (folder / f"rank{rank}.json").write_text(json.dumps(about))
if "error" in acts:
    print("to standard error", file=sys.stderr)
if "pid" in acts:
    (folder / f"{rank}.pid").write_text(str(os.getpid()))
if "exit3" in acts and rank in (1, "1"):
    sys.exit(3)
if "raise" in acts and rank in (1, "1"):
    def fault():
        raise ValueError("the shapes do not fit")
    fault()
if "kill" in acts and rank in (1, "1"):
    os.kill(os.getpid(), 9)
if "connect" in acts:
    import socket
    address = json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"][rank]
    held = socket.create_server(("", int(address.rpartition(":")[2])))
if "wait" in acts:
    time.sleep(600)
"""
LIMITS = {"seconds": 600, "start_seconds": 300, "echo": False}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "train.py"
    file.write_text(PROGRAM)
    return file


def described(program: Path, **settings: object) -> list[dict]:
    launch.tensorflow(program, "describe", "two words", **(LIMITS | settings))
    return [json.loads((program.parent / f"rank{rank}.json").read_text()) for rank in range(2)]


def test_a_forked_program_sees_what_one_with_an_interpreter_of_its_own_sees(program: Path) -> None:
    forked, own = described(program), described(program, prepared=False)
    for rank in range(2):
        assert forked[rank].pop("imported") and not own[rank].pop("imported")
        for about in (forked[rank], own[rank]):
            about["environment"] = {
                name: value for name, value in about["environment"].items() if name not in (processes.MARK, "TF_CONFIG")
            }
            about.pop("marks"), about.pop("numpy"), about.pop("python")
        assert forked[rank] == own[rank]
    assert forked[0]["main"] and forked[0]["name"] == "__main__" and forked[0]["sum"] == 3


def test_each_forked_program_draws_other_random_numbers(program: Path) -> None:
    ranks = described(program)
    assert ranks[0]["numpy"] != ranks[1]["numpy"]
    assert ranks[0]["python"] != ranks[1]["python"]


def test_the_system_shows_the_marks_of_the_job_that_a_forked_program_belongs_to(program: Path) -> None:
    for rank in described(program):
        shown = dict(line.partition("=")[::2] for line in rank["marks"].split("\0"))
        assert shown[processes.MARK].split() == rank["environment"][processes.MARK].split()


@pytest.mark.parametrize(("act", "code"), [("exit3", 3), ("raise", 1), ("kill", -9)])
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
    before = prepared_interpreter._current._interpreter
    assert before and before.fits(os.environ | OUTPUT | {"OMP_NUM_THREADS": "1", "TF_CONFIG": "{}"})
    assert not before.fits(os.environ | OUTPUT | {"OMP_NUM_THREADS": "2"})
    other = {"TF_ENABLE_ONEDNN_OPTS": "0"}
    launch.alone(program, "describe", environment=other | {"TF_CONFIG": '{"task": {"index": 0}}'}, **LIMITS)
    assert not json.loads((program.parent / "rank0.json").read_text())["imported"]
    assert prepared_interpreter._current._interpreter is before


def test_a_program_is_not_forked_that_sets_a_variable_before_its_imports(program: Path) -> None:
    for line, is_forked in (
        ('os.environ["HOROVOD_CYCLE_TIME"] = "1"', True),
        ('os.environ["OMP_NUM_THREADS"] = "2"', False),
    ):
        program.write_text(f"import os\n{line}\n{PROGRAM}")
        assert [rank["imported"] for rank in described(program)] == [is_forked] * 2


def test_early_variables_leave_out_what_single_ranks_are_told() -> None:
    told = {"TF_CONFIG": "{}", "OMPI_COMM_WORLD_RANK": "1", "HOROVOD_RANK": "1", "PMIX_RANK": "1", "PATH": "/bin"}
    kept = {"LD_PRELOAD": "count.so", "OMP_NUM_THREADS": "1", "TF_USE_LEGACY_KERAS": "1", "ANYTHING": "else"}
    assert early_variables(told | kept) == kept
    own = f"{sys.prefix}/lib"
    assert early_variables({"LD_LIBRARY_PATH": f"{own}:{own}"}) == {}
    assert early_variables({"LD_LIBRARY_PATH": f"{own}:/opt/mpi"}) == {"LD_LIBRARY_PATH": "/opt/mpi"}


@pytest.mark.skipif(not shutil.which("mpirun"), reason="no mpirun on this machine")
def test_ranks_of_mpirun_are_forked_and_one_bound_to_a_processor_is_not(program: Path) -> None:
    launch.mpirun(program, "describe", **LIMITS)
    ranks = [json.loads((program.parent / f"rank{rank}.json").read_text()) for rank in range(2)]
    assert [rank["imported"] for rank in ranks] == [True, True]
    if len(os.sched_getaffinity(0)) > 1:
        # The server may run on all processors, and a library may have looked at their number.
        launch.mpirun(program, "describe", options=["--bind-to", "core"], **LIMITS)
        ranks = [json.loads((program.parent / f"rank{rank}.json").read_text()) for rank in range(2)]
        assert [(len(rank["processors"]), rank["imported"]) for rank in ranks] == [(1, False), (1, False)]


def test_horovodruns_ranks_are_forked_though_it_hands_on_what_its_own_imports_have_set(program: Path) -> None:
    if reason := launch.horovod_problem():
        pytest.skip(reason)
    launch.horovodrun(program, "describe", **LIMITS)
    ranks = [json.loads((program.parent / f"rank{rank}.json").read_text()) for rank in range(2)]
    assert [rank["imported"] for rank in ranks] == [True, True]


def test_without_a_server_the_program_gets_an_interpreter_of_its_own(program: Path, tmp_path: Path) -> None:
    gone = prepared_interpreter.PreparedInterpreter(os.environ)
    gone.close()
    command = gone.command([sys.executable, str(program), "describe"])
    finished = processes.run(command, 300, env=os.environ | {"TF_CONFIG": '{"task": {"index": 0}}'})
    assert finished.status == 0
    assert not json.loads((tmp_path / "rank0.json").read_text())["imported"]


def wait_for_pids(folder: Path) -> list[int]:
    end = time.monotonic() + 300
    while len(files := [file for file in folder.glob("*.pid") if file.read_text()]) < 2:
        assert time.monotonic() < end
        time.sleep(0.05)
    return [int(file.read_text()) for file in files]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_forked_programs_and_their_server_end_with_the_launching_program_and_leave_no_folder(
    program: Path, tmp_path: Path, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = tempfile.TemporaryDirectory(prefix="t", dir="/tmp")  # a socket's path has a limit
    monkeypatch.setenv("TMPDIR", short.name)
    mark = processes.new_mark()
    code = f"from distlab import launch; launch.tensorflow({str(program)!r}, 'pid,connect,wait')"
    parent = processes.start([sys.executable, "-c", code], mark, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        pids = wait_for_pids(tmp_path)
        started = processes.alive(mark)
        parent.send_signal(number)
        _, left = psutil.wait_procs([*started, *(psutil.Process(pid) for pid in pids if psutil.pid_exists(pid))], 60)
        assert left == []
        assert list(Path(short.name).glob("distlab-*")) == []
    finally:
        processes.end(mark)
        parent.wait()
        short.cleanup()


def test_when_the_server_is_killed_the_job_fails_and_nothing_is_left(program: Path, tmp_path: Path) -> None:
    launch.tensorflow(program, "describe", **LIMITS)
    server = prepared_interpreter._current._interpreter._server
    threading.Thread(target=lambda: wait_for_pids(tmp_path) and server.kill()).start()
    with pytest.raises(launch.WorkerFailed) as caught:
        launch.tensorflow(program, "pid,connect,wait", **LIMITS)
    assert caught.value.exit_code == -signal.SIGKILL
    _, left = psutil.wait_procs([psutil.Process(pid) for pid in wait_for_pids(tmp_path) if psutil.pid_exists(pid)], 60)
    assert left == []
    assert launch.tensorflow(program, "describe", **LIMITS).exit_codes == {"worker 0": 0, "worker 1": 0}


@pytest.mark.parametrize("bearer", ["forked_program.py", "rank_process.py"])
def test_a_notice_to_a_process_that_bears_the_programs_name_reaches_the_program(tmp_path: Path, bearer: str) -> None:
    program = tmp_path / "noticed.py"
    program.write_text(
        "import os, signal\nfrom pathlib import Path\nimport tensorflow\nnoticed = []\n"
        "signal.signal(signal.SIGUSR1, lambda *_: noticed.append(1))\n"
        "Path(__file__).with_suffix(f'.{os.getpid()}').touch()\nwhile not noticed:\n    signal.sigtimedwait([], 0.1)\n"
        "print('saved')\n"
    )
    command = [sys.executable, "-m", "course_tools", "launch", "--workers", "2", str(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as job:
        until = time.monotonic() + 300
        while len(list(tmp_path.glob("noticed.[0-9]*"))) < 2 and time.monotonic() < until:
            time.sleep(0.05)
        for process in psutil.Process(job.pid).children(recursive=True):
            words = command_line(process)
            if str(program) in words and any(bearer in word for word in words[:4]):
                process.send_signal(signal.SIGUSR1)
        output, _ = job.communicate(timeout=300)
    assert job.returncode == 0
    assert output.count("saved") == 2

"""Faults that a launched job must end well with: leaked variables, left processes, taken ports, endless output."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from distlab import launch
from distlab.launch.job import free_addresses
from distlab.runtime import processes

pytestmark = [pytest.mark.slow]

# A process in a session of its own, with an empty environment, whose parent has ended.
LEAVES_ONE = """
import os, sys, time
from pathlib import Path

{imports}
file = Path(sys.argv[1])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        script = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
        os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", script, str(file)], {{}})
    os._exit(0)
os.wait()
while not file.exists() or not file.read_text():
    time.sleep(0.01)
"""


def write(folder: Path, text: str) -> Path:
    program = folder / "program.py"
    program.write_text(text)
    return program


def is_alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


@pytest.mark.parametrize(
    ("start", "imports"),
    [
        (launch.alone, ""),
        (lambda *all_of_it, **how: launch.mpirun(*all_of_it, ranks=1, **how), "from mpi4py import MPI"),
        (
            lambda *all_of_it, **how: launch.mpirun(*all_of_it, ranks=2, **how),
            "import tensorflow; from mpi4py import MPI",
        ),
    ],
    ids=["alone", "mpirun", "forked"],
)
def test_a_daemon_with_an_empty_environment_does_not_outlive_the_job(
    tmp_path: Path, start: object, imports: str
) -> None:
    file = tmp_path / "pid"
    start(write(tmp_path, LEAVES_ONE.format(imports=imports)), file, echo=False, seconds=600)
    deadline = time.monotonic() + 60
    while is_alive(int(file.read_text())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(int(file.read_text()))


ALLOCATIONS = {
    "Slurm": {"SLURM_JOB_ID": "7", "SLURM_NODELIST": "gpu[1-2]", "SLURM_JOB_NODELIST": "gpu[1-2]"}
    | {"SLURM_NNODES": "2", "SLURM_TASKS_PER_NODE": "1(x2)", "SLURM_JOB_NUM_NODES": "2"},
    "LSF": {"LSB_JOBID": "5", "LSB_DJOB_HOSTFILE": "/nowhere/hosts"},
    "PBS": {"PBS_JOBID": "5.master", "PBS_NODEFILE": "/nowhere/nodes", "PBS_ENVIRONMENT": "PBS_BATCH"},
}
PRINTS_ITS_RANK = {
    launch.mpirun: "from mpi4py import MPI\nprint(MPI.COMM_WORLD.rank)",
    launch.horovodrun: "import horovod.tensorflow as hvd\nhvd.init()\nprint(hvd.rank())",
}


@pytest.mark.parametrize("allocation", ALLOCATIONS)
@pytest.mark.parametrize("start", PRINTS_ITS_RANK, ids=["mpirun", "horovodrun"])
def test_the_allocation_of_a_scheduler_does_not_reach_a_job_on_this_machine(
    start: Callable[..., launch.LaunchedRun], allocation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if start is launch.horovodrun:
        launch.require_horovod()
    for name, value in ALLOCATIONS[allocation].items():
        monkeypatch.setenv(name, value)
    run = start(write(tmp_path, PRINTS_ITS_RANK[start]), ranks=2, echo=False, seconds=600)
    assert {name: text.split() for name, text in run.output.items() if name.startswith("rank")} == {
        "rank 0": ["0"],
        "rank 1": ["1"],
    }


def test_a_dead_proxy_in_the_shell_does_not_stand_between_workers(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    program = root / "notebooks/programs/07_multi_worker/minimal.py"
    run = launch.tensorflow(program, workers=2, echo=False, seconds=600, start_seconds=300)
    assert run.exit_codes == {"worker 0": 0, "worker 1": 0}


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root gives a namespace another name")
def test_a_machine_whose_name_has_no_address_is_told_before_horovod_starts(tmp_path: Path) -> None:
    launch.require_horovod()
    program = write(tmp_path, PRINTS_ITS_RANK[launch.horovodrun])
    command = (
        f"hostname no-such-name.invalid && '{sys.executable}' -m course_tools launch --with horovodrun '{program}'"
    )
    finished = processes.run(["unshare", "--uts", "sh", "-c", command], 600)
    assert finished.status == 1, finished.output
    assert finished.output.splitlines()[-1] == (
        "The name of this machine, no-such-name.invalid, has no address, by which Horovod's ranks find each other; add "
        "the line '127.0.1.1 no-such-name.invalid' to /etc/hosts."
    )


def test_a_daemon_does_not_outlive_a_job_that_fails(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    program = write(tmp_path, LEAVES_ONE.format(imports="") + "os.kill(os.getpid(), 9)")
    with pytest.raises(launch.WorkerFailed) as failure:
        launch.alone(program, file, echo=False)
    assert failure.value.exit_code == -9
    assert not is_alive(int(file.read_text()))


LEAKED = {
    "PMI_RANK": "0",
    "HOROVOD_RANK": "5",
    "HOROVOD_SIZE": "9",
    "HOROVOD_LOCAL_RANK": "5",
    "HOROVOD_CONTROLLER": "gloo",
    "HOROVOD_CPU_OPERATIONS": "gloo",
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_SIZE": "9",
    "RANK": "7",
    "WORLD_SIZE": "9",
    "TF_CONFIG": "garbage",
}


def test_ranks_of_mpirun_are_told_apart_whatever_another_launcher_has_left_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in LEAKED.items():
        monkeypatch.setenv(name, value)
    text = "import os; from mpi4py.MPI import COMM_WORLD as all; print(all.rank, all.size, 'TF_CONFIG' in os.environ)"
    run = launch.mpirun(write(tmp_path, text), ranks=2, echo=False)
    assert [run.output[f"rank {rank}"] for rank in range(2)] == ["0 2 False", "1 2 False"]


@pytest.mark.parametrize("starter", ["horovodrun", "mpirun"])
def test_ranks_of_horovod_are_told_apart_whatever_another_launcher_has_left_in_the_environment(
    starter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch.horovod_problem() and pytest.skip("Horovod is not installed here")
    for name, value in LEAKED.items():
        monkeypatch.setenv(name, value)
    text = "import horovod.tensorflow as hvd; hvd.init(); print(hvd.rank(), hvd.size())"
    run = getattr(launch, starter)(write(tmp_path, text), ranks=2, echo=False)
    assert [run.output[f"rank {rank}"].splitlines()[-1] for rank in range(2)] == ["0 2", "1 2"]


def test_what_the_user_sets_for_the_job_is_kept(tmp_path: Path) -> None:
    program = write(tmp_path, "import os; print(os.environ['TF_CONFIG'])")
    run = launch.alone(program, echo=False, environment={"TF_CONFIG": "mine"})
    assert run.output["program"] == "mine"


def test_a_port_of_the_programs_own_does_not_start_the_job_again(tmp_path: Path) -> None:
    text = """
import json, os, socket, sys, time
task = json.loads(os.environ["TF_CONFIG"])
host, port = task["cluster"]["worker"][task["task"]["index"]].split(":")
listener = socket.create_server((host, int(port)))
with open(sys.argv[1], "a") as file:
    file.write("started\\n")
while len(open(sys.argv[1]).readlines()) < 2:
    time.sleep(0.1)
time.sleep(3)  # the launcher has seen that all have connected
sys.exit("TensorBoard: Address already in use")
"""
    notes = tmp_path / "notes"
    with pytest.raises(launch.WorkerFailed, match="Address already in use"):
        launch.tensorflow(write(tmp_path, text), notes, workers=2, echo=False)
    assert notes.read_text().splitlines() == ["started"] * 2


def test_a_program_that_sets_tf_config_itself_is_told_so_and_runs_once(tmp_path: Path) -> None:
    """Both workers take the same place; the second cannot open its port, which is not the launcher's."""
    text = """
import json, os, sys
with open(sys.argv[1], "a") as file:
    file.write("started\\n")
cluster = {{"worker": ["localhost:{0}", "localhost:{1}"]}}
os.environ["TF_CONFIG"] = json.dumps({{"cluster": cluster, "task": {{"type": "worker", "index": 0}}}})
import distlab
import tensorflow as tf
tf.distribute.MultiWorkerMirroredStrategy()
"""
    notes, ports = tmp_path / "notes", [address.split(":")[1] for address in free_addresses(2)]
    sentence = f"It could not open port {ports[0]}, which .* the program sets TF_CONFIG itself; remove that."
    with pytest.raises(launch.WorkerFailed, match=sentence):
        launch.tensorflow(write(tmp_path, text.format(*ports)), notes, workers=2, echo=False, seconds=600)
    assert notes.read_text().splitlines() == ["started"] * 2


def test_a_rank_that_leaves_without_mpi_finalize_is_named(tmp_path: Path) -> None:
    """mpirun ends the others by a signal, which is not their fault."""
    text = """
import os
from mpi4py.MPI import COMM_WORLD as all
all.Barrier()
if all.rank == 1:
    os._exit(0)
all.Barrier()
"""
    with pytest.raises(launch.WorkerFailed) as failure:
        launch.mpirun(write(tmp_path, text), ranks=3, echo=False)
    assert (failure.value.rank, failure.value.exit_code) == ("rank 1", 0)
    assert str(failure.value).startswith("rank 1 ended without MPI_Finalize, exit code 0; the job was ended.")


def test_of_output_without_end_the_last_lines_are_kept_in_little_memory(tmp_path: Path) -> None:
    program = write(tmp_path, "number = 0\nwhile True:\n    number += 1\n    print(number, 'x' * 200)\n")
    with pytest.raises(launch.DeadlinePassed) as failure:
        launch.alone(program, echo=False, seconds=8)
    output = failure.value.run.output["program"]
    assert len(output) < 5_000_000
    assert "lines before these are left out)" in output.splitlines()[0]


def test_a_line_without_an_end_comes_in_pieces(tmp_path: Path) -> None:
    program = write(tmp_path, "print('x' * 200_000)")
    pieces = launch.alone(program, echo=False).output["program"].splitlines()
    assert sum(map(len, pieces)) == 200_000
    assert max(map(len, pieces)) < 70_000


def test_a_long_temporary_folder_does_not_matter(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    program = write(tmp_path, "from mpi4py import MPI; print(MPI.COMM_WORLD.rank)")
    starter = (
        "from distlab import launch; import sys; print(launch.mpirun(sys.argv[1], ranks=2, echo=False).exit_codes)"
    )
    options = {"env": {**os.environ, "TMPDIR": str(folder)}}
    finished = processes.run([sys.executable, "-c", starter, str(program)], 600, **options)
    assert "'rank 0': 0, 'rank 1': 0" in finished.output, finished.output


@pytest.mark.parametrize(
    "result",
    ["file.write_text('{\"half\": ')", "file.write_bytes(b'\\xff\\xfe')", "file.mkdir()", "file.touch()"],
    ids=["half-written", "no text", "a folder", "empty"],
)
def test_a_result_that_is_no_json_ends_in_a_sentence(tmp_path: Path, result: str) -> None:
    program = write(tmp_path, f"import sys; from pathlib import Path; file = Path(sys.argv[2]); {result}")
    with pytest.raises(launch.LaunchError, match=r"finished without an error, but its result is not a JSON file \("):
        launch.alone(program, echo=False, result=True)


@pytest.mark.parametrize("seconds", [float("nan"), 0, -1])
def test_a_limit_that_makes_no_sense_is_refused(tmp_path: Path, seconds: float) -> None:
    with pytest.raises(launch.LaunchError, match="makes no sense: it must be more than 0"):
        launch.alone(write(tmp_path, ""), echo=False, seconds=seconds)


def test_more_processes_than_a_machine_has_room_for_are_refused(tmp_path: Path) -> None:
    with pytest.raises(launch.LaunchError, match=r"workers=30000 is too many for one machine: 1,024 are the most"):
        launch.tensorflow(write(tmp_path, ""), workers=30_000)


def test_a_launcher_that_is_killed_leaves_no_file(tmp_path: Path) -> None:
    program = write(tmp_path, "import time; print('up', flush=True); time.sleep(600)")
    folder = tmp_path / "temporary"
    folder.mkdir()
    command = [sys.executable, "-m", "course_tools", "launch", "--with", "mpirun", str(program)]
    variables = {**os.environ, "TMPDIR": str(folder)}
    launcher = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True)
    while "up" not in launcher.stdout.readline():
        assert launcher.poll() is None
    launcher.kill()
    launcher.communicate()
    deadline = time.monotonic() + 60
    while list(folder.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("starter", [[], ["--with", "mpirun"]], ids=["TF_CONFIG", "mpirun"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_launcher_says_that_all_processes_are_ended_when_they_are(
    tmp_path: Path, starter: list[str], number: signal.Signals
) -> None:
    """Also those that ignore SIGTERM, and a daemon with an empty environment."""
    file = tmp_path / "pid"
    text = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + LEAVES_ONE.format(imports="")
    program = write(tmp_path, text + "print('daemon', file.read_text(), os.getpid(), flush=True)\ntime.sleep(600)\n")
    command = [
        sys.executable,
        "-m",
        "course_tools.__main__",
        "launch",
        "--workers",
        "1",
        *starter,
        str(program),
        "--",
        str(file),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as launcher:
        assert launcher.stdout and launcher.stderr
        line = next(line for line in launcher.stdout if "daemon" in line)
        pids = [int(word) for word in line.split()[-2:]]
        launcher.send_signal(number)
        next(line for line in launcher.stderr if "every process of the job is ended" in line)
        assert not any(map(is_alive, pids))
        assert launcher.wait(300) == 128 + number


LAUNCHES_AND_TELLS_THE_TIMES = """
import sys, time
from distlab import launch
begin = time.monotonic()
run = launch.tensorflow(sys.argv[1], sys.argv[2], workers=1)
print("times", begin, time.monotonic(), run.seconds)
"""


def test_the_time_in_which_the_launcher_is_stopped_counts_for_no_limit(tmp_path: Path) -> None:
    go = tmp_path / "go"
    waits = "while not pathlib.Path(sys.argv[1]).exists():\n    time.sleep(0.01)\n"
    program = write(tmp_path, f"import pathlib, sys, time\nprint('runs', flush=True)\n{waits}")
    command = [sys.executable, "-u", "-c", LAUNCHES_AND_TELLS_THE_TIMES, str(program), str(go)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as launcher:
        assert launcher.stdout and any("runs" in line for line in launcher.stdout)
        stopped = time.monotonic()
        launcher.send_signal(signal.SIGSTOP)
        time.sleep(4)
        launcher.send_signal(signal.SIGCONT)
        went_on = time.monotonic()
        go.touch()
        output = launcher.communicate(timeout=300)[0]
    begin, end, counted = map(float, output.partition("times")[2].split())
    assert counted < (stopped - begin) + (end - went_on) + 2

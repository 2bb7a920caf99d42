"""The ways of starting: what a job gives, with real processes of a program that does what the test tells it."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from distlab import cluster_spec, devices, launch
from distlab.launch import starters
from distlab.runtime import environment
from tests.distlab.launch.launched_program import Launched

environment.apply()  # puts this environment's mpirun on the path

LIMITS = {"seconds": 600, "start_seconds": 300, "echo": False}
needs_mpi = pytest.mark.skipif(not shutil.which("mpirun"), reason="no mpirun on this machine")
needs_horovod = pytest.mark.skipif(bool(launch.horovod_problem()), reason=str(launch.horovod_problem()))


def test_each_worker_runs_the_program_with_a_task_of_one_valid_cluster(launched: Launched) -> None:
    run = launch.tensorflow(launched.program, "all=show:TF_CONFIG", workers=3, **LIMITS)
    texts = [run.output[f"worker {index}"].removeprefix("TF_CONFIG is ") for index in range(3)]
    specs = cluster_spec.check_all(texts)
    assert [(spec.task_type, spec.index) for spec in specs] == [("worker", 0), ("worker", 1), ("worker", 2)]
    assert run.exit_codes == {"worker 0": 0, "worker 1": 0, "worker 2": 0}


def test_output_is_printed_with_the_rank_in_front_and_returned_by_rank(
    launched: Launched, capsys: pytest.CaptureFixture[str]
) -> None:
    run = launch.tensorflow(launched.program, "0=notes,lines2,errors", "1=bytes,partial", **LIMITS | {"echo": True})
    assert run.output == {
        "worker 0": "line 0 of worker 0\nline 1 of worker 0\nto standard error",
        "worker 1": "\ufffd\ufffd text\nno newline at the end",
    }
    printed = capsys.readouterr().out.splitlines()
    for name, text in run.output.items():
        assert [line for line in printed if line.startswith(f"[{name}]")] == [
            f"[{name}] {line}" for line in text.splitlines()
        ]


@pytest.mark.slow
def test_output_comes_while_the_job_runs(launched: Launched) -> None:
    """The program waits for ten minutes after its line: only a line that is shown at once ends this test."""
    code = f"from distlab import launch; launch.tensorflow({str(launched.program)!r}, 'all=say:early,listen,wait')"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        try:
            assert any(line == "[worker 1] early\n" for line in parent.stdout)
        finally:
            parent.terminate()
    assert launched.gone_within(60)


@pytest.mark.slow
def test_the_printed_shell_commands_do_the_same(
    launched: Launched, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(launched.folder)
    run = launch.tensorflow(launched.program, "0=lines2", "1=say:it's $HOME", **LIMITS | {"echo": True})
    commands = "".join(f"{line}\n" for line in capsys.readouterr().out.splitlines() if not line.startswith("["))
    # Both write to one pipe: only a buffer keeps their lines whole.
    variables = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONUNBUFFERED": ""}
    by_hand = subprocess.run(
        ["bash", "-c", f"{commands}\nwait"], env=variables, capture_output=True, text=True, timeout=300
    )
    assert sorted(by_hand.stdout.splitlines()) == sorted("\n".join(run.output.values()).splitlines())


def test_a_program_that_writes_no_result_is_named(launched: Launched) -> None:
    with pytest.raises(launch.LaunchError, match=r"program\.py finished without an error but wrote no result file"):
        launch.alone(launched.program, "all=lines1", result=True, **LIMITS)


@pytest.mark.slow
def test_workers_share_the_cores_unless_the_user_has_set_their_threads(
    launched: Launched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "cores", lambda: 7)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "5")
    shown = "all=show:OMP_NUM_THREADS,show:TF_NUM_INTRAOP_THREADS"
    run = launch.tensorflow(launched.program, shown, workers=3, **LIMITS)
    assert set(run.output.values()) == {"OMP_NUM_THREADS is 2\nTF_NUM_INTRAOP_THREADS is 5"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gpus", "visible", "expected"),
    [(4, None, ["0", "1"]), (4, "3,1,2", ["3", "1"]), (1, None, ["-1", "-1"])],
)
def test_each_worker_gets_a_gpu_of_its_own_or_none(
    launched: Launched, monkeypatch: pytest.MonkeyPatch, gpus: int, visible: str | None, expected: list[str]
) -> None:
    monkeypatch.setattr(devices, "gpu_names", lambda: ["a GPU"] * gpus)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    run = launch.tensorflow(launched.program, "all=show:CUDA_VISIBLE_DEVICES", **LIMITS)
    assert list(run.output.values()) == [f"CUDA_VISIBLE_DEVICES is {name}" for name in expected]


@pytest.mark.slow
def test_with_parameter_servers_the_job_is_over_when_the_chief_ends(launched: Launched) -> None:
    run = launch.tensorflow(
        launched.program,
        *("chief=listen,say:trained", "ps=listen,wait", "0=listen,wait", "1=listen,wait"),
        **{"workers": 2, "parameter_servers": 2, **LIMITS},
    )
    assert run.exit_codes == dict.fromkeys(["worker 0", "worker 1", "ps 0", "ps 1"]) | {"chief": 0}
    assert run.output["chief"] == "trained"
    assert launched.left() == []


@pytest.fixture
def first_port_is_taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Another program listens at the first address of the first job; the number of addresses of each job."""
    free_addresses, calls = starters.free_addresses, []
    holder = socket.create_server(("127.0.0.1", 0))

    def first_time_taken(count: int) -> list[str]:
        calls.append(count)
        taken = [f"127.0.0.1:{holder.getsockname()[1]}"] if len(calls) == 1 else []
        return [*taken, *free_addresses(count - len(taken))]

    monkeypatch.setattr(starters, "free_addresses", first_time_taken)
    yield calls
    holder.close()


TWO_WORKERS = """
import distlab
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    variable = tf.Variable(1.0)

@tf.function
def total_of_ranks():
    return strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("sum", variable + 1.0))

total = total_of_ranks()
print(f"sum {float(strategy.experimental_local_results(total)[0]):.0f}")
"""


@pytest.mark.slow
def test_tensorflow_at_a_taken_port_is_started_again(
    tmp_path: Path,
    first_port_is_taken: list[int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # a proxy in the shell must not stand between workers
    program = tmp_path / "two_workers.py"
    program.write_text(TWO_WORKERS)
    run = launch.tensorflow(program, **LIMITS | {"echo": True})
    assert run.output == {"worker 0": "sum 4", "worker 1": "sum 4"}
    assert first_port_is_taken == [2, 2]
    assert "took one of the ports" in capsys.readouterr().out


@pytest.mark.slow
def test_one_process_gives_its_output_and_its_result(launched: Launched, capsys: pytest.CaptureFixture[str]) -> None:
    settings = LIMITS | {"environment": {"COLOUR": "blue", "TF_CONFIG": '{"task": {}}'}, "echo": True}
    run = launch.alone(launched.program, "--result", "{result}", "all=show:COLOUR,child,result", **settings)
    assert run.output == {"program": "COLOUR is blue"}
    assert run.exit_codes == {"program": 0}
    assert run.result == {"loss": 0.5, "from": ""}
    assert capsys.readouterr().out.startswith("COLOUR=blue TF_CONFIG=")
    assert launched.left() == []


@pytest.mark.slow
@needs_mpi
def test_mpirun_gives_output_by_rank_and_the_result(
    launched: Launched, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(launched.folder / ("x" * 120)))  # too long for a socket's path
    run = launch.mpirun(
        launched.program, "all=mpi,lines30", "0=result", ranks=3, result=True, **(LIMITS | {"echo": True})
    )
    for rank in range(3):
        assert run.output[f"rank {rank}"] == "\n".join(f"line {line} of worker {rank}" for line in range(30))
    assert {run.exit_codes[f"rank {rank}"] for rank in range(3)} == {0}
    assert run.result == {"loss": 0.5, "from": "0"}
    printed = capsys.readouterr().out
    assert " -np 3 python -m mpi4py " in printed.replace(" \\\n   ", "")
    assert "[rank 2] line 29 of worker 2" in printed


# What another launcher, or the scheduler of a cluster, may have left in the environment.
LEAKED = {"PMI_RANK": "0", "HOROVOD_RANK": "5", "HOROVOD_SIZE": "9", "HOROVOD_CONTROLLER": "gloo", "TF_CONFIG": "x"}
LEAKED |= {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "9", "RANK": "7", "WORLD_SIZE": "9"}
ALLOCATION = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "gpu[1-2]", "SLURM_NODELIST": "gpu[1-2]", "SLURM_NNODES": "2"}
ALLOCATION |= {"SLURM_TASKS_PER_NODE": "1(x2)", "LSB_DJOB_HOSTFILE": "/nowhere", "PBS_NODEFILE": "/nowhere"}


@pytest.mark.slow
@needs_horovod
def test_ranks_are_those_of_their_own_job_whatever_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (LEAKED | ALLOCATION).items():
        monkeypatch.setenv(name, value)
    program = tmp_path / "program.py"
    program.write_text("import horovod.tensorflow as hvd; hvd.init(); print(hvd.rank(), hvd.size())")
    run = launch.horovodrun(program, ranks=2, **LIMITS)
    assert [run.output[f"rank {rank}"].splitlines()[-1] for rank in range(2)] == ["0 2", "1 2"]


def test_a_missing_starter_is_named(launched: Launched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(launched.folder))
    with pytest.raises(launch.LaunchError, match="no torchrun in this environment: run `make setup-frameworks`"):
        launch.torchrun(launched.program)


MXNET = """
import json, os, socket, sys, time
from pathlib import Path

place = {name: value for name, value in os.environ.items() if name.startswith("DMLC_")}
file = Path(__file__).with_name(f"{os.getpid()}.partial")
file.write_text(json.dumps(place))
file.rename(file.with_suffix(".json"))
role, address = place["DMLC_ROLE"], (place["DMLC_PS_ROOT_URI"], int(place["DMLC_PS_ROOT_PORT"]))
if role == "scheduler":
    holder = socket.create_server(address)
if role != "worker":
    time.sleep(600)
# The launcher ends the rest once the workers have ended: wait until everybody has said where it is.
while len(list(file.parent.glob("*.json"))) < 1 + int(place["DMLC_NUM_SERVER"]) + int(place["DMLC_NUM_WORKER"]):
    time.sleep(0.05)
"""


@pytest.mark.slow
def test_of_mxnet_every_process_has_its_role_and_all_the_same_address(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(MXNET)
    run = launch.mxnet(program, workers=3, servers=2, **LIMITS)
    assert [name for name, code in run.exit_codes.items() if code == 0] == ["worker 0", "worker 1", "worker 2"]
    places = [json.loads(file.read_text()) for file in tmp_path.glob("*.json")]
    roles = sorted(place.pop("DMLC_ROLE") for place in places)
    assert roles == ["scheduler", "server", "server", "worker", "worker", "worker"]
    assert all(place == places[0] for place in places)
    assert (places[0]["DMLC_NUM_WORKER"], places[0]["DMLC_NUM_SERVER"]) == ("3", "2")

"""The launcher starts a scheduler, servers and workers for MXNet; here programs of a few lines play their parts."""

import json
import sys
from pathlib import Path

import pytest

from distlab import launch
from distlab.runtime import processes

PROGRAM = """
import json, os, socket, sys, time
from pathlib import Path

place = {name: value for name, value in os.environ.items() if name.startswith("DMLC_")}
file = Path(sys.argv[1], f"{os.getpid()}.partial")
file.write_text(json.dumps(place))
file.rename(file.with_suffix(".json"))
role, address = place["DMLC_ROLE"], (place["DMLC_PS_ROOT_URI"], int(place["DMLC_PS_ROOT_PORT"]))
if role == "scheduler":
    if "port taken" in sys.argv:
        sys.exit("MXNetError: Check failed: my_node_.port != -1 (-1 vs. -1) : bind failed")
    if "late" in sys.argv:
        time.sleep(600)
    holder = socket.create_server(address)
if role != "worker" or "hang" in sys.argv:
    time.sleep(600)
# The launcher ends the rest once the workers have ended: wait until everybody has said where it is.
count = 1 + int(place["DMLC_NUM_SERVER"]) + int(place["DMLC_NUM_WORKER"])
while len(list(file.parent.glob("*.json"))) < count:
    time.sleep(0.05)
if "fail" in sys.argv:
    sys.exit("the shapes do not fit")
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "places").mkdir()
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return file


def places(program: Path) -> list[dict]:
    return [json.loads(file.read_text()) for file in (program.parent / "places").glob("*.json")]


@pytest.mark.slow
def test_every_process_has_its_role_and_all_the_same_address(program: Path) -> None:
    run = launch.mxnet(program, program.parent / "places", workers=3, servers=2, seconds=300, echo=False)
    assert {name: run.exit_codes[name] for name in run.exit_codes if name.startswith("worker")} == dict.fromkeys(
        ("worker 0", "worker 1", "worker 2"), 0
    )
    found = places(program)
    roles = sorted(place.pop("DMLC_ROLE") for place in found)
    assert roles == ["scheduler", "server", "server", "worker", "worker", "worker"]
    assert all(place == found[0] for place in found)
    assert (found[0]["DMLC_NUM_WORKER"], found[0]["DMLC_NUM_SERVER"]) == ("3", "2")


@pytest.mark.slow
def test_a_worker_that_fails_ends_the_job(program: Path) -> None:
    with pytest.raises(launch.WorkerFailed, match="the shapes do not fit") as failure:
        launch.mxnet(program, program.parent / "places", "fail", workers=1, seconds=300, echo=False)
    assert failure.value.rank == "worker 0"


@pytest.mark.slow
def test_a_job_that_hangs_ends_at_its_deadline(program: Path) -> None:
    with pytest.raises(launch.DeadlinePassed, match="scheduler, server 0, worker 0, worker 1"):
        launch.mxnet(program, program.parent / "places", "hang", seconds=1, echo=False)


@pytest.mark.slow
def test_a_scheduler_that_does_not_listen_is_named(program: Path) -> None:
    with pytest.raises(launch.WorkerMissing) as missing:
        launch.mxnet(program, program.parent / "places", "late", "hang", start_seconds=1, echo=False)
    assert missing.value.ranks == ["scheduler"]


@pytest.mark.slow
def test_a_taken_port_is_replaced(program: Path) -> None:
    with pytest.raises(launch.WorkerFailed, match="bind failed"):
        launch.mxnet(program, program.parent / "places", "port taken", "hang", seconds=300, echo=False)
    assert len({place["DMLC_PS_ROOT_PORT"] for place in places(program)}) == 3  # it tried three times


@pytest.mark.parametrize("counts", [{"workers": 0}, {"servers": 0}])
def test_counts_that_make_no_sense_are_refused(program: Path, counts: dict) -> None:
    with pytest.raises(launch.LaunchError, match="must be 1 or more"):
        launch.mxnet(program, program.parent / "places", **counts, echo=False)


@pytest.mark.slow
def test_the_command_line_takes_servers_and_an_interpreter(program: Path) -> None:
    options = ["--with", "mxnet", "--workers", "1", "--servers", "2", "--python", sys.executable, "--seconds", "300"]
    command = [sys.executable, "-m", "course_tools", "launch", *options, str(program), "--"]
    finished = processes.run([*command, str(program.parent / "places")], seconds=600)
    assert finished.status == 0, finished.output
    roles = sorted(place["DMLC_ROLE"] for place in places(program))
    assert roles == ["scheduler", "server", "server", "worker"]

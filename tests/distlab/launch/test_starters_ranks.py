"""The launcher with mpirun, horovodrun and torchrun: the same promises for ranks that another program starts."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from distlab import launch
from tests.distlab.launch.launched_program import Launched

LIMITS = {"seconds": 600, "start_seconds": 300, "echo": False}

needs_mpi = pytest.mark.skipif(not shutil.which("mpirun"), reason="no mpirun on this machine")
needs_horovod = pytest.mark.skipif(bool(launch.horovod_problem()), reason=str(launch.horovod_problem()))

# Starts ranks as torchrun and Horovod Elastic do, so far as the launcher can tell: the one needs PyTorch, and the other
# goes on when a rank fails.
STARTER = """\
#!{python}
import os, subprocess, sys
name = os.path.basename(sys.argv[0])
count, option = {{"torchrun": ("--nproc-per-node", "RANK"), "horovodrun": ("-np", "HOROVOD_RANK")}}[name]
place = sys.argv.index(count) + 1
command = sys.argv[next(at for at, word in enumerate(sys.argv) if os.path.basename(word).startswith("python")) :]
ranks = [
    subprocess.Popen(command, env=os.environ | {{option: str(rank), "LOCAL_RANK": str(rank)}})
    for rank in range(int(sys.argv[place]))
]
failed = any([rank.wait() for rank in ranks])
sys.exit(failed and name == "torchrun")
"""


@pytest.fixture
def starters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins for torchrun and horovodrun on the search path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("torchrun", "horovodrun"):
        (folder / name).write_text(STARTER.format(python=sys.executable))
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.mark.slow
@needs_mpi
def test_mpirun_gives_output_by_rank_and_the_result(launched: Launched, capsys: pytest.CaptureFixture[str]) -> None:
    run = launch.mpirun(
        launched.program, "all=mpi,lines30", "0=result", ranks=3, result=True, **(LIMITS | {"echo": True})
    )
    for rank in range(3):
        assert run.output[f"rank {rank}"] == "\n".join(f"line {line} of worker {rank}" for line in range(30))
    assert {run.exit_codes[f"rank {rank}"] for rank in range(3)} == {0}
    assert run.result == {"loss": 0.5, "from": "0"}
    printed = capsys.readouterr().out
    assert " -np 3 python -m mpi4py " in printed
    assert "[rank 2] line 29 of worker 2" in printed


@pytest.mark.slow
@needs_mpi
@pytest.mark.parametrize(("act", "code"), [("exit3", 3), ("raise", 1), ("kill", -9)])
def test_a_rank_that_fails_after_it_connected_ends_the_job(launched: Launched, act: str, code: int) -> None:
    """Without help rank 1 would wait in MPI's finalisation for rank 0, which waits for rank 1."""
    with pytest.raises(launch.WorkerFailed) as caught:
        launch.mpirun(launched.program, f"1=mpi,lines25,{act}", "0=mpi,mpi", **LIMITS)
    assert (caught.value.rank, caught.value.exit_code) == ("rank 1", code)
    assert "line 24 of worker 1" in str(caught.value)
    assert "line 2 of worker 1" not in str(caught.value)
    assert "mpi4py" not in str(caught.value) and "runpy" not in str(caught.value)
    assert launched.left() == []


@pytest.mark.slow
@needs_mpi
def test_a_rank_that_never_initialises_mpi_is_named(launched: Launched) -> None:
    with pytest.raises(launch.WorkerMissing) as caught:
        launch.mpirun(launched.program, "0=mpi", "1=say:elsewhere,wait", **(LIMITS | {"start_seconds": 15}))
    assert caught.value.ranks == ["rank 1"]
    assert "rank 1 (process " in str(caught.value) and "127.0.0.1 has no connection" in str(caught.value)
    assert "elsewhere" in str(caught.value)
    assert launched.left() == []


@pytest.mark.slow
@needs_mpi
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill -9"])
def test_a_launching_program_that_is_ended_leaves_no_rank(launched: Launched, number: signal.Signals) -> None:
    code = f"from distlab import launch; launch.mpirun({str(launched.program)!r}, '0=stubborn,child,wait', '1=wait')"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, "-c", code], env=dict(os.environ), **quiet) as parent:
        launched.wait_for(3)
        parent.send_signal(number)
        assert launched.gone_within(60)


@pytest.mark.slow
def test_torchrun_gives_ranks_their_numbers(
    launched: Launched, starters: None, capsys: pytest.CaptureFixture[str]
) -> None:
    acts = ["all=show:LOCAL_RANK", "0=result"]
    run = launch.torchrun(launched.program, *acts, result=True, **(LIMITS | {"echo": True}))
    assert run.output["rank 1"] == "LOCAL_RANK is 1"
    assert run.result["from"] == "0"
    assert "torchrun --standalone --no-python --nproc-per-node 2 python " in capsys.readouterr().out


@pytest.mark.slow
def test_a_rank_that_fails_under_torchrun_ends_the_others(launched: Launched, starters: None) -> None:
    with pytest.raises(launch.WorkerFailed, match="rank 1 was killed by signal 9"):
        launch.torchrun(launched.program, "0=wait", "1=kill", **LIMITS)
    assert launched.left() == []


@pytest.mark.slow
def test_another_environments_python_and_its_torchrun_are_used(launched: Launched, starters: None) -> None:
    other = launched.folder / "other environment"
    other.mkdir()
    python = other / "python"
    python.write_text(f'#!/bin/sh\nOTHER=yes exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (launched.folder / "bin" / "torchrun").rename(other / "torchrun")
    run = launch.torchrun(launched.program, "all=show:OTHER", python=python, **LIMITS)
    assert run.output["rank 0"] == run.output["rank 1"] == "OTHER is yes"


def test_a_missing_starter_is_named(launched: Launched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(launched.folder))
    with pytest.raises(launch.LaunchError, match="no torchrun in this environment: run `make setup-frameworks`"):
        launch.torchrun(launched.program)
    with pytest.raises(launch.LaunchError, match="no mpirun in this environment; `make doctor` says"):
        launch.mpirun(launched.program)
    with pytest.raises(launch.LaunchError, match="ranks=0 makes no sense"):
        launch.mpirun(launched.program, ranks=0)


@needs_horovod
@pytest.mark.slow
def test_horovodrun_gives_output_by_rank_and_names_the_rank_that_fails(launched: Launched) -> None:
    with pytest.raises(launch.WorkerFailed) as caught:
        launch.horovodrun(launched.program, "all=show:HOROVOD_SIZE", "0=wait", "1=exit3", **LIMITS)
    assert (caught.value.rank, caught.value.exit_code) == ("rank 1", 3)
    assert caught.value.run.output["rank 0"] == caught.value.run.output["rank 1"] == "HOROVOD_SIZE is 2"
    assert launched.left() == []


@pytest.mark.slow
def test_in_an_elastic_job_only_the_starters_exit_code_counts(
    launched: Launched, starters: None, tmp_path: Path
) -> None:
    hosts = tmp_path / "hosts.sh"
    hosts.write_text("#!/bin/sh\necho localhost:2\n")
    hosts.chmod(0o755)
    options = ["--min-np", "1", "--host-discovery-script", str(hosts)]
    run = launch.horovodrun(launched.program, "1=exit1", "0=say:done", options=options, **LIMITS)
    assert run.exit_codes == {"rank 0": 0, "rank 1": 1, "horovodrun": 0}
    assert run.output["rank 0"] == "done"

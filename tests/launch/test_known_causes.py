"""A launcher's error ends with the cause where the job's output has a known sign of it."""

from pathlib import Path

import pytest

from distlab import launch
from distlab.launch import known_causes
from distlab.launch.horovod import horovod_problem


def test_srun_without_a_controller_is_told_where_slurm_is() -> None:
    assert "distlab cluster up" in known_causes.of_no_start(
        "srun", "Unable to contact slurm controller (connect failure)"
    )
    assert known_causes.of_no_start("srun", "Invalid partition name specified") == ""
    assert known_causes.of_no_start("mpirun", "Connection refused") == ""


@pytest.mark.parametrize("statement", ["input()", "breakpoint()"])
def test_a_program_that_wants_to_be_typed_to_is_told_that_nobody_can(statement: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"{statement}\nprint('went on')\n")
    with pytest.raises(launch.WorkerFailed, match=r"without input\(\) and breakpoint\(\)"):
        launch.alone(program, echo=False)


def test_a_notebook_s_wish_for_colours_does_not_hide_the_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # Jupyter sets it, and Python 3.13 then colours tracebacks
    program = tmp_path / "program.py"
    program.write_text("input()\n")
    with pytest.raises(launch.WorkerFailed, match="have no standard input") as failure:
        launch.alone(program, echo=False)
    assert "\x1b" not in str(failure.value)


@pytest.mark.long
@pytest.mark.fault
def test_ranks_that_wait_for_one_that_left_early_are_told_where_it_is(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("from mpi4py.MPI import COMM_WORLD as c\nif c.rank == 0:\n    c.allreduce(1)\n")
    with pytest.raises(launch.DeadlinePassed, match=r"running: rank 0, rank 1.* waits for the others in MPI_Finalize"):
        launch.mpirun(program, echo=False, seconds=6)


@pytest.mark.long
@pytest.mark.fault
@pytest.mark.skipif(horovod_problem() is not None, reason="needs Horovod")
def test_an_elastic_job_without_enough_slots_is_told_to_look_at_its_script(tmp_path: Path) -> None:
    script, program = tmp_path / "hosts.sh", tmp_path / "program.py"
    script.write_text("#!/bin/sh\necho localhost:1\n")
    script.chmod(0o755)
    program.touch()
    options = ["--gloo", "--min-np", "2", "--host-discovery-script", str(script), "--elastic-timeout", "3"]
    with pytest.raises(launch.WorkerFailed, match="The host-discovery script offered fewer slots than the job needs"):
        launch.horovodrun(program, options=options, echo=False, seconds=60)

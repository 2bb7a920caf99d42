"""A launcher's error ends with the cause where the job's output has a known sign of it."""

import re
import shutil
import socket
import sys
from pathlib import Path

import pytest

from course_tools.setup import doctor
from distlab import launch
from distlab.launch import known_causes
from distlab.launch.horovod import horovod_problem
from distlab.runtime import environment, processes
from tests import small_disks

needs_packaged_mpi = pytest.mark.skipif(
    not shutil.which("mpirun") or "OPAL_PREFIX" not in environment.variables(), reason="needs the packaged Open MPI"
)
ADD_UP = "from mpi4py.MPI import COMM_WORLD as c\nprint(c.allreduce(1))\n"


def test_srun_without_a_controller_is_told_where_slurm_is() -> None:
    hint = known_causes.of_no_start("srun", "Unable to contact slurm controller (connect failure)")
    assert "'distlab cluster run --' in front" in hint and "distlab cluster up" in hint
    assert known_causes.of_no_start("srun", "Invalid partition name specified") == ""
    assert known_causes.of_no_start("mpirun", "Connection refused") == ""


@pytest.mark.parametrize("statement", ["input()", "breakpoint()"])
def test_a_program_that_wants_to_be_typed_to_is_told_that_nobody_can(statement: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"{statement}\nprint('went on')\n")
    with pytest.raises(launch.WorkerFailed, match=r"without input\(\) and breakpoint\(\)"):
        launch.alone(program, echo=False)


@pytest.mark.parametrize(("reason", "is_told"), [("", True), ("DUE TO TIME LIMIT ", False)])
def test_a_rank_whose_job_was_cancelled_is_told_so(reason: str, is_told: bool) -> None:
    line = f"slurmstepd-node1: error: *** STEP 6.0 ON node1 CANCELLED AT 2026-11-26T13:40:19 {reason}***"
    codes, output = {"rank 0": -15, "srun": 143}, {"rank 0": "", "srun": line}
    run = launch.LaunchedRun(codes, output, seconds=1.0, hosts={"rank 0": "node1"})
    for name in codes:
        assert ("as by scancel" in known_causes.of_failure(run, name, "srun")) == is_told


def test_a_connection_too_slow_for_tensorflow_s_signs_of_life_is_named(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    said = "Collective ops is aborted by: Deadline Exceeded\n\nRPC: /tensorflow.CoordinationService/Heartbeat\n"
    program.write_text(f"import sys\nsys.exit({said!r})\n")
    with pytest.raises(launch.WorkerFailed, match="a host's connection is much too slow, or a worker stood still"):
        launch.alone(program, echo=False)


@pytest.mark.parametrize("start", ["", "import sys\n"])
def test_a_program_that_git_could_not_merge_is_told_so(start: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"{start}<<<<<<< Updated upstream\na = 1\n=======\na = 2\n>>>>>>> Stashed changes\n")
    with pytest.raises(launch.WorkerFailed, match=r"program\.py has the marks of a merge .* `git checkout HEAD /"):
        launch.alone(program, echo=False)


def test_a_notebook_s_wish_for_colours_does_not_hide_the_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # Jupyter sets it, and Python 3.13 then colours tracebacks
    program = tmp_path / "program.py"
    program.write_text("input()\n")
    with pytest.raises(launch.WorkerFailed, match="have no standard input") as failure:
        launch.alone(program, echo=False)
    assert "\x1b" not in str(failure.value)


@pytest.mark.long
def test_ranks_that_wait_for_one_that_left_early_are_told_where_it_is(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("from mpi4py.MPI import COMM_WORLD as c\nif c.rank == 0:\n    c.allreduce(1)\n")
    with pytest.raises(launch.DeadlinePassed, match=r"running: rank 0, rank 1.* waits for the others in MPI_Finalize"):
        launch.mpirun(program, echo=False, seconds=20)


@pytest.mark.long
@pytest.mark.skipif(horovod_problem() is not None, reason="needs Horovod")
def test_an_elastic_job_without_enough_slots_is_told_to_look_at_its_script(tmp_path: Path) -> None:
    script, program = tmp_path / "hosts.sh", tmp_path / "program.py"
    script.write_text("#!/bin/sh\necho localhost:1\n")
    script.chmod(0o755)
    program.touch()
    options = ["--gloo", "--min-np", "2", "--host-discovery-script", str(script), "--elastic-timeout", "3"]
    with pytest.raises(launch.WorkerFailed, match="The host-discovery script offered fewer slots than the job needs"):
        launch.horovodrun(program, options=options, echo=False, seconds=300)


@pytest.mark.slow
@needs_packaged_mpi
@pytest.mark.parametrize("setting", ["pml=ucx", "btl=openib,self", "plm=slurm"])
def test_settings_of_another_mpi_in_the_shell_are_named(
    setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, _, value = f"OMPI_MCA_{setting}".partition("=")
    monkeypatch.setenv(name, value)
    program = tmp_path / "program.py"
    program.write_text(ADD_UP)
    sentence = f" This shell has settings for another MPI: run `unset {name}`, then repeat the command."
    with pytest.raises(launch.WorkerFailed) as failure:
        launch.mpirun(program, echo=False, seconds=300)
    assert sentence in str(failure.value)
    program.write_text("raise ValueError('on purpose')")
    with pytest.raises(launch.WorkerFailed) as failure:
        launch.alone(program, echo=False, seconds=300)
    assert sentence not in str(failure.value)


@pytest.mark.slow
@small_disks.needs_mounts
@pytest.mark.skipif(horovod_problem() is not None, reason="needs Horovod")
def test_an_address_of_the_machine_s_name_that_it_does_not_have_is_named(tmp_path: Path) -> None:
    name = socket.gethostname()
    hosts, program = tmp_path / "hosts", tmp_path / "program.py"
    hosts.write_text(f"127.0.0.1 localhost\n192.0.2.7 {name}\n")
    program.write_text("import horovod.tensorflow as hvd\nhvd.init()\n")
    command = [
        sys.executable,
        "-m",
        "course_tools.__main__",
        "launch",
        "--with",
        "horovodrun",
        "--workers",
        "2",
        str(program),
    ]
    finished = processes.run(small_disks.with_file(Path("/etc/hosts"), hosts, command), 300)
    state = f"The name {name} leads to 192.0.2.7, an address that the machine {name} does not have"
    fix = "correct that line of its /etc/hosts, or the network's name service"
    assert finished.status == 1 and f"{state}: {fix}.\n" in finished.output, finished.output
    # The doctor shows both, and not that Horovod is to be installed again.
    assert known_causes.in_a_line(finished.output, "run `make horovod`") == (state, fix)


@pytest.mark.slow
@needs_packaged_mpi
def test_a_folder_for_temporary_files_that_mpi_cannot_make_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "program.py"
    program.write_text(ADD_UP)
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "job"
    monkeypatch.setenv("TMPDIR", str(folder))
    with pytest.raises(launch.WorkerFailed) as failure:
        launch.mpirun(program, echo=False, seconds=300)
    [finding] = doctor._mpi()
    assert finding.state == f"Open MPI cannot make {folder} for its temporary files (Not a directory)"
    assert finding.fix == "set TMPDIR to a folder that can be written to"
    assert f" {finding.state}: {finding.fix}.\n" in str(failure.value)


def test_many_settings_of_another_mpi_are_counted_and_a_handful_named(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"OMPI_MCA_test_{number}" for number in range(7)]
    for name in names:
        monkeypatch.setenv(name, "1")
    sentence = known_causes.of_other_mpi("orte_init failed")
    assert [sentence.count(name) for name in names] == [1] * 4 + [0] * 3
    assert " and 3 more: run `unset ${!OMPI_MCA_*}` in bash, then repeat" in sentence


@pytest.mark.slow
@needs_packaged_mpi
def test_settings_of_another_mpi_at_home_do_not_reach_the_packaged_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".openmpi").mkdir()
    (tmp_path / ".openmpi" / "mca-params.conf").write_text("btl = openib,self\npml = ob1\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    program = tmp_path / "program.py"
    program.write_text(ADD_UP)
    for started in (["-m", "course_tools", "launch", "--with", "mpirun", "--workers", "2"], []):
        finished = processes.run([sys.executable, *started, str(program)], 300)
        assert finished.status == 0, finished.output


@pytest.mark.slow
@pytest.mark.parametrize(("limits", "number"), [("(most, most)", 9), ("(most, -1)", 24)], ids=["hard", "soft"])
def test_a_shell_s_limit_of_processor_time_is_named_and_not_memory(limits: str, number: int, tmp_path: Path) -> None:
    program, launcher = tmp_path / "program.py", tmp_path / "launcher.py"
    program.write_text("while True:\n    pass\n")
    # Two seconds more than the launcher itself has used.
    launcher.write_text(
        "import math, resource, time\nfrom distlab import launch\nmost = math.ceil(time.process_time()) + 2\n"
        f"resource.setrlimit(resource.RLIMIT_CPU, {limits})\nlaunch.alone({str(program)!r}, echo=False)\n"
    )
    output = processes.run([sys.executable, str(launcher)], 300).output
    assert f"program was killed by signal {number}, exit code -{number}" in output
    assert re.search(r"program has used up the \d+ s of processor time that the shell allows .* \(ulimit -t\)", output)


@pytest.mark.slow
def test_who_is_killed_long_before_a_limit_is_not_told_of_it(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import os\nos.kill(os.getpid(), 9)\n")
    launcher = f"from distlab import launch; launch.alone({str(program)!r}, echo=False)"
    finished = processes.run(["bash", "-c", 'ulimit -t 5000; exec "$@"', "bash", sys.executable, "-c", launcher], 300)
    assert "killed by signal 9" in finished.output and "ulimit" not in finished.output

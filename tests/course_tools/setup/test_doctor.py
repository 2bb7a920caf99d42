"""The doctor: what is missing is said with its fix, and only what is needed decides whether the course runs."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from course_tools.setup import doctor, horovod_build
from course_tools.setup.doctor import Finding
from course_tools.setup.horovod_build import HorovodBuild
from course_tools.setup.site_software import Software
from distlab import data, frameworks, launch
from tests.allocation import ALLOCATION

GOOD = Finding("good", True, "here", "", True)
NEEDED = Finding("needed", False, "nowhere", "get it", True)
OPTIONAL = Finding("optional", False, "nowhere", "get it if you like", False)


def fake_program(folder: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of that name, first on PATH."""
    program = folder / name
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_only_what_is_needed_stops_the_course() -> None:
    assert doctor.can_run([GOOD, OPTIONAL])
    assert not doctor.can_run([GOOD, NEEDED])


def test_the_table_has_a_fix_below_each_missing_line_and_a_verdict() -> None:
    lines = doctor.table([GOOD, NEEDED]).splitlines()
    assert [line.split() for line in lines[:3]] == [
        ["good", "ok", "here"],
        ["needed", "missing", "nowhere"],
        ["fix:", "get", "it"],
    ]
    assert lines[-1] == "The course cannot run here yet: fix the lines above."
    optional = doctor.table([GOOD, OPTIONAL])
    assert optional.splitlines()[1].split() == ["optional", "optional", "nowhere"] and "missing" not in optional
    assert optional.endswith("The course can run here.")
    lacking = doctor.table([GOOD, OPTIONAL._replace(item="MPI"), OPTIONAL._replace(item="Horovod")])
    assert lacking.endswith("The course can run here, but not the chapters with MPI and Horovod.")


def test_the_answer_for_machines_holds_the_same() -> None:
    answer = json.loads(doctor.as_json([GOOD, OPTIONAL]))
    assert answer["can_run"] is True
    assert answer["rows"][1] == OPTIONAL._asdict()


def test_without_horovod_its_lines_name_the_reason_and_the_course_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "horovod_problem", lambda: "planted reason")
    rows = doctor._horovod()
    assert [row.item for row in rows] == ["Horovod", "Horovod over Gloo", "Horovod over MPI"]
    assert all(not row.ok and row.fix == "planted reason" for row in rows)
    assert doctor.can_run(rows)


def test_a_missing_extra_is_said_with_its_command_and_the_course_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frameworks, "installed", lambda part: frameworks.recipe(part) if part == "torch" else None)
    rows = doctor._frameworks()
    assert [row.ok for row in rows] == [part == "torch" for part in frameworks.PARTS]
    assert rows[-1].state == "MXNet is not installed" and "`.venv/bin/distlab setup-frameworks mxnet`" in rows[-1].fix
    assert doctor.can_run(rows)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("all-reduce: ranks=2 sum=3 gloo=True mpi=True nccl=0", [True, True, True, True]),
        ("all-reduce: ranks=2 sum=3 gloo=True mpi=False nccl=0", [True, True, False, True]),
        ("all-reduce: ranks=2 sum=2 gloo=True mpi=True", [False, False, False]),
        ("all-reduce: ranks=1 sum=1 gloo=True mpi=True", [False, False, False]),
        ("", [False, False, False]),
    ],
)
def test_horovod_is_ok_only_after_a_right_all_reduce_over_two_ranks(
    answer: str, expected: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = launch.LaunchedRun(output={"rank 0": f"a warning\n{answer}\n", "rank 1": ""})
    monkeypatch.setattr(launch, "horovodrun", lambda program, **settings: run)
    monkeypatch.setattr(launch, "horovod_problem", lambda: None)
    assert [row.ok for row in doctor._horovod()] == expected


def test_the_doctor_says_which_horovod_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert doctor._nccl_of_horovod("nccl=0").endswith("`make horovod GPU=nccl`")
    assert doctor._nccl_of_horovod("nccl=22707") == "built in: NCCL 2.27.7"
    assert doctor._mpi_of_horovod() == "built in"
    horovod_build.remember(
        HorovodBuild(Software("12.4", "/opt/cuda"), Software("2.21.5", "/opt/nccl"), Software("MPICH 4.2", "/opt/mpi"))
    )
    assert doctor._nccl_of_horovod("nccl=22105") == "built in: NCCL 2.21.5, CUDA 12.4"
    assert doctor._mpi_of_horovod() == "built in: MPICH 4.2 of /opt/mpi"


def test_a_machine_whose_name_has_no_address_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(program: Path, **settings: object) -> launch.LaunchedRun:
        raise launch.LaunchError("n has no address; add the line '127.0.1.1 n' to /etc/hosts.")

    monkeypatch.setattr(launch, "horovodrun", refused)
    monkeypatch.setattr(launch, "horovod_problem", lambda: None)
    assert {row.fix for row in doctor._horovod()} == {"add that line, as root"}


@pytest.mark.slow
def test_an_all_reduce_that_fails_is_told_by_its_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "ALL_REDUCE", "raise SystemExit('it crashed')")
    monkeypatch.setattr(launch, "horovod_problem", lambda: None)
    rows = doctor._horovod()
    assert not any(row.ok for row in rows)
    if shutil.which("horovodrun"):
        assert rows[0].state == "no all-reduce over two ranks: it crashed"


@pytest.mark.parametrize(
    ("answer", "ok"),
    [("echo sum 3; echo sum 3", True), ("echo sum 3", False), ("echo sum 1; echo sum 1", False), ("exit 1", False)],
)
def test_mpi_is_ok_only_when_two_ranks_added_up(
    answer: str, ok: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_program(tmp_path, "mpirun", answer, monkeypatch)
    assert doctor._mpi().ok is ok


@pytest.mark.slow
def test_variables_of_another_mpi_are_named_and_those_of_an_allocation_do_no_harm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable, value in ALLOCATION.items():  # which mpirun would believe
        monkeypatch.setenv(variable, value)
    assert doctor._mpi().ok
    monkeypatch.setenv("OMPI_MCA_pml", "no_such_component")
    finding = doctor._mpi()
    assert not finding.ok and finding.state.strip("-")
    assert finding.fix == "this shell has settings for another MPI: run `unset OMPI_MCA_pml`"


@pytest.mark.parametrize(("value", "fix"), [("0", "unset TF_USE_LEGACY_KERAS"), ("1", "run `make setup`")])
def test_the_variable_that_keeps_tensorflow_from_starting_is_named(
    value: str, fix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", value)
    monkeypatch.setattr(doctor, "VERSIONS", "raise SystemExit('Keras cannot be imported')")
    [finding] = doctor._tensorflow()
    assert not finding.ok and finding.fix.startswith(fix)


@pytest.mark.slow
def test_another_kind_of_numbers_in_keras_settings_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "keras.json").write_text('{"floatx": "float16"}')
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    _, keras = doctor._tensorflow()
    assert not keras.ok and "which computes in float16" in keras.state
    assert keras.fix.startswith('set "floatx" to "float32" in the file keras.json')


def test_a_missing_mpirun_and_a_missing_compiler_are_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("CXX", "CC"):
        monkeypatch.delenv(name, raising=False)
    assert (doctor._mpi().ok, doctor._mpi().state) == (False, "no mpirun")
    assert (doctor._compiler().ok, doctor._compiler().state) == (False, "none")
    monkeypatch.setenv("CXX", "/opt/intel/bin/icpc")
    compiler = doctor._compiler()
    assert (compiler.ok, compiler.state) == (False, "CXX=/opt/intel/bin/icpc does not exist")
    assert compiler.fix.startswith("`unset CXX`")


def test_data_sets_are_found_where_load_finds_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mnist.npz").touch()
    monkeypatch.setenv("DISTLAB_DATA", str(tmp_path))
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rows = {row.item: row for row in doctor._data_sets()}
    assert list(rows) == [f"data: {name}" for name in data.NAMES]
    assert rows["data: digits"].ok and rows["data: mnist"].ok
    assert rows["data: mnist"].state == str(tmp_path / "mnist.npz")
    assert not rows["data: fashion_mnist"].ok


@pytest.mark.slow
def test_a_shell_that_allows_too_little_memory_is_named_and_nothing_is_started() -> None:
    program = "from course_tools.setup import doctor; print(doctor.as_json(doctor.examine()))"
    command = ["bash", "-c", 'ulimit -v 1500000; exec "$@"', "bash", sys.executable, "-c", program]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300)
    answer = json.loads(finished.stdout)
    [memory] = [row for row in answer["rows"] if not row["ok"] and row["item"] != "cores"]
    assert answer["can_run"] is False
    assert memory["state"] == "the shell allows a program 1.4 GiB (ulimit -v), and TensorFlow needs 4 GiB"
    assert memory["fix"].startswith("run `ulimit -v unlimited`")
    assert not {"TensorFlow", "Horovod", "MPI"} & {row["item"] for row in answer["rows"]}


@pytest.mark.slow
def test_a_shell_that_allows_too_little_processor_time_is_named_and_nothing_is_started() -> None:
    program = "from course_tools.setup import doctor; print(doctor.as_json(doctor.examine()))"
    command = ["bash", "-c", 'ulimit -t 60; exec "$@"', "bash", sys.executable, "-c", program]
    answer = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=300).stdout)
    [row] = [row for row in answer["rows"] if not row["ok"] and row["item"] != "cores"]
    assert answer["can_run"] is False
    assert row["state"] == "the shell allows a program 60 s (ulimit -t), and a notebook needs 300 s"
    assert row["fix"] == "run `ulimit -t unlimited`, or open a shell without this limit"
    assert not {"TensorFlow", "Horovod", "MPI"} & {row["item"] for row in answer["rows"]}


@pytest.mark.slow
def test_the_command_answers_in_json_with_status_0_where_the_course_can_run() -> None:
    command = [sys.executable, "-m", "course_tools.cli", "doctor", "--json"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (finished.returncode, finished.stderr) == (0, "")  # and no note of TensorFlow's C++ code
    answer = json.loads(finished.stdout)
    rows = {row["item"]: row for row in answer["rows"]}
    assert answer["can_run"] is True
    assert rows["Keras"]["state"].startswith("legacy Keras")
    assert rows["Horovod"]["ok"] is (launch.horovod_problem() is None)

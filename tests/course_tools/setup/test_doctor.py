"""The doctor: what is missing is said with its fix, and only what is needed decides whether the course runs."""

import subprocess
import sys

import pytest

from course_tools.setup import doctor
from course_tools.setup.doctor import Finding
from distlab import launch

GOOD = Finding("good", True, "here", needed=True)
NEEDED = Finding("needed", False, "nowhere", "get it", needed=True)


def test_the_table_has_a_verdict_and_a_fix_below_each_missing_line_and_one_line_for_what_nobody_needs() -> None:
    spare = [NEEDED._replace(item=f"extra: {name}", needed=False, spare=True) for name in ("one", "two")]
    lines = doctor.table([GOOD, NEEDED, *spare]).splitlines()
    assert lines[0] == "The course cannot run here yet: fix the lines below."
    assert [line.split() for line in lines[3:5]] == [["✘", "needed", "nowhere"], ["fix:", "get", "it"]]
    assert lines[6] == "Not needed here: one, two"
    text = doctor.table([GOOD, NEEDED._replace(item="Horovod", needed=False)])
    assert text.startswith("The course can run here, but not the chapters with Horovod.")


@pytest.mark.parametrize("total", [3.0, 2.0])
def test_horovod_is_ok_only_after_a_right_all_reduce_over_two_ranks(
    total: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "version", lambda package: "1.0")
    monkeypatch.setattr(launch, "horovod_problem", lambda: None)
    monkeypatch.setattr(doctor, "_over_two_ranks", lambda *job: {"total": total, "over": ["Gloo", "MPI"]})
    row = doctor._horovod()
    assert row.ok is (total == 3) and row.state.startswith("1.0 with Gloo and MPI: 1 + 2 = ")
    monkeypatch.setattr(launch, "horovod_problem", lambda: "a reason")
    assert (doctor._horovod().ok, doctor._horovod().fix) == (False, "a reason")


@pytest.mark.slow
def test_the_command_ends_with_status_0_where_the_course_can_run() -> None:
    command = [sys.executable, "-m", "course_tools", "doctor"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (finished.returncode, finished.stderr) == (0, "")  # and no note of TensorFlow's C++ code
    assert finished.stdout.startswith("The course can run here") and "✔ Keras                legacy" in finished.stdout
    assert ("✔ Horovod " in finished.stdout) is (launch.horovod_problem() is None)

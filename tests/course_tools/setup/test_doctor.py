"""The doctor: what is missing is said with its fix, and only what is needed decides whether the course runs."""

import json
import subprocess
import sys

import pytest

from course_tools.setup import doctor
from course_tools.setup.doctor import Finding
from distlab import launch

GOOD = Finding("good", True, "here", "", True)
NEEDED = Finding("needed", False, "nowhere", "get it", True)


def test_the_table_has_a_verdict_and_a_fix_below_each_missing_line_and_one_line_for_what_nobody_needs() -> None:
    spare = [NEEDED._replace(item=f"extra: {name}", state=doctor.NOT_HERE, needed=False) for name in ("one", "two")]
    lines = doctor.table([GOOD, NEEDED, *spare]).splitlines()
    assert lines[0] == "The course cannot run here yet: fix the lines below."
    assert [line.split() for line in lines[3:5]] == [["✘", "needed", "nowhere"], ["fix:", "get", "it"]]
    assert lines[6] == "Not needed here: one, two"
    text = doctor.table([GOOD, NEEDED._replace(item="Horovod", needed=False)])
    assert text.startswith("The course can run here, but not the chapters with Horovod.")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("all-reduce: 2 3.0 True True True", {"Horovod": True}),
        ("all-reduce: 2 3.0 True False False", {"Horovod": True, "Horovod: MPI": False, "Horovod: NCCL": False}),
        ("all-reduce: 2 2.0 True True False", {"Horovod": False}),
    ],
)
def test_horovod_is_ok_only_after_a_right_all_reduce_over_two_ranks(
    answer: str, expected: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "horovod_problem", lambda: None)
    rows = doctor._horovod(f"a warning\n{answer}\n")
    assert {row.item: row.ok for row in rows} == expected
    monkeypatch.setattr(launch, "horovod_problem", lambda: "a reason")
    assert [(row.ok, row.fix) for row in doctor._horovod("")] == [(False, "a reason")]


@pytest.mark.slow
def test_the_command_answers_in_json_with_status_0_where_the_course_can_run() -> None:
    command = [sys.executable, "-m", "course_tools", "doctor", "--json"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (finished.returncode, finished.stderr) == (0, "")  # and no note of TensorFlow's C++ code
    answer = json.loads(finished.stdout)
    rows = {row["item"]: row for row in answer["rows"]}
    assert answer["can_run"] is True and rows["Keras"]["state"].startswith("legacy Keras")
    assert rows["Horovod"]["ok"] is (launch.horovod_problem() is None)

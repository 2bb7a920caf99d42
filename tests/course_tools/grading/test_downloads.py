"""The downloads of learning platforms, as they pack them, become a folder for each student."""

from datetime import datetime
from pathlib import Path

import pytest

from course_tools.grading import downloads, submissions
from course_tools.grading.submissions import NoSubmissions
from tests.course_tools.grading.submitted import LAB

DOWNLOADS = {
    "Canvas": (
        ["doejane_10345_678901_lab.ipynb", "roerichard_LATE_10346_678902_lab-1.ipynb"],
        {"doejane_10345": "lab.ipynb", "roerichard_10346": "lab-1.ipynb"},
    ),
    "Blackboard": (
        [
            "Lab_06_jdoe_attempt_2026-11-20-20-00-00.txt",
            "Lab_06_jdoe_attempt_2026-11-20-20-00-00_lab.ipynb",
            "Lab_06_jdoe_attempt_2026-11-21-09-00-00_lab.ipynb",
        ],
        {"jdoe": "lab.ipynb"},
    ),
    "Moodle": (
        ["Jane Doe_10345_assignsubmission_file_/lab (1).ipynb", "Sam Poe_7_assignsubmission_onlinetext_/text.html"],
        {"Jane Doe_10345": "lab (1).ipynb", "Sam Poe_7": None},
    ),
    "ILIAS": (
        ["Doe_Jane_jdoe_10345/lab.ipynb", f"Roe_Richard_rroe_10346/{LAB}/lab.ipynb"],
        {"jdoe": "lab.ipynb", "rroe": "lab.ipynb"},
    ),
    "Gradescope": (
        ["submission_1/lab.ipynb", "submission_2/lab.ipynb", "submission_3/lab.ipynb"],
        {"Jane Doe": "lab.ipynb", "submission_2": "lab.ipynb", "Ann Lee": "lab.ipynb"},
    ),
}
ABOUT = """submission_1:
  :submitters:
  - :name: Jane Doe
submission_2:
  :score: 1
submission_3:
  - :name: 'Ann Lee'
"""


@pytest.fixture(params=DOWNLOADS)
def download(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """A folder with the download, in which each file says its own name, and the name of the platform."""
    for name in DOWNLOADS[request.param][0]:
        file = tmp_path / "in" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    if request.param == "Gradescope":
        (tmp_path / "in" / "submission_metadata.yml").write_text(ABOUT)
    return tmp_path / "in", request.param


def test_each_notebook_is_its_students(download: tuple[Path, str], tmp_path: Path) -> None:
    folder, name = download
    assert downloads.platform(folder) == name
    with pytest.raises(NoSubmissions, match=f"download of {name}, which holds one lab"):
        submissions.by_student(folder, [LAB, "91_other"], tmp_path / "out")
    place = submissions.by_student(folder, [LAB], tmp_path / "out")
    found = submissions.find(place, [LAB], only=True)
    assert {each.student: each.file and each.file.name for each in found} == DOWNLOADS[name][1]
    assert not submissions.left_out(place)
    if name == "Blackboard":
        assert found[0].file is not None and "2026-11-21" in found[0].file.read_text()
        assert datetime.fromtimestamp(found[0].file.stat().st_mtime) == datetime(2026, 11, 21, 9)


def test_students_have_the_names_of_the_list(tmp_path: Path) -> None:
    for name in ("doejane_10345_678901_lab.ipynb", "poesam_10347_678903_lab.ipynb"):
        (tmp_path / name).touch()
    (tmp_path / "students.txt").write_text("jane = 10345\nsam = poesam\nrita\n")
    place = submissions.by_student(tmp_path, [LAB], tmp_path / "out")
    assert [each.student for each in submissions.find(place, [LAB])] == ["jane", "rita", "sam"]


def test_a_layout_that_is_not_known_is_refused_also_for_one_lab(tmp_path: Path) -> None:
    file = tmp_path / "Lab06/jdoe.ipynb"
    file.parent.mkdir(exist_ok=True)
    file.touch()
    assert submissions.by_student(tmp_path, [LAB], tmp_path / "out") == tmp_path
    with pytest.raises(NoSubmissions, match="expected is"):
        submissions.find(tmp_path, [LAB], only=True)

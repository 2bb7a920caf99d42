"""The downloads of learning platforms, as they pack them, become a folder for each student."""

from datetime import datetime
from pathlib import Path

import pytest

from course_tools.grading import downloads, submissions
from distlab.runtime.errors import PlainError
from tests.course_tools.grading.submitted import LAB

DOWNLOADS = {
    "Canvas": (
        [
            "doe_smithjane_10345_678901_lab.ipynb",
            "roerichard_LATE_10346_678902_lab-1.ipynb",
            "LATE_anon_aB3dE_678903_lab.ipynb",
        ],
        {"doe_smithjane_10345": "lab.ipynb", "roerichard_10346": "lab-1.ipynb", "anon_aB3dE": "lab.ipynb"},
    ),
    "Blackboard": (
        [
            "Lab_06_jdoe_attempt_2026-11-20-20-00-00.txt",
            "Lab_06_jdoe_attempt_2026-11-20-20-00-00_lab.ipynb",
            "Lab_06_jdoe_attempt_2026-11-21-09-00-00_lab.ipynb",
            "Lab_06_j_roe_attempt_2026-11-20-20-00-00_lab.ipynb",
        ],
        {"jdoe": "lab.ipynb", "j_roe": "lab.ipynb"},
    ),
    "Moodle": (
        [
            "Jane Doe_10345_assignsubmission_file_/lab (1).ipynb",
            "Sam Poe_7_assignsubmission_onlinetext_/text.html",
            "Participant_38950_assignsubmission_file/lab.ipynb",
            "Default group_assignsubmission_file/lab.ipynb",
        ],
        {
            "Jane Doe_10345": "lab (1).ipynb",
            "Sam Poe_7": None,
            "Participant_38950": "lab.ipynb",
            "Default group": "lab.ipynb",
        },
    ),
    "Moodle without folders": (
        ["Jane Doe_10345_assignsubmission_file_lab.ipynb", "Sam_7_assignsubmission_onlinetext_text.html"],
        {"Jane Doe_10345": "lab.ipynb"},
    ),
    "Brightspace": (
        [
            "397063-2557369 - Mary-Ann Smith - Apr 9, 2024 111 PM/lab.ipynb",
            "397063-2557369 - Mary-Ann Smith - Mar 24, 2024 1126 PM/lab.ipynb",
            "397064-2557369 - John Doe - Mar 24, 2024 926 PM/lab.ipynb",
            "index.html",
        ],
        {"Mary-Ann Smith_397063": "lab.ipynb", "John Doe_397064": "lab.ipynb"},
    ),
    "Brightspace without folders": (
        ["13394-80551 - Eric G - Mar 29, 2018 1205 PM - EG - Lab 6.ipynb", "index.html"],
        {"Eric G_13394": "EG - Lab 6.ipynb"},
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
    assert downloads.platform(folder) == name.split()[0]
    found = submissions.find(folder, [LAB], datetime(2024, 4, 9, 12, 11).astimezone(), only=True)
    assert {each.student for each in found} == set(DOWNLOADS[name][1])
    for each in found:
        own = DOWNLOADS[name][1][each.student]
        assert each.file.name.endswith(own) if own and each.file else own is each.file
    assert not submissions.left_out(folder)
    last = {"Blackboard": "2026-11-21", "Brightspace": "Apr 9"}
    if name in last:
        assert found[1].file is not None and last[name] in found[1].file.read_text()
        assert ("late by 1.0 hours" in found[1].note) == (name == "Brightspace")


def test_a_download_holds_one_lab(download: tuple[Path, str], tmp_path: Path) -> None:
    with pytest.raises(PlainError, match=f"download of {download[1].split()[0]}, which holds one lab"):
        submissions.find(download[0], [LAB, "91_other"])


def test_students_have_the_names_of_the_list(tmp_path: Path) -> None:
    for name in ("doejane_10345_678901_lab.ipynb", "poesam_10347_678903_lab.ipynb"):
        (tmp_path / name).touch()
    (tmp_path / "students.txt").write_text("jane = 10345\nsam = poesam\nrita\n")
    assert [each.student for each in submissions.find(tmp_path, [LAB])] == ["jane", "rita", "sam"]


def test_a_layout_that_is_not_known_is_refused_also_for_one_lab(tmp_path: Path) -> None:
    file = tmp_path / "Lab06/jdoe.ipynb"
    file.parent.mkdir(exist_ok=True)
    file.touch()
    with pytest.raises(PlainError, match="expected is"):
        submissions.find(tmp_path, [LAB], only=True)

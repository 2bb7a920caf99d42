"""Which files are taken for whose work, also in the downloads of learning platforms, and when it was handed in."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from course_tools.grading.submissions import Submission, find, left_out
from distlab.runtime.errors import PlainError
from tests.course_tools.grading.submitted import LAB, put

DUE = datetime(2026, 11, 20, 17, 0, tzinfo=UTC)


def of(folder: Path, student: str = "ada", due: datetime | None = None) -> Submission:
    return next(each for each in find(folder, [LAB], due, only=True) if each.student == student)


FOUND = {
    f"2 notebooks, '{LAB}/lab.ipynb' counts": ({f"{LAB}/lab.ipynb": 1, f"{LAB}/newer.ipynb": 2}, "lab.ipynb"),
    f"2 notebooks, '{LAB}/new.IPYNB' counts": ({f"{LAB}/old.ipynb": 1, f"{LAB}/new.IPYNB": 2}, "new.IPYNB"),
    f"'{LAB}/solution.ipynb' counts": ({f"{LAB}/solution.ipynb": 1}, "solution.ipynb"),
    "'90 x/lab.ipynb' counts": ({"90 x/lab.ipynb": 2}, "lab.ipynb"),
    "missing, but there is 'lab.zip'": ({"lab.zip": 1}, None),
    "missing, but there is 'lab.ipynb.txt'": ({f"{LAB}/lab.ipynb.txt": 1}, None),
    "missing": ({"91_other/lab.ipynb": 1}, None),
}


@pytest.mark.parametrize(("note", "files", "name"), [(note, *case) for note, case in FOUND.items()])
def test_the_notebook_that_counts_is_found_and_what_is_odd_is_noted(
    note: str, files: dict[str, int], name: str | None, tmp_path: Path
) -> None:
    put(tmp_path, "bob", "{}")
    for path, time in files.items():
        os.utime(put(tmp_path, "ada", "{}", path), (time, time))
    found = of(tmp_path)
    (said,) = found.notes + found.look_at
    assert said.startswith(note)
    assert (found.file.name if found.file else None) == name
    assert bool(found.look_at) == ("but" in note or "solution" in note)


def test_a_folder_per_lab_and_nbgrader_s_course_folder_are_understood(tmp_path: Path) -> None:
    put(tmp_path / "labs", LAB, "{}", "ada/lab.ipynb")
    assert of(tmp_path / "labs").file == tmp_path / "labs" / LAB / "ada" / "lab.ipynb"
    put(tmp_path / "course" / "submitted", "ada", "{}")
    (tmp_path / "course" / "nbgrader_config.py").touch()
    assert of(tmp_path / "course").file


def test_the_list_of_students_says_who_is_missing_and_who_is_nobody_s(tmp_path: Path) -> None:
    put(tmp_path, "ada", "{}")
    put(tmp_path, "Jose\N{COMBINING ACUTE ACCENT}", "{}")
    put(tmp_path, "group", "{}")
    names = "\ufeff# class\nada # exchange\nbob\n\nJos\N{LATIN SMALL LETTER E WITH ACUTE}\n"
    (tmp_path / "students.txt").write_text(names, encoding="utf-8")
    assert [each.student for each in find(tmp_path, [LAB])] == ["Jos\xe9", "ada", "bob", "group"]
    assert (of(tmp_path, "bob").notes, of(tmp_path, "Jos\xe9").notes) == (["missing"], [])
    assert of(tmp_path, "group").look_at == ["the folder is not in students.txt"]


def test_what_is_no_list_of_names_and_a_folder_without_submissions_are_refused(tmp_path: Path, root: Path) -> None:
    for folder in (tmp_path, tmp_path / "none", root):
        with pytest.raises(PlainError, match=r"lab\.ipynb"):
            find(folder, [LAB])
    put(tmp_path, "ada", "{}")
    for content in (b"\xff\xfe", b"a;b", b"../x"):
        (tmp_path / "students.txt").write_bytes(content)
        with pytest.raises(PlainError, match=r"students\.txt"):
            find(tmp_path, [LAB])


def test_only_labs_that_somebody_handed_in_are_expected_unless_they_are_named(tmp_path: Path) -> None:
    put(tmp_path, "ada", "{}")
    put(tmp_path, "bob", "{}", "91_other/lab.ipynb")
    assert len(find(tmp_path, [LAB, "91_other", "92_third"])) == 4
    assert len(find(tmp_path, [LAB, "91_other", "92_third"], only=True)) == 6


def test_links_are_not_followed_and_work_beside_the_folders_is_named(tmp_path: Path) -> None:
    put(tmp_path, "ada", "{}")
    (tmp_path / "bob").symlink_to(tmp_path / "ada")
    (tmp_path / "all.zip").touch()
    assert [each.student for each in find(tmp_path, [LAB])] == ["ada"]
    assert left_out(tmp_path) == ["'all.zip' is left out, since it is in no student's folder"]


# What timestamp.txt says, and the seconds of the file after the deadline.
TIMES = {
    (None, -60): [],
    (None, 90_060): ["late by 25.0 hours"],
    ("2026-11-20 17:00:00.000000 UTC", -60): [],
    ("2026-11-20 17:00:00.000000 UTC", 60): [
        "timestamp.txt says in time, but the notebook was changed after the deadline"
    ],
    ("2026-11-20 18:30:00.000000 UTC", -60): ["late by 1.5 hours"],
    ("17:30 CET", -60): [],
    ("\x00", 3600): ["late by 1.0 hours"],
}


@pytest.mark.parametrize(("text", "seconds", "notes"), [(*case, notes) for case, notes in TIMES.items()])
def test_the_time_that_is_written_counts_else_that_of_the_file(
    text: str | None, seconds: int, notes: list[str], tmp_path: Path
) -> None:
    file = put(tmp_path, "ada", "{}")
    os.utime(file, (DUE.timestamp() + seconds,) * 2)
    if text is not None:
        file.with_name("timestamp.txt").write_text(text)
    assert of(tmp_path, due=DUE).note == "; ".join(notes)


# Of each platform what it packs, as a file and the student whose notebook counts; "" for what does not count.
DOWNLOADS = {
    "Canvas": {
        "doe_smithjane_10345_678901_lab.ipynb": "doe_smithjane_10345",
        "roerichard_LATE_10346_678902_lab-1.ipynb": "roerichard_10346",
        "LATE_anon_aB3dE_678903_lab.ipynb": "anon_aB3dE",
    },
    "Blackboard": {
        "Lab_06_jdoe_attempt_2026-11-20-20-00-00.txt": "",
        "Lab_06_jdoe_attempt_2026-11-20-20-00-00_lab.ipynb": "",
        "Lab_06_jdoe_attempt_2026-11-21-09-00-00_lab.ipynb": "jdoe",
        "Lab_06_j_roe_attempt_2026-11-20-20-00-00_lab.ipynb": "j_roe",
    },
    "Moodle": {
        "Jane Doe_10345_assignsubmission_file_/lab (1).ipynb": "Jane Doe_10345",
        "Sam Poe_7_assignsubmission_onlinetext_/text.html": "Sam Poe_7",
        "Participant_38950_assignsubmission_file/lab.ipynb": "Participant_38950",
        "Default group_assignsubmission_file/lab.ipynb": "Default group",
    },
    "Moodle without folders": {
        "Jane Doe_10345_assignsubmission_file_lab.ipynb": "Jane Doe_10345",
        "Sam_7_assignsubmission_onlinetext_text.html": "",
    },
    "Brightspace": {
        "397063-2557369 - Mary-Ann Smith - Apr 9, 2024 111 PM/lab.ipynb": "Mary-Ann Smith_397063",
        "397063-2557369 - Mary-Ann Smith - Mar 24, 2024 1126 PM/lab.ipynb": "",
        "397064-2557369 - John Doe - Mar 24, 2024 926 PM/lab.ipynb": "John Doe_397064",
        "index.html": "",
    },
    "Brightspace without folders": {
        "13394-80551 - Eric G - Mar 29, 2018 1205 PM - EG - Lab 6.ipynb": "Eric G_13394",
        "index.html": "",
    },
    "ILIAS": {
        "Doe_Jane_jdoe_10345/lab.ipynb": "jdoe",
        f"Roe_Richard_rroe_10346/{LAB}/lab.ipynb": "rroe",
    },
    "Gradescope": {
        "submission_1/lab.ipynb": "Jane Doe",
        "submission_2/lab.ipynb": "submission_2",
        "submission_3/lab.ipynb": "Ann Lee",
        "submission_metadata.yml": "",
    },
}
ABOUT = """submission_1:
  :submitters:
  - :name: Jane Doe
submission_2:
  :score: 1
submission_3:
  - :name: 'Ann Lee'
"""


@pytest.mark.parametrize("name", DOWNLOADS)
def test_each_notebook_of_a_download_is_its_student_s(name: str, tmp_path: Path) -> None:
    for path in DOWNLOADS[name]:
        put(tmp_path, "", ABOUT, path)
    found = find(tmp_path, [LAB], datetime(2024, 4, 9, 12, 11).astimezone(), only=True)
    files = {str(each.file.relative_to(tmp_path)): each.student for each in found if each.file}
    assert files == {path: student for path, student in DOWNLOADS[name].items() if student and "ipynb" in path}
    assert {each.student for each in found} == set(filter(None, DOWNLOADS[name].values()))
    assert not left_out(tmp_path)
    assert any("late by 1.0 hours" in each.note for each in found) == (name == "Brightspace")
    with pytest.raises(PlainError, match=f"download of {name.split()[0]}, which holds one lab"):
        find(tmp_path, [LAB, "91_other"])


def test_students_of_a_download_have_the_names_of_the_list(tmp_path: Path) -> None:
    for name in ("doejane_10345_678901_lab.ipynb", "poesam_10347_678903_lab.ipynb"):
        (tmp_path / name).touch()
    (tmp_path / "students.txt").write_text("jane = 10345\nsam = poesam\nrita\n")
    assert [each.student for each in find(tmp_path, [LAB])] == ["jane", "rita", "sam"]


def test_a_layout_that_is_not_known_is_refused_also_for_one_lab(tmp_path: Path) -> None:
    put(tmp_path, "Lab06", "{}", "jdoe.ipynb")
    with pytest.raises(PlainError, match="expected is"):
        find(tmp_path, [LAB], only=True)

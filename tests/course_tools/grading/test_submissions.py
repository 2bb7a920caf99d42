"""Which notebook counts for which student and lab."""

import os
import unicodedata
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import nbformat
import pytest

from course_tools.grading import deadline, notebook, submissions
from tests.course_tools.grading.submitted import LAB, put

Handin = Callable[..., nbformat.NotebookNode]


def test_two_notebooks_by_one_student_are_noted_and_the_rule_is_fixed(tmp_path: Path) -> None:
    put(tmp_path, "alice", "{}")
    put(tmp_path, "alice", "{}", f"{LAB}/lab-Copy1.ipynb")
    old = put(tmp_path, "bob", "{}", f"{LAB}/mine.ipynb")
    os.utime(old, (1, 1))
    put(tmp_path, "bob", "{}", f"{LAB}/final.ipynb")
    put(tmp_path, "carol", "{}", "90/lab.ipynb")
    put(tmp_path, "dora", "{}", f"{LAB}/lab.ipynb")
    put(tmp_path, "dora", "{}", "90_sample (1)/lab.ipynb")
    by_student = {submission.student: submission for submission in submissions.find(tmp_path, [LAB])}
    assert (by_student["alice"].file.name, by_student["alice"].notes) == (
        "lab.ipynb",
        ["2 notebooks, lab.ipynb counts"],
    )
    assert by_student["bob"].file.name == "final.ipynb"
    assert by_student["bob"].notes == ["no lab.ipynb, 'final.ipynb' counts, the newest of 2 notebooks"]
    assert by_student["carol"].notes == ["the folder has another name than the lab's"]
    assert by_student["dora"].file.parent.name == LAB
    assert by_student["dora"].notes == [f"2 folders for this lab, {LAB} counts"]


def test_a_folder_of_submissions_that_is_one_level_off_is_named(tmp_path: Path) -> None:
    put(tmp_path / "in", "alice", "{}")
    with pytest.raises(submissions.NoSubmissions, match=f"set SUBMISSIONS={tmp_path / 'in'}.$"):
        submissions.find(tmp_path, [LAB])
    with pytest.raises(submissions.NoSubmissions, match=f"one student: set SUBMISSIONS={tmp_path / 'in'}.$"):
        submissions.find(tmp_path / "in" / "alice", [LAB])


def test_notebooks_that_lie_as_a_learning_platform_packs_them_are_named(tmp_path: Path) -> None:
    for student, name in (("Alice_17_assignsubmission_file", "lab.ipynb"), (".", "bob_18_lab.ipynb")):
        folder = tmp_path / name
        file = put(folder, student, "{}", name).relative_to(folder)
        with pytest.raises(submissions.NoSubmissions, match=f"{file} is in no folder with a lab's name, such as {LAB}"):
            submissions.find(folder, [LAB])


def test_the_course_and_nbgrader_s_folder_are_not_graded(tmp_path: Path) -> None:
    (tmp_path / "labs").mkdir()
    (tmp_path / "labs" / "nbgrader_config.py").touch()
    put(tmp_path, "labs", "{}")
    with pytest.raises(submissions.NoSubmissions, match="is the course itself"):
        submissions.find(tmp_path, [LAB])
    put(tmp_path / "nbgrader", "source", "{}")
    (tmp_path / "nbgrader" / "nbgrader_config.py").touch()
    with pytest.raises(submissions.NoSubmissions, match="what was handed in is in"):
        submissions.find(tmp_path / "nbgrader", [LAB])


def test_the_course_s_solution_counts_after_every_other_notebook_and_is_to_be_looked_at(tmp_path: Path) -> None:
    own = put(tmp_path, "alice", "{}", f"{LAB}/lab_alice.ipynb")
    os.utime(own, (1, 1))
    put(tmp_path, "alice", "{}", f"{LAB}/solution.ipynb")
    put(tmp_path, "bob", "{}", f"{LAB}/Solution.ipynb")
    put(tmp_path, "carol", "{}")
    put(tmp_path, "carol", "{}", f"{LAB}/solution.ipynb")
    alice, bob, carol = submissions.find(tmp_path, [LAB])
    assert alice.file == own and alice.look_at == ["no lab.ipynb, 'lab_alice.ipynb' counts, not 'solution.ipynb'"]
    assert bob.look_at == ["no lab.ipynb, 'Solution.ipynb' counts, as the course's solution is called"]
    assert (carol.file.name, carol.notes, carol.look_at) == ("lab.ipynb", ["2 notebooks, lab.ipynb counts"], [])


def test_a_file_that_a_mac_adds_to_a_notebook_is_no_notebook(tmp_path: Path) -> None:
    own = put(tmp_path, "alice", "{}", f"{LAB}/lab_90.ipynb")
    os.utime(own, (1, 1))
    put(tmp_path, "alice", "\0\x05\x16\x07", f"{LAB}/._lab_90.ipynb")
    put(tmp_path, "bob", "{}")
    put(tmp_path, "bob", "\0\x05\x16\x07", f"{LAB}/._lab.ipynb")
    alice, bob = submissions.find(tmp_path, [LAB])
    assert (alice.file, alice.notes) == (own, ["no lab.ipynb, 'lab_90.ipynb' counts"])
    assert bob.notes == []


def test_only_labs_that_somebody_handed_in_are_expected_unless_they_are_named(tmp_path: Path) -> None:
    put(tmp_path, "alice", "{}")
    assert [submission.lab for submission in submissions.find(tmp_path, [LAB, "91_other"])] == [LAB]
    assert [submission.lab for submission in submissions.find(tmp_path, [LAB, "91_other"], only=True)] == [
        LAB,
        "91_other",
    ]
    with pytest.raises(submissions.NoSubmissions, match="No folder in"):
        submissions.find(tmp_path, ["91_other"])
    with pytest.raises(submissions.NoSubmissions, match="SUBMISSIONS=folder"):
        submissions.find(tmp_path / "nowhere", [LAB])


def test_links_into_other_folders_are_not_followed(tmp_path: Path, handed_in: Handin) -> None:
    put(tmp_path, "alice", handed_in())
    (tmp_path / "bob").mkdir()
    (tmp_path / "bob" / LAB).symlink_to(tmp_path / "alice" / LAB)
    (tmp_path / "carol" / LAB).mkdir(parents=True)
    (tmp_path / "carol" / LAB / "lab.ipynb").symlink_to(tmp_path / "alice" / LAB / "lab.ipynb")
    by_student = {submission.student: submission for submission in submissions.find(tmp_path, [LAB])}
    assert by_student["bob"].notes == ["missing"]
    with pytest.raises(notebook.Unreadable, match="not a plain file"):
        notebook.read(by_student["carol"].file)


def test_a_list_of_students_is_read_as_spreadsheets_write_it(tmp_path: Path) -> None:
    put(tmp_path, "alice", "{}")
    (tmp_path / "students.txt").write_bytes("\ufeffalice\r\nzoë\r\n\r\n# dropped out: bob\r\n".encode())
    assert [submission.student for submission in submissions.find(tmp_path, [LAB])] == ["alice", "zoë"]
    (tmp_path / "students.txt").write_text("ALICE\n")
    of_list, _ = submissions.find(tmp_path, [LAB])
    assert of_list.student == "ALICE" and of_list.look_at == [
        "students.txt writes the name of the folder 'alice' in another way"
    ]


def test_a_blank_behind_the_name_of_a_folder_is_named(tmp_path: Path) -> None:
    put(tmp_path, "alice ", "{}")
    put(tmp_path, "bob", "{}")
    (tmp_path / "students.txt").write_text("alice\nbob\n")
    of_list, of_folder, _ = submissions.find(tmp_path, [LAB])
    assert of_list.look_at == ["students.txt writes the name of the folder 'alice ' in another way"]
    assert (of_list.student, of_folder.student, of_folder.look_at) == ("alice", "alice ", [])


def test_a_folder_that_the_list_of_students_does_not_have_is_to_be_looked_at(tmp_path: Path) -> None:
    for name in ("alice_bob", "carol"):
        put(tmp_path, name, "{}")
    (tmp_path / "students.txt").write_text("alice\nbob\ncarol\n")
    found = submissions.find(tmp_path, [LAB])
    assert {each.student: each.look_at for each in found} == {
        "alice": [],
        "bob": [],
        "alice_bob": ["the folder is not in students.txt"],
        "carol": [],
    }


def test_a_name_in_the_list_and_that_of_the_folder_may_write_an_umlaut_in_two_ways(tmp_path: Path) -> None:
    listed, taken_apart = (unicodedata.normalize(form, "Jörg Groß") for form in ("NFC", "NFD"))
    put(tmp_path, taken_apart, "{}")
    (tmp_path / "students.txt").write_text(listed, encoding="utf-8")
    (submission,) = submissions.find(tmp_path, [LAB])
    assert submission.file is not None and not submission.look_at
    assert submission.file.is_relative_to(tmp_path / taken_apart)
    assert submission.student == listed


def test_a_list_of_students_that_names_no_folder_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "alice", "{}")
    (tmp_path / "students.txt").write_text("Name,Number\nalice,1234567\n")
    with pytest.raises(
        submissions.NoSubmissions, match="is that of a folder; it takes these names alone, such as 'alice'"
    ):
        submissions.find(tmp_path, [LAB])


def test_a_notebook_whose_name_is_in_capitals_counts(tmp_path: Path) -> None:
    handed_in = put(tmp_path, "alice", "{}", f"{LAB}/LAB.IPYNB")
    (submission,) = submissions.find(tmp_path, [LAB])
    assert submission.file == handed_in and submission.notes == ["no lab.ipynb, 'LAB.IPYNB' counts"]


def test_a_file_instead_of_the_folder_of_submissions_is_called_a_file(tmp_path: Path) -> None:
    (tmp_path / "handed_in.zip").write_bytes(b"PK")
    with pytest.raises(submissions.NoSubmissions, match=r"handed_in\.zip is no folder \(unpack"):
        submissions.find(tmp_path / "handed_in.zip", [LAB])


def test_work_in_the_wrong_place_is_named(tmp_path: Path) -> None:
    put(tmp_path, "alice", "{}")
    put(tmp_path, "dan", "{}", "lab90/lab.ipynb")
    put(tmp_path, "fay", "zip", f"{LAB}.zip")
    put(tmp_path, "gil", "{}", "91_other/lab.ipynb")
    put(tmp_path, "mal", "{}", "evil\x1b[2J\n=1+1.ipynb")
    by_student = {submission.student: submission for submission in submissions.find(tmp_path, [LAB])}
    assert by_student["dan"].notes == ["missing, but there is 'lab90'"]
    assert by_student["fay"].strays == [f"'{LAB}.zip'"]
    assert (by_student["gil"].notes, by_student["gil"].strays) == (["missing"], [])
    assert by_student["mal"].notes[0].isprintable()


def test_a_time_that_is_not_understood_is_to_be_looked_at_and_the_last_change_counts(tmp_path: Path) -> None:
    os.utime(put(tmp_path, "alice", "{}"), (10**9, 10**9))
    put(tmp_path, "alice", "yesterday evening", f"{LAB}/{submissions.TIMESTAMP}")
    late = put(tmp_path, "bob", "{}")
    due = deadline.due_time("2026-11-20 18:00")
    os.utime(late, (due.timestamp() + 60, due.timestamp() + 60))
    (tmp_path / "bob" / LAB / submissions.TIMESTAMP).mkdir()
    alice, bob = submissions.find(tmp_path, [LAB], due)
    counts = "; the last change of the notebook counts"
    example = "2026-11-20 17:30:00 +01:00"
    assert (alice.late, alice.notes) == (
        False,
        [f"timestamp.txt says 'yesterday evening', which is no time that is understood ({example} is){counts}"],
    )
    late_by = "late by 0 d 0 h 1 min by the time of the file"
    assert (bob.late, bob.notes) == (True, [f"timestamp.txt is a folder{counts}", late_by])
    assert (alice.look_at, bob.look_at) == (alice.notes, bob.notes[:1])


@pytest.mark.parametrize(("text", "late"), [("0001-01-01 00:00 +14:00", False), ("9999-12-31 23:59 -12:00", True)])
def test_the_first_and_last_times_are_compared_with_the_deadline(tmp_path: Path, text: str, late: bool) -> None:
    os.utime(put(tmp_path, "alice", "{}"), (10**9, 10**9))
    put(tmp_path, "alice", text, f"{LAB}/{submissions.TIMESTAMP}")
    [submission] = submissions.find(tmp_path, [LAB], deadline.due_time("2026-11-20 18:00"))
    assert submission.late == late
    [note] = submission.look_at
    assert note.startswith(f"timestamp.txt, {text[:10]}, cannot be that of the work")


def test_of_notebooks_with_the_same_time_none_is_called_the_newest(tmp_path: Path) -> None:
    for name in ("draft", "final"):
        os.utime(put(tmp_path, "alice", "{}", f"{LAB}/{name}.ipynb"), (10**9, 10**9))
    [alice] = submissions.find(tmp_path, [LAB])
    note = "no lab.ipynb, 'final.ipynb' counts, though another of 2 notebooks has the same time"
    assert alice.notes == alice.look_at == [note]


def test_any_time_and_size_of_a_file_is_read(tmp_path: Path) -> None:
    far = put(tmp_path, "alice", "{}")
    os.utime(far, (10**12, 10**12))  # in the year 33658
    put(tmp_path, "bob", "{}")
    with (tmp_path / "bob" / LAB / submissions.TIMESTAMP).open("wb") as file:
        file.truncate(6 * 2**30)
    alice, bob = submissions.find(tmp_path, [LAB], deadline.due_time("2026-11-20 18:00"))
    assert alice.late and alice.notes[1].startswith("late by")
    assert len(bob.look_at) == 1 and "which is no time that is understood" in bob.look_at[0]


@pytest.mark.parametrize("date", ["1970-01-01", "1980-01-01", "1999-12-30", "2400-01-01"])
def test_a_file_whose_time_cannot_be_that_of_the_work_is_to_be_looked_at(tmp_path: Path, date: str) -> None:
    for student, day in (("alice", date), ("bob", "2020-02-02")):
        time = datetime.fromisoformat(f"{day} 12:00+00:00").timestamp()
        os.utime(put(tmp_path, student, "{}"), (time, time))
    for due in ("2026-11-20 18:00", "2999-12-31"):
        alice, bob = submissions.find(tmp_path, [LAB], deadline.due_time(due))
        assert alice.look_at == alice.notes[:1]
        assert alice.look_at == [
            f"the time of the file, {date}, cannot be that of the work, which may be late or not: copy with `cp -a`, "
            "or give the time in timestamp.txt"
        ]
        assert bob.notes == []
    put(tmp_path, "alice", "2026-11-19 12:00:00", f"{LAB}/{submissions.TIMESTAMP}")
    alice, _ = submissions.find(tmp_path, [LAB], deadline.due_time("2999-12-31"))
    assert alice.notes == []


def test_a_timestamp_of_a_student_s_own_does_not_settle_lateness(tmp_path: Path) -> None:
    due = deadline.due_time("2026-11-20 18:00")
    late = put(tmp_path, "alice", "{}")
    os.utime(late, (due.timestamp() + 60, due.timestamp() + 60))
    put(tmp_path, "alice", "2026-11-01 12:00:00", f"{LAB}/{submissions.TIMESTAMP}")
    [submission] = submissions.find(tmp_path, [LAB], due)
    assert submission.look_at == ["timestamp.txt says in time, but the notebook was changed after the deadline"]


def test_a_student_s_folder_that_is_a_link_has_a_line_and_is_not_followed(tmp_path: Path) -> None:
    put(tmp_path, "alice", "{}")
    (tmp_path / "bob").symlink_to(tmp_path / "alice")
    alice, bob = submissions.find(tmp_path, [LAB])
    assert (alice.look_at, bob.file) == ([], None)
    assert bob.look_at == ["missing: the folder is a link, which is not followed"]


def test_folders_that_are_left_out_are_named(tmp_path: Path) -> None:
    put(tmp_path, "alice", "{}")
    put(tmp_path, "_bob", "{}")
    (tmp_path / ".git").mkdir()
    assert [submission.student for submission in submissions.find(tmp_path, [LAB])] == ["alice"]
    assert submissions.left_out(tmp_path) == ["'_bob' is left out, since it begins with . or _"]


def test_work_beside_the_folders_of_students_is_named(tmp_path: Path) -> None:
    for name in ("kim.zip", "lea.ipynb", "Thumbs.db", "students.txt", ".hidden.zip", "notes.md"):
        (tmp_path / name).touch()
    reason = "is left out, since it is in no student's folder"
    assert submissions.left_out(tmp_path) == [f"'kim.zip' {reason}", f"'lea.ipynb' {reason}"]


@pytest.mark.parametrize("name", ["students.txt.txt", "Students.txt", "Teilnehmer.xlsx"])
def test_a_file_that_may_be_a_list_of_students_of_another_name_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    (tmp_path / "README.md").touch()
    assert submissions.left_out(tmp_path) == [f"'{name}' is not read: a list of students is called students.txt"]
    (tmp_path / "students.txt").touch()
    assert submissions.left_out(tmp_path) == []


def test_what_is_there_instead_of_a_notebook_is_named(tmp_path: Path) -> None:
    put(tmp_path, "alice", "text")
    put(tmp_path, "bob", "<html>", f"{LAB}/lab.html")
    (tmp_path / "carl" / LAB).mkdir(parents=True)
    _, bob, carl = submissions.find(tmp_path, [LAB])
    assert bob.look_at == ["missing: the folder holds no notebook, but 'lab.html'"]
    assert (carl.notes, carl.look_at) == (["missing: the folder is empty"], [])


def test_folders_of_labs_with_students_in_them_are_refused(tmp_path: Path) -> None:
    for student in ("alice", "bob"):
        put(tmp_path, LAB, "{}", f"{student}/lab.ipynb")
    with pytest.raises(submissions.NoSubmissions, match=f"in them, such as {LAB}; it must be the other way round"):
        submissions.find(tmp_path, [LAB])


def test_a_notebook_one_folder_deeper_is_named_with_that_folder(tmp_path: Path) -> None:
    put(tmp_path, "alice", "{}", f"{LAB}/inner/lab.ipynb")
    put(tmp_path, "bob", "{}", f"bob/{LAB}/lab.ipynb")
    put(tmp_path, "carl", "{}")
    put(tmp_path, "dora", "{}", f"{LAB}/.ipynb_checkpoints/lab-checkpoint.ipynb")
    alice, bob, _, dora = submissions.find(tmp_path, [LAB])
    assert alice.look_at == ["missing: the folder holds no notebook, but 'inner'; a notebook is in 'inner'"]
    assert bob.look_at == [f"missing, but there is 'bob'; a notebook is in 'bob/{LAB}'"]
    assert dora.look_at == []


@pytest.mark.parametrize("ending", [".txt", ".json", ".zip"])
def test_a_notebook_to_which_a_browser_gave_another_ending_is_to_be_renamed(tmp_path: Path, ending: str) -> None:
    put(tmp_path, "alice", "{}")
    put(tmp_path, "bob", "{}", f"{LAB}/lab.ipynb{ending}")
    _, bob = submissions.find(tmp_path, [LAB])
    file = f"'lab.ipynb{ending}'"
    asked = f"; {file} may be one: rename it to lab.ipynb" if ending != ".zip" else ""
    assert bob.look_at == [f"missing: the folder holds no notebook, but {file}{asked}"]


def test_a_working_copy_is_not_graded(tmp_path: Path) -> None:
    put(tmp_path, "labs", "{}")
    (tmp_path / ".copied.json").write_text("{}")
    with pytest.raises(submissions.NoSubmissions, match="is your working copy of the course; `make check LAB=06`"):
        submissions.find(tmp_path, [LAB])


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_a_folder_that_cannot_be_read_costs_its_student_alone(tmp_path: Path) -> None:
    put(tmp_path, "alice", "{}")
    put(tmp_path, "bob", "{}")
    (tmp_path / "bob" / LAB).chmod(0)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.owner() == "root" and folder.is_relative_to("/tmp/") and folder != Path("/tmp"):
            folder.chmod(0o755)
    reading, writing = os.pipe()
    if os.fork() == 0:
        try:
            os.setresuid(65534, 65534, 65534)
            os.write(writing, repr([each.look_at for each in submissions.find(tmp_path, [LAB])]).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.wait()
    assert os.read(reading, 4096).decode() == "[[], ['its files cannot be read: Permission denied']]"
    os.close(reading)

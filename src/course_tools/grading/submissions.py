"""What was handed in: which student, which lab, which file, when."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from course_tools.grading import deadline, roster, timestamp_file, wrong_folder
from course_tools.grading.roster import LONGEST_NAME
from course_tools.lab_sources import SOLUTION, STUDENT
from distlab.runtime.errors import PlainError

TIMESTAMP = "timestamp.txt"
# Names that a student chose are shown without control characters, and not without end.
MOST_STRAYS = 3
# Folders that programs make; all others that begin with . or _ are named.
_OF_PROGRAMS = {".git", ".ipynb_checkpoints", "__pycache__", "__MACOSX"}
# With these letters begin the files that a Mac adds to others on foreign disks and in archives.
_OF_MACS = "._"
_OF_LISTS = {".txt", ".csv", ".tsv", ".xlsx", ".xls", ".ods"}
_OF_WORK = {".ipynb", ".zip", ".tar", ".gz", ".tgz", ".xz", ".bz2", ".7z", ".rar"}


class NoSubmissions(PlainError):
    """The folder has not what grading needs; the message says what is missing."""


@dataclass
class Submission:
    """A student's notebook for a lab, `None` if there is none; `notes` are for the instructor, in our own words.

    strays: where there is none, what else lies in the student's folder and belongs to no lab, such as a zip file.
    look_at: what the instructor has to decide.
    others: the other notebooks next to `file`; a few of them.
    late_file: the time of the file, if that is what makes it late.
    """

    student: str
    lab: str
    file: Path | None = None
    notes: list[str] = field(default_factory=list)
    late: bool = False
    strays: list[str] = field(default_factory=list)
    look_at: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    late_file: datetime | None = None


def printable(text: str) -> str:
    r"""The text with escapes such as \x1b for what cannot be printed, so that it changes neither terminal nor file."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def find(folder: Path, labs: Sequence[str], due: datetime | None = None, only: bool = False) -> list[Submission]:
    """One submission for each student and lab, missing ones included; in order of students and labs.

    Students are the subfolders of `folder`, and the lines of `folder`/students.txt if there is such a file. `labs` are
    the names of all labs; expected of everybody are those that anybody has handed in, or with `only` all of them.
    Raises NoSubmissions and NotARoster.
    """
    if not folder.is_dir():
        path = folder.absolute()  # make may have been called from elsewhere
        what = f"{folder} is no folder (unpack an archive)" if folder.exists() else f"There is no folder {path}"
        raise NoSubmissions(f"{what}; set SUBMISSIONS=folder, with folder/STUDENT/NN_topic/lab.ipynb.")
    if what := wrong_folder.other_kind(folder):
        raise NoSubmissions(f"{folder} {what}.")
    try:
        students = {
            entry.name for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith((".", "_"))
        }
        listing = folder / roster.ROSTER
        listed = roster.names_in(listing) if listing.is_file() else set()
        absent = roster.without_folder(listed, students)
        unlisted = roster.unlisted(students, listed) if listed else set()
    except OSError as error:
        raise NoSubmissions(f"{error.filename} cannot be read: {error.strerror}.") from None
    turned = [lab for lab in sorted(students & set(labs)) if _deeper(folder / lab, "*/*.ipynb")]
    if turned:
        raise NoSubmissions(
            f"{folder} has folders of labs with students in them, such as {turned[0]}; it must be the other way round: "
            "folder/STUDENT/NN_topic/lab.ipynb."
        )
    if listed and students and len(absent) == len(listed) and not any(absent.values()):
        example = f"{sorted(students)[0][:LONGEST_NAME]!a}"
        raise NoSubmissions(f"No name in {listing} is that of a folder; it takes these names alone, such as {example}.")
    submissions = []
    spelled = roster.spelled_as_listed(listed, students)
    folders = {spelled.get(name, name): name for name in students | absent.keys()}
    for student, name in sorted(folders.items()):
        for lab in sorted(labs):
            submissions.append(_submission(folder / name, student, lab, due))
            if alike := absent.get(student):
                note = f"{roster.ROSTER} writes the name of the folder {alike[:LONGEST_NAME]!a} in another way"
                _note_to_look_at(submissions[-1], note)
            if name in unlisted:
                _note_to_look_at(submissions[-1], f"the folder is not in {roster.ROSTER}")
    expected = labs if only else {submission.lab for submission in submissions if submission.file is not None}
    if not expected:
        place = f"{folder}/STUDENT/NN_topic/{STUDENT}"
        raise NoSubmissions(f"No folder in {folder} holds a lab: expected is {place}{wrong_folder.hint(folder, labs)}.")
    return [submission for submission in submissions if submission.lab in expected]


def left_out(folder: Path) -> list[str]:
    """Sentences about what lies in the folder of submissions and is not taken for a student's."""
    sentences = []
    has_roster = (folder / roster.ROSTER).is_file()
    for entry in sorted(folder.iterdir()):
        name, hidden = f"{entry.name[:LONGEST_NAME]!a}", entry.name.startswith((".", "_"))
        if entry.is_dir() and hidden and entry.name not in _OF_PROGRAMS:
            sentences.append(f"{name} is left out, since it begins with . or _")
        elif entry.is_file() and not hidden and entry.suffix.lower() in _OF_WORK:
            sentences.append(f"{name} is left out, since it is in no student's folder")
        elif entry.is_file() and not (hidden or has_roster) and entry.suffix.lower() in _OF_LISTS:
            sentences.append(f"{name} is not read: a list of students is called {roster.ROSTER}")
    return sentences


def _submission(folder: Path, student: str, lab: str, due: datetime | None) -> Submission:
    submission = Submission(student, lab)
    try:
        _find_notebook(submission, folder, due)
    except OSError as error:
        submission.file = None
        _note_to_look_at(submission, f"its files cannot be read: {error.strerror}")
    return submission


def _note_to_look_at(submission: Submission, note: str) -> None:
    submission.notes.append(note)
    submission.look_at.append(note)


def _find_notebook(submission: Submission, folder: Path, due: datetime | None) -> None:
    """Fill in which notebook counts, and when it was handed in."""
    lab = submission.lab
    if folder.is_symlink():
        _note_to_look_at(submission, "missing: the folder is a link, which is not followed")
        return
    places = _places(folder, lab)
    if not places:
        submission.strays = _strays(folder)
        if submission.strays:
            deeper = _deeper(folder, f"*/{lab[:2]}*/*.ipynb")
            _note_to_look_at(submission, f"missing, but there is {', '.join(submission.strays)}{deeper}")
        else:
            submission.notes.append("missing")
        return
    if len(places) > 1:
        submission.notes.append(
            f"{len(places)} folders for this lab, {printable(places[0].name[:LONGEST_NAME])} counts"
        )
    elif places[0].name != lab:
        submission.notes.append("the folder has another name than the lab's")
    notebooks = sorted(
        entry
        for entry in places[0].iterdir()
        if entry.suffix.lower() == ".ipynb" and not entry.name.startswith(_OF_MACS)
    )
    if not notebooks:
        if strays := _visible(places[0]):
            note = f"missing: the folder holds no notebook, but {', '.join(strays)}"
            renamed = next((entry for entry in places[0].iterdir() if _is_renamed(entry)), None)
            named = f"; {_quoted(renamed)} may be one: rename it to {STUDENT}" if renamed else ""
            _note_to_look_at(submission, f"{note}{named or _deeper(places[0], '*/*.ipynb')}")
        else:
            submission.notes.append("missing: the folder is empty")
        return
    submission.file = _chosen(submission, notebooks)
    submission.others = [_quoted(entry) for entry in notebooks if entry != submission.file][:MOST_STRAYS]
    if due is not None:
        _compare_with_deadline(submission, submission.file, due)


def _chosen(submission: Submission, notebooks: Sequence[Path]) -> Path:
    """The notebook that counts, with a note on the others; one with the name of the course's solution counts last."""
    solutions = [entry for entry in notebooks if entry.name.lower() == SOLUTION]
    file = max(notebooks, key=lambda entry: (entry.name == STUDENT, entry not in solutions, _last_change(entry)))
    if file.name == STUDENT:
        if len(notebooks) > 1:
            submission.notes.append(f"{len(notebooks)} notebooks, {STUDENT} counts")
    elif solutions:
        why = "as the course's solution is called" if file in solutions else f"not {_quoted(solutions[0])}"
        _note_to_look_at(submission, f"no {STUDENT}, {_quoted(file)} counts, {why}")
    elif sum(_last_change(entry)[0] == _last_change(file)[0] for entry in notebooks) > 1:
        note = f"no {STUDENT}, {_quoted(file)} counts, though another of {len(notebooks)} notebooks has the same time"
        _note_to_look_at(submission, note)
    else:
        newest = f", the newest of {len(notebooks)} notebooks" if len(notebooks) > 1 else ""
        submission.notes.append(f"no {STUDENT}, {_quoted(file)} counts{newest}")
    return file


def _deeper(folder: Path, pattern: str) -> str:
    """Where a notebook lies deeper than it should, as when an archive held a folder; "" if there is none."""
    notebooks = (file for file in sorted(folder.glob(pattern)) if not file.name.startswith((".", "_")))
    visible = (file for file in notebooks if not file.parent.name.startswith((".", "_")))
    file = next(visible, None)
    return f"; a notebook is in {ascii(str(file.parent.relative_to(folder)))[:LONGEST_NAME]}" if file else ""


def _is_renamed(entry: Path) -> bool:
    """Whether a browser or mail program has put another ending behind that of a notebook."""
    return entry.suffix.lower() in (".txt", ".json") and Path(entry.stem).suffix.lower() == ".ipynb"


def _quoted(entry: Path) -> str:
    return ascii(entry.name[:LONGEST_NAME])


def _compare_with_deadline(submission: Submission, file: Path, due: datetime) -> None:
    """A time in timestamp.txt next to the notebook counts, as nbgrader writes it, else that of the last change."""
    changed = deadline.time_of_change(file)
    written = _written_time(submission, file.parent / TIMESTAMP)
    handed_in = written or changed
    if not deadline.can_be_of_work(handed_in):
        _note_to_look_at(
            submission,
            f"{'the time of the file' if written is None else TIMESTAMP}, {handed_in.date()}, cannot be that of the "
            f"work, which may be late or not: copy with `cp -a`, or give the time in {TIMESTAMP}",
        )
    if handed_in > due:
        minutes = int((handed_in - due).total_seconds() // 60)
        days, hours = minutes // 1440, minutes % 1440 // 60
        submission.late = True
        if written is None:
            submission.late_file = changed
        by_file = " by the time of the file" if written is None else ""
        submission.notes.append(f"late by {days} d {hours} h {minutes % 60} min{by_file}")
    elif changed > due:  # as anybody can write who hands in a folder
        _note_to_look_at(submission, f"{TIMESTAMP} says in time, but the notebook was changed after the deadline")


def _last_change(file: Path) -> tuple[float, str]:
    return file.lstat().st_mtime, file.name


def _places(folder: Path, lab: str) -> list[Path]:
    """The folders that can be meant for the lab: its name first, then those that begin with its number."""
    if not folder.is_dir():
        return []
    number = lab[:2]
    alike = [
        entry
        for entry in folder.iterdir()
        if entry.is_dir()
        and not entry.is_symlink()
        and (entry.name == number or entry.name.startswith((f"{number}_", f"{number}-", f"{number} ")))
    ]
    return sorted(alike, key=lambda entry: (entry.name != lab, entry.name))


def _strays(folder: Path) -> list[str]:
    """What may be work in the wrong place: archives, notebooks, and folders whose name begins with no chapter."""
    if not folder.is_dir():
        return []
    return _visible(folder, lambda entry: not (entry.is_dir() and re.match(r"\d\d([ _-]|$)", entry.name)))


def _visible(folder: Path, counts: Callable[[Path], object] = lambda entry: True) -> list[str]:
    """The names of what a student has put into a folder; a few of them."""
    names = [
        entry.name
        for entry in folder.iterdir()
        if not entry.name.startswith((".", "_")) and entry.name != TIMESTAMP and counts(entry)
    ]
    return [ascii(name[:LONGEST_NAME]) for name in sorted(names)[:MOST_STRAYS]]


def _written_time(submission: Submission, file: Path) -> datetime | None:
    """The time that a file says; None if there is no such file, or, with a note, no time that is understood."""
    try:
        return timestamp_file.read(file)
    except timestamp_file.NoTime as refusal:
        _note_to_look_at(submission, f"{refusal}; the last change of the notebook counts")
        return None

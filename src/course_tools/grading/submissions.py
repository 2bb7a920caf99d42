"""What was handed in: which student, which lab, which file, when."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from course_tools import working_copy
from course_tools.grading import downloads
from course_tools.lab_sources import SOLUTION, STUDENT
from distlab.runtime.errors import PlainError

ROSTER, TIMESTAMP = "students.txt", "timestamp.txt"
_LONGEST_NAME, _MOST_NAMED = 60, 3
_OF_WORK = {".ipynb", ".zip", ".tar", ".gz", ".tgz", ".xz", ".bz2", ".7z", ".rar"}


class NoSubmissions(PlainError):
    """The folder has not what grading needs; the message says what is missing."""


class NotATime(PlainError):
    """The deadline cannot be read; the message says how to write one."""


@dataclass
class Submission:
    """A student's notebook for a lab, and its row in grades.csv.

    file: the notebook, `None` if there is none.  notes: for the instructor, in our own words.
    look_at: on what the instructor has to decide.
    score: in points, None if there is no grade.  points: those of each exercise, by its name, none where there is no
        grade; late work is not yet counted less.
    """

    student: str
    lab: str
    file: Path | None = None
    notes: list[str] = field(default_factory=list)
    look_at: list[str] = field(default_factory=list)
    late: bool = False
    score: float | None = None
    max_score: float = 0.0
    points: dict[str, float] = field(default_factory=dict)

    @property
    def note(self) -> str:
        """All that the instructor should know."""
        return "; ".join([*self.notes, *self.look_at])


def printable(text: str) -> str:
    r"""The text with escapes such as \x1b for what cannot be printed, so that it changes neither terminal nor file."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def due_time(text: str) -> datetime:
    """The deadline that an instructor writes, in local time; a date alone is the end of that day. Raises NotATime."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise NotATime(f"{text!r} is not a time: write --due '2026-11-20 18:00'.") from None
    return (time + timedelta(days=1, seconds=-1) if len(text) <= len("2026-11-20") else time).astimezone()


def find(folder: Path, labs: Sequence[str], due: datetime | None = None, only: bool = False) -> list[Submission]:
    """One submission for each student and lab, missing ones included; in order of students and labs.

    `folder` has a folder per student with a folder per lab in it, or the other way round; nbgrader's course folder has
    it as `submitted`. Students are these folders, and those in `folder`/students.txt if there is such a file.
    Expected of everybody are the labs that anybody has handed in, or with `only` all `labs`. Raises NoSubmissions.
    """
    if (folder / "submitted").is_dir() and (folder / "nbgrader_config.py").exists():
        folder = folder / "submitted"
    if not folder.is_dir() or working_copy.is_copy(folder) or (folder / "labs" / "nbgrader_config.py").exists():
        what = "the course or a copy of it" if folder.is_dir() else "no folder that there is"
        raise NoSubmissions(f"{folder} is {what}; set SUBMISSIONS=folder, with folder/STUDENT/NN_topic/lab.ipynb.")
    by_lab = [place for place in _folders(folder) if place.name in labs]
    homes = [home for place in by_lab for home in _folders(place)] if by_lab else _folders(folder)
    names = roster(folder)
    called = {home: names.get(_name(home.name), _name(home.name)) for home in homes}
    submissions = [
        _submission(student, lab, [home for home in homes if called[home] == student], bool(by_lab), due)
        for student in sorted({*called.values(), *names.values()})
        for lab in sorted(labs)
    ]
    for submission in submissions:
        if names and submission.student not in names:
            submission.look_at.append(f"the folder is not in {ROSTER}")
    handed_in = {submission.lab for submission in submissions if submission.file is not None}
    if not handed_in:
        raise NoSubmissions(f"No folder in {folder} holds a lab: expected is {folder}/STUDENT/NN_topic/{STUDENT}.")
    expected = labs if only else handed_in
    return [submission for submission in submissions if submission.lab in expected]


def left_out(folder: Path) -> list[str]:
    """Sentences about work that lies in the folder of submissions and is in no student's."""
    work = [entry.name for entry in folder.iterdir() if entry.is_file() and entry.suffix.lower() in _OF_WORK]
    return [f"{_quoted([name])} is left out, since it is in no student's folder" for name in sorted(work)]


def by_student(folder: Path, labs: Sequence[str], scratch: Path) -> Path:
    """The folder, or a copy in `scratch` with a folder for each student if it is the download of a platform.

    Raises NoSubmissions if it is one and `labs` are several.
    """
    name = downloads.platform(folder) if folder.is_dir() else ""
    if not name:
        return folder
    if len(labs) > 1:
        raise NoSubmissions(f"{folder} looks like a download of {name}, which holds one lab: name it with ONLY=06.")
    downloads.sort(folder, labs[0], roster(folder), scratch)
    return scratch


def roster(folder: Path) -> dict[str, str]:
    """The students in `folder`/students.txt, one per line, by each of their names: "ada = Ada King, 10345".

    # in front of a line or after a blank begins a comment. Raises NoSubmissions if it cannot be read.
    """
    file = folder / ROSTER
    if not file.is_file():
        return {}
    try:
        text = file.read_text(encoding="utf-8-sig")  # as Excel and Notepad write it, too
    except UnicodeDecodeError:
        raise NoSubmissions(f"{file} is not in UTF-8; save it as UTF-8 text, a name in each line.") from None
    students: dict[str, str] = {}
    for line in text.splitlines():
        name, _, others = _name(re.sub(r"(^|\s)#.*", "", line).strip()).partition(" = ")
        students |= dict.fromkeys([name.strip(), *map(str.strip, others.split(","))], name.strip())
    students.pop("", None)
    for name in sorted(set(students.values())):
        if name in (".", "..") or "/" in name or ";" in name or not name.isprintable() or len(name.encode()) > 255:
            raise NoSubmissions(f"{file} has a line that cannot be a folder's name: {name[:_LONGEST_NAME]!a}.")
    return students


def _submission(student: str, lab: str, homes: Sequence[Path], by_lab: bool, due: datetime | None) -> Submission:
    """Which notebook of a student counts for a lab, and when it was handed in."""
    found = Submission(student, lab)
    if by_lab:
        places = [home for home in homes if home.parent.name == lab]
    else:
        alike = [place for home in homes for place in _folders(home) if re.match(rf"{lab[:2]}([ _-]|$)", place.name)]
        places = sorted(alike, key=lambda place: (place.name != lab, place.name))
    entries = [entry for home in places[:1] or homes for entry in _visible(home)]
    notebooks = [entry for entry in entries if places and entry.suffix.lower() == ".ipynb"]
    if not notebooks:
        others = r"\d\d([ _-]|$)"  # labs' folders, where there is none of this one
        strays = [entry.name for entry in entries if places or not (by_lab or re.match(others, entry.name))]
        but = f", but there is {_quoted(strays)}" if strays else ""
        (found.look_at if strays else found.notes).append(f"missing{but}")
        return found
    if len(places) > 1:
        found.notes.append(f"{len(places)} folders for this lab, {_quoted([places[0].name])} counts")
    elif places[0].name != lab and not by_lab:
        found.notes.append("the folder has another name than the lab's")
    # lab.ipynb counts, without it the newest, the course's solution last.
    found.file = max(notebooks, key=lambda file: (file.name == STUDENT, file.name != SOLUTION, file.lstat().st_mtime))
    name = _quoted([found.file.name])
    if found.file.name == SOLUTION:
        found.look_at.append(f"no {STUDENT}, {name} counts, as the course's solution is called")
    elif len(notebooks) > 1:
        found.notes.append(f"{len(notebooks)} notebooks, {name} counts")
    elif found.file.name != STUDENT:
        found.notes.append(f"no {STUDENT}, {name} counts")
    if due is not None:
        _compare(found, found.file, due)
    return found


def _compare(found: Submission, file: Path, due: datetime) -> None:
    """A time in timestamp.txt next to the notebook counts, as nbgrader writes it, else that of the last change."""
    changed = handed_in = datetime.fromtimestamp(min(file.lstat().st_mtime, 2**37), UTC)
    stamp = file.with_name(TIMESTAMP)
    if stamp.is_file() and not stamp.is_symlink():
        text = stamp.open("rb").read(100).decode(errors="replace").strip()
        try:
            handed_in = datetime.fromisoformat(text.replace(" UTC", "+00:00")).astimezone()
        except (ValueError, OverflowError):
            found.look_at.append(f"{TIMESTAMP} says {text[:40]!a}, which is no time; that of the file counts")
    if handed_in > due:
        found.late = True
        by_file = " by the time of the file" if handed_in is changed else ""
        found.notes.append(f"late by {timedelta(seconds=int((handed_in - due).total_seconds()))}{by_file}")
    elif changed > due:  # as anybody can write who hands in a folder
        found.look_at.append(f"{TIMESTAMP} says in time, but the notebook was changed after the deadline")


def _folders(folder: Path) -> list[Path]:
    return [entry for entry in _visible(folder) if entry.is_dir()]


def _visible(folder: Path) -> list[Path]:
    """What is in it, without hidden files, those that programs make, and links to folders."""
    entries = [entry for entry in folder.iterdir() if not entry.name.startswith((".", "_")) and entry.name != TIMESTAMP]
    return sorted(entry for entry in entries if not (entry.is_symlink() and entry.is_dir()))


def _name(name: str) -> str:
    """The name as editors write it: macOS takes umlauts apart."""
    return unicodedata.normalize("NFC", name)


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(ascii(name[:_LONGEST_NAME]) for name in [*names][:_MOST_NAMED])

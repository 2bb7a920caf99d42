"""What was handed in: which student, which lab, which file, when."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from course_tools import working_copy
from course_tools.grading import downloads
from course_tools.grading.submission import Submission
from course_tools.lab_sources import SOLUTION, STUDENT
from distlab.runtime.errors import PlainError

ROSTER, TIMESTAMP = "students.txt", "timestamp.txt"
_LONGEST_NAME, _MOST_NAMED = 60, 3
_OF_WORK = {".ipynb", ".zip", ".tar", ".gz", ".tgz", ".xz", ".bz2", ".7z", ".rar"}


class _Work(NamedTuple):
    """A file of a student: the name of the folder that says the lab, its own name, its time in seconds."""

    place: str
    name: str
    file: Path
    time: float


def find(folder: Path, labs: Sequence[str], due: datetime | None = None, only: bool = False) -> list[Submission]:
    """One submission for each student and lab, missing ones included; in order of students and labs.

    `folder` has a folder per student with a folder per lab in it, or the other way round; nbgrader's course folder has
    it as `submitted`; or it is the download of a platform, which holds one lab. Students are these folders, and those
    in `folder`/students.txt if there is such a file.
    Expected of everybody are the labs that anybody has handed in, or with `only` all `labs`. Raises PlainError.
    """
    if (folder / "submitted").is_dir() and (folder / "nbgrader_config.py").exists():
        folder = folder / "submitted"
    if not folder.is_dir() or working_copy.is_copy(folder) or (folder / "labs" / "nbgrader_config.py").exists():
        what = "the course or a copy of it" if folder.is_dir() else "no folder that there is"
        raise PlainError(f"{folder} is {what}; set SUBMISSIONS=folder, with folder/STUDENT/NN_topic/lab.ipynb.")
    names = roster(folder)
    works = _works(folder, labs, names)
    students = sorted({*works, *names.values()})
    submissions = [_submission(student, lab, works[student], due) for student in students for lab in sorted(labs)]
    for submission in submissions:
        if names and submission.student not in names:
            submission.look_at.append(f"the folder is not in {ROSTER}")
    handed_in = {submission.lab for submission in submissions if submission.file is not None}
    if not handed_in:
        raise PlainError(f"No folder in {folder} holds a lab: expected is {folder}/STUDENT/NN_topic/{STUDENT}.")
    expected = labs if only else handed_in
    return [submission for submission in submissions if submission.lab in expected]


def left_out(folder: Path) -> list[str]:
    """Sentences about work that lies in the folder of submissions and is in no student's."""
    of_students = [path for path, *_ in downloads.entries(folder, downloads.platform(folder), {})]
    files = [path for path in folder.iterdir() if path.is_file() and path.suffix.lower() in _OF_WORK]
    work = sorted(path.name for path in files if path not in of_students)
    return [f"{_quoted([name])} is left out, since it is in no student's folder" for name in work]


def roster(folder: Path) -> dict[str, str]:
    """The students in `folder`/students.txt, one per line, by each of their names: "ada = Ada King, 10345".

    # in front of a line or after a blank begins a comment. Raises PlainError if it cannot be read.
    """
    file = folder / ROSTER
    if not file.is_file():
        return {}
    try:
        text = file.read_text(encoding="utf-8-sig")  # as Excel and Notepad write it, too
    except UnicodeDecodeError:
        raise PlainError(f"{file} is not in UTF-8; save it as UTF-8 text, a name in each line.") from None
    students: dict[str, str] = {}
    for line in text.splitlines():
        name, _, others = _name(re.sub(r"(^|\s)#.*", "", line).strip()).partition(" = ")
        students |= dict.fromkeys([name.strip(), *map(str.strip, others.split(","))], name.strip())
    students.pop("", None)
    for name in sorted(set(students.values())):
        if name in (".", "..") or "/" in name or ";" in name or not name.isprintable() or len(name.encode()) > 255:
            raise PlainError(f"{file} has a line that cannot be a folder's name: {name[:_LONGEST_NAME]!a}.")
    return students


def _works(folder: Path, labs: Sequence[str], students: dict[str, str]) -> dict[str, list[_Work]]:
    """The files of each student. Raises PlainError for the download of a platform if `labs` are several."""
    works: dict[str, list[_Work]] = defaultdict(list)
    if platform := downloads.platform(folder):
        if len(labs) > 1:
            say = f"{folder} looks like a download of {platform}, which holds one lab"
            raise PlainError(f"{say}: name it with ONLY=06.")
        for path, student, name, time in downloads.entries(folder, platform, students):
            files = _files(path, labs[0]) if path.is_dir() else [_Work(labs[0], name, path, _time(path))]
            works[student] += [work._replace(time=time or work.time) for work in files]
        return works
    by_lab = [place for place in _folders(folder) if place.name in labs]
    for home in [home for place in by_lab for home in _folders(place)] if by_lab else _folders(folder):
        name = _name(home.name)
        works[students.get(name, name)] += _files(home, home.parent.name if by_lab else "")
    return works


def _files(home: Path, lab: str) -> list[_Work]:
    """What lies in a student's folder, as work for `lab`, and in the folders in it."""
    found = [(lab, path) for path in _visible(home) if not path.is_dir()]
    found += [(place.name, path) for place in _folders(home) for path in _visible(place)]
    return [_Work(place, path.name, path, _time(path)) for place, path in found]


def _submission(student: str, lab: str, works: Sequence[_Work], due: datetime | None) -> Submission:
    """Which notebook of a student counts for a lab, and whether it is late."""
    found, number = Submission(student, lab), lab[:2]
    of_lab = [work for work in works if re.match(rf"{number}([ _-]|$)", work.place)]
    notebooks = [work for work in of_lab if work.file.suffix.lower() == ".ipynb"]
    if not notebooks:
        strays = [work.name for work in works if not re.match(rf"(?!{number})\d\d([ _-]|$)", work.place)]
        but = f", but there is {_quoted(strays)}" if strays else ""
        (found.look_at if strays else found.notes).append(f"missing{but}")
        return found
    # lab.ipynb counts, without it the newest, the course's solution last.
    rank = [(work.name == STUDENT, work.name != SOLUTION, work.place == lab, work.time) for work in notebooks]
    work = notebooks[rank.index(max(rank))]
    found.file, counts = work.file, f"{_quoted([f'{work.place}/{work.name}'])} counts"
    odd = found.look_at if work.name == SOLUTION else found.notes
    if len(notebooks) > 1:
        odd.append(f"{len(notebooks)} notebooks, {counts}")
    elif (work.place, work.name) != (lab, STUDENT):
        odd.append(counts)
    if due is not None:
        _compare(found, work, due.timestamp())
    return found


def _compare(found: Submission, work: _Work, due: float) -> None:
    if work.time > due:
        found.notes.append(f"late by {(work.time - due) / 3600:,.1f} hours")
    elif work.file.with_name(TIMESTAMP).exists() and work.file.lstat().st_mtime > due:  # who hands it in may write it
        found.look_at.append(f"{TIMESTAMP} says in time, but the notebook was changed after the deadline")


def _time(file: Path) -> float:
    """When it was handed in, in seconds: the time in timestamp.txt next to it, as nbgrader writes it, else its own."""
    stamp = file.with_name(TIMESTAMP)
    if stamp.is_file() and not stamp.is_symlink():
        with suppress(ValueError, OverflowError, OSError):
            text = stamp.open("rb").read(100).decode().strip()
            return datetime.fromisoformat(text.replace(" UTC", "+00:00")).timestamp()
    return file.lstat().st_mtime


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

"""What was handed in: which student, which lab, which file, when; and all that grading makes of it."""

import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from course_tools import working_copy
from course_tools.lab_sources import SOLUTION, STUDENT
from distlab.labs.verdict import NOT_DONE, RIGHT, Picture, Verdict
from distlab.runtime.errors import PlainError

ROSTER, TIMESTAMP = "students.txt", "timestamp.txt"
_LONGEST_NAME, _MOST_NAMED = 60, 3
_OF_WORK = {".ipynb", ".zip", ".tar", ".gz", ".tgz", ".xz", ".bz2", ".7z", ".rar"}
_ID = r"(?P<id>\d+)"
_NOTEBOOK = r"(?P<file>.+\.ipynb)"
# What learning platforms call a folder for each student with the notebook in it, or a file for each notebook.
_PLATFORMS = {
    # A team has no number.
    "Moodle": rf"(?P<name>.+?)(?:_{_ID})?_assignsubmission_(?:[a-z]+_{_NOTEBOOK}|\w+)",
    "Brightspace": rf"{_ID}-\d+ - (?P<name>.+?) - (?P<time>\w+ \d+, \d+ \d+ [AP]M)(?: - {_NOTEBOOK})?",
    "ILIAS": rf"[^_]+_[^_]+_(?P<name>[^_]+)_{_ID}",
    "Gradescope": rf"submission_{_ID}",
    "Canvas": rf"(?:(?P<name>.+?)_)??(?:LATE_)?(?P<id>\d+|anon_\w+?)_\d+_{_NOTEBOOK}",
    "Blackboard": rf"(?P<name>.+)_attempt_(?P<time>\d{{4}}(?:-\d\d){{5}})_{_NOTEBOOK}",
}
_WITH_NUMBER = ("Canvas", "Moodle", "Brightspace")
_OF_GRADESCOPE = re.compile(
    r"^submission_(\d+):(?:(?!^submission_).)*?:(?:sid|email|name): ['\"]?([^'\"\n]+)", re.MULTILINE | re.DOTALL
)


@dataclass
class Graded:
    """An exercise, not done yet: points, the answer's text, the end of what it printed, how it failed, the verdict."""

    name: str
    most: float
    text: str = ""
    printed: str = ""
    error: str = ""
    verdict: Verdict = Verdict(NOT_DONE)  # noqa: RUF009  # it is frozen
    picture: Picture | None = None

    @property
    def points(self) -> float:
        """To a hundredth of a point."""
        return round(self.most * self.verdict.share, 2)


@dataclass
class Submission:
    """A student's notebook for a lab, and what comes of it: a page of feedback and a row in grades.csv.

    file: the notebook, `None` if there is none.  notes: for the instructor, in our own words.
    look_at: on what the instructor has to decide.  failed: how other cells failed, by name.
    copied: exercises that are answered in several cells, of which the last one counts.
    troubles: what went wrong with the grader or its machine: then this is no grade.
    """

    student: str
    lab: str
    file: Path | None = None
    notes: list[str] = field(default_factory=list)
    look_at: list[str] = field(default_factory=list)
    exercises: list[Graded] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    copied: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)

    @property
    def note(self) -> str:
        """All that the instructor should know."""
        cells = [f"the cell of {each.name}" for each in self.exercises if each.error and each.verdict.state != RIGHT]
        failed = [f"{name} failed" for name in (*self.failed, *cells)]
        return "; ".join([*self.notes, *failed, *self.look_at])

    @property
    def points(self) -> dict[str, float]:
        """Those of each exercise, by its name; none where there is no grade."""
        return {} if self.troubles else {each.name: each.points for each in self.exercises}

    @property
    def score(self) -> float | None:
        """The sum of the points, None if there is no grade."""
        return None if self.troubles else round(sum(self.points.values()), 2)

    @property
    def max_score(self) -> float:
        """What all exercises are worth together."""
        return sum(each.most for each in self.exercises)


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
    works: dict[str, list[_Work]] = defaultdict(list)
    for called, files in _of_platform(folder, labs) or _of_folders(folder, labs):
        works[next((names[name] for name in called if name in names), called[0])] += files
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
    _, of_students = _download(folder)
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
    for line in unicodedata.normalize("NFC", text).splitlines():
        name, _, others = re.sub(r"(^|\s)#.*", "", line).strip().partition(" = ")
        students |= dict.fromkeys([name.strip(), *map(str.strip, others.split(","))], name.strip())
    students.pop("", None)
    for name in sorted(set(students.values())):
        if name in (".", "..") or "/" in name or ";" in name or not name.isprintable() or len(name.encode()) > 255:
            raise PlainError(f"{file} has a line that cannot be a folder's name: {name[:_LONGEST_NAME]!a}.")
    return students


def _download(folder: Path) -> tuple[str, dict[Path, re.Match[str]]]:
    """The platform whose download the folder is, "" if it is none that is known, and its students' entries."""
    visible = [path for path in _visible(folder) if path.is_dir() or path.suffix.lower() == ".ipynb"]
    folders = {path for path in visible if path.is_dir()}
    for platform, form in _PLATFORMS.items():
        found = {path: match for path in visible if (match := re.fullmatch(form, path.name, re.IGNORECASE))}
        found = {path: match for path, match in found.items() if path.is_dir() != bool(match.groupdict().get("file"))}
        if (folders and folders <= set(found)) or set(found) - folders:
            return platform, found
    return "", {}


def _of_platform(folder: Path, labs: Sequence[str]) -> list[tuple[list[str], list[_Work]]]:
    """What each student with files in a download is called, [] if it is none. Raises PlainError if `labs` are several.

    The list has the platform's names for them: name and number, "Jane Doe_10345", each of both; at Blackboard and ILIAS
    first comes the login, at Gradescope the name.
    """
    platform, entries = _download(folder)
    if platform and len(labs) > 1:
        raise PlainError(f"{folder} looks like a download of {platform}, which holds one lab: name it with ONLY=06.")
    about = folder / "submission_metadata.yml"
    names = dict(_OF_GRADESCOPE.findall(about.read_text(errors="replace"))) if about.is_file() else {}
    # At Blackboard the name of the exercise is in front of the login; both may have a _ in them.
    logins = [match["name"] for match in entries.values() if platform == "Blackboard"]
    exercise = f"{os.path.commonprefix(logins).rpartition('_')[0]}_" if logins else ""  # noqa: RUF071
    found = []
    for path, match in entries.items():
        known = match.groupdict("")
        number, time = known.get("id", ""), _seconds(known.get("time", ""))
        name = (known.get("name") or names.get(number, "")).removeprefix(exercise)
        unique = "_".join(filter(None, [name, number])) if platform in _WITH_NUMBER else name or path.name
        files = _files(path, labs[0]) if path.is_dir() else [_Work(labs[0], known["file"], path, _time(path))]
        found.append(([unique, name, number], [work._replace(time=time or work.time) for work in files]))
    return found


def _of_folders(folder: Path, labs: Sequence[str]) -> list[tuple[list[str], list[_Work]]]:
    """Each student's name and files, where there is a folder per student, or a folder per lab with those in it."""
    by_lab = [place for place in _folders(folder) if place.name in labs]
    homes = [(home, place.name) for place in by_lab for home in _folders(place)]
    homes = homes or [(home, "") for home in _folders(folder) if not by_lab]
    # A name as editors write it: macOS takes umlauts apart.
    return [([unicodedata.normalize("NFC", home.name)], _files(home, lab)) for home, lab in homes]


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
    late = work.time - due.timestamp() if due else 0.0
    if late > 0:
        found.notes.append(f"late by {late / 3600:,.1f} hours")
    elif due and work.file.with_name(TIMESTAMP).exists() and work.file.lstat().st_mtime > due.timestamp():
        # Who hands it in may write that file.
        found.look_at.append(f"{TIMESTAMP} says in time, but the notebook was changed after the deadline")
    return found


def _time(file: Path) -> float:
    """When it was handed in, in seconds: the time in timestamp.txt next to it, as nbgrader writes it, else its own."""
    stamp, written = file.with_name(TIMESTAMP), 0.0
    if stamp.is_file() and not stamp.is_symlink():
        with suppress(OSError), stamp.open(encoding="latin-1") as stream:
            written = _seconds(stream.read(100))
    return written or file.lstat().st_mtime


def _seconds(text: str) -> float:
    """A time as nbgrader, Blackboard or Brightspace write it, in seconds; 0 for any other text."""
    text = re.sub(r"\b(?=\d{3} [AP]M)", "0", text.strip()).replace(" UTC", "+00:00")
    for form in (None, "%Y-%m-%d-%H-%M-%S", "%b %d, %Y %I%M %p"):
        with suppress(ValueError, OverflowError, OSError):
            return (datetime.strptime(text, form) if form else datetime.fromisoformat(text)).timestamp()
    return 0.0


def _folders(folder: Path) -> list[Path]:
    return [entry for entry in _visible(folder) if entry.is_dir()]


def _visible(folder: Path) -> list[Path]:
    """What is in it, without hidden files, those that programs make, and links to folders."""
    entries = [entry for entry in folder.iterdir() if not entry.name.startswith((".", "_")) and entry.name != TIMESTAMP]
    return sorted(entry for entry in entries if not (entry.is_symlink() and entry.is_dir()))


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(ascii(name[:_LONGEST_NAME]) for name in [*names][:_MOST_NAMED])


def printable(text: str) -> str:
    r"""The text with escapes such as \x1b for what cannot be printed, so that it changes neither terminal nor file."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)

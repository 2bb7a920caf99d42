"""Downloads of learning platforms, which hold one lab: a copy of their notebooks with a folder for each student."""

import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path

_ID = r"(?P<id>\d+)"
_NOTEBOOK = r"(?P<file>.+\.ipynb)"
_MOODLE = rf"(?P<name>.+?)(?:_{_ID})?_assignsubmission_"  # a team has no number
_BRIGHTSPACE = rf"{_ID}-\d+ - (?P<name>.+?) - (?P<time>\w+ \d+, \d+ \d+ [AP]M)"
# A file for each notebook: its student, and its own name.
_FILES = {
    "Canvas": re.compile(rf"(?:(?P<name>.+?)_)??(?:LATE_)?(?P<id>\d+|anon_\w+?)_\d+_{_NOTEBOOK}", re.IGNORECASE),
    "Blackboard": re.compile(rf"(?P<name>.+)_attempt_(?P<time>\d{{4}}(?:-\d\d){{5}})_{_NOTEBOOK}", re.IGNORECASE),
    "Moodle": re.compile(rf"{_MOODLE}[a-z]+_{_NOTEBOOK}", re.IGNORECASE),
    "Brightspace": re.compile(rf"{_BRIGHTSPACE} - {_NOTEBOOK}", re.IGNORECASE),
}
# A folder for each student, with the notebook in it.
_FOLDERS = {
    "Moodle": re.compile(rf"{_MOODLE}\w+"),
    "Brightspace": re.compile(_BRIGHTSPACE),
    "ILIAS": re.compile(rf"[^_]+_[^_]+_(?P<name>[^_]+)_{_ID}"),
    "Gradescope": re.compile(rf"submission_{_ID}"),
}
_WITH_NUMBER = ("Canvas", "Moodle", "Brightspace")
_OF_GRADESCOPE = re.compile(
    r"^submission_(\d+):(?:(?!^submission_).)*?:(?:sid|email|name): ['\"]?([^'\"\n]+)", re.MULTILINE | re.DOTALL
)


def platform(folder: Path) -> str:
    """The platform whose download the folder is; "" if it is none that is known."""
    entries = [entry for entry in folder.iterdir() if not entry.name.startswith((".", "_"))]
    folders = [entry.name for entry in entries if entry.is_dir()]
    for name, pattern in _FOLDERS.items():
        if folders and all(pattern.fullmatch(each) for each in folders):
            return name
    files = [entry.name for entry in entries if entry.suffix.lower() == ".ipynb"]
    return next((name for name, pattern in _FILES.items() if any(map(pattern.fullmatch, files))), "")


def sort(folder: Path, lab: str, students: Mapping[str, str], to: Path) -> None:
    """Copy the notebooks of a download to `to`/STUDENT/`lab`, and .txt files (names, times); of others the names.

    students: how students are called, by the name or the number that the platform gives them; otherwise they are called
    by both, "Jane Doe_10345", at Blackboard and ILIAS by their login, at Gradescope by their name.
    """
    of, about = platform(folder), folder / "submission_metadata.yml"
    names = dict(_OF_GRADESCOPE.findall(about.read_text(errors="replace"))) if about.is_file() else {}
    matches = {entry: _match(entry, of) for entry in sorted(folder.iterdir()) if entry != about}
    # At Blackboard the name of the exercise is in front of the login; both may have a _ in them.
    logins = [match["name"] for match in matches.values() if match and of == "Blackboard"]
    exercise = f"{os.path.commonprefix(logins).rpartition('_')[0]}_" if logins else ""  # noqa: RUF071
    for entry, match in sorted(matches.items(), key=lambda item: _time(item[1])):  # the last attempt is copied last
        if match is None:
            if entry.is_file():
                _copy(entry, to / entry.name)
            continue
        known = match.groupdict()
        number = known.get("id") or ""
        name = (known.get("name") or names.get(number, "")).removeprefix(exercise)
        unique = "_".join(filter(None, [name, number])) if of in _WITH_NUMBER else name or entry.name
        home = to / next((students[each] for each in (unique, name, number) if each in students), unique)
        home.mkdir(parents=True, exist_ok=True)
        for file in [entry] if entry.is_file() else sorted(entry.rglob("*")):
            is_loose = file.parent == entry and file.suffix.lower() == ".ipynb"
            place = Path(lab, known.get("file", file.name)) if file == entry or is_loose else file.relative_to(entry)
            if file.is_file() and not file.is_symlink():
                _copy(file, home / place, _time(match))


def _match(entry: Path, of: str) -> re.Match[str] | None:
    pattern = (_FOLDERS if entry.is_dir() else _FILES).get(of)
    return pattern.fullmatch(entry.name) if pattern and not entry.is_symlink() else None


def _time(match: re.Match[str] | None) -> float:
    """When it was handed in, in seconds, 0 if the name does not say it."""
    text = str(match.groupdict().get("time")) if match else ""
    for form in ("%Y-%m-%d-%H-%M-%S", "%b %d, %Y %I%M %p"):
        with suppress(ValueError):
            return datetime.strptime(re.sub(r"\b(?=\d{3} )", "0", text), form).timestamp()
    return 0.0


def _copy(file: Path, target: Path, time: float = 0.0) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix.lower() in (".ipynb", ".txt"):
        shutil.copy2(file, target)
    else:
        target.touch()
    if time:
        os.utime(target, (time, time))

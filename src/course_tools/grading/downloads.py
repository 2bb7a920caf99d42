"""Downloads of learning platforms, which hold one lab: a copy of their notebooks with a folder for each student."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

_ID = r"(?P<id>\d+)"
# A file for each notebook: its student, and its own name.
_FILES = {
    "Canvas": re.compile(rf"(?P<name>[^_]+)_(?:LATE_)?{_ID}_\d+_(?P<file>.+\.ipynb)", re.IGNORECASE),
    "Blackboard": re.compile(
        r".+_(?P<name>[^_]+)_attempt_(?P<time>\d{4}(?:-\d\d){5})_(?P<file>.+\.ipynb)", re.IGNORECASE
    ),
}
# A folder for each student, with the notebook in it.
_FOLDERS = {
    "Moodle": re.compile(rf"(?P<name>.+)_{_ID}_assignsubmission_\w+_"),
    "ILIAS": re.compile(rf"[^_]+_[^_]+_(?P<name>[^_]+)_{_ID}"),
    "Gradescope": re.compile(rf"submission_{_ID}"),
}
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
    """Copy the notebooks of a download to `to`/STUDENT/`lab`; of all other files only the names.

    students: how students are called, by the name or the number that the platform gives them; otherwise they are called
    by both, "Jane Doe_10345", at Blackboard and ILIAS by their login.
    """
    of = platform(folder)
    names = {}
    if (about := folder / "submission_metadata.yml").is_file():
        names = dict(_OF_GRADESCOPE.findall(about.read_text(errors="replace")))
    for entry in sorted(folder.iterdir()):
        match = {**_FILES, **_FOLDERS}[of].fullmatch(entry.name)
        if match is None or entry.is_symlink():
            if entry.is_file() and entry != about:
                _copy(entry, to / entry.name)
            continue
        known = match.groupdict()
        number = known.get("id", "")
        name = known.get("name") or names.get(number, "")
        unique = f"{name}_{number}" if of in ("Canvas", "Moodle") else name or entry.name
        student = next((students[each] for each in (unique, name, number) if each in students), unique)
        if entry.is_file():  # of several attempts the last one is copied last
            _copy(entry, target := to / student / lab / known["file"])
            if "time" in known:
                os.utime(target, (datetime.strptime(known["time"], "%Y-%m-%d-%H-%M-%S").timestamp(),) * 2)
            continue
        (to / student).mkdir(parents=True, exist_ok=True)
        for file in _files(entry):
            within = file.relative_to(entry)
            is_loose = within == Path(file.name) and file.suffix.lower() == ".ipynb"
            _copy(file, to / student / (Path(lab, file.name) if is_loose else within))


def _files(folder: Path) -> Iterator[Path]:
    return (file for file in sorted(folder.rglob("*")) if file.is_file() and not file.is_symlink())


def _copy(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix.lower() in (".ipynb", ".txt"):
        shutil.copy2(file, target)
    else:
        target.touch()

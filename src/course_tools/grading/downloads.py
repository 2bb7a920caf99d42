"""Downloads of learning platforms, which hold one lab: whose each of their files and folders is."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path

_ID = r"(?P<id>\d+)"
_NOTEBOOK = r"(?P<file>.+\.ipynb)"
# What they call a folder for each student with the notebook in it, or a file for each notebook: its student, its name.
_ENTRIES = {
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


def platform(folder: Path) -> str:
    """The platform whose download the folder is; "" if it is none that is known."""
    visible = [path for path in folder.iterdir() if not path.name.startswith((".", "_"))]
    folders = [path for path in visible if path.is_dir()]
    files = [path for path in visible if path.suffix.lower() == ".ipynb"]
    for name in _ENTRIES:
        of_folders = folders and all(_match(path, name) for path in folders)
        if of_folders or any(_match(path, name) for path in files):
            return name
    return ""


def entries(folder: Path, of: str, students: Mapping[str, str]) -> list[tuple[Path, str, str, float]]:
    """The students' files and folders in a download: path, student, own name, and time in seconds, 0 if not known.

    students: how they are called, by the name or the number that the platform gives them; otherwise they are called by
    both, "Jane Doe_10345", at Blackboard and ILIAS by their login, at Gradescope by their name.
    """
    about = folder / "submission_metadata.yml"
    names = dict(_OF_GRADESCOPE.findall(about.read_text(errors="replace"))) if about.is_file() else {}
    matches = {path: match for path in sorted(folder.iterdir()) if (match := _match(path, of))}
    # At Blackboard the name of the exercise is in front of the login; both may have a _ in them.
    logins = [match["name"] for match in matches.values() if of == "Blackboard"]
    exercise = f"{os.path.commonprefix(logins).rpartition('_')[0]}_" if logins else ""  # noqa: RUF071
    found = []
    for path, match in matches.items():
        known = match.groupdict("")
        number = known.get("id", "")
        name = (known.get("name") or names.get(number, "")).removeprefix(exercise)
        unique = "_".join(filter(None, [name, number])) if of in _WITH_NUMBER else name or path.name
        student = next((students[each] for each in (unique, name, number) if each in students), unique)
        found.append((path, student, known.get("file") or path.name, _time(known.get("time", ""))))
    return found


def _match(path: Path, of: str) -> re.Match[str] | None:
    """Of a folder, or of a notebook, by its name."""
    match = re.fullmatch(_ENTRIES.get(of, ""), path.name, re.IGNORECASE)
    is_file = bool(match and match.groupdict().get("file"))
    return None if path.is_symlink() or path.is_dir() == is_file else match


def _time(text: str) -> float:
    for form in ("%Y-%m-%d-%H-%M-%S", "%b %d, %Y %I%M %p"):
        with suppress(ValueError):
            return datetime.strptime(re.sub(r"\b(?=\d{3} )", "0", text), form).timestamp()
    return 0.0

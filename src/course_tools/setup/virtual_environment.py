"""The course's Python environment, `.venv`: whether it is whole, and what would have to be done.

It is whole when `.venv/ready` says of what it was made, no `.venv/unfinished` is there, and every file of every package
exists. This module and `make_environment` import the standard library only: nothing is installed yet.
"""

import csv
import hashlib
import json
import os
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

OLDEST, NEWEST = (3, 11), (3, 13)
BYTES_NEEDED = 3_500_000_000

_LONGEST_CHAIN = 10


class EnvironmentNotMade(Exception):
    """The environment could not be made; the message is one sentence that says why and what to do."""


@dataclass(frozen=True)
class EnvironmentRecord:
    """What `.venv/ready` holds: of what the environment was made, and which packages are in it.

    course: the checkout's folder, which the environment's programs contain.  lock, project: digests of
    requirements.lock and pyproject.toml.  packages: the names of the folders with their metadata.
    """

    course: str
    lock: str
    project: str
    packages: tuple[str, ...]


class Environment:
    """The folder `.venv` of a checkout."""

    def __init__(self, course: Path) -> None:
        """For the checkout in the folder `course`."""
        self.course, self.folder = course, course / ".venv"
        self.lock = course / ".venv.lock"  # beside .venv, which may be removed
        self.before = course / ".venv.before"  # what set-up replaces, until the new one is whole
        self.ready, self.unfinished = self.folder / "ready", self.folder / "unfinished"
        self.python, self.log = self.folder / "bin" / "python", self.folder / "setup.log"

    def record(self) -> EnvironmentRecord | None:
        """What `ready` holds; None when there is none, or none that can be read."""
        try:
            content = json.loads(self.ready.read_text())
            return EnvironmentRecord(content["course"], content["lock"], content["project"], tuple(content["packages"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def sources(self) -> tuple[str, str]:
        """The digests of requirements.lock and pyproject.toml. Raises EnvironmentNotMade when one cannot be read."""
        return _digest(self.course / "requirements.lock"), _digest(self.course / "pyproject.toml")

    def packages(self) -> dict[str, Path]:
        """The folders with the metadata of installed packages, by name."""
        return {folder.name: folder for folder in self.folder.glob("lib/python3.*/site-packages/*.dist-info")}

    def missing(self, packages: tuple[str, ...]) -> list[str]:
        """The files of these packages that are not there or damaged, and packages of which nothing is left."""
        folders = self.packages()
        missing = [name for name in packages if name not in folders]
        for name in folders.keys() & set(packages):
            missing += missing_files(folders[name])
        return missing

    def reason_to_build(self) -> str | None:
        """Why it must be made from nothing, as a sentence; None when it is whole, or needs an update only."""
        record = self.record()
        if not self.folder.is_dir() or not any(self.folder.iterdir()):
            return "Making .venv, the course's Python environment."
        if self.unfinished.exists() or record is None:
            return "No set-up of .venv has finished: making it again."
        if record.course != str(self.course):
            return f"The course was in {record.course} when .venv was made, and its programs say so: making it again."
        if missing := self.missing(record.packages):
            if difference := self._other_version(missing):
                return f"{difference}: making .venv again."
            return f"Files of .venv are missing or damaged ({len(missing)}, such as {missing[0]}): making it again."
        return None if self._starts() else "The Python of .venv does not start: making it again."

    def _other_version(self, missing: list[str]) -> str | None:
        """A missing package of which another version is installed, as by `pip install` in a notebook; or None."""
        versions = dict(_name_and_version(folder) for folder in self.packages())
        of_course = dict(_name_and_version(name) for name in missing if name.endswith(".dist-info"))
        differing = [name for name in of_course if name in versions]
        if not differing:
            return None
        name, more = differing[0], len(differing) - 1
        others = f" (and {more} more packages differ)" if more else ""
        return f"{name} {versions[name]} is installed, and the course has {of_course[name]}{others}"

    def needs_update(self) -> bool:
        """Whether requirements.lock or pyproject.toml is another than the environment was made of."""
        record = self.record()
        return record is None or (record.lock, record.project) != self.sources()

    def _starts(self) -> bool:
        program = f"import sys; sys.exit(not {OLDEST} <= sys.version_info[:2] <= {NEWEST})"
        try:
            return not subprocess.run([str(self.python), "-I", "-S", "-c", program], capture_output=True).returncode
        except OSError:
            return False


def _digest(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise EnvironmentNotMade(
            f"{file.name} cannot be read ({error.strerror}); `git checkout {file.name}` restores it."
        ) from error


def _name_and_version(metadata: str) -> tuple[str, str]:
    name, _, version = metadata.removesuffix(".dist-info").partition("-")
    return name, version


def recorded_files(metadata: Path) -> list[Path]:
    """The files that a package's RECORD lists, without bytecode; none if it cannot be read."""
    return [Path(os.path.normpath(metadata.parent / name)) for name, *_ in _rows(metadata) or []]


def _rows(metadata: Path) -> list[list[str]] | None:
    """The rows of a package's RECORD, without those of bytecode; None if it cannot be read."""
    try:
        with (metadata / "RECORD").open(newline="", encoding="utf-8") as lines:
            return [row for row in csv.reader(lines) if row and not row[0].endswith(".pyc")]
    except (OSError, UnicodeDecodeError, csv.Error):
        return None


def missing_files(metadata: Path) -> list[str]:
    """The files that a package's RECORD lists and that are not there, or cannot work; bytecode does not count.

    A library that was cut would end Python itself, so its size must be the RECORD's; a program must be executable.
    """
    rows = _rows(metadata)
    if rows is None:
        return [f"{metadata.name}/RECORD"]
    return [name for name, *rest in rows if not _is_whole(metadata.parent, name, rest[-1] if rest else "")]


def _is_whole(packages: Path, name: str, size: str) -> bool:
    file = packages / name
    if not os.path.lexists(file):
        return False
    if size.isdecimal() and (name.endswith(".so") or ".so." in file.name):
        return file.is_file() and file.stat().st_size == int(size)
    is_program = name.startswith("../") and file.parent.name == "bin"
    return not is_program or file.is_symlink() or os.access(file, os.X_OK)


def requirement_of_uv(course: Path) -> str:
    """The entry of requirements.lock that installs uv. Raises EnvironmentNotMade when the file is damaged.

    Each entry ends with its digests, and uv comes late: a file that was cut ends within an entry, or before uv.
    """
    _digest(course / "requirements.lock")
    text = (course / "requirements.lock").read_text(encoding="utf-8", errors="replace")
    lines = [line.rstrip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    begin = next((number for number, line in enumerate(lines) if line.startswith("uv==")), None)
    of_form = all(line.endswith("\\") if "==" in line else line.lstrip().startswith("--hash=") for line in lines)
    if begin is None or not of_form or lines[-1].endswith("\\"):
        raise EnvironmentNotMade("requirements.lock is damaged; `git checkout requirements.lock` restores it.")
    end = next(number for number in range(begin, len(lines)) if not lines[number].endswith("\\"))
    return "\n".join(lines[begin : end + 1]) + "\n"


def check_project(course: Path) -> None:
    """Raise EnvironmentNotMade when pyproject.toml is damaged, as by a conflict: nothing can be installed by it."""
    try:
        tomllib.loads((course / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise EnvironmentNotMade("pyproject.toml is damaged; `git checkout pyproject.toml` restores it.") from None


def check_place(environment: Environment) -> None:
    """Raise EnvironmentNotMade when something else has the place of `.venv`: nothing of it is touched.

    Also where the path of the course has a character with which no environment works.
    """
    folder = environment.folder
    if environment.lock.is_dir():
        raise EnvironmentNotMade(f"{environment.lock} is a folder; move or remove it, then run `make setup` again.")
    for character, name in {":": "a colon", "$": "a dollar sign", "\n": "a line break"}.items():
        if character in str(folder):
            raise EnvironmentNotMade(f"The path of the course has {name} in it, {folder}; move it to one without.")
    if os.path.lexists(folder) and not folder.is_dir():
        kind = "a dangling link" if folder.is_symlink() else "a file"
        raise EnvironmentNotMade(f"{folder} is {kind}; move or remove it, then run `make setup` again.")
    ours = ("pyvenv.cfg", "unfinished", "ready", "bin")
    if folder.is_dir() and any(folder.iterdir()) and not any((folder / name).exists() for name in ours):
        raise EnvironmentNotMade(f"{folder} contains files that are not a Python environment; move or remove them.")


def check_may_run(environment: Environment) -> None:
    """Raise EnvironmentNotMade where no program may run: there each program of a whole environment seems damaged."""
    place = environment.folder if environment.folder.is_dir() else environment.course
    if os.statvfs(place).f_flag & getattr(os, "ST_NOEXEC", 0):
        raise EnvironmentNotMade(f"No program may run on the disk of {place} (noexec); move the course to another.")


def can_write(folder: Path) -> bool:
    """Whether this user may write into the folder, or make it where it does not exist yet."""
    while not os.path.lexists(folder) and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def check_may_read(environment: Environment) -> None:
    """Raise EnvironmentNotMade when it is another user's, who has kept it closed (as set-up under umask 077 does)."""
    folder = environment.folder
    if folder.is_dir() and not os.access(folder, os.R_OK | os.X_OK):
        who = _owner(folder)
        raise EnvironmentNotMade(
            f"{folder} belongs to {who} and is closed to others; {who} opens it by `chmod -R a+rX {folder}`."
        )
    python = folder / "bin" / "python"
    if python.is_symlink() and _is_of_others(folder) and not os.access(python, os.X_OK):
        who = _owner(folder)
        raise EnvironmentNotMade(
            f"{python} leads to {_end_of(python)}, which you may not start; {who} runs `make clean`, then `make setup "
            "PYTHON=` with a Python that everybody may start, such as /usr/bin/python3."
        )


def check_may_write(environment: Environment) -> None:
    """Raise EnvironmentNotMade when this user may not change the checkout."""
    for place in (environment.course, *([environment.folder] if environment.folder.is_dir() else [])):
        if os.statvfs(place).f_flag & os.ST_RDONLY and not _is_of_others(place):
            raise EnvironmentNotMade(
                f"{place} is on a read-only file system; copy the course to a folder that you can write to, and run "
                "`make setup` there."
            )
        if not os.access(place, os.W_OK):
            who = _owner(place)
            if _is_being_set_up(environment):
                raise EnvironmentNotMade(f"{who} sets up {place} now: wait some minutes, then repeat the command.")
            raise EnvironmentNotMade(
                f"{place} belongs to {who} and needs setting up; {who} runs `make setup` in it once."
            )


def _is_being_set_up(environment: Environment) -> bool:
    """Whether somebody holds the lock of a set-up."""
    import fcntl  # not on Windows

    try:
        with environment.lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _end_of(link: Path) -> Path:
    """Where a chain of links leads, as far as this user may look."""
    for _ in range(_LONGEST_CHAIN):
        try:
            link = link.parent / link.readlink()
        except OSError:
            break
    return link


def _is_of_others(place: Path) -> bool:
    """Whether the place belongs to somebody else, who can set it up where the file system is theirs to write to."""
    return os.geteuid() not in (0, place.stat().st_uid)


def _owner(place: Path) -> str:
    try:
        return place.owner()
    except (KeyError, OSError):
        return "its owner"

"""Which of the course's files git knows, and which differ from those that it has; nothing where it cannot be asked."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path


def edited(course: Path, folders: Iterable[str]) -> set[Path]:
    """The files in these folders of the course that differ from those in git, or that git does not have."""
    if not (course / ".git").exists():  # git would answer for a folder above
        return set()
    options = ["--porcelain", "-z", "--no-renames", "--untracked-files=all"]
    # Of each file two letters and a blank come before its name.
    return {course / os.fsdecode(entry[3:]) for entry in _said(course, "status", *options, "--", *folders)}


def known(folder: Path) -> set[Path]:
    """The files in a folder that git has, or that `git add` has named; none where the folder is in no repository."""
    return {folder / os.fsdecode(entry) for entry in _said(folder, "ls-files", "-z")}


def _said(folder: Path, *arguments: str) -> list[bytes]:
    """What git prints in that folder, which may be another user's, as on a shared server."""
    command = ["git", "-C", str(folder), "-c", "core.fileMode=false", "-c", "safe.directory=*", "--no-optional-locks"]
    try:
        listed = subprocess.run([*command, *arguments], stdin=subprocess.DEVNULL, capture_output=True).stdout
    except OSError:  # there is no git
        return []
    return [entry for entry in listed.split(b"\0") if entry]

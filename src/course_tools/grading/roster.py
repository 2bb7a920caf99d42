"""The list of students, students.txt: who is on it, and which folder is whose."""

import re
import unicodedata
from pathlib import Path

from distlab.runtime.errors import PlainError

ROSTER = "students.txt"
LONGEST_NAME = 60
_LARGEST_ROSTER = 2**20


class NotARoster(PlainError):
    """The file cannot be taken for a list of students; the message says why."""


def names_in(roster: Path) -> set[str]:
    """The names in a list of students, one per line; # in front of a line or after a blank begins a comment."""
    if roster.stat().st_size > _LARGEST_ROSTER:
        raise NotARoster(f"{roster} is larger than {_LARGEST_ROSTER // 2**20} MiB; a name in each line is enough.")
    try:
        text = roster.read_text(encoding="utf-8-sig")  # as Excel and Notepad write it, too
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise NotARoster(
            f"{roster}, line {line}, is not in UTF-8; save it as UTF-8 text, a name in each line."
        ) from None
    names = {re.sub(r"(^|\s)#.*", "", line).strip() for line in text.splitlines()} - {""}
    for name in sorted(names):
        if ";" in name:
            raise NotARoster(f"{roster} has several columns, as in {name[:LONGEST_NAME]!a}; it takes names alone.")
        if name in (".", "..") or "/" in name or not name.isprintable() or len(name.encode()) > 255:
            raise NotARoster(f"{roster} has a line that cannot be a folder's name: {name[:LONGEST_NAME]!a}.")
    return names


def without_folder(names: set[str], folders: set[str]) -> dict[str, str]:
    """The listed students without a folder, each with the folder whose name is nearly theirs, or with "".

    Nearly: it differs in capitals, or in blanks at its ends.

    A folder's name may be another spelling of the same characters: macOS takes an umlaut apart, editors do not.
    """
    composed = {unicodedata.normalize("NFC", folder) for folder in folders}
    alike = {_spelling(folder): folder for folder in sorted(folders)}
    missing = {name: unicodedata.normalize("NFC", name) for name in names - folders}
    return {name: alike.get(spelling.casefold(), "") for name, spelling in missing.items() if spelling not in composed}


def spelled_as_listed(names: set[str], folders: set[str]) -> dict[str, str]:
    """The folders whose name is that of a listed student in another spelling of the same characters; with that name."""
    composed = {unicodedata.normalize("NFC", folder): folder for folder in folders - names}
    listed = {name: unicodedata.normalize("NFC", name) for name in sorted(names - folders)}
    return {composed[spelling]: name for name, spelling in listed.items() if spelling in composed}


def unlisted(folders: set[str], names: set[str]) -> set[str]:
    """The folders whose name is in the list in no spelling: a group's, perhaps, or a misspelt one."""
    spellings = {_spelling(name) for name in names}
    return {folder for folder in folders if _spelling(folder) not in spellings}


def _spelling(name: str) -> str:
    return unicodedata.normalize("NFC", name).strip().casefold()

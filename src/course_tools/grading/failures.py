"""How a cell failed, in words: for the student's page, and for the instructor's note."""

import builtins
import re
import unicodedata
from dataclasses import dataclass

from course_tools.grading.origin import GRADER, Origin
from distlab.labs.answer_errors import Raised
from distlab.labs.lab import Lab

_LIMITS = {
    "MemoryError": "it asked for more memory than grading allows",
    "EOFError": "nobody answers an input() here: write the value into the cell",
    "Network is unreachable": "there is no network in grading",
    "File too large": "files may not be this large in grading",
    "No space left on device": "this many or this large files are not allowed in grading",
    "Resource temporarily unavailable": "this many processes are not allowed in grading",
    "Operation not permitted": "grading does not allow it",
}
TOO_MUCH = "PrintedTooMuch"
MISSING = ("ModuleNotFoundError", "FileNotFoundError")
_LONGEST_NAME = 60
_CHARACTER = re.compile(r"invalid (?:non-printable )?character .*U\+([0-9A-F]{4,6})")


@dataclass(frozen=True)
class Failure:
    """How a cell failed: a sentence for the student, and how a note goes on after the name of the cell, "" without one.

    is_of_grading: the cell may work where it was written, so that the instructor should look at it.
    """

    sentence: str
    note: str = ""
    is_of_grading: bool = False


def failure(error: Raised, lab: Lab, origin: Origin) -> Failure:
    """What an error in a cell means. Of the student's own words a note has none but the name of a file or module."""
    if error.kind == TOO_MUCH:
        return Failure(f"The cell was stopped: {error.message}.")
    place = "" if error.line is None else f" in line {error.line}"
    message = f": {error.message}" if error.message else ""
    cause = _cause_in_grading(error, origin)
    meaning = cause or _meaning(error, lab, origin)
    sentence = f"The cell stopped{place} with {error.kind}{message}{f' ({meaning})' if meaning else ''}"
    return Failure(sentence, f"failed with {_known(error.kind)}{f': {cause}' if cause else ''}", bool(cause))


def _cause_in_grading(error: Raised, origin: Origin) -> str:
    """What was there where the notebook was written and is not in grading; "" if nothing is known to be."""
    if error.kind in MISSING and (cause := missing(error.message, origin)):
        return cause
    if error.kind == "SyntaxError" and origin.python > GRADER and not _by_characters(error.message):
        newer = f"it may be valid in Python {_dotted(origin.python)}, with which the notebook was written"
        return f"{newer}, but grading runs {_dotted(GRADER)}"
    return ""


def missing(text: str, origin: Origin) -> str:
    """Why a module or file is not there in grading that an error's text misses; "" if that says nothing of it."""
    module = re.search(rf"No module named '(\w{{1,{_LONGEST_NAME}}})(\.\w+)*'", text, re.ASCII)
    file = re.search(rf"No such file or directory: '(?:\./)?([\w.-]{{1,{_LONGEST_NAME}}})'", text, re.ASCII)
    name = f"{module[1]}.py" if module else file[1] if file else ""
    if name in origin.files:
        return f"{name} was handed in, but grading has no file of the student's except the notebook"
    if module and not module[2]:
        return f"{module[1]} is no package of the course, and grading has no others"
    return ""


def _meaning(error: Raised, lab: Lab, origin: Origin) -> str:
    """A few words on what is not there in grading, and on the limits that show as an error of the system."""
    if error.kind in ("AttributeError", "ImportError", "ModuleNotFoundError"):
        for module in lab.solved_in:
            if module in error.message:
                return f"{module} has what this lab asks for; in grading it is not there"
    if error.kind == "ModuleNotFoundError":
        return "grading has the packages of the course and the notebook, no other file of the student's"
    if error.kind == "SyntaxError" and (meaning := _by_characters(error.message)):
        return meaning
    if error.kind == "SyntaxError" and origin.python == Origin().python:
        return f"grading runs Python {_dotted(GRADER)}"
    for sign, meaning in _LIMITS.items():
        if sign in (error.kind, error.message) or sign in error.message:
            return meaning
    return ""


def _by_characters(message: str) -> str:
    """What to do where a syntax error comes from the characters of a text, in any version of Python; else ""."""
    if match := _CHARACTER.search(message):
        name = unicodedata.name(chr(int(match[1], 16)), "a character that is not shown").lower()
        return f"{name}, as text processors and web pages write it: type the plain character instead"
    if "unicodeescape" in message:
        return "a backslash in a text begins a special character: write two, or an r in front of the text"
    return ""


def _known(kind: str) -> str:
    """The name of an exception of Python's; a student may call others anything."""
    builtin = getattr(builtins, kind, None)
    return kind if isinstance(builtin, type) and issubclass(builtin, BaseException) else "an error"


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))

"""Why a question to the student's answer has no answer: one class for each reason, and its text as a sentence."""

import traceback
from collections.abc import Sequence
from typing import Self


class AnswerError(Exception):
    """The message is a sentence for the student."""


class NotDone(AnswerError):
    """The student has not begun: the name is missing, or holds what the untouched cell gave it."""

    @classmethod
    def raised_by(cls, name: str) -> Self:
        """For a function whose body says by Python's own exception that it is not written yet."""
        return cls(f"`{name}` raises NotImplementedError")


class Raised(AnswerError):
    """The student's code raised an exception: `kind` is its class, `message` its text, `line` the line of the cell."""

    def __init__(self, kind: str, message: str, line: int | None = None) -> None:
        """`line` counts from 1 in the cell where the code stands; None when it is not known."""
        self.kind, self.message, self.line = kind, message, line
        place = "" if line is None else f" in line {line} of its cell"
        super().__init__(f"it raised {kind}{place}{': ' if message else ''}{message}")


class NotPlain(AnswerError):
    """The student's code gave something that is neither a number nor an array, text, list, tuple or dictionary."""


class TookTooLong(AnswerError):
    """The student's code was stopped after its time."""


class Changed(AnswerError):
    """The student's code has replaced what the checker works with beside it; only in the grading."""

    def __init__(self, names: Sequence[str]) -> None:
        """`names` are those of some functions that were changed."""
        super().__init__(f"it changes the checker's own functions ({', '.join(names)})")


class Gone(AnswerError):
    """The process of the student's code has ended; only in the grading."""


def sentence(text: object) -> str:
    """The text with a capital at its beginning and a mark at its end."""
    words = str(text)
    return words[:1].upper() + words[1:] + ("" if words[-1:] in ".:?!" else ".")


def first_sentence(error: Exception) -> str:
    """The first line of an error's text as a sentence, with the line of the cell where the answer raised it."""
    frames = traceback.extract_tb(error.__cause__.__traceback__) if error.__cause__ else []
    own = [frame.lineno for frame in frames if "ipykernel" in frame.filename or "<" in frame.filename]
    place = f" (line {own[-1]} of its cell)" if own else ""
    return sentence(f"{str(error).splitlines()[0]}{place}")

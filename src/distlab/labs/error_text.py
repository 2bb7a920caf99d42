"""What a student reads of an error: its text as a sentence, and where in the cell it was raised."""

import traceback


def sentence(text: object) -> str:
    """The text with a capital at its beginning and a mark at its end."""
    words = str(text)
    return words[:1].upper() + words[1:] + ("" if words[-1:] in ".:?!" else ".")


def first_sentence(error: Exception) -> str:
    """The first line of an error's text as a sentence, with the line of the cell where the answer raised it."""
    return sentence(f"{str(error).splitlines()[0]}{_place(error.__cause__)}")


def _place(cause: BaseException | None) -> str:
    frames = traceback.extract_tb(cause.__traceback__) if cause else []
    own = [frame for frame in frames if "ipykernel" in frame.filename or "<" in frame.filename]
    return f" (line {own[-1].lineno} of its cell)" if own else ""

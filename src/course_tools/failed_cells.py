"""The cell at which a notebook stops, in one sentence instead of the traceback of nbclient."""

import re

from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from distlab.runtime.errors import PlainError

Failure = CellExecutionError | CellTimeoutError | DeadKernelError
"""How the execution of a notebook can end at a cell."""

_COLOURS = re.compile(r"\x1b\[[\d;]*m")
_LINE_OF_CELL = re.compile(r"\((?:\S+\.py|<[^>]*>), line (\d+)\)")
_LONGEST = 500


class CellFailed(PlainError):
    """A cell of a notebook fails; the message names it by its first line of code, and ends without a full stop."""


def failed(cell: NotebookNode, failure: Failure, seconds: float) -> CellFailed:
    """The error to raise for a cell that has failed; a cell may take `seconds`."""
    return CellFailed(f"the cell that begins with `{_first_line_of_code(cell.source)}` {_what(failure, seconds)}")


def _what(failure: Failure, seconds: float) -> str:
    if isinstance(failure, CellTimeoutError):
        return f"takes longer than {seconds:g} s"
    if isinstance(failure, DeadKernelError):
        return "ends its kernel"
    message = _LINE_OF_CELL.sub(r"(line \1 of the cell)", _COLOURS.sub("", failure.evalue or ""))
    message = " ".join(message.split()).rstrip(".")
    if len(message) > _LONGEST:
        message = f"{message[:_LONGEST]} …"
    return f"fails: {failure.ename}: {message}" if message else f"fails: {failure.ename}"


def _first_line_of_code(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if not line.startswith("#")), lines[0] if lines else "")

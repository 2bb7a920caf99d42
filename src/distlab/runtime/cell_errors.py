"""An extension of IPython, which the course's kernel loads: some errors of a cell end in a sentence on their cause."""

import re
import tempfile
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

from distlab.runtime import hidden_packages
from distlab.runtime.cells_run_again import Runs

if TYPE_CHECKING:
    from IPython.core.interactiveshell import ExecutionInfo, InteractiveShell

NUMBERS = ("epochs", "workers")
"""The parameters of a chapter that are numbers."""
_NEW_FOLDER = re.compile(r"^(\w+) = tempfile\.TemporaryDirectory\(", re.MULTILINE)


def load_ipython_extension(shell: "InteractiveShell") -> None:
    """Let a cell end in one sentence if its error comes from outside of it.

    Such are a file that hides a package, a number given as text, and a temporary folder that a cell made again. Where
    it may come from cells that were run again, a sentence is added.
    """
    runs = Runs()

    def begin(info: "ExecutionInfo") -> None:
        source = info.raw_cell or ""
        with suppress(SyntaxError):  # the cell itself will say so
            source = shell.transform_cell(source)  # type: ignore[no-untyped-call]  # IPython has few types
        runs.add(len(shell.user_ns.get("In", [])), source, info.cell_id)

    def show(
        shell: "InteractiveShell",
        kind: type[BaseException],
        error: BaseException,
        traceback: TracebackType,
        tb_offset: int | None = None,
    ) -> None:
        file = hidden_packages.cause(error)
        sentence = f"{file} Then restart the kernel." if file else None
        if sentence := sentence or _number_as_text(shell, error) or _folder_made_again(shell, error):
            text = f"{error}. {sentence}"
            _reword(error, text)
            error._render_traceback_ = lambda: [f"{kind.__name__}: {text}"]  # type: ignore[attr-defined]
        elif note := runs.cause():
            error.add_note(note)
        shell.showtraceback((kind, error, traceback), tb_offset=tb_offset)

    shell.events.register("pre_run_cell", begin)
    shell.set_custom_exc((Exception,), show)  # type: ignore[no-untyped-call]


def _reword(error: BaseException, text: str) -> None:
    """Let `str(error)`, which the kernel reports besides what it shows, be the text."""
    error.args = (text,)
    if isinstance(error, ImportError):
        error.msg = text
    if isinstance(error, OSError) and error.errno is not None:
        error.strerror = text.removeprefix(f"[Errno {error.errno}] ")
        del error.filename  # which the text has already


def _number_as_text(shell: "InteractiveShell", error: BaseException) -> str | None:
    for name in NUMBERS:
        value = shell.user_ns.get(name)
        if isinstance(error, TypeError) and isinstance(value, str):
            return f"{name} is the text {value!r}: give papermill numbers with -p, as in -p {name} {value}, not -r."
    return None


def _folder_made_again(shell: "InteractiveShell", error: BaseException) -> str | None:
    """Whether a file may be missing because a cell was run again that makes a folder and so removes the one before."""
    if not isinstance(error, OSError) or tempfile.gettempdir() not in str(error):
        return None
    made_by: dict[str, int] = {}
    again = None
    for number, cell in enumerate(shell.user_ns.get("In", [])):
        for name in _NEW_FOLDER.findall(cell):
            if name in made_by:
                again = (made_by[name], number)
            made_by[name] = number
    if again is None:
        return None
    return (
        f"Cell [{again[1]}] has made the temporary folder of cell [{again[0]}] again, without the files that were in "
        "it: run all cells from the one that makes it on again."
    )

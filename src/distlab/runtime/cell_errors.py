"""An extension of IPython, which the course's kernel loads: some errors of a cell end in a sentence on their cause."""

from types import TracebackType
from typing import TYPE_CHECKING

from distlab.runtime import hidden_packages

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

NUMBERS = ("epochs", "workers")
"""The parameters of a chapter that are numbers."""


def load_ipython_extension(shell: "InteractiveShell") -> None:
    """Let a cell that fails by a file that hides a package, or by a number given as text, end in one sentence."""

    def show(
        shell: "InteractiveShell",
        kind: type[BaseException],
        error: BaseException,
        traceback: TracebackType,
        tb_offset: int | None = None,
    ) -> None:
        file = hidden_packages.cause(error)
        if sentence := f"{file} Then restart the kernel." if file else _number_as_text(shell, error):
            text = f"{error}. {sentence}"
            error.args = (text,)
            if isinstance(error, ImportError):
                error.msg = text
            error._render_traceback_ = lambda: [f"{kind.__name__}: {text}"]  # type: ignore[attr-defined]
        shell.showtraceback((kind, error, traceback), tb_offset=tb_offset)

    shell.set_custom_exc((*hidden_packages.SIGNS, TypeError), show)  # type: ignore[no-untyped-call]  # it has no types


def _number_as_text(shell: "InteractiveShell", error: BaseException) -> str | None:
    for name in NUMBERS:
        value = shell.user_ns.get(name)
        if isinstance(error, TypeError) and isinstance(value, str):
            return f"{name} is the text {value!r}: give papermill numbers with -p, as in -p {name} {value}, not -r."
    return None

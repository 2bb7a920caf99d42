"""A file beside a program or a notebook that Python takes for the package of its name.

Also an extension of IPython, which the course's kernel loads: a cell that fails by such a file names it.
"""

import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

SIGNS = (ImportError, AttributeError)
"""What Python raises where a package has not what a program expects of it."""


def hides(file: Path, package: str) -> str:
    """The sentence on a file that hides a package."""
    return f"The file {file} hides the package {package}: give it another name."


def cause(error: BaseException) -> str | None:
    """The sentence on a file beside the program, or in the notebook's folder, that explains an error of SIGNS."""
    if not isinstance(error, SIGNS):
        return None
    from traceback import walk_tb  # every Python of the environment starts with this module

    passed = {Path(frame.f_code.co_filename) for frame, _ in walk_tb(error.__traceback__)}
    return next((hides(file, package) for file, package in _hidden(passed)), None)


def load_ipython_extension(shell: "InteractiveShell") -> None:
    """Let a cell that fails by such a file end in the sentence, without a traceback."""

    def show(
        shell: "InteractiveShell",
        kind: type[BaseException],
        error: BaseException,
        traceback: TracebackType,
        tb_offset: int | None = None,
    ) -> None:
        if sentence := cause(error):
            text = f"{error}. {sentence} Then restart the kernel."
            error.args = (text,)
            if isinstance(error, ImportError):
                error.msg = text
            error._render_traceback_ = lambda: [f"{kind.__name__}: {text}"]  # type: ignore[attr-defined]
        shell.showtraceback((kind, error, traceback), tb_offset=tb_offset)

    shell.set_custom_exc(SIGNS, show)  # type: ignore[no-untyped-call]  # IPython's has no types


def _hidden(passed: set[Path]) -> Iterator[tuple[Path, str]]:
    """Files, with the names of the packages that they hide, that are loaded or that an error has passed through."""
    folder = Path(sys.path[0] if "" not in sys.path else "").absolute()  # IPython has it before the packages
    elsewhere = [place for place in sys.path if Path(place).absolute() != folder]
    for file in sorted([*folder.glob("*.py"), *folder.glob("*/__init__.py")]):
        name = file.parent.name if file.name == "__init__.py" else file.stem
        loaded = getattr(sys.modules.get(name), "__file__", None)
        is_used = file in passed or (loaded is not None and Path(loaded).absolute() == file)
        if is_used and (name in sys.stdlib_module_names or PathFinder.find_spec(name, elsewhere)):
            yield file, name

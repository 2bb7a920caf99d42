"""A file beside a program or a notebook that Python takes for the package of its name."""

import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path

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
    return next((hides(file, package) for file, package in _hidden(passed, str(error))), None)


def _hidden(passed: set[Path], message: str) -> Iterator[tuple[Path, str]]:
    """Files, with the names of the packages that they hide, that an error has passed through or complains about."""
    folder = Path(sys.path[0] if "" not in sys.path else "").absolute()  # IPython has it before the packages
    elsewhere = [place for place in sys.path if Path(place).absolute() != folder]
    for file in sorted([*folder.glob("*.py"), *folder.glob("*/__init__.py")]):
        name = file.parent.name if file.name == "__init__.py" else file.stem
        loaded = getattr(sys.modules.get(name), "__file__", None)
        is_named = f"'{name}" in message and loaded is not None and Path(loaded).absolute() == file
        if (file in passed or is_named) and (name in sys.stdlib_module_names or PathFinder.find_spec(name, elsewhere)):
            yield file, name

"""The programs of a chapter as modules; they import one another by name."""

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from unittest import mock

Chapter = Callable[[str], ModuleType]
"""Gives a program by its name without .py."""


@contextmanager
def chapter(folder: Path) -> Iterator[Chapter]:
    """The programs in this folder."""
    with mock.patch.object(sys, "path", [str(folder), *sys.path]):
        yield importlib.import_module

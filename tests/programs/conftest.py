"""Tests of the programs of the chapters: a file is named after its program, or after the folder of its chapter."""

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from unittest import mock

import pytest

from distlab import programs
from distlab.runtime import environment

environment.apply()  # puts this environment's mpirun on the path


@pytest.fixture(scope="module")
def chapter(request: pytest.FixtureRequest) -> Iterator[Callable[[str], ModuleType]]:
    """Gives a program of the folder `CHAPTER` of a file of tests as a module, by its name without .py."""
    folder = request.module.CHAPTER
    with mock.patch.object(sys, "path", [str(folder), *sys.path]):  # they import one another
        yield lambda name: programs.module(folder / f"{name}.py")

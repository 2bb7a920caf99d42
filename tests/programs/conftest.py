"""Tests of the programs of the chapters: a file is named after its program, or after the folder of its chapter.

This file loads the programs of chapter 09.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from distlab.runtime import environment
from tests.programs.chapter_programs import Chapter, chapter

environment.apply()  # puts this environment's mpirun on the path


@pytest.fixture(scope="module")
def chapter_09(root: Path) -> Iterator[Chapter]:
    """The programs of notebook 09."""
    with chapter(root / "notebooks/programs/09_horovod") as programs:
        yield programs

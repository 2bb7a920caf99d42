"""The program for the launcher, and the programs of chapter 09, as fixtures."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from chapter_programs import Chapter, chapter
from launched_program import Launched


@pytest.fixture
def launched(tmp_path: Path) -> Iterator[Launched]:
    """The program in a folder of its own; what a failing test leaves alive is ended."""
    launched = Launched(tmp_path)
    yield launched
    for pid in launched.left():
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def chapter_09(root: Path) -> Iterator[Chapter]:
    """The programs of notebook 09."""
    with chapter(root / "labs" / "09_horovod") as programs:
        yield programs

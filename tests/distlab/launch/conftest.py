"""The program that the launcher starts."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.distlab.launch.launched_program import Launched


@pytest.fixture
def launched(tmp_path: Path) -> Iterator[Launched]:
    """The program in a temporary folder; what a failing test leaves alive is ended."""
    launched = Launched(tmp_path)
    yield launched
    for pid in launched.left():
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)

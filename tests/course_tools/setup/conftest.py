"""An empty cache of Horovod's wheels, and a small environment."""

from pathlib import Path

import pytest

from course_tools.setup.virtual_environment import Environment
from tests.course_tools.setup import small_environment


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of cached wheels, in an empty cache whose path has a space in it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user cache"))
    return tmp_path / "user cache" / "distlab" / "wheels"


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """A whole one, with one package of two files."""
    return small_environment.make(tmp_path)

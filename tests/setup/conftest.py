"""An empty cache of Horovod's wheels."""

from pathlib import Path

import pytest


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of cached wheels, in an empty cache whose path has a space in it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user cache"))
    return tmp_path / "user cache" / "distlab" / "wheels"

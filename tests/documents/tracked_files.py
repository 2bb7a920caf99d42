"""The files of the repository, for tests that look at it as a whole."""

import subprocess
from pathlib import Path

import pytest


def tracked_files(root: Path, pattern: str = "*") -> list[Path]:
    """What git has or would take; skips the test where git is missing, or may not look at a repository here."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", pattern]
    try:
        listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        pytest.skip(f"git lists no files here: {getattr(error, 'stderr', error)}")
    return [root / name for name in listed.splitlines() if (root / name).is_file()]

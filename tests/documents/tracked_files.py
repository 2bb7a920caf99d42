"""The files of the repository, for tests that look at it as a whole."""

import subprocess
from pathlib import Path

import pytest


def tracked_files(root: Path, *options: str) -> list[Path]:
    """What `git ls-files` lists; skips the test where there is no repository, as in an unpacked archive.

    The same where git may not look at one, as when it belongs to another user: the reason has git's advice.
    """
    try:
        listed = subprocess.run(["git", "ls-files", *options], cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("git is not installed")
    if listed.returncode:
        pytest.skip(f"git lists no files here: {' '.join(listed.stderr.split())}")
    return [root / name for name in listed.stdout.splitlines() if (root / name).is_file()]

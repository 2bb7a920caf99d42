"""The code as a whole: who may import whom (`docs/architecture.md`), types, lint and layout."""

import subprocess
import sys
from pathlib import Path

import pytest

CHECKS = ["lint-imports --no-cache", "mypy", "ruff check .", "ruff format --check ."]


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS)
def test_the_code_is_clean(check: str, root: Path) -> None:
    program, *words = check.split()
    command = [Path(sys.executable).with_name(program), *words]
    finished = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout

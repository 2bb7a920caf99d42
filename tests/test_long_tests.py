"""The plugin that runs a share of the long tests."""

import os
import re
import sys
from itertools import chain
from pathlib import Path

import pytest

from distlab.runtime import processes

pytestmark = pytest.mark.slow

FILES = 12
TESTS = """
import pytest
@pytest.mark.long
@pytest.mark.parametrize("number", range(3))
def test_long(number):
    pass
def test_quick():
    pass
"""


def collected(root: Path, folder: Path, *options: str) -> processes.Finished:
    """What pytest collects of twelve files with three long tests each and a quick one."""
    for number in range(FILES):
        (folder / f"test_{number}.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = long\n")
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "tests.long_tests", *options]
    outer = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "FORCE_COLOR"))}
    return processes.run(command, 60, cwd=folder, env={**outer, "PYTHONPATH": str(root)})


def test_the_shares_together_are_all_long_tests_each_once_and_by_file(root: Path, tmp_path: Path) -> None:
    shares = [collected(root, tmp_path, "--share", f"{share}/3").output for share in (1, 2, 3)]
    files = [re.findall(r"^test_(\d+)\.py::test_long\[0\]$", output, re.MULTILINE) for output in shares]
    assert sorted(chain(*files), key=int) == [str(number) for number in range(FILES)]
    for output, own in zip(shares, files, strict=True):
        assert 0 < len(own) < FILES
        assert output.count("::test_long[") == 3 * len(own)
        assert output.count("::test_quick") == FILES


def test_without_a_share_all_tests_run(root: Path, tmp_path: Path) -> None:
    assert collected(root, tmp_path).output.count("::test_") == 4 * FILES


@pytest.mark.parametrize("share", ["4/3", "0/3", "half", "1/0", "-1/3"])
def test_what_is_no_share_is_refused_in_one_sentence(root: Path, tmp_path: Path, share: str) -> None:
    finished = collected(root, tmp_path, f"--share={share}")
    assert finished.status == pytest.ExitCode.USAGE_ERROR
    assert f"{share} is no share; the second of three is --share 2/3" in finished.output
    assert "Traceback" not in finished.output

"""The plugin that repeats what failed beside other tests, in runs of its own."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from distlab.runtime import processes
from tests.failures_alone import MOST

pytestmark = pytest.mark.slow

FAILS_ONCE = """
from pathlib import Path
def test_fails_the_first_time():
    tried = Path(__file__).with_name("tried")
    first = not tried.exists()
    tried.touch()
    assert not first
"""
FAILS = "import pytest\n@pytest.mark.parametrize('number', range({count}))\ndef test_fails(number):\n    assert 0\n"
PASSES = "def test_passes():\n    pass\n"
NEEDS_A_NEIGHBOUR_TO_FAIL = """
import os
def test_fails_in_a_worker():
    assert "PYTEST_XDIST_WORKER" not in os.environ
"""


Run = Callable[..., processes.Finished]


@pytest.fixture
def run(root: Path, tmp_path: Path) -> Run:
    """Runs tests in a folder of their own as `make test` does."""

    def tests(**files: str) -> processes.Finished:
        for name, text in files.items():
            (tmp_path / f"test_{name}.py").write_text(text)
        (tmp_path / "pytest.ini").touch()
        options = ["-p", "tests.failures_alone", "--numprocesses", "2", "--color=no", "--rootdir", str(tmp_path)]
        outer = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "FORCE_COLOR"))}
        return processes.run(
            [sys.executable, "-m", "pytest", *options], 300, cwd=tmp_path, env={**outer, "PYTHONPATH": str(root)}
        )

    return tests


@pytest.mark.long
def test_what_passes_alone_passes_and_is_named(run: Run) -> None:
    finished = run(once=FAILS_ONCE, beside=NEEDS_A_NEIGHBOUR_TO_FAIL, passes=PASSES)
    assert finished.status == 0, finished.output
    first, _, second = finished.output.partition("once more, alone")
    assert "2 failed, 1 passed" in first and "2 passed" in second
    last = finished.output.splitlines()[-1]
    assert last.startswith("Failed beside other tests, passed alone: ")
    assert "test_once.py::test_fails_the_first_time" in last and "test_fails_in_a_worker" in last


@pytest.mark.long
def test_what_fails_alone_too_fails(run: Run) -> None:
    finished = run(once=FAILS_ONCE, fails=FAILS.format(count=1))
    assert finished.status == pytest.ExitCode.TESTS_FAILED
    assert "1 failed, 1 passed" in finished.output.partition("once more, alone")[2]
    assert "passed alone" not in finished.output


@pytest.mark.long
def test_many_failures_are_not_repeated(run: Run) -> None:
    finished = run(fails=FAILS.format(count=MOST), once=FAILS_ONCE)
    assert finished.status == pytest.ExitCode.TESTS_FAILED
    assert f"{MOST + 1} failed" in finished.output and "once more" not in finished.output


@pytest.mark.long
def test_a_run_that_broke_off_stays_broken(run: Run) -> None:
    """A file that cannot be read has tests that never ran."""
    finished = run(once=FAILS_ONCE, unreadable="def test_(")
    assert finished.status != 0 and "once more" not in finished.output


def test_a_run_without_failures_is_not_repeated(run: Run) -> None:
    finished = run(passes=PASSES)
    assert finished.status == 0 and "once more" not in finished.output

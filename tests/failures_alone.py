"""A plugin of pytest for `make test`: what fails beside other tests runs once more, alone.

Tests of real jobs and clusters meet deadlines of Slurm, MPI and TensorFlow, which a busy machine can miss. A test that
passes alone is named at the end, and the run passes. Many failures are no accident: more than MOST are not repeated.
"""

import subprocess
import sys
from collections.abc import Generator

import pytest

MOST = 10


def pytest_configure(config: pytest.Config) -> None:
    """Only the process that sees the tests of all workers."""
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailuresAlone(), "failures alone")


class FailuresAlone:
    """Collects the failures of a run, and repeats them when its workers have ended."""

    def __init__(self) -> None:
        self.failed: list[str] = []
        self.is_whole = True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.is_whole &= not report.failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and report.nodeid not in self.failed:
            self.failed.append(report.nodeid)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Generator[None, None, None]:
        """After the report of the run; a run that did not come to every test stays what it is."""
        yield
        is_whole = self.is_whole and exitstatus == pytest.ExitCode.TESTS_FAILED
        if not is_whole or not 0 < len(self.failed) <= MOST:
            return
        terminal = session.config.get_terminal_writer()
        terminal.sep("=", "once more, alone", bold=True)
        # The report goes where this one goes: pytest holds back what is printed while it runs.
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *self.failed]
        again = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        terminal.write(again.stdout)
        if again.returncode == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.OK
            terminal.line(f"Failed beside other tests, passed alone: {', '.join(self.failed)}.")

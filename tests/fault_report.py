"""A plugin of pytest: a line for each injected fault, with what it left behind.

`pytest -p tests.fault_report -m fault` runs the long list: every moment, every starter.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from course_tools.readme_tables import replace_between

SECONDS_TO_END = 10.0
HEADINGS = ("fault", "outcome", "seconds", "processes left")
PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"
BEGIN, END = "<!-- faults: written by tests/fault_report.py -->", "<!-- end of the faults -->"


def pytest_configure(config: pytest.Config) -> None:
    """Let the tests take their long lists."""
    os.environ["DISTLAB_FAULTS"] = "all"


@pytest.fixture(autouse=True)
def processes_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Count what a test has started and what is alive some seconds after it."""
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    yield
    deadline = time.monotonic() + SECONDS_TO_END
    while (left := _alive() - before) and time.monotonic() < deadline:
        time.sleep(0.1)
    request.node.user_properties.append(("processes left", len(left)))


def _alive() -> set[int]:
    alive = set()
    for process in psutil.Process().children(recursive=True):
        try:
            # The interpreter that launches share lives as long as this process.
            if process.status() != psutil.STATUS_ZOMBIE and "distlab.launch.fork_server" not in process.cmdline():
                alive.add(process.pid)
        except psutil.Error:
            continue
    return alive


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
    """Print a line for each fault; after a whole run, write one for each test into docs/reliability.md."""
    rows, tests = [], {}
    for outcome in ("passed", "failed", "skipped"):
        for report in terminalreporter.stats.get(outcome, []):
            if report.when == "call" or outcome == "skipped":
                left = dict(report.user_properties).get("processes left", 0)
                name = report.nodeid.rpartition("::")[2]
                rows.append((name, outcome, f"{report.duration:.1f}", str(left)))
                if outcome != "skipped":
                    tests.setdefault(name.partition("[")[0], []).append((outcome, report.duration, left))
    terminalreporter.section("faults")
    widths = [max(len(row[place]) for row in [*rows, HEADINGS]) for place in range(len(HEADINGS))]
    for row in [HEADINGS, *sorted(rows)]:
        terminalreporter.write_line("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)))
    if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        replace_between(PAGE, BEGIN, END, f"\n{table(tests)}")


def table(tests: dict[str, list[tuple[str, float, int]]]) -> str:
    """Lines of Markdown: what was tried, cases, how many ended as they should, the longest, processes left."""
    lines = ["| What was tried | Cases | As promised | Longest, s | Processes left |", "|---|--:|--:|--:|--:|"]
    tried = [(name.removeprefix("test_").replace("_", " "), cases) for name, cases in sorted(tests.items())]
    for name, cases in [("**all of these**", [case for of_test in tests.values() for case in of_test]), *tried]:
        passed = sum(outcome == "passed" for outcome, _, _ in cases)
        longest, left = max(seconds for _, seconds, _ in cases), sum(left for _, _, left in cases)
        lines.append(f"| {name} | {len(cases)} | {passed} | {longest:.0f} | {left} |")
    return "\n".join(lines) + "\n"

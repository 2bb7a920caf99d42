"""The progress of `make execute`: one line that never scrolls on a terminal, however narrow; plain lines elsewhere."""

import io

import pytest
from rich.console import Console

from course_tools.progress import Progress
from course_tools.runner_child import NotebookOutcome

RING, WORKERS = "06_collectives_and_ring_all_reduce", "07_multi_worker"


def report(terminal: bool, width: int) -> str:
    """What is written while two notebooks run and the first of them ends."""
    output = io.StringIO()
    console = Console(
        file=output, force_terminal=terminal, width=width, height=24, highlight=False, soft_wrap=True, _environ={}
    )
    with Progress(2, console) as progress:
        for number in range(1, 9):
            for name in (RING, WORKERS):
                progress.cell(name, number, 8)
        progress.finished(RING, NotebookOutcome("ok", 26.0, 900.0))
    return output.getvalue()


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (40, "0/2 done · 06 cell 8/8, 07 cell 8/8"),
        (20, "0/2 done · 06 cell …"),
        (100, f"0/2 done · {RING} cell 8/8, {WORKERS} cell 8/8"),
    ],
)
def test_the_line_on_a_terminal_is_written_over_and_fits(width: int, line: str) -> None:
    before, _, _ = report(terminal=True, width=width).partition(f"{RING}: ok")
    *_, last = before.removesuffix("\r\x1b[2K").split("\x1b[2K")
    assert "\n" not in before
    assert last.strip("\r") == line


def test_where_output_is_no_terminal_lines_are_plain() -> None:
    written = report(terminal=False, width=40)
    assert "\x1b" not in written and "\r" not in written
    assert written.splitlines()[0] == f"  {RING}: cell 1 of 8"
    assert written.splitlines()[-1] == f"{RING}: ok, 26 s, 900 MiB"

"""The support table in markdown, and the verdict on a cell; the measured table is in tests/programs."""

from pathlib import Path

import nbconvert.filters
import pytest

from distlab import programs
from distlab.strategy_support import CellVerdict, MeasuredRun, judge
from distlab.strategy_support import table as support_table
from distlab.strategy_support.verdict import first_line_of_error

MEASURED = programs.FOLDER / "08b_keras_3/support_table.json"
NASTY = "ValueError: `a|b` <b>*x*</b> _y_ $z$ \\ [link](#) & ~c~\nsecond line"


def columns(markdown: str) -> list[list[str]]:
    """The cells of the table's lines, split as markdown does: at each bar without a backslash before it."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.replace("\\|", "\0").strip("|").split("|")] for line in lines]


def test_a_written_table_is_read_back_and_an_error_with_every_special_character_stays_literal(tmp_path: Path) -> None:
    table, file = support_table.read(MEASURED), tmp_path / "table.json"
    table["cells"]["mirrored"]["fit"]["legacy"] = {"state": "fails", "detail": NASTY, "notes": []}
    support_table.write(table, file)
    assert support_table.read(file) == table
    text = support_table.markdown(table)
    assert text in (tmp_path / "table.md").read_text()
    assert {len(line) for line in columns(text)} == {6}
    html = nbconvert.filters.markdown2html(text)
    assert "ValueError: `a|b` &lt;b&gt;*x*&lt;/b&gt; _y_ $z$ \\ [link](#) &amp; ~c~ second line" in html


WEIGHTS = [[[0.5, -0.25], [1.0, 0.0]], [0.1, 0.2]]
RIGHT = {"replicas": 2, "updates": 20, "loss_before": 2.25, "loss_after": 1.62, "weights": WEIGHTS}


def verdict(expected: list | None = WEIGHTS, **changes: object) -> CellVerdict:
    """The verdict on a right run, except for `changes`."""
    return judge(MeasuredRun(RIGHT | changes, [""]), replicas=2, updates=20, weights=expected)


def raised(kind: str, message: str) -> str:
    return f'a line\nTraceback (most recent call last):\n  File "x.py", line 1, in <module>\n{kind}: {message}\n'


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"weights": [[[0.6, -0.3], [1.1, -0.1]], [0.2, 0.4]]}, "weights differ from the serial run's by up to 0.2"),
        ({"weights": WEIGHTS[:1]}, "cannot be compared"),
        ({"loss_after": float("nan")}, "the loss did not fall"),
        ({"replicas": 1}, "replicas that trained: 1, not 2"),
        ({"updates": 16}, "the optimizer counted fewer updates than were made"),
    ],
)
def test_a_run_that_is_wrong_in_anything_is_a_wrong_result(changes: dict[str, object], said: str) -> None:
    assert verdict() == verdict(expected=None) == ("works", "")
    judged = verdict(**changes)
    assert judged.state == "wrong result" and said in judged.detail


def test_an_error_fails_with_its_first_line_and_the_cause_is_shown() -> None:
    outputs = [raised("errors_impl.UnavailableError", "Socket closed"), raised("ValueError", "no such thing\nmore")]
    assert judge(MeasuredRun(None, outputs), 2, 20, WEIGHTS) == ("fails", "ValueError: no such thing")
    error = raised("ValueError", "Please provide a TPU Name to connect to.")
    assert judge(MeasuredRun(None, [error]), 1, 20, None).state == "no such device"
    assert first_line_of_error(["F0000 check failed", ""]) == "ended without an exception"


def test_a_hang_does_not_end_whatever_it_printed_or_wrote() -> None:
    for result in (None, RIGHT):
        outcome = MeasuredRun(result, [raised("ValueError", "early")], has_ended=False)
        assert judge(outcome, 2, 20, WEIGHTS) == ("does not end", "")


def test_nothing_of_the_machine_is_left() -> None:
    message = (
        "at 0x7f381b79b880 no answer from node-17.cluster:41234, 10.0.0.7:5000 or [::1]:40123 for /srv/some/file.py"
    )
    line = first_line_of_error([raised("RuntimeError", message)])
    assert line == "RuntimeError: at … no answer from …, … or … for …"

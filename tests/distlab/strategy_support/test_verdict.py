"""Judging a cell of the support table: runs that are right, that are wrong, that hang and that end with errors."""

import pytest

from distlab.strategy_support import CellVerdict, MeasuredRun, judge
from distlab.strategy_support.verdict import first_line_of_error

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


def test_in_a_traced_function_the_error_itself_is_shown() -> None:
    traced = raised("AttributeError", 'in user code:\n\n    File "y.py", line 3, in g\n        v.assign(1)\n\n'
                    "    AttributeError: 'SymbolicTensor' object has no attribute 'assign'")  # fmt: skip
    assert first_line_of_error([traced]) == "AttributeError: 'SymbolicTensor' object has no attribute 'assign'"


def test_nothing_of_the_machine_is_left() -> None:
    message = (
        "at 0x7f381b79b880 no answer from node-17.cluster:41234, 10.0.0.7:5000 or [::1]:40123 for /srv/some/file.py"
    )
    line = first_line_of_error([raised("RuntimeError", message)])
    assert line == "RuntimeError: at … no answer from …, … or … for …"

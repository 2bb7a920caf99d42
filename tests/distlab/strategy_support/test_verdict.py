"""Judging a cell of the support table: runs that are right, that are wrong, that hang and that end with errors."""

import pytest

from distlab.strategy_support import CellVerdict, MeasuredRun, judge
from distlab.strategy_support.verdict import first_line_of_error

WEIGHTS = [[[0.5, -0.25], [1.0, 0.0]], [0.1, 0.2]]
INITIAL = [[[0.4, -0.20], [0.9, 0.1]], [0.0, 0.0]]
RIGHT = {"replicas": 2, "updates": 20, "loss_before": 2.25, "loss_after": 1.62, "weights": WEIGHTS}


def verdict(expected: list | None = WEIGHTS, **changes: object) -> CellVerdict:
    """The verdict on a right run, except for `changes`."""
    return judge(MeasuredRun(RIGHT | changes, [""]), replicas=2, updates=20, weights=expected)


def raised(kind: str, message: str) -> str:
    return f'a line\nTraceback (most recent call last):\n  File "x.py", line 1, in <module>\n{kind}: {message}\n'


def test_a_right_run_works() -> None:
    assert verdict() == ("works", "")
    assert verdict(expected=None) == ("works", "")


def test_wrong_weights_are_a_wrong_result_with_the_difference() -> None:
    doubled = [[[0.6, -0.3], [1.1, -0.1]], [0.2, 0.4]]
    assert verdict(weights=doubled) == ("wrong result", "weights differ from the serial run's by up to 0.2")


def test_a_run_that_trained_nothing_does_not_work() -> None:
    judged = verdict(None, weights=INITIAL, loss_after=2.25, updates=0)
    assert judged.state == "wrong result"
    assert "fewer updates than were made" in judged.detail
    assert "the loss did not fall" in judged.detail


@pytest.mark.parametrize("loss", [2.26, float("nan"), float("inf")])
def test_a_loss_that_does_not_fall_does_not_work(loss: float) -> None:
    assert verdict(None, loss_after=loss).state == "wrong result"


def test_every_process_alone_is_a_wrong_result_even_with_right_weights() -> None:
    assert verdict(replicas=1) == ("wrong result", "replicas that trained: 1, not 2")


@pytest.mark.parametrize(("updates", "word"), [(16, "fewer"), (40, "more")])
def test_a_wrong_count_of_updates_is_a_wrong_result(updates: int, word: str) -> None:
    assert verdict(updates=updates) == ("wrong result", f"the optimizer counted {word} updates than were made")


@pytest.mark.parametrize("weights", [[], WEIGHTS[:1], [[[float("nan")] * 2] * 2, WEIGHTS[1]], [[1.0], WEIGHTS[1]]])
def test_weights_that_cannot_be_compared_are_a_wrong_result(weights: list) -> None:
    assert verdict(weights=weights).state == "wrong result"


def test_a_hang_does_not_end_whatever_it_printed_or_wrote() -> None:
    for result in (None, RIGHT):
        outcome = MeasuredRun(result, [raised("ValueError", "early")], has_ended=False)
        assert judge(outcome, 2, 20, WEIGHTS) == ("does not end", "")


def test_an_error_fails_with_its_first_line() -> None:
    outcome = MeasuredRun(None, ["", raised("ValueError", "no such thing\nsecond line")])
    assert judge(outcome, 2, 20, WEIGHTS) == ("fails", "ValueError: no such thing")


def test_a_missing_tpu_is_no_failure_of_the_strategy() -> None:
    error = raised("ValueError", "Please provide a TPU Name to connect to.")
    assert judge(MeasuredRun(None, [error]), 1, 20, None).state == "no such device"


def test_a_crash_without_an_exception_says_so() -> None:
    assert first_line_of_error(["F0000 check failed", ""]) == "ended without an exception"
    assert first_line_of_error([]) == "ended without an exception"


def test_the_cause_is_shown_and_not_what_it_did_to_the_others() -> None:
    consequence = raised("tensorflow.python.framework.errors_impl.UnavailableError", "Socket closed")
    cause = raised("ValueError", "the cause")
    assert first_line_of_error([consequence, cause]) == "ValueError: the cause"
    assert first_line_of_error([consequence]) == "UnavailableError: Socket closed"


def test_the_last_exception_counts() -> None:
    chained = raised("KeyError", "'a'") + "\nDuring handling of the above exception:\n\n" + raised("TypeError", "b")
    assert first_line_of_error([chained]) == "TypeError: b"


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

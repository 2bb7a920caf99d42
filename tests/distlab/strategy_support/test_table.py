"""The support table in markdown, and the verdict on a cell; the measured table is in tests/programs."""

import nbconvert.filters
import pytest

from distlab import programs
from distlab.strategy_support import CellVerdict, MeasuredRun, judge, markdown, read
from distlab.strategy_support.verdict import first_line_of_error

MEASURED = programs.FOLDER / "08b_keras_3/support_table.json"
NASTY = "ValueError: `a|b` <b>*x*</b> _y_ $z$ \\ [link](#) & ~c~"


def test_an_error_with_special_characters_is_shown_literally_below_the_table() -> None:
    table = read(MEASURED)
    table["cells"]["mirrored"]["fit"]["legacy"] = {"state": "fails", "detail": NASTY, "notes": []}
    html = nbconvert.filters.markdown2html(markdown(table))
    assert html.count("<td") == 9 * 6
    assert "ValueError: 'a|b' &lt;b&gt;*x*&lt;/b&gt; _y_ $z$ \\ [link](#) &amp; ~c~" in html


WEIGHTS = [[[0.5, -0.25], [1.0, 0.0]], [0.1, 0.2]]
RIGHT = {"replicas": 2, "updates": 20, "loss_before": 2.25, "loss_after": 1.62, "weights": WEIGHTS}


def verdict(result: dict | None, *errors: str, has_ended: bool = True, weights: list | None = WEIGHTS) -> CellVerdict:
    """The verdict on a run of two replicas that had to make 20 updates."""
    outputs = [f'a line\nTraceback (most recent call last):\n  File "x.py"\n{error}\n' for error in errors]
    return judge(MeasuredRun(result, outputs, has_ended), 2, 20, weights)


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
    judged = verdict(RIGHT | changes)
    assert judged.state == "wrong result" and said in judged.detail


def test_a_right_run_works_a_hang_does_not_end_and_an_error_is_shown_by_its_cause_without_the_machine() -> None:
    assert verdict(RIGHT) == verdict(RIGHT, weights=None) == ("works", "")
    assert verdict(RIGHT, "ValueError: early", has_ended=False) == ("does not end", "")
    of_others = "tensorflow.errors_impl.UnavailableError: Socket closed"
    assert verdict(None, of_others, "ValueError: no such thing\nmore") == ("fails", "ValueError: no such thing")
    assert verdict(None, "ValueError: Please provide a TPU Name to connect to.").state == "no such device"
    assert first_line_of_error(["F0000 check failed", ""]) == "ended without an exception"
    addresses = "node-17.cluster:41234, 10.0.0.7:5000 or [::1]:40123"
    judged = verdict(None, f"RuntimeError: at 0x7f381b79b880 no answer from {addresses} for /srv/some/file.py")
    assert judged.detail == "RuntimeError: at … no answer from …, … or … for …"

"""In grading too, lab 05 runs the cell of an order again and finds what a new process would not have."""

from collections.abc import Iterator

import pytest
from lab_05.hints import Lab05Hint
from lab_05.lab import LAB
from lab_05_tests.test_lab import LOST_AT_RESTART, ORDER_IN_ITS_CELL, SAME_AFTER_RESTART

from course_tools.sandbox import PLAIN, SandboxedWork, Server

pytestmark = pytest.mark.slow

SECONDS = 300.0


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """What sandboxes are forked from."""
    with Server(["numpy", "lab_05.observe"]) as server:
        yield server


@pytest.mark.parametrize(("title", "order"), [*LOST_AT_RESTART.items(), *SAME_AFTER_RESTART.items()])
def test_an_order_is_asked_for_again_in_a_new_run_of_its_cell(server: Server, title: str, order: str) -> None:
    with SandboxedWork(server, PLAIN) as work:
        work.run_cell(ORDER_IN_ITS_CELL.format(order=order), "numbers_of", SECONDS)
        verdict = LAB["numbers_of"].verdict(work.answer(SECONDS), 12345)
    assert verdict.hints == ((Lab05Hint.LOST_AT_RESTART,) if title in LOST_AT_RESTART else ()), verdict
    assert verdict.is_right == (title in SAME_AFTER_RESTART) and not work.changes

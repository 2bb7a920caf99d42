"""Lab 07: a fix is right exactly if the job starts after it."""

import pytest
from lab_07 import given, lab
from lab_07_tests import answers_07

from tests.distlab.labs.known_wrong import verdict_on

LAB = lab.LAB


@pytest.mark.parametrize("letter", given.BROKEN)
def test_a_broken_job_starts_after_one_fix_and_no_other(letter: str) -> None:
    assert not lab.starts(given.BROKEN[letter])
    choices = [(field, fix) for field in given.FIELDS for fix in given.FIXES]
    assert [choice for choice in choices if lab.starts_after(letter, *choice)] == [answers_07.SOLUTION[letter]]


def test_every_fix_can_be_done_somewhere_and_some_fix_nothing() -> None:
    assert {fix for _, fix in answers_07.SOLUTION.values()} < set(given.FIXES)
    assert {field for field, _ in given.CHANGES.values()} == set(given.FIELDS)


def test_a_partly_filled_diagnosis_earns_what_is_right() -> None:
    half = {letter: answers_07.SOLUTION[letter] for letter in "ABC"}
    verdict = verdict_on(LAB, "diagnosis", {"diagnosis": half})
    assert verdict.share == 0.5 and "D, E, F: not done yet" in verdict.text

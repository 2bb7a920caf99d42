"""Lab 07: a mend is right exactly if the job would start after it."""

import pytest

from distlab.labs.lab_07 import given, lab
from tests.labs.known_wrong import verdict_on
from tests.labs.lab_07 import answers_07

LAB = lab.LAB


@pytest.mark.parametrize("letter", given.BROKEN)
def test_a_broken_job_starts_after_one_mend_and_no_other(letter: str) -> None:
    assert not given.starts(given.BROKEN[letter])
    choices = [(field, mend) for field in given.FIELDS for mend in given.MENDS]
    assert [choice for choice in choices if given.mended(letter, *choice)] == [answers_07.SOLUTION[letter]]


def test_every_mend_can_be_done_somewhere_and_some_fit_nothing() -> None:
    used = {mend for _, mend in answers_07.SOLUTION.values()}
    assert used < set(given.MENDS)
    assert {field for field, _ in given.MENDS.values()} == set(given.FIELDS)


def test_a_partly_filled_diagnosis_earns_what_is_right() -> None:
    half = {letter: answers_07.SOLUTION[letter] for letter in "ABC"}
    verdict = verdict_on(LAB, "diagnosis", {"diagnosis": half})
    assert verdict.share == 0.5 and "D: not done yet" in verdict.text

"""Lab 07: a mend is right exactly if the job would start after it."""

import answers_07
import pytest
from planted import verdict_on

from distlab.labs import broken_configs, lab_07

LAB = lab_07.LAB


@pytest.mark.parametrize("letter", broken_configs.BROKEN)
def test_a_broken_job_starts_after_one_mend_and_no_other(letter: str) -> None:
    assert not broken_configs.starts(broken_configs.BROKEN[letter])
    choices = [(field, mend) for field in broken_configs.FIELDS for mend in broken_configs.MENDS]
    assert [choice for choice in choices if broken_configs.mended(letter, *choice)] == [answers_07.SOLUTION[letter]]


def test_every_mend_can_be_done_somewhere_and_some_fit_nothing() -> None:
    used = {mend for _, mend in answers_07.SOLUTION.values()}
    assert used < set(broken_configs.MENDS)
    assert {field for field, _ in broken_configs.MENDS.values()} == set(broken_configs.FIELDS)


def test_a_partly_filled_diagnosis_earns_what_is_right() -> None:
    half = {letter: answers_07.SOLUTION[letter] for letter in "ABC"}
    verdict = verdict_on(LAB, "diagnosis", {"diagnosis": half})
    assert verdict.share == 0.5 and "D: not done yet" in verdict.text

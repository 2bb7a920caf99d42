"""Lab 02: causes and symptoms; models, clocks and batches told apart in a process of their own."""

import pytest
from lab_02 import given, judge
from lab_02.judge import DIAGNOSIS, LAB

from tests.distlab.labs.judged_apart import assert_told_apart, judged_apart
from tests.distlab.labs.known_wrong import assert_right, verdict_on


def test_each_symptom_has_one_cause_and_every_other_cause_a_doubt():
    assert list(DIAGNOSIS) == list(given.SYMPTOMS) and isinstance(given.CAUSES, tuple)
    assert sorted([*DIAGNOSIS.values(), *judge.DOUBTS]) == sorted(given.CAUSES)


def test_a_note_costs_nothing_and_a_cause_that_is_not_in_the_list_costs_its_part():
    assert_right(verdict_on(LAB, "diagnosis", {"diagnosis": {"note": "mine", **dict(reversed(DIAGNOSIS.items()))}}))
    verdict = verdict_on(LAB, "diagnosis", {"diagnosis": DIAGNOSIS | {"steps": "the strategy is slow", "clock": None}})
    assert "'the strategy is slow' is not in the list of causes." in verdict.text
    assert "clock: not done yet" in verdict.text and verdict.share == pytest.approx(1 / 3)


@pytest.mark.slow
def test_models_clocks_and_batches_are_told_apart():
    assert_told_apart(judged_apart("02", "lab_02.known_answers"))

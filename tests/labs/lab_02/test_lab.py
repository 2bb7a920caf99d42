"""Lab 02: causes and symptoms; models, clocks and batches told apart in a process of their own."""

import pytest

from distlab.labs.lab_02 import lab
from tests.labs.judged_apart import assert_told_apart, judged_apart


def test_each_symptom_has_one_cause_and_every_other_cause_a_doubt() -> None:
    assert sorted(filter(None, lab.CAUSES.values())) == sorted(lab.SYMPTOMS)
    assert {cause for cause, symptom in lab.CAUSES.items() if not symptom} == set(lab.DOUBTS)


@pytest.mark.slow
def test_models_clocks_and_batches_are_told_apart() -> None:
    assert_told_apart(judged_apart("02", "tests.labs.lab_02.answers_02_tensorflow"))

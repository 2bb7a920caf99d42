"""Lab 02: causes and symptoms; models, clocks and batches told apart in a process of their own."""

import pytest
from judged_apart import assert_told_apart, judged_apart

from distlab.labs import lab_02


def test_each_symptom_has_one_cause_and_every_other_cause_a_doubt() -> None:
    assert sorted(filter(None, lab_02.CAUSES.values())) == sorted(lab_02.SYMPTOMS)
    assert {cause for cause, symptom in lab_02.CAUSES.items() if not symptom} == set(lab_02.DOUBTS)


@pytest.mark.slow
def test_models_clocks_and_batches_are_told_apart() -> None:
    assert_told_apart(judged_apart("02", "answers_02_tensorflow"))

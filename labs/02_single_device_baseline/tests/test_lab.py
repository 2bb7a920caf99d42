"""Lab 02: causes and symptoms; models, clocks and batches told apart in a process of their own."""

import pytest
from lab_02 import given, lab

from tests.distlab.labs.judged_apart import assert_told_apart, judged_apart


def test_each_symptom_has_one_cause_and_every_other_cause_a_doubt() -> None:
    assert list(lab.FAULTS) == list(given.SYMPTOMS)
    assert set(lab.FAULTS.values()) | set(lab.DOUBTS) == set(given.CAUSES)
    assert len(given.CAUSES) == len(lab.FAULTS) + len(lab.DOUBTS)


def test_what_students_are_given_is_no_key() -> None:
    words = [name for name in vars(given) if not name.startswith("_")]
    assert words == ["SYMPTOMS", "CAUSES"]
    assert not set(given.SYMPTOMS) & set(given.CAUSES) and isinstance(given.CAUSES, tuple)


@pytest.mark.long
def test_models_clocks_and_batches_are_told_apart() -> None:
    assert_told_apart(judged_apart("02", "lab_02_tests.answers_02_tensorflow"))

"""In every lab solutions get full marks, known-wrong answers their hints, and what nobody has touched nothing.

Hints are asserted by their ids. Their texts are in a lab's `hint_texts.json`; `pytest --snapshot-update` writes it.
Each answer is judged with three seeds; `ALL_SEEDS=1` takes thirteen, `LABS="02 07"` the answers to these labs alone.
"""

import importlib
import os
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension
from syrupy.location import PyTestLocation
from syrupy.types import SnapshotIndex

from distlab.labs import Verdict, registry
from tests.distlab.labs.known_wrong import SEEDS, assert_not_done, assert_right, assert_wrong, verdict_on

WITH_ANSWERS = [number for number in registry.MODULES if number not in registry.IN_ONE_FILE]
CHOSEN = [number for number in os.environ.get("LABS", " ".join(WITH_ANSWERS)).split() if number in WITH_ANSWERS]
ANSWERS = {number: importlib.import_module(f"lab_{number}_tests.answers_{number}").ANSWERS for number in CHOSEN}
# Exercises whose answers start TensorFlow are judged in a process of their own, by the lab's own test file.
APART = {"02": 3, "03": 1, "05": 1, "09": 3, "16": 1}
LABS = {number: registry.lab(number) for number in ANSWERS}
TEMPORARY = re.compile(r"\btmp\w{8}\b|(?<=in line )\d+(?= of its cell)")
"""Names of folders, and lines of the files with the answers, which move."""

right = pytest.mark.parametrize(
    ("number", "exercise", "namespace"),
    [
        pytest.param(number, exercise, names, id=f"{number}-{exercise}-{title}")
        for number, answers in ANSWERS.items()
        for exercise, title, names in answers.all_right()
    ],
)
wrong = pytest.mark.parametrize(
    ("number", "exercise", "place"),
    [
        pytest.param(number, exercise, place, id=f"{number}-{exercise}-{answer.title}")
        for number, answers in ANSWERS.items()
        for exercise, group in answers.wrong_answers.items()
        for place, answer in enumerate(group)
    ],
)
every_exercise = pytest.mark.parametrize(
    ("number", "exercise"),
    [(number, exercise) for number, answers in ANSWERS.items() for exercise in answers.solutions],
)


@cache
def verdict_on_wrong(number: str, exercise: str, place: int, seed: int = 0) -> Verdict:
    answer = ANSWERS[number].wrong_answers[exercise][place]
    return verdict_on(LABS[number], exercise, answer.namespace, seed)


def texts(number: str) -> dict[str, dict[str, str]]:
    """What the check says to every wrong answer, by exercise and title; temporary names vary, and Python's words."""
    by_exercise = defaultdict(dict)
    for exercise, group in ANSWERS[number].wrong_answers.items():
        for place, answer in enumerate(group):
            text = verdict_on_wrong(number, exercise, place).text
            text = text.replace("iterable argument is empty", "arg is an empty sequence")  # since Python 3.13
            by_exercise[exercise][answer.title] = TEMPORARY.sub("…", text)
    return by_exercise


@pytest.mark.slow
@right
def test_a_right_answer_gets_full_marks(number: str, exercise: str, namespace: Mapping[str, Any]) -> None:
    for seed in SEEDS:
        assert_right(verdict_on(LABS[number], exercise, namespace, seed))


@pytest.mark.slow
@wrong
def test_a_known_wrong_answer_gets_its_hints(number: str, exercise: str, place: int) -> None:
    for seed in SEEDS:
        assert_wrong(verdict_on_wrong(number, exercise, place, seed), ANSWERS[number].wrong_answers[exercise][place])


@pytest.mark.slow
@every_exercise
def test_no_two_of_at_least_five_wrong_answers_get_one_text(number: str, exercise: str) -> None:
    by_title = texts(number)[exercise]
    assert len(ANSWERS[number].wrong_answers[exercise]) >= 5
    assert len(set(by_title.values())) == len(ANSWERS[number].wrong_answers[exercise]), by_title


def texts_file(number: str) -> type[JSONSnapshotExtension]:
    """Where the snapshot of a lab's texts is: `hint_texts.json`, next to its answers."""

    class HintTexts(JSONSnapshotExtension):
        @classmethod
        def dirname(cls, *, test_location: PyTestLocation) -> str:
            return str(registry.JUDGES[number].with_name("tests"))

        @classmethod
        def get_file_basename(cls, *, test_location: PyTestLocation, index: SnapshotIndex) -> str:
            return "hint_texts"

        @classmethod
        def get_snapshot_name(cls, *, test_location: PyTestLocation, index: SnapshotIndex = 0) -> str:
            return "hint_texts"

    return HintTexts


@pytest.mark.slow
@pytest.mark.parametrize("number", ANSWERS)
def test_hints_are_worded_as_in_the_snapshot(number: str, snapshot: SnapshotAssertion) -> None:
    assert texts(number) == snapshot(extension_class=texts_file(number))


@every_exercise
def test_an_untouched_answer_is_not_done_yet(number: str, exercise: str) -> None:
    assert_not_done(LABS[number], exercise, {exercise: ANSWERS[number].untouched[exercise]})
    assert_not_done(LABS[number], exercise, {})


@pytest.mark.parametrize("number", ANSWERS)
def test_no_exercise_is_left_out(number: str) -> None:
    answers = ANSWERS[number]
    assert set(answers.solutions) == set(answers.wrong_answers) == set(answers.right_answers)
    assert len(LABS[number].exercises) == len(answers.solutions) + APART.get(number, 0)

"""In every lab solutions get full marks, each planted mistake its hint, and what nobody has touched nothing."""

from collections.abc import Mapping
from typing import Any

import pytest

from distlab.labs import Lab, registry
from tests.labs.known_wrong import Wrong, assert_hints_differ, assert_not_done, assert_right, assert_wrong, verdict_on
from tests.labs.lab_02 import answers_02
from tests.labs.lab_03 import answers_03
from tests.labs.lab_06 import answers_06
from tests.labs.lab_07 import answers_07
from tests.labs.lab_09 import answers_09
from tests.labs.lab_10 import answers_10
from tests.labs.lab_11 import answers_11
from tests.labs.lab_12 import answers_12

ANSWERS = {
    "02": answers_02.PLANTED,
    "03": answers_03.PLANTED,
    "06": answers_06.PLANTED,
    "07": answers_07.PLANTED,
    "09": answers_09.PLANTED,
    "10": answers_10.PLANTED,
    "11": answers_11.PLANTED,
    "12": answers_12.PLANTED,
}
# Exercises whose answers start TensorFlow are judged in a process of their own, by the lab's own test file.
APART = {"02": 3, "03": 1, "09": 3}
LABS = {number: registry.lab(number) for number in ANSWERS}
SECRET_SEEDS = range(1, 12)

right = pytest.mark.parametrize(
    ("lab", "exercise", "namespace"),
    [
        pytest.param(LABS[number], exercise, names, id=f"{number}-{exercise}-{title}")
        for number, planted in ANSWERS.items()
        for exercise, title, names in planted.all_right()
    ],
)
wrong = pytest.mark.parametrize(
    ("lab", "exercise", "mistake"),
    [
        pytest.param(LABS[number], exercise, mistake, id=f"{number}-{exercise}-{mistake.title}")
        for number, planted in ANSWERS.items()
        for exercise, mistake in planted.all_wrong()
    ],
)
every_exercise = pytest.mark.parametrize(
    ("number", "exercise"),
    [(number, exercise) for number, planted in ANSWERS.items() for exercise in planted.solutions],
)


@right
def test_a_right_answer_gets_full_marks(lab: Lab, exercise: str, namespace: Mapping[str, Any]) -> None:
    assert_right(lab, exercise, namespace)


@wrong
def test_a_planted_mistake_gets_its_hint(lab: Lab, exercise: str, mistake: Wrong) -> None:
    assert_wrong(lab, exercise, mistake)


@every_exercise
def test_no_two_mistakes_get_one_hint(number: str, exercise: str) -> None:
    assert_hints_differ(LABS[number], ANSWERS[number], exercise)


@every_exercise
def test_an_untouched_answer_is_not_done_yet(number: str, exercise: str) -> None:
    assert_not_done(LABS[number], exercise, {exercise: ANSWERS[number].untouched[exercise]})
    assert_not_done(LABS[number], exercise, {})


@pytest.mark.parametrize("seed", SECRET_SEEDS)
@pytest.mark.parametrize("number", ANSWERS)
def test_the_secret_inputs_do_not_decide_what_is_right(number: str, seed: int) -> None:
    for exercise, title, namespace in ANSWERS[number].all_right():
        assert verdict_on(LABS[number], exercise, namespace, seed).share == 1, (exercise, title)
    for exercise, mistake in ANSWERS[number].all_wrong():
        verdict = verdict_on(LABS[number], exercise, mistake.namespace, seed)
        assert verdict.share == mistake.share and not verdict.is_right, (exercise, mistake.title, verdict)


@pytest.mark.parametrize("number", ANSWERS)
def test_no_exercise_is_left_out(number: str) -> None:
    planted = ANSWERS[number]
    assert set(planted.solutions) == set(planted.wrong_answers) == set(planted.right_answers)
    assert len(LABS[number].exercises) == len(planted.solutions) + APART.get(number, 0)


def test_no_lab_is_left_out() -> None:
    assert list(ANSWERS) == sorted(list(registry.MODULES))

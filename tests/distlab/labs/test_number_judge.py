"""Numbers that students give, compared with the right ones, and other values in words."""

import math

import numpy as np
import pytest

from distlab.labs.number_judge import NumberHint, described, is_near, is_rounded, number, problem_of_names, two_numbers
from distlab.labs.plain_data import Plain


@pytest.mark.parametrize("value", [True, "3", None, [3.0], 3j, np.arange(2)])
def test_only_a_real_number_is_a_number(value: object) -> None:
    assert number(value) is None
    assert number(np.array(3)) == number(np.int64(3)) == 3.0


def test_two_numbers_are_two_finite_ones() -> None:
    assert two_numbers([1, np.array(2.5)]) == two_numbers(np.array([1, 2.5])) == (1.0, 2.5)
    assert two_numbers((1, math.inf)) is two_numbers((1, 2, 3)) is two_numbers("12") is None


def test_numbers_are_near_relative_to_the_expected_one() -> None:
    assert is_near(1.0000001, 1) and not is_near(1.00001, 1) and is_near(math.inf, math.inf)
    assert not is_near(1e-13, 0)
    assert is_near(None, None) and not is_near(None, 0) and not is_near(0, None) and not is_near(math.nan, 0)


def test_a_rounded_number_is_said_to_be_rounded() -> None:
    assert all(is_rounded(value, 1 / 7) for value in (0.14, 0.143, 0.1428571, float(np.float32(1 / 7))))
    assert not any(is_rounded(value, 1 / 7) for value in (0.15, 0.142, 0.0, math.nan, None))


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ((10,), "yours gives no dictionary"),
        ({"step": 10, 7: 1}, '"steps", "rate" are missing, and "step", "7" are unknown'),
    ],
)
def test_what_is_no_dictionary_of_the_names_is_said_at_once(answer: object, problem: str) -> None:
    verdict = problem_of_names("plan", ("steps", "rate"), answer)
    assert verdict is not None and verdict.hints == (NumberHint.NAMES,)
    assert verdict.text == f'`plan` must give a dictionary with the names "steps", "rate"; {problem}.'


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (np.array(2.5), "one number"),
        ((1,), "a tuple of 1 number"),
        ([1, None], "a list of 2 items, of which item 1 is None"),
        ([np.ones((3, 2)), 1], "a list of 2 items, of which item 0 is an array of shape (3, 2)"),
        ({0: 1.0}, "a dict"),
    ],
)
def test_an_answer_is_described(answer: Plain, words: str) -> None:
    assert described(answer) == words

"""Exercises in parts: None, an error or an endless loop in one case counts for its part only."""

from collections.abc import Callable

import numpy as np
import pytest

from distlab.labs import NOT_DONE, WRONG, Answer, Exercise, OwnAnswer, Verdict, right, wrong
from distlab.labs.answer_errors import Changed
from distlab.labs.part_cases import PartCase, judge_cases


def judge_halves(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A third each for even numbers, odd ones and 0."""

    def part_case(part: str, number: int) -> PartCase:
        def verdict() -> Verdict:
            return right() if answer.call("half", number) == number / 2 else wrong("not a half")

        return PartCase(part, verdict, f"{number}: ")

    return judge_cases([part_case(*case) for case in (("even", 2), ("odd", 3), ("zero", 0), ("even", 4))])


def verdict_on(half: Callable[[int], object], seconds: float = 5.0) -> Verdict:
    return Exercise("half", 3, judge_halves).verdict(OwnAnswer({"half": half}, seconds))


def test_none_in_one_part_is_not_done_there_and_the_other_parts_count() -> None:
    verdict = verdict_on(lambda number: number / 2 if number % 2 == 0 else None)
    assert (verdict.state, verdict.share) == (WRONG, 2 / 3)
    assert "odd: not done yet: 3: `half` gives None" in verdict.text


def test_an_error_in_a_later_case_counts_for_its_part() -> None:
    def half(number: int) -> float:
        return {2: 1.0, 3: 1.5, 0: 0.0}[number]

    verdict = verdict_on(half)
    assert (verdict.state, verdict.share) == (WRONG, 2 / 3)
    assert "even: wrong: 4: it raised KeyError" in verdict.text


@pytest.mark.parametrize("half", [lambda number: None, lambda number: ..., None, ...])
def test_nothing_at_all_is_not_done_in_one_sentence(half: object) -> None:
    verdict = verdict_on(half)
    assert (verdict.state, verdict.share) == (NOT_DONE, 0)
    assert verdict.text.startswith("`half` ")


def test_the_same_error_everywhere_is_said_once() -> None:
    def half(number: int) -> float:
        raise ValueError("no")

    verdict = verdict_on(half)
    assert (verdict.state, verdict.share) == (WRONG, 0)
    assert verdict.text.count("ValueError") == 1
    assert "part" not in verdict.text


def test_after_an_endless_loop_nothing_more_is_tried_and_what_was_right_so_far_does_not_count() -> None:
    asked = []

    def half(number: int) -> float:
        asked.append(number)
        while number == 3:
            pass
        return number / 2

    verdict = verdict_on(half, 0.2)
    assert asked == [2, 3]
    assert (verdict.state, verdict.share) == (WRONG, 0)
    assert "did not end within 0.2 s" in verdict.text


def test_who_changes_the_checker_gets_nothing() -> None:
    def changed() -> Verdict:
        raise Changed(["wire.send"])

    with pytest.raises(Changed):
        judge_cases([PartCase("first", right), PartCase("second", changed)])

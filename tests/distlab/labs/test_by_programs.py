"""The judge by programs: which mistake is said, in which part, and what happens where an answer fails."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from distlab.labs import Exercise, OwnAnswer, Verdict
from distlab.labs.by_programs import ByPrograms, Follows, Mistake, formulas

SUM, MEAN = "sum", "mean"


def statistics(values: list[float]) -> dict[str, float]:
    return {SUM: sum(values), MEAN: sum(values) / len(values)}


def half(values: list[float]) -> float | None:
    return sum(values) / 2 if values else None


def by_name(**options: Any) -> ByPrograms:
    tables = {
        SUM: {"max(values)": "the largest is {max(values)}", "sum / 2": "half"},
        MEAN: {"sum / 2": "two", "1 / mean": "inverted"},
    }
    return ByPrograms(
        statistics,
        lambda generator: [([1.0, 2.0, 6.0],), ([3.0, 5.0],)],
        formulas(statistics, tables),
        "add them",
        lambda case: f"for {case[0]}",
        parts=(SUM, MEAN),
        follows=[Follows(MEAN, SUM, lambda case, own: own[SUM] / len(case[0]))],
        **options,
    )


def by_case(**options: Any) -> ByPrograms:
    return ByPrograms(
        half,
        lambda generator: [([4.0],), ([2.0, 4.0],), ([],)],
        [
            Mistake("doubled", lambda values: 2 * sum(values) if values else None),
            Mistake({"nothing": "with nothing it fails"}, lambda values: sum(values) / 2 / bool(values)),
        ],
        {"something": "halve it", "nothing": "there is nothing to halve"},
        lambda case: f"for {case[0]}",
        parts=("something", "nothing"),
        split=lambda case, value: {"something" if case[0] else "nothing": value},
        **options,
    )


def verdict(judge: ByPrograms, program: Callable[..., Any], seconds: float = 5.0) -> Verdict:
    return Exercise(judge.name, 1, judge).verdict(OwnAnswer({judge.name: program}, seconds))


def but(**changes: Callable[[list[float]], Any]) -> Callable[[list[float]], Mapping[str, Any]]:
    return lambda values: statistics(values) | {name: change(values) for name, change in changes.items()}


@pytest.mark.parametrize(
    ("program", "share", "words"),
    [
        (but(sum=max), 0.5, "sum: wrong: 6 for [1.0, 2.0, 6.0]: the largest is 6.0"),
        (but(mean=lambda values: sum(values) / 2), 0.5, "mean: wrong: 4.5 for [1.0, 2.0, 6.0]: two"),  # right in one
        (but(sum=lambda values: sum(values) + 1), 0.5, "sum: wrong: 10 for [1.0, 2.0, 6.0]: add them"),
        (but(sum=len, mean=lambda values: 1.0), 0, "mean: wrong: it follows from the wrong sum."),
        (but(sum=lambda values: "x"), 0.5, "sum: wrong: 'x' for [1.0, 2.0, 6.0]: this is not a number."),
        (but(mean=lambda values: None), 0.5, "mean: not done yet: This is None."),
        (lambda values: 3, 0, "must give a dictionary with the names"),
        (lambda values: statistics(values) if len(values) > 2 else 1 / 0, 0, "It raised ZeroDivisionError"),
    ],
)
def test_numbers_by_name(program: Callable[..., Any], share: float, words: str) -> None:
    said = verdict(by_name(), program)
    assert words in said.text and said.share == share and said.fault is None


@pytest.mark.parametrize(
    ("program", "share", "words"),
    [
        (lambda values: 2 * sum(values) if values else None, 0.5, "something: wrong: 8 for [4.0]: doubled"),
        (
            lambda values: sum(values) / 2 / len(values) * len(values),
            0.5,
            "nothing: wrong: for []: with nothing it fails",
        ),
        (lambda values: sum(values) / 2, 0.5, "nothing: wrong: 0 for []: there is nothing to halve"),
        (lambda values: half(values) if values else values[3], 0.5, "nothing: wrong: for []: it raised IndexError"),
        (lambda values: [].append(0), 0.5, "something: wrong: None for [4.0]: halve it"),
    ],
)
def test_parts_by_case(program: Callable[..., Any], share: float, words: str) -> None:
    said = verdict(by_case(), program)
    assert words in said.text and said.share == share and said.fault is None


def test_a_part_counts_only_after_another_one() -> None:
    said = verdict(by_case(after={"nothing": ["something"]}), lambda values: 2 * sum(values) if values else None)
    assert said.share == 0 and "nothing: not done yet: something must be right first" in said.text
    judge = by_case(after={"nothing": lambda case: "something"})
    assert "nothing: not done yet: No other part is right yet." in verdict(judge, lambda values: 1.0).text


def test_after_a_case_that_never_ends_no_further_one_is_tried() -> None:
    def endless(values: list[float]) -> float | None:
        while values == [2.0, 4.0]:
            pass
        return half(values)

    said = verdict(by_case(), endless, seconds=0.2)
    assert "something: wrong: for [2.0, 4.0]: `half` did not end within 0.2 s" in said.text
    assert "nothing: not done yet: It was not tried" in said.text


def test_a_wrong_truth_value_alone_is_no_mistake() -> None:
    def is_large(value: int) -> bool:
        return value > 3

    judge = ByPrograms(
        is_large,
        lambda generator: [(3,), (4,), (9,)],
        [Mistake("that is always so", lambda value: True)],
        "look again",
        lambda case: f"for {case[0]}",
    )
    assert verdict(judge, lambda value: value != 4).text == "True for 3: look again"
    assert verdict(judge, lambda value: True).text == "True for 3: that is always so"

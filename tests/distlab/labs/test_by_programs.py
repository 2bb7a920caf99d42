"""The judge by programs: which mistake is said, in which part, and what happens where an answer fails."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from distlab.labs import Exercise, OwnAnswer, Verdict
from distlab.labs.by_programs import ByPrograms, Follows, Mistake, OfPart, formulas, is_same
from distlab.labs.verdict import Picture
from distlab.simulate import Rank, World

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
        (but(mean=lambda values: None), 0.5, "mean: not done yet: this is None"),
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
    assert "nothing: not done yet: no other part is right yet" in verdict(judge, lambda values: 1.0).text


def test_after_a_case_that_never_ends_no_further_one_is_tried() -> None:
    def endless(values: list[float]) -> float | None:
        while values == [2.0, 4.0]:
            pass
        return half(values)

    said = verdict(by_case(), endless, seconds=0.2)
    assert "something: wrong: for [2.0, 4.0]: `half` did not end within 0.2 s" in said.text
    assert "nothing: not done yet: it was not tried" in said.text


def test_values_are_compared_by_kind() -> None:
    assert is_same((1, 2.0), [1.0, 2]) and is_same({"a": [1]}, {"a": (1,)}) and is_same("x", "x")
    assert not is_same([1], [1, 2]) and not is_same(True, 1) and not is_same(1, True) and not is_same(None, 0)
    assert is_same(1.04, 1.0, 0.05) and not is_same(float("inf"), 1.0) and is_same(float("nan"), float("nan"))


def test_parts_within_a_part_count_together_and_what_is_below_is_of_the_first_wrong_case() -> None:
    def twice(value: float) -> dict[str, float]:
        return {SUM: 2 * value, MEAN: value}

    names = {whole: {name: f"{name} {whole}" for name in (SUM, MEAN)} for whole in ("a", "b")}
    judge = ByPrograms(
        twice,
        lambda generator: [OfPart("ab", 1.0), OfPart("b", 3.0)],
        [Mistake("not doubled", lambda value: {SUM: value, MEAN: value})],
        "try it by hand",
        lambda case: f"for {case[0]}",
        parts=[part for parts in names.values() for part in parts.values()],
        split=lambda case, value: {f"{name} {whole}": value[name] for whole in case.part for name in (SUM, MEAN)},
        together=names,
        below=lambda case: f"this was {case[0]}",
    )
    assert verdict(judge, twice).is_right
    both = verdict(judge, lambda value: {SUM: value, MEAN: 0})
    assert both.share == 0 and both.text.endswith("a, b: wrong: sum: 1 for 1.0: not doubled\nthis was 1.0")
    one = verdict(judge, lambda value: twice(value) | {MEAN: min(value, 2)})
    assert one.share == 0.5 and one.text.endswith("b: wrong: mean: 2 for 3.0: try it by hand\nthis was 3.0")


def test_several_values_can_be_right() -> None:
    judge = ByPrograms(
        half,
        lambda generator: [OfPart("one", [4.0, 4.0]), OfPart("other", [2.0])],
        [Mistake("that is all of it", sum)],
        "no half",
        lambda case: f"for {case[0]}",
        parts=("one", "other"),
        split=OfPart.split,
        accepts=lambda case, value: value in (sum(case[0]) / 2, -sum(case[0]) / 2),
    )
    assert verdict(judge, lambda values: -sum(values) / 2).is_right
    assert "one, other: wrong" not in verdict(judge, sum).text and "that is all of it" in verdict(judge, sum).text


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


def test_a_program_is_judged_by_what_is_observed_of_it() -> None:
    async def program(rank: Rank, value: int) -> object:
        return value

    async def doubled(rank: Rank, value: int) -> object:
        return 2 * value

    async def waits(rank: Rank, value: int) -> object:
        return await rank.receive(1 - rank.index)

    async def fails_on_one(rank: Rank, value: int) -> object:
        return value if rank.size > 1 else [][0]

    judge = ByPrograms(
        program,
        lambda generator: [(2,), (1,)],
        [Mistake("twice", doubled), Mistake({"several": "nobody sends"}, waits)],
        lambda case, seen: f"not {seen}",
        lambda case: f"on {case[0]}",
        parts=("several", "one"),
        split=lambda case, seen: {"several" if case[0] > 1 else "one": seen},
        observe=lambda answer, case: answer.run("program", World(case[0]), range(case[0])).results,
        draw=lambda case, seen: lambda: Picture("", f"{seen} {case}"),
    )

    def said(answer: Callable[..., Any]) -> Verdict:
        return verdict(judge, answer)

    assert said(program).is_right and said(program).picture().description == "[0, 1] (2,)"
    assert "several: wrong: on 2: twice" in said(doubled).text and said(doubled).share == 0.5
    assert "several: wrong: on 2: nobody sends" in said(waits).text
    assert "one: wrong: on 1: rank 0 failed" in said(fails_on_one).text

    async def shifted(rank: Rank, value: int) -> object:
        return value + 1

    assert "several: wrong: on 2: not [1, 2]" in said(shifted).text
    assert said(shifted).picture().description == "[1, 2] (2,)"

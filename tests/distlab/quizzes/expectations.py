"""Compares the items of a template with answers that are computed in another way."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from distlab.quizzes.item import Item, Kind
from distlab.quizzes.quiz import draw_item, templates

SEEDS = range(8)
Expected = Callable[[Mapping[str, Any]], float | str | dict[str, bool]]


def names_of(chapter: str) -> set[str]:
    return {template.__name__ for template in templates(chapter)}


def assert_expected(chapter: str, name: str, expected: Expected) -> None:
    """The right answer is the expected one, and no wrong answer is, for several seeds.

    expected: from the drawn numbers to the number or text, or for several options from parts of their texts to whether
    they are right.
    """
    template = next(template for template in templates(chapter) if template.__name__ == name)
    for seed in SEEDS:
        item = draw_item(chapter, template, seed)
        answer = expected(item.values)
        if isinstance(answer, dict):
            _assert_statements(item, answer)
        elif isinstance(answer, str):
            assert [option.text for option in item.right] == [answer], item
            assert answer not in {option.text for option in item.wrong}
        else:
            _assert_number(item, answer)


def _assert_number(item: Item, answer: float) -> None:
    value = item.right[0].value
    assert value is not None
    assert math.isclose(value, answer, rel_tol=1e-6), (item, answer)
    for option in item.wrong:
        assert option.value is not None
        assert abs(option.value - answer) > item.tolerance * abs(answer), (item, option)


def _assert_statements(item: Item, truths: dict[str, bool]) -> None:
    assert item.kind is Kind.SEVERAL
    for part, is_right in truths.items():
        verdicts = [option.is_right for option in item.options if part in option.text]
        assert verdicts == [is_right], (item, part)

"""What every template of every chapter must keep to, for many seeds."""

import re

import pytest

from distlab.quizzes.item import Item, Kind
from distlab.quizzes.quiz import CHAPTERS, draw_item, templates

SEEDS = range(40)


def faults(item: Item) -> list[str]:
    """What is wrong with the form of an item."""
    texts = [item.text, *(text for each in item.options for text in (each.text, each.mistake, each.explanation))]
    checks = {
        "two answers cannot be distinguished": item.is_ambiguous,
        "no right answer": not item.right_options,
        "three to five wrong answers": not 3 <= len(item.wrong_options) <= 5,
        "a wrong answer without a mistake": not all(each.mistake for each in item.wrong_options),
        "an answer without an explanation": not all(each.explanation for each in item.options),
        "a number that nobody would write": any(re.search(r"\bnan\b(?!`)|\d\.\d{9}", text) for text in texts),
        "an open backtick": any(text.count("`") % 2 for text in texts),
        "several numbers are right": item.kind is Kind.NUMBER and len(item.right_options) > 1,
    }
    return [name for name, is_so in checks.items() if is_so]


@pytest.fixture(scope="module")
def items() -> dict[tuple[str, str], list[Item]]:
    return {
        (chapter, template.__name__): [draw_item(chapter, template, seed) for seed in SEEDS]
        for chapter in CHAPTERS
        for template in templates(chapter)
    }


def test_every_chapter_has_ten_templates() -> None:
    assert [len(templates(chapter)) for chapter in CHAPTERS] == [10] * 17


@pytest.mark.slow
def test_every_item_is_well_formed(items: dict[tuple[str, str], list[Item]]) -> None:
    found = {(*name, fault) for name, of_template in items.items() for item in of_template for fault in faults(item)}
    assert found == set()


@pytest.mark.slow
def test_the_numbers_are_fresh(items: dict[tuple[str, str], list[Item]]) -> None:
    assert [name for name, of_template in items.items() if len({repr(item.values) for item in of_template}) < 4] == []


@pytest.mark.slow
def test_right_answers_are_at_every_position(items: dict[tuple[str, str], list[Item]]) -> None:
    for name, of_template in items.items():
        if of_template[0].kind is Kind.ONE:
            positions = {item.options.index(item.right_options[0]) for item in of_template}
            assert positions == set(range(len(of_template[0].options))), name

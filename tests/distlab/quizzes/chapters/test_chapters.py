"""What every template of every chapter must keep to, for 200 seeds."""

import re

import pytest

from distlab.quizzes.item import Item, Kind
from distlab.quizzes.quiz import CHAPTERS, draw_item, templates

SEEDS = range(200)
MOST_WORDS_OF_QUESTION, MOST_WORDS_OF_OPTION, MOST_WORDS_OF_EXPLANATION, MOST_WORDS_OF_SENTENCE = 75, 25, 45, 36
FOREIGN = re.compile(r"\b(stand-in|in place of|rehears\w*|betray\w*)\b", re.IGNORECASE)
OF_TWO_WORDS = 2


def sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.?!:])\s+", text)


def faults(item: Item) -> list[str]:
    """What is wrong with the form of an item."""
    listed = []
    texts = [item.text, *(option.text for option in item.options), *(option.explanation for option in item.options)]
    if item.is_ambiguous:
        listed.append("two answers cannot be told apart")
    if item.kind is not Kind.SEVERAL and len(item.right) != 1:
        listed.append("one option must be right")
    if not 3 <= len(item.wrong) <= 5 or not item.right:
        listed.append("three to five wrong options")
    if not all(option.mistake and option.explanation for option in item.wrong):
        listed.append("each wrong option needs a mistake and an explanation")
    if any(option.mistake[-1:] in ".?!" for option in item.wrong):
        listed.append("a mistake is a name, not a sentence")
    if not all(option.explanation.endswith((".", "?")) for option in item.options):
        listed.append("an explanation is a sentence")
    if not item.text.rstrip().endswith(("?", ".")):
        listed.append("the question ends")
    if len(item.text.split()) > MOST_WORDS_OF_QUESTION:
        listed.append("a long question")
    if any(len(option.text.split()) > MOST_WORDS_OF_OPTION for option in item.options):
        listed.append("a long option")
    if any(len(option.explanation.split()) > MOST_WORDS_OF_EXPLANATION for option in item.options):
        listed.append("a long explanation")
    if any(len(part.split()) > MOST_WORDS_OF_SENTENCE for text in texts for part in sentences(text)):
        listed.append("a long sentence")
    if any("  " in text or "nan" in text.split() or re.search(r"\d\.\d{9}", text) for text in texts):
        listed.append("a number or space that nobody would write")
    if any(FOREIGN.search(text) or text.count("`") % OF_TWO_WORDS for text in texts):
        listed.append("a word of the list, or an open backtick")
    return listed


@pytest.fixture(scope="module")
def items() -> dict[tuple[str, str], list[Item]]:
    return {
        (chapter, template.__name__): [draw_item(chapter, template, seed) for seed in SEEDS]
        for chapter in CHAPTERS
        for template in templates(chapter)
    }


def test_every_chapter_has_ten_templates() -> None:
    assert {
        chapter: len({template.__name__ for template in templates(chapter)}) for chapter in CHAPTERS
    } == dict.fromkeys(CHAPTERS, 10)


def test_every_template_says_what_it_asks() -> None:
    for chapter in CHAPTERS:
        for template in templates(chapter):
            assert (template.__doc__ or "").endswith("?"), template


@pytest.mark.slow
def test_every_item_of_200_seeds_is_well_formed(items: dict[tuple[str, str], list[Item]]) -> None:
    assert {
        (*key, fault): item.text
        for key, of_template in items.items()
        for item in {repr(item.values): item for item in of_template}.values()
        for fault in faults(item)
    } == {}


@pytest.mark.slow
def test_the_numbers_are_fresh(items: dict[tuple[str, str], list[Item]]) -> None:
    assert [key for key, of_template in items.items() if len({repr(item.values) for item in of_template}) < 4] == []


@pytest.mark.slow
def test_right_answers_are_at_every_position(items: dict[tuple[str, str], list[Item]]) -> None:
    for key, of_template in items.items():
        if of_template[0].kind is Kind.ONE:
            positions = {[option.is_right for option in item.options].index(True) for item in of_template}
            assert positions == set(range(len(of_template[0].options))), key

"""How a template fills an item in: its numbers, its texts, and answers that cannot be distinguished."""

import numpy as np
import pytest

from distlab.quizzes.item import Choices, Item, pick, pick_several
from distlab.quizzes.quiz import draw_item


def asked(right: float | str, wrong: float | str, unit: str = "ms") -> Item:
    item = Item("name", "00", {})
    item.choose("How\n        long?")
    item.right(right, unit).why("Two\n        of them.")
    item.wrong(wrong, "A mistake").why("Because.")
    return item


def test_numbers_and_texts_are_written_as_a_person_would() -> None:
    item = asked(12.3456, 500)
    assert [(option.text, option.value) for option in item.options] == [("12.3 ms", 12.3456), ("500 ms", 500)]
    assert (item.text, item.options[0].explanation) == ("How long?", "Two of them.")
    assert [option.text for option in asked(0.25, 0.5, "%").options] == ["25 %", "50 %"]


@pytest.mark.parametrize(
    ("right", "wrong", "is_ambiguous"),
    [(100.0, 103.0, True), (100.0, 110.0, False), (100, 101, False), ("this", "this", True)],
)
def test_counts_differ_by_one_and_other_numbers_by_more(
    right: float | str, wrong: float | str, is_ambiguous: bool
) -> None:
    item = asked(right, wrong)
    assert item.is_ambiguous == is_ambiguous
    assert item.tolerance == (0.02 if isinstance(right, float) else 0)


def test_every_value_is_drawn_equally_often_several_are_different_and_ambiguous_items_are_drawn_again() -> None:
    def doubled(item: Item, value: int = pick(2, 3)) -> None:
        item.right(2 * value).why("Why.")
        item.wrong(value**2, "The square").why("No.")

    assert {draw_item("06", doubled, seed).values["value"] for seed in range(50)} == {3}
    generator, choices, several = np.random.default_rng(2), pick("a", "b", "c"), pick_several(3, "a", "b", "c", "d")
    assert isinstance(choices, Choices) and isinstance(several, Choices)
    drawn = [choices.draw(generator) for _ in range(3_000)]
    assert all(850 < drawn.count(letter) < 1_150 for letter in "abc")
    assert len(set(several.draw(generator))) == 3

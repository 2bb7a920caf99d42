"""How a template fills an item in: its numbers, its texts, and answers that cannot be distinguished."""

import numpy as np
import pytest

from distlab.quizzes.item import Choices, Item, Kind, amount, figure, other, pick, pick_several
from distlab.quizzes.quiz import draw_item


def asked(right: float | str, wrong: float | str) -> Item:
    item = Item("name", "00", {})
    item.choose("How long?")
    item.right(right, "ms").why("Why.")
    item.wrong(wrong, "A mistake").why("Because.")
    return item


def test_a_number_is_rounded_and_written_with_its_unit() -> None:
    item = asked(12.3456, 500)
    assert [(option.text, option.value) for option in item.options] == [("12.3 ms", 12.3456), ("500 ms", 500)]
    assert [option.text for option in item.right_options + item.wrong_options] == ["12.3 ms", "500 ms"]


def test_a_share_is_written_in_per_cent() -> None:
    item = Item("name", "00", {})
    item.right(0.25, "%").why("Why.")
    assert (item.options[0].text, item.options[0].value) == ("25 %", 25)


def test_a_text_may_break_its_lines_anywhere() -> None:
    item = Item("name", "00", {})
    item.enter("""How
        long?""")
    item.right(2).why("""Two
        of them.""")
    assert (item.text, item.options[0].explanation, item.kind) == ("How long?", "Two of them.", Kind.NUMBER)


def test_several_right_answers_are_all_to_be_chosen() -> None:
    item = asked("a", "b")
    assert item.kind is Kind.ONE
    item.right("c").why("Too.")
    assert item.kind is Kind.SEVERAL


@pytest.mark.parametrize(
    ("right", "wrong", "is_ambiguous"),
    [
        (100.0, 103.0, True),
        (100.0, 110.0, False),
        (100, 101, False),
        (100, 100, True),
        ("this", "this", True),
        ("this", "that", False),
    ],
)
def test_counts_differ_by_one_and_other_numbers_by_more(
    right: float | str, wrong: float | str, is_ambiguous: bool
) -> None:
    item = asked(right, wrong)
    assert item.is_ambiguous == is_ambiguous
    assert item.tolerance == (0.02 if isinstance(right, float) else 0)


def test_numbers_that_make_a_mistake_right_are_drawn_again() -> None:
    def doubled(item: Item, value: int = pick(2, 3)) -> None:
        item.right(2 * value).why("Why.")
        item.wrong(value**2, "The square").why("No.")

    assert {draw_item("06", doubled, seed).values["value"] for seed in range(50)} == {3}


def test_a_template_without_such_numbers_is_a_fault() -> None:
    def always_alike(item: Item) -> None:
        item.right(1).why("Why.")
        item.wrong(1, "The same").why("No.")

    with pytest.raises(RuntimeError, match="always_alike"):
        draw_item("06", always_alike, 1)


def test_every_value_is_drawn_equally_often() -> None:
    generator, choices = np.random.default_rng(2), pick("a", "b", "c")
    assert isinstance(choices, Choices)
    drawn = [choices.draw(generator) for _ in range(3_000)]
    assert all(850 < drawn.count(letter) < 1_150 for letter in "abc")


def test_several_values_are_different() -> None:
    choices = pick_several(3, "a", "b", "c", "d")
    assert isinstance(choices, Choices)
    drawn = choices.draw(np.random.default_rng(2))
    assert isinstance(drawn, tuple) and len(set(drawn)) == 3


def test_the_other_of_two() -> None:
    assert other({"a": 1, "b": 2}, "a") == 2


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (8.0, "8"),
        (1_250_000, "1,250,000"),
        (1_234.56, "1,235"),
        (66.666, "66.7"),
        (0.0123456, "0.0123"),
        (0.5, "0.5"),
        (-2.345, "-2.35"),
        (0, "0"),
        (float("inf"), "infinitely many"),
    ],
)
def test_a_number_is_written_as_a_person_would(value: float, text: str) -> None:
    assert figure(value) == text


@pytest.mark.parametrize(
    ("unit", "text"),
    [("steps", "1 step"), ("batches", "1 batch"), ("ms", "1 ms"), ("times", "1 times"), ("images/s", "1 images/s")],
)
def test_one_of_a_unit_is_in_the_singular(unit: str, text: str) -> None:
    assert (amount(1, unit), amount(2, unit)) == (text, f"2 {unit}")

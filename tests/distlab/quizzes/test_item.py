"""What an item is made of, and when its answers cannot be told apart."""

from distlab.quizzes.item import Item, Kind, Wrong, number, one_number_of, one_of, several_of


def asked(answer: float, wrong: float, exact: bool = False) -> Item:
    return one_number_of("How long?", answer, "ms", "Why.", Wrong(wrong, "A mistake", "Because."), exact=exact)


def test_a_number_is_scaled_rounded_and_given_with_its_unit() -> None:
    item = number("How long?", 0.0123456, "ms", "Why.", Wrong(0.5, "Half", "No."), scale=1e3)
    assert [option.text for option in item.options] == ["12.3 ms", "500 ms"]
    assert item.right[0].value == 12.3456
    assert (item.kind, item.unit) == (Kind.NUMBER, "ms")


def test_a_wrong_number_close_to_the_right_one_is_ambiguous() -> None:
    assert asked(100.0, 103.0).is_ambiguous
    assert not asked(100.0, 110.0).is_ambiguous


def test_counts_need_to_differ_by_one_only() -> None:
    assert not asked(100, 101, exact=True).is_ambiguous
    assert asked(100, 100, exact=True).is_ambiguous


def test_equal_texts_are_ambiguous() -> None:
    assert one_of("Which?", "this", "Why.", Wrong("this", "A mistake", "No.")).is_ambiguous
    assert not one_of("Which?", "this", "Why.", Wrong("that", "A mistake", "No.")).is_ambiguous


def test_several_options_can_be_right() -> None:
    item = several_of("What is true?", {"a": "Yes.", "b": "Yes, too."}, Wrong("c", "A mistake", "No."))
    assert ([option.text for option in item.right], [option.text for option in item.wrong]) == (["a", "b"], ["c"])
    assert not item.is_ambiguous

"""Tables as aligned text and as Markdown."""

from distlab.runtime import tables

HEADER = ("name", "seconds")
ROWS = [("ring", 1.5), ("tree, on one host", 12)]


def test_columns_of_text_are_as_wide_as_their_widest_cell_and_numbers_can_be_aligned_to_the_right() -> None:
    assert tables.text(HEADER, ROWS).splitlines() == [
        "name               seconds",
        "ring               1.5",
        "tree, on one host  12",
    ]
    assert tables.text(HEADER, ROWS, right=[1], gap=" | ").splitlines() == [
        "name              | seconds",
        "ring              |     1.5",
        "tree, on one host |      12",
    ]


def test_markdown_has_a_rule_that_says_how_columns_are_aligned() -> None:
    assert tables.markdown(HEADER, ROWS, right=[1]).splitlines() == [
        "| name | seconds |",
        "| --- | ---: |",
        "| ring | 1.5 |",
        "| tree, on one host | 12 |",
    ]

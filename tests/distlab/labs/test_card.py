"""The verdict of a check as a card: in a notebook, and with what it says."""

from xml.etree import ElementTree

import nbformat
import pytest
from nbclient import NotebookClient

from distlab.labs.card import card
from distlab.labs.verdict import Verdict, not_done, parts, right, waiting_for, wrong


@pytest.mark.parametrize(
    ("verdict", "shares"),
    [
        (
            right("All sums are right."),
            ["✔ first is right", "4 of 4 points", "All sums are right.", "Next: <code>second</code>."],
        ),
        (wrong("for `x` < 2: write\n  a   b\n  1   2", 0.5), ["✘", "2 of 4 points", "<code>x</code> &lt; 2", "<pre"]),
        (not_done("nothing yet"), ["… first is not done yet", "Nothing yet"]),
    ],
)
def test_a_card_has_the_points_the_hint_and_what_comes_next(verdict: Verdict, shares: list[str]) -> None:
    html = card("first", verdict, 4, "second")
    assert all(share in html for share in shares)
    assert ("Next: " in html) == verdict.is_right


def test_the_card_of_parts_has_each_hint_before_its_place_and_those_not_reached_in_one_line() -> None:
    verdict = parts(
        {
            "equal chunks": wrong("A round is missing:\n a  b", context="with 4 ranks: "),
            "any sums": waiting_for("equal chunks"),
            "steps": waiting_for("any sums"),
            "name": not_done(),
        }
    )
    said = ["".join(line.itertext()) for line in ElementTree.fromstring(card("first", verdict, 4, None))]
    assert said == [
        "✘ first is not right yet, 0 of 4 points",
        *("A round is missing:", "Equal chunks, with 4 ranks", " a  b"),
        *("Not done yet", "Name"),
        "Not reached yet: any sums, steps.",
    ]


@pytest.mark.slow
def test_a_notebook_shows_cards_and_names_a_cell_that_does_not_compile() -> None:
    cells = [
        'from distlab import labs\nlab = labs.open("06")',
        "async def reduce_scatter(rank, array):\n    return None",
        'lab.check("reduce_scatter")',
        "async def reduce_scatter(rank, array):\n    return array[",
        'lab.check("reduce_scatter")',
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, kernel_name="python3", timeout=600, allow_errors=True).execute()
    first, second = (notebook.cells[place].outputs[0].data for place in (2, 4))
    assert first["text/plain"].startswith("reduce_scatter: … not done yet") and "<div" in first["text/html"]
    assert "does not compile (line 2:" in second["text/plain"]

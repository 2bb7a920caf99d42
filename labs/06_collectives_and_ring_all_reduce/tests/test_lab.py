"""Lab 06: the target, the picture of the student's own run, and errors with their line."""

from lab_06 import lab
from lab_06_tests import answers_06

from distlab import collectives, draw
from tests.distlab.labs.known_wrong import verdict_on

LAB = lab.LAB


def test_the_target_is_the_closed_formula() -> None:
    assert lab.target("ring_all_reduce", [4], 8).splitlines()[-1].split() == ["4", "6", str(2 * 3 * 8 * 8 // 4)]
    assert lab.target("halving_doubling_all_reduce", [8], 8).splitlines()[-1].split() == ["8", "6", "112"]


def test_the_picture_shows_the_students_own_run() -> None:
    wrong = next(
        wrong
        for wrong in answers_06.ANSWERS.wrong_answers["ring_all_reduce"]
        if wrong.title == "forgets_the_second_half"
    )
    picture = verdict_on(LAB, "ring_all_reduce", wrong.namespace).picture()
    assert "<svg" in picture.svg
    assert "Step 3" in picture.description and "Step 4" not in picture.description
    picture = verdict_on(LAB, "ring_all_reduce", {"ring_all_reduce": collectives.ring_all_reduce}).picture()
    assert picture.description.endswith("In the end every rank holds what it should.")
    drawn = draw.trace(collectives.ring_all_reduce, 4).describe()
    assert picture.description == drawn


def test_what_python_says_comes_with_the_line_of_the_cell() -> None:
    cell = "async def reduce_scatter(rank, array):\n    chunks = [array]\n    return chunks[rank.size]\n"
    namespace = {}
    exec(compile(cell, "<cell>", "exec"), namespace)
    text = verdict_on(LAB, "reduce_scatter", namespace).text
    assert "IndexError: list index out of range (line 3 of its cell)" in text

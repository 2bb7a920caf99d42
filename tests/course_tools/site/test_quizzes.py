"""Folded questions as quizzes: the three ways in which the notebooks write them, and what is no quiz."""

from pathlib import Path

import nbformat
import pytest
from markdown_it import MarkdownIt

from course_tools.site import quizzes

COMMENTED = """<details>
<summary>Question: which?</summary>

1. *The first.* No: too early.
2. *The second.* Yes: as it
   should be.
3. *The third.* Right only on Sundays.
</details>"""
NUMBERED = """<details><summary><b>Question 1.</b> Which?</summary>

1. The first.
2. The second,
   over two lines.

**2.** The first is too early.

</details>"""
LETTERED = """<details>
<summary>Question 1. Which? (a) 1.67 (b) 0.88 (c) 2</summary>

(b): it is the smallest. (a) is larger.
</details>"""
BOLD = """<details><summary>Which?</summary>

- *1 GB*: too little.
- ***3 GB***: right.

</details>"""


@pytest.mark.parametrize(
    ("folded", "choices"),
    [
        (COMMENTED, ["The first.", "The second.", "The third."]),
        (NUMBERED, ["The first.", "The second, over two lines."]),
        (LETTERED, ["1.67", "0.88", "2"]),
        (BOLD, ["1 GB", "3 GB"]),
    ],
)
def test_each_way_to_write_a_question_gives_its_choices_and_the_right_one(folded: str, choices: list[str]) -> None:
    quiz = quizzes.parsed(folded)
    assert quiz is not None
    assert (quiz.choices, quiz.right) == (choices, 2)


@pytest.mark.parametrize(
    "folded",
    [
        "<details><summary>More</summary>\n\nOnly text.\n</details>",
        COMMENTED.replace("Yes:", "No:").replace("Right only", "Only"),
        COMMENTED.replace("No: too early", "Yes: too early"),
        NUMBERED.replace("**2.**", "**7.**"),
        LETTERED.replace("(b):", "(e):"),
    ],
    ids=["no choices", "none is right", "two are right", "no such number", "no such letter"],
)
def test_a_text_without_one_right_choice_stays_as_it_is(folded: str) -> None:
    assert quizzes.parsed(folded) is None
    assert quizzes.with_quizzes(f"Before.\n\n{folded}\n\nAfter.") == f"Before.\n\n{folded}\n\nAfter."


def test_the_answer_is_not_among_what_stands_open() -> None:
    opened, folded = quizzes.with_quizzes(NUMBERED).split('<details class="quiz-answer">')
    assert "The second, over two lines." in opened and "too early" not in opened
    assert "**2.** The first is too early." in folded


def test_every_folded_question_of_the_course_is_a_quiz(notebook: Path) -> None:
    cells = nbformat.read(notebook, as_version=4).cells
    found = [match for cell in cells if cell.cell_type == "markdown" for match in quizzes.FOLDED.finditer(cell.source)]
    questions = [match[0] for match in found if "Question" in match["question"]]
    assert questions
    assert [question for question in questions if quizzes.parsed(question) is None] == []


def test_a_choice_that_is_a_number_with_a_point_is_no_list_in_the_list() -> None:
    page = quizzes.with_quizzes(BOLD.replace("*1 GB*", "*10.*"))
    tokens = MarkdownIt().parse(page.split("</p>")[1].split("<details")[0])
    assert [token.type for token in tokens].count("ordered_list_open") == 1

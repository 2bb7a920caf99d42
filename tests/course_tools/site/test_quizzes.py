"""Folded questions as quizzes: the three ways in which the notebooks write them, and what is no quiz."""

import json
from pathlib import Path

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
    ("folded", "choices", "right"),
    [
        (COMMENTED, ["The first.", "The second.", "The third."], 2),
        (NUMBERED, ["The first.", "The second, over two lines."], 2),
        (LETTERED, ["1.67", "0.88", "2"], 2),
        (BOLD, ["1 GB", "3 GB"], 2),
    ],
)
def test_each_way_to_write_a_question_gives_its_choices_and_the_right_one(
    folded: str, choices: list[str], right: int
) -> None:
    quiz = quizzes.parsed(folded)
    assert quiz is not None
    assert (quiz.choices, quiz.right) == (choices, right)


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
    page = quizzes.with_quizzes(NUMBERED)
    opened, folded = page.split('<details class="quiz-answer">')
    assert "The second, over two lines." in opened and "too early" not in opened
    assert "**2.** The first is too early." in folded


def test_every_folded_question_of_the_course_is_a_quiz(notebook: Path) -> None:
    cells = json.loads(notebook.read_text())["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    questions = [match for text in texts for match in quizzes.FOLDED.finditer(text) if "Question" in match["question"]]
    assert questions
    for question in questions:
        assert quizzes.parsed(question[0]) is not None, question[0]


def test_a_choice_that_is_a_number_with_a_point_is_no_list_in_the_list() -> None:
    page = quizzes.with_quizzes(BOLD.replace("*1 GB*", "*10.*"))
    choices = MarkdownIt().parse(page.split("</p>")[1].split("<details")[0])
    texts = ["".join(part.content for part in token.children) for token in choices if token.children]
    assert texts == ["10.", "3 GB"]
    assert [token.type for token in choices].count("ordered_list_open") == 1

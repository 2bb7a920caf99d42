"""The questions in notebooks as quizzes: their choices stand open, the answer is folded."""

from pathlib import Path

import nbformat
import pytest

from course_tools.site import quizzes

QUESTION = """**Question.** Which of
them?

1. The first.
2. The second,
   over two lines.

<details>
<summary>Answer</summary>

{answer}
</details>"""
COMMENTED = QUESTION.format(answer="1. Too early.\n2. **Right.** As it\n   should be.")
IN_ONE_TEXT = QUESTION.format(answer="**2.** The first is too early.\n\nThe second is not.")


@pytest.mark.parametrize("text", [COMMENTED, IN_ONE_TEXT])
def test_a_question_has_its_choices_and_the_right_one(text: str) -> None:
    quiz = quizzes.parsed(text)
    assert quiz is not None
    assert (quiz.question, quiz.choices, quiz.right) == (
        "Which of\nthem?",
        ["The first.", "The second, over two lines."],
        2,
    )


def test_a_text_without_one_right_choice_stays_as_it_is_and_an_answer_is_folded() -> None:
    no_question = "<details>\n<summary>More</summary>\n\nOnly text.\n</details>"
    two_are_right = COMMENTED.replace("Too early", "**Right.** Too early")
    for text in (no_question, two_are_right, IN_ONE_TEXT.replace("**2.**", "**7.**")):
        assert quizzes.parsed(text) is None
        assert quizzes.with_quizzes(f"Before.\n\n{text}\n\nAfter.") == f"Before.\n\n{text}\n\nAfter."
    opened, folded = quizzes.with_quizzes(f"Before.\n\n{IN_ONE_TEXT}").split('<details class="quiz-answer">')
    assert "The second, over two lines." in opened and "too early" not in opened
    assert "**2.** The first is too early." in folded


def test_every_question_of_the_course_is_a_quiz(notebook: Path) -> None:
    texts = [cell.source for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "markdown"]
    questions = [match[0] for text in texts for match in quizzes.QUESTION.finditer(text)]
    assert len(questions) == sum(text.count("**Question.**") for text in texts) > 0
    assert all(text.count("**Question.**") == text.count("<summary>Answer</summary>") for text in texts)
    assert [question for question in questions if quizzes.parsed(question) is None] == []

"""The questions in the text of a notebook: a question, its choices, and a folded answer that names the right one.

The pages' script lets a reader choose, and says whether the choice is right. Without it, and on paper, question,
choices and answer read as text.
"""

import re
from dataclasses import dataclass

QUESTION = re.compile(
    r"""^\*\*Question\.\*\*[ ](?P<question>.+?)\n\n
        (?P<choices>1\..+?)\n\n
        <details>\n<summary>Answer</summary>\n\n(?P<answer>.+?)\n</details>""",
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)
CHOICE = re.compile(r"^\d+\. +(.*?)(?=^\d+\. |\Z)", re.MULTILINE | re.DOTALL)
# The answer is a comment on each choice, one of which is "**Right.**", or a text that begins with the number, "**2.**".
RIGHT = re.compile(r"^(?:(\d+)\. +\*\*Right\.\*\*|\*\*(\d+)\.\*\*)", re.MULTILINE)
# What Markdown takes for the beginning of a list: a choice may be "10.".
MARK_OF_A_LIST = re.compile(r"^(\d*)([.)+*-])(?=\s|$)")


@dataclass(frozen=True)
class Question:
    """A question with its choices, in Markdown; right is the number of the right choice, from 1."""

    question: str
    choices: list[str]
    right: int
    answer: str


def with_quizzes(text: str) -> str:
    """Markdown in which each question is a quiz."""
    return QUESTION.sub(lambda match: _page_text(quiz) if (quiz := parsed(match[0])) else match[0], text)


def parsed(text: str) -> Question | None:
    """The question in a text; None if it has no choices, or does not say which one is right."""
    match = QUESTION.fullmatch(text.strip())
    right = RIGHT.findall(match["answer"]) if match else []
    if match is None or len(right) != 1:
        return None
    choices = [" ".join(choice.split()) for choice in CHOICE.findall(match["choices"] + "\n")]
    number = int("".join(right[0]))
    return Question(match["question"], choices, number, match["answer"]) if number <= len(choices) else None


def _page_text(quiz: Question) -> str:
    """The quiz in Markdown, with HTML around it; empty lines separate the two."""
    comments = "" if quiz.answer.startswith("**") else ' data-comments="yes"'
    choices = [MARK_OF_A_LIST.sub(r"\1\\\2", choice) for choice in quiz.choices]
    return "\n\n".join(
        [
            f'<div class="quiz" data-answer="{quiz.right}"{comments}>',
            f'<div class="quiz-question">\n\n{quiz.question}\n\n</div>',
            "\n".join(f"{number}. {choice}" for number, choice in enumerate(choices, start=1)),
            '<details class="quiz-answer"><summary>Answer</summary>',
            quiz.answer,
            "</details>\n</div>",
        ]
    )

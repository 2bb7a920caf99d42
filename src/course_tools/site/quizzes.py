"""Folded questions of the notebooks as quizzes: the choices stand open, the answer is folded.

The pages' script lets a reader choose, and says whether the choice is right. Without it, and on paper, question,
choices and answer read as text.
"""

import re
from dataclasses import dataclass

FOLDED = re.compile(r"<details>\s*<summary>(?P<question>.*?)</summary>\s*\n(?P<answer>.*?)</details>", re.DOTALL)
ITEM = re.compile(r"^(?:\d+\.|-) +(.*?)(?=^(?:\d+\.|-) |^\s*$|\Z)", re.MULTILINE | re.DOTALL)
# Three ways to write a question. The choices with a comment each: the right one is bold, or its comment agrees.
COMMENTED = re.compile(r"^(?P<bold>\*\*)?\*(?P<choice>.+?)\*(?P=bold)?[.:,;]?\s*(?P<comment>.*)$")
YES, RIGHT = re.compile(r"\W*yes\b", re.IGNORECASE), re.compile(r"\W*right\b", re.IGNORECASE)
# The choices as a list, then "**2.** because …".
NUMBERED = re.compile(r"^\*\*(\d+)\.\*\*", re.MULTILINE)
# The choices by letter in the question, then "(b): because …".
LETTERED = re.compile(r"^\(([a-e])\):")
LETTER = re.compile(r"\s*\([a-e]\)\s+")
# What Markdown takes for the beginning of a list: a choice may be "10.".
MARK_OF_A_LIST = re.compile(r"^(\d*)([.)+*-])(?=\s|$)")


@dataclass(frozen=True)
class FoldedQuestion:
    """A question with choices: HTML or Markdown.

    right: the number of the right choice, from 1.  comments: whether the answer has an item for each choice.
    by_letter: whether the choices are named by letters, and not by numbers.
    """

    question: str
    choices: list[str]
    right: int
    answer: str
    comments: bool = False
    by_letter: bool = False


def with_quizzes(text: str) -> str:
    """Markdown in which each folded question with choices is a quiz; other folded texts stay."""
    return FOLDED.sub(lambda match: _page_text(quiz) if (quiz := parsed(match[0])) else match[0], text)


def parsed(folded: str) -> FoldedQuestion | None:
    """The quiz in a folded text; None if it has no choices, or does not say which is right."""
    match = FOLDED.fullmatch(folded.strip())
    if match is None:
        return None
    question, answer = match["question"].strip(), match["answer"].strip()
    if right := LETTERED.match(answer):
        question, *choices = LETTER.split(question)
        choices = [" ".join(choice.split()).rstrip(",.;") for choice in choices]
        quiz = FoldedQuestion(question, choices, "abcde".index(right[1]) + 1, answer, by_letter=True)
    elif right := NUMBERED.search(answer):
        choices = [" ".join(item.split()) for item in ITEM.findall(answer[: right.start()])]
        quiz = FoldedQuestion(question, choices, int(right[1]), answer[right.start() :])
    else:
        quiz = _commented(question, answer)
    return quiz if len(quiz.choices) > 1 and 1 <= quiz.right <= len(quiz.choices) else None


def _commented(question: str, answer: str) -> FoldedQuestion:
    """The quiz whose choices have a comment each; `right` is 0 if not exactly one of them is marked as right."""
    items = [COMMENTED.match(" ".join(item.split())) for item in ITEM.findall(answer)]
    choices = [item for item in items if item]
    marks = [
        [bool(item["bold"]) for item in choices],
        [bool(YES.match(item["comment"])) for item in choices],
        [bool(RIGHT.match(item["comment"])) for item in choices],
    ]
    marked = next((row for row in marks if any(row)), [])
    right = marked.index(True) + 1 if sum(marked) == 1 and len(choices) == len(items) else 0
    return FoldedQuestion(question, [item["choice"].strip() for item in choices], right, answer, comments=True)


def _page_text(quiz: FoldedQuestion) -> str:
    """The quiz in Markdown, with HTML around it; empty lines separate the two."""
    kind = "quiz by-letter" if quiz.by_letter else "quiz"
    comments = ' data-comments="yes"' if quiz.comments else ""
    choices = [MARK_OF_A_LIST.sub(r"\1\\\2", choice) for choice in quiz.choices]
    return "\n\n".join(
        [
            f'<div class="{kind}" data-answer="{quiz.right}"{comments}>',
            f'<p class="quiz-question">{quiz.question}</p>',
            "\n".join(f"{number}. {choice}" for number, choice in enumerate(choices, start=1)),
            '<details class="quiz-answer"><summary>Answer</summary>',
            quiz.answer,
            "</details>\n</div>",
        ]
    )

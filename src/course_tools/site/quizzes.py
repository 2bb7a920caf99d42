"""Folded questions of the notebooks as quizzes: the choices stand open, the answer is folded.

The pages' script lets a reader choose, and says whether the choice is right. Without it, and on paper, question,
choices and answer read as text.
"""

import re
from dataclasses import dataclass
from html import escape

FOLDED = re.compile(r"<details>\s*<summary>(?P<question>.*?)</summary>\s*\n(?P<answer>.*?)</details>", re.DOTALL)
ITEM = re.compile(r"^(?:\d+\.|-) +(.*?)(?=^(?:\d+\.|-) |^\s*$|\Z)", re.MULTILINE | re.DOTALL)
# Three ways to write a question. The choices with a comment each: the right one is bold, or its comment agrees.
COMMENTED = re.compile(
    r"^(?P<bold>\*\*)?\*(?P<choice>.+?)\*(?P=bold)?(?P<between>[.:,;]?)\s*(?P<comment>.*)$", re.DOTALL
)
YES, RIGHT = re.compile(r"\W*yes\b", re.IGNORECASE), re.compile(r"\W*right\b", re.IGNORECASE)
# The choices as a list, then "**2.** because …".
NUMBERED = re.compile(r"^\*\*(\d+)\.\*\*", re.MULTILINE)
# The choices by letter in the question or at the beginning of the answer, then "(b): because …".
LETTERED = re.compile(r"\(([a-e])\)\s+(.*?)(?=\s*\([a-e]\)\s|\Z)", re.DOTALL)
RIGHT_LETTER = re.compile(r"^\(([a-e])\):", re.MULTILINE)

# What Markdown takes for the beginning of a list: a choice may be "10.".
MARK_OF_A_LIST = re.compile(r"^(\d*)([.)+*-])(?=\s|$)")
LITERAL = r"\1\\\2"


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
    return _commented(question, answer) or _numbered(question, answer) or _lettered(question, answer)


def _commented(question: str, answer: str) -> FoldedQuestion | None:
    items = [COMMENTED.match(" ".join(item.split())) for item in ITEM.findall(answer)]
    matches = [item for item in items if item]
    if len(matches) < 2 or len(matches) < len(items):
        return None
    marks = (
        [bool(item["bold"]) for item in matches],
        *([bool(word.match(item["comment"])) for item in matches] for word in (YES, RIGHT)),
    )
    right = next(([number for number, mark in enumerate(row, start=1) if mark] for row in marks if any(row)), [])
    choices = [item["choice"].strip() for item in matches]
    return FoldedQuestion(question, choices, right[0], answer, comments=True) if len(right) == 1 else None


def _numbered(question: str, answer: str) -> FoldedQuestion | None:
    right = NUMBERED.search(answer)
    if right is None:
        return None
    choices = [" ".join(item.split()) for item in ITEM.findall(answer[: right.start()])]
    is_whole = len(choices) > 1 and int(right[1]) <= len(choices)
    return FoldedQuestion(question, choices, int(right[1]), answer[right.start() :]) if is_whole else None


def _lettered(question: str, answer: str) -> FoldedQuestion | None:
    right = RIGHT_LETTER.search(answer)
    if right is None:
        return None
    before, after = answer[: right.start()], answer[right.start() :]
    begin = question.find("(a)")
    listed = question[begin:] if begin >= 0 else before
    choices = [" ".join(choice.split()).rstrip(",.;") for _, choice in LETTERED.findall(listed)]
    number = "abcde".index(right[1]) + 1
    if len(choices) < 2 or number > len(choices):
        return None
    stem = question[:begin].strip() if begin >= 0 else question
    return FoldedQuestion(stem, choices, number, after, by_letter=True)


def _page_text(quiz: FoldedQuestion) -> str:
    """The quiz in Markdown, with HTML around it; empty lines separate the two."""
    kind = " by-letter" if quiz.by_letter else ""
    feedback = ' data-comments="yes"' if quiz.comments else ""
    choices = "\n".join(
        f"{number}. {MARK_OF_A_LIST.sub(LITERAL, choice)}" for number, choice in enumerate(quiz.choices, start=1)
    )
    return "\n\n".join(
        [
            f'<div class="quiz{kind}" data-answer="{escape(str(quiz.right))}"{feedback}>',
            f'<p class="quiz-question">{quiz.question}</p>',
            choices,
            '<details class="quiz-answer"><summary>Answer</summary>',
            quiz.answer,
            "</details>\n</div>",
        ]
    )

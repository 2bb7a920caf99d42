"""The text of a cell as blocks: headings, pictures, tables, formulas, questions …; and what of a text a slide shows."""

import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

HEADING, PREDICT, QUIZ, PICTURE = "heading", "predict", "quiz", "picture"
TABLE, FORMULA, POINTS, CODE, TEXT = "table", "formula", "points", "code", "text"
# How a block of each kind begins; what begins otherwise is text.
BEGINNINGS = (
    (QUIZ, re.compile(r"\*\*Question\.\*\*")),
    (CODE, re.compile(r"```| {4}")),
    (FORMULA, re.compile(r"\$\$")),
    (HEADING, re.compile(r"#+ ")),
    (PREDICT, re.compile(r"\*\*Predict\.\*\*")),
    (PICTURE, re.compile(r"!\[")),
    (TABLE, re.compile(r"\|")),
    (POINTS, re.compile(r"(?:[-*]|\d+\.) ")),
    (TEXT, re.compile("")),
)
# What may contain empty lines.
WHOLE = re.compile(r"(^(?:\*\*Question\.\*\*.*?^</details>|```.*?^```|\$\$.*?\$\$)[^\n]*$)", re.MULTILINE | re.DOTALL)
LIST_ITEM = re.compile(r"^(?:[-*]|\d+\.) +", re.MULTILINE)
# A sentence ends where the next begins with a capital letter, a formula, code, bold or italics.
END_OF_SENTENCE = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!vs\.)(?<!et al\.)[*_)\"”]*\s+(?=[A-Z*`$“\"(\[])")
WHOLE_SPAN = re.compile(r"`[^`]*`|\$[^$]*\$|\*\*[^*]+\*\*")
BOLD_LEAD = re.compile(r"^\*\*[^*]+\*\*[.:]?\s*")
SHORTEST_CONCLUSION = 30  # characters


class TextBlock(NamedTuple):
    """A piece of a cell's Markdown that is of one kind."""

    kind: str
    text: str


def divided(text: str) -> list[TextBlock]:
    """The blocks of a cell's Markdown, in their order. A list right after a prediction belongs to its question."""
    blocks: list[TextBlock] = []
    for piece in _pieces(text):
        kind = next(kind for kind, beginning in BEGINNINGS if beginning.match(piece))
        if kind == POINTS and blocks and blocks[-1].kind == PREDICT:
            blocks[-1] = TextBlock(PREDICT, f"{blocks[-1].text}\n\n{piece}")
        else:
            blocks.append(TextBlock(kind, piece))
    return blocks


def _pieces(text: str) -> Iterator[str]:
    """What is whole, and the paragraphs between; a heading or a question is divided from what is right below it."""
    for number, part in enumerate(WHOLE.split(text)):
        for paragraph in [part] if number % 2 else re.split(r"\n\s*\n", part):
            lines = paragraph.strip("\n").split("\n")
            first_of_list = next((number for number, line in enumerate(lines) if LIST_ITEM.match(line)), 0)
            end = 0 if number % 2 else 1 if lines[0].startswith("#") else first_of_list
            yield from filter(str.strip, ("\n".join(lines[:end]), "\n".join(lines[end:])))


def items(text: str) -> list[str]:
    """The items of a list, each on one line."""
    return [" ".join(item.split()) for item in LIST_ITEM.split(text) if item.strip()]


def sentences(text: str) -> list[str]:
    """The sentences of a paragraph, each on one line; none ends within code, a formula or bold text."""
    line = " ".join(text.split())
    spans = [match.span() for match in WHOLE_SPAN.finditer(line)]
    ends = [match.end() for match in END_OF_SENTENCE.finditer(line)]
    ends = [0, *(end for end in ends if not any(first < end < last for first, last in spans)), len(line)]
    return [line[begin:end].strip() for begin, end in itertools.pairwise(ends)]


def conclusion(text: str) -> tuple[str, str]:
    """A paragraph as a slide shows it, and the rest of it: its bold lead, if it has one, and its first sentence.

    It is more than one sentence if that is as short as "No.".
    """
    line = " ".join(text.split())
    lead = BOLD_LEAD.match(line)
    shown = lead[0] if lead else ""
    rest = sentences(line[len(shown) :])
    number = 1
    while number < len(rest) and len(" ".join(rest[:number])) < SHORTEST_CONCLUSION:
        number += 1
    return shown + " ".join(rest[:number]), " ".join(rest[number:])

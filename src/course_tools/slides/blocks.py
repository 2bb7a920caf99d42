"""The text of a cell as blocks: headings, pictures, tables, formulas, questions …; and what of a text a slide shows."""

import itertools
import re
from typing import NamedTuple

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

HEADING, PREDICT, QUIZ, PICTURE = "heading", "predict", "quiz", "picture"
TABLE, FORMULA, POINTS, CODE, TEXT = "table", "formula", "points", "code", "text"
# What the parser of the site's Markdown takes a block for; of the others their beginning decides.
PARSER = MarkdownIt().enable("table").use(dollarmath_plugin)
KINDS = {"heading_open": HEADING, "table_open": TABLE, "math_block": FORMULA, "fence": CODE, "code_block": CODE}
KINDS |= {"bullet_list_open": POINTS, "ordered_list_open": POINTS}
BEGINNINGS = {"**Question.**": QUIZ, "**Predict.**": PREDICT, "![": PICTURE, "": TEXT}
END_OF_QUIZ = "</details>"
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
    """The blocks of a cell's Markdown, in their order: a question with its answer, a prediction with its list."""
    blocks: list[TextBlock] = []
    lines, begin = text.split("\n"), 0
    for token in PARSER.parse(text):
        if token.level or not token.map:  # within a block, or its end
            continue
        before = blocks[-1] if blocks else TextBlock("", "")
        beginning, kind = lines[token.map[0]], KINDS.get(token.type)
        kind = kind or next(kind for start, kind in BEGINNINGS.items() if beginning.startswith(start))
        in_quiz = before.kind == QUIZ and END_OF_QUIZ not in before.text
        if in_quiz or (before.kind, kind) == (PREDICT, POINTS):
            kind = blocks.pop().kind
        else:
            begin = token.map[0]
        blocks.append(TextBlock(kind, "\n".join(lines[begin : token.map[1]]).strip("\n")))
    return blocks


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

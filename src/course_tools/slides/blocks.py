"""The text of a cell as blocks: headings, pictures, tables, formulas, lists, questions; and its sentences."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

HEADING, PREDICT, QUIZ, PICTURE = "heading", "predict", "quiz", "picture"
TABLE, FORMULA, POINTS, CODE, TEXT = "table", "formula", "points", "code", "text"
# How a block of each kind begins; what begins otherwise is text.
BEGINNINGS = (
    (QUIZ, re.compile(r"<details>")),
    (CODE, re.compile(r"```| {4}")),
    (FORMULA, re.compile(r"\$\$")),
    (HEADING, re.compile(r"#+ ")),
    (PREDICT, re.compile(r"\*\*Predict\.\*\*")),
    (PICTURE, re.compile(r"!\[")),
    (TABLE, re.compile(r"\|")),
    (POINTS, re.compile(r"(?:[-*]|\d+\.) ")),
)
# What may contain empty lines.
WHOLE = re.compile(r"^(?:<details>.*?^</details>|```.*?^```|\$\$.*?\$\$)[^\n]*$", re.MULTILINE | re.DOTALL)
LIST_ITEM = re.compile(r"^(?:[-*]|\d+\.) +", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\([^)\s]+\)")
# A sentence ends where the next begins with a capital letter, a formula, code, bold or italics.
END_OF_SENTENCE = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!vs\.)(?<!et al\.)[*_)\"”]*\s+(?=[A-Z*`$“\"(\[])")
WHOLE_SPAN = re.compile(r"`[^`]*`|\$[^$]*\$|\*\*[^*]+\*\*")
SHORTEST_CONCLUSION = 30  # characters
BOLD_LEAD = re.compile(r"^\*\*[^*]+\*\*[.:]?\s*")


@dataclass(frozen=True)
class TextBlock:
    """A piece of a cell's Markdown that is of one kind."""

    kind: str
    text: str


def divided(text: str) -> list[TextBlock]:
    """The blocks of a cell's Markdown, in their order. A list right after a prediction belongs to its question."""
    blocks: list[TextBlock] = []
    for piece in _pieces(text):
        block = TextBlock(_kind(piece), piece.strip("\n"))
        if block.kind == POINTS and blocks and blocks[-1].kind == PREDICT:
            blocks[-1] = TextBlock(PREDICT, f"{blocks[-1].text}\n\n{block.text}")
        else:
            blocks.append(block)
    return blocks


def without_links(text: str) -> str:
    """Markdown whose links are only their words; a slide leads nowhere."""
    return LINK.sub(r"\1", text)


def sentences(text: str) -> list[str]:
    """The sentences of a paragraph, each on one line; none ends within code, a formula or bold text."""
    line = " ".join(text.split())
    spans = [match.span() for match in WHOLE_SPAN.finditer(line)]
    ends = [
        match.end()
        for match in END_OF_SENTENCE.finditer(line)
        if not any(begin < match.end() < end for begin, end in spans)
    ]
    return [line[begin:end].strip() for begin, end in zip([0, *ends], [*ends, len(line)], strict=True)]


def items(text: str) -> list[str]:
    """The items of a list, each on one line."""
    return [" ".join(item.split()) for item in LIST_ITEM.split(text) if item.strip()]


def conclusion(text: str) -> tuple[str, str]:
    """What a paragraph says first, and the rest of it: one sentence, or more if that is as short as "No."."""
    every = sentences(text)
    number = 1
    while number < len(every) and len(" ".join(every[:number])) < SHORTEST_CONCLUSION:
        number += 1
    return " ".join(every[:number]), " ".join(every[number:])


def begun(text: str) -> tuple[str, str]:
    """A paragraph as a slide shows it, its bold lead, if it has one, and its first sentence; and the rest of it."""
    line = " ".join(text.split())
    lead = BOLD_LEAD.match(line)
    begin = lead.end() if lead else 0
    first, rest = conclusion(line[begin:])
    return line[:begin] + first, rest


def _pieces(text: str) -> Iterator[str]:
    begin = 0
    for whole in WHOLE.finditer(text):
        yield from _paragraphs(text[begin : whole.start()])
        yield whole[0]
        begin = whole.end()
    yield from _paragraphs(text[begin:])


def _paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of a text; a heading or a question with a list right below it is divided from it."""
    for paragraph in re.split(r"\n\s*\n", text):
        lines = paragraph.strip("\n").split("\n")
        first_of_list = next((number for number, line in enumerate(lines) if LIST_ITEM.match(line)), 0)
        split_at = 1 if lines[0].startswith("#") else first_of_list
        for part in (lines[:split_at], lines[split_at:]):
            if any(line.strip() for line in part):
                yield "\n".join(part)


def _kind(piece: str) -> str:
    return next((kind for kind, beginning in BEGINNINGS if beginning.match(piece)), TEXT)

"""A chapter as slides: tags say which parts of its cells are shown; all other text becomes the speaker's notes.

The opening cell gives the title and the questions, the last cell the recap. A cell between them has tags:

- `slide-predict`, `slide-quiz`, `slide-picture`, `slide-table`, `slide-formula`, `slide-points`, `slide-code`: that
  part of its text is a slide; of each point its first sentence is shown.
- `slide-text`: the first sentence of each paragraph that leads to such a part, or of all if there is none; the whole
  paragraph before a formula, whose letters it names.
- `slide-takeaway`: the cell's first sentence, below the slide before it; of a prediction on a new one.
- `slide-output`, `slide-code`: what a code cell showed, its code.
- `slide-continued`: what the cell shows goes on the slide before it.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from nbformat import NotebookNode

from course_tools.html_pages import title_of
from course_tools.slides import blocks, markup
from distlab.runtime.errors import PlainError

PREFIX = "slide-"
OUTPUT, TAKEAWAY, CONTINUED = "output", "takeaway", "continued"
FIELD = re.compile(r"^(?:- )?\*\*([\w ]+)\.\*\*\s*(.*?)(?=^(?:- )?\*\*[\w ]+\.\*\*|\Z)", re.MULTILINE | re.DOTALL)
COME_BACK = "By the end of the chapter everybody can answer these; they come back in the recap."


@dataclass
class Slide:
    """A slide: its kind for the style sheet, the headings above it, HTML, and Markdown for the speaker.

    asks: the prediction that it asks for.
    """

    kind: str
    section: str
    heading: str
    content: str = ""
    takeaway: str = ""
    notes: list[str] = field(default_factory=list)
    asks: str = ""


def slides(notebook: NotebookNode, folder: Path) -> list[Slide]:
    """The slides of a chapter; `folder` is that of its notebook, to which its pictures are relative.

    Raises PlainError for a wrong tag.
    """
    opening, *middle, closing = notebook.cells
    chapter = title_of(notebook)
    cutter = _Cutter(_opening(opening.source, chapter), chapter, folder)
    for cell in middle:
        tags = {tag.removeprefix(PREFIX) for tag in cell.metadata.get("tags", []) if tag.startswith(PREFIX)}
        if cell.cell_type == "markdown":
            cutter.take_text(cell, tags)
        elif tags:
            cutter.take_code(cell, tags)
    cutter.end_section()
    every = blocks.divided(closing.source)
    claims = next((block.text for block in every if block.kind == blocks.POINTS), "")
    notes = [block.text for block in every if block.kind != blocks.HEADING and block.text != claims]
    return [*cutter.slides, Slide("recap", chapter, "Recap", markup.of_list(blocks.items(claims)), notes=notes)]


def require_tags(cell: NotebookNode, tags: set[str], possible: set[str]) -> None:
    """Raises PlainError if the cell has a tag that it cannot have."""
    if wrong := sorted(tags - possible):
        names = ", ".join(f"{PREFIX}{name}" for name in sorted(possible))
        raise PlainError(f"Cell {cell.id} has the tag {PREFIX}{wrong[0]}; it can have {names}.")


def _opening(text: str, chapter: str) -> list[Slide]:
    """The title with the goal, and the questions; the other fields of the opening block are notes."""
    fields = {name: words.strip() for name, words in FIELD.findall(text)}
    goal, questions = fields.pop("Goal", ""), re.sub("(?m)^ +", "", fields.pop("Questions", ""))
    notes = [f"**{name}.** {words}" for name, words in fields.items()]
    return [
        Slide("title", "", chapter, f'<p class="goal">{markup.of_line(goal)}</p>', notes=notes),
        Slide("questions", chapter, "Questions", markup.of_list(blocks.items(questions)), notes=[COME_BACK]),
    ]


class _Cutter:
    """Takes the cells in their order; knows the headings, and to which slide a text belongs that is not shown."""

    def __init__(self, opening: list[Slide], chapter: str, folder: Path) -> None:
        self.slides = opening
        self.folder = folder
        self.chapter, self.section = chapter, ""
        self.above, self.heading = chapter, chapter
        # What is said below a heading or leads to a part belongs to the next slide; None: to the one before.
        self.waiting: list[str] | None = None

    def take_text(self, cell: NotebookNode, tags: set[str]) -> None:
        """Show the parts of a cell's text that its tags name; note the others."""
        every = blocks.divided(cell.source)
        require_tags(cell, tags, {block.kind for block in every} - {blocks.HEADING} | {TAKEAWAY, CONTINUED})
        kinds = tags - {TAKEAWAY, CONTINUED}
        slide = self.slides[-1] if CONTINUED in tags else None
        for block, then in zip(every, [*(block.kind for block in every[1:]), ""], strict=True):
            leads = then in kinds - {blocks.TEXT}
            if block.kind == blocks.HEADING:
                self._enter(block.text)
            elif TAKEAWAY in tags and block is every[0]:
                if self.slides[-1].asks:
                    self._begin(OUTPUT)
                self.slides[-1].takeaway, rest = blocks.conclusion(block.text)
                self._note(rest)
            elif block.kind in kinds and (block.kind != blocks.TEXT or leads or kinds == {blocks.TEXT}):
                shares = slide and slide.kind in (blocks.TEXT, blocks.FORMULA) and block.kind not in markup.ALONE
                if slide is None or not (CONTINUED in tags or shares):
                    slide = self._begin(block.kind)
                if block.kind == blocks.PREDICT:
                    slide.kind, slide.asks = blocks.PREDICT, markup.asked(block.text)
                content, notes = markup.of_block(block, self.folder, is_whole=leads and then == blocks.FORMULA)
                slide.content += content
                slide.notes += notes
            else:
                if leads and self.waiting is None:
                    self.waiting = []
                self._note(block.text)

    def take_code(self, cell: NotebookNode, tags: set[str]) -> None:
        """Show what a cell printed and drew, or its code."""
        require_tags(cell, tags, {OUTPUT, blocks.CODE, CONTINUED})
        content, notes = markup.of_code(cell.source) if blocks.CODE in tags else "", []
        if OUTPUT in tags:
            output, whole = markup.of_outputs(cell.outputs)
            content += output
            notes = [f"```\n{whole}\n```"] if whole else []
            notes += [] if blocks.CODE in tags else [f"```python\n{cell.source}\n```"]
        slide = self.slides[-1] if CONTINUED in tags else self._begin(OUTPUT)
        slide.content += content
        slide.notes += notes

    def _begin(self, kind: str) -> Slide:
        """A new slide, whose notes begin with what was said since the heading; an answer repeats the question."""
        question, *_ = self.slides[-1].asks.split("\n\n")
        content = f'<p class="before">{markup.of_line(question)}</p>' if question and kind == OUTPUT else ""
        self.slides.append(Slide(kind, self.above, self.heading, content, notes=self.waiting or []))
        self.waiting = None
        return self.slides[-1]

    def _enter(self, heading: str) -> None:
        """Go on below a heading: of a section, or of a part of one."""
        text = heading.lstrip("# ")
        if heading.startswith("###"):
            self.above, self.heading = self.section, text
        else:
            self.end_section()
            self.above, self.heading, self.section = self.chapter, text, text
        self.waiting = self.waiting or []

    def end_section(self) -> None:
        """Give what is said in a section without slides to the slide before it."""
        if self.waiting:
            self.slides[-1].notes += [f"**{self.heading}**", *self.waiting]
        self.waiting = None

    def _note(self, text: str) -> None:
        """Note a text; what is folded as plain text."""
        if text:
            notes = self.slides[-1].notes if self.waiting is None else self.waiting
            notes.append(re.sub(r"</?(?:details|summary)>", "", text).strip())

"""A chapter as slides: tags say which parts of its cells are shown; all other text becomes the speaker's notes.

The opening cell gives the title and the questions, the last cell the recap. A cell between them has tags:

- `slide-predict`, `slide-quiz`, `slide-picture`, `slide-table`, `slide-formula`, `slide-points`, `slide-code`: that
  part of its text is a slide; of each point its first sentence is shown.
- `slide-text`: the first sentence of each paragraph that leads to such a part, or of all if there is none; the whole
  paragraph before a formula, whose letters it names.
- `slide-takeaway`: the cell's first sentence, below the slide before it.
- `slide-output`, `slide-code`: what a code cell showed, its code.
- `slide-continued`: what the cell shows goes on the slide before it.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from nbformat import NotebookNode

from course_tools.html_pages import title_of
from course_tools.site import quizzes
from course_tools.slides import blocks, markup
from course_tools.slides.blocks import TextBlock
from distlab.runtime.errors import PlainError

PREFIX = "slide-"
OUTPUT, TAKEAWAY, CONTINUED = "output", "takeaway", "continued"
SHORT = (blocks.TEXT, blocks.FORMULA, blocks.PICTURE, blocks.TABLE, blocks.POINTS)
# Parts of one cell that share a slide.
TOGETHER = {(first, then) for first in (blocks.TEXT, blocks.FORMULA) for then in (*SHORT, blocks.PREDICT)}
TAGS = {*SHORT, blocks.PREDICT, blocks.QUIZ, blocks.CODE, OUTPUT, TAKEAWAY, CONTINUED}
FIELD = re.compile(r"^(?:- )?\*\*([\w ]+)\.\*\*\s*(.*?)(?=^(?:- )?\*\*[\w ]+\.\*\*|\Z)", re.MULTILINE | re.DOTALL)
ASK = "Let everybody write an answer down before you go on."
COME_BACK = "By the end of the chapter everybody can answer these; they come back in the recap."


@dataclass
class Slide:
    """A slide: its kind for the style sheet, the headings above it, HTML, and Markdown for the speaker."""

    kind: str
    section: str
    heading: str
    content: str = ""
    takeaway: str = ""
    notes: list[str] = field(default_factory=list)
    asks: str = ""

    def html(self) -> str:
        """The slide without its notes."""
        above = f'<p class="section">{markup.of_line(self.section)}</p>' if self.section else ""
        title = "h1" if self.kind == "title" else "h2"
        below = f'<p class="takeaway">{markup.of_line(self.takeaway)}</p>' if self.takeaway else ""
        return (
            f"<header>{above}<{title}>{markup.of_line(self.heading)}</{title}></header>"
            f'<div class="body">{self.content}{below}</div>'
        )

    def notes_html(self) -> str:
        """What the speaker sees."""
        place = " – ".join(filter(None, [self.section, self.heading]))
        return markup.of_markdown("\n\n".join([f"*In the notebook: {place}*", *self.notes]))


def slides(notebook: NotebookNode, folder: Path) -> list[Slide]:
    """The slides of a chapter; `folder` is that of its notebook, to which its pictures are relative.

    Raises PlainError for a wrong tag.
    """
    opening, *middle, closing = notebook.cells
    chapter = title_of(notebook)
    cutter = _Cutter(_opening(opening.source, chapter), chapter, folder)
    for cell in middle:
        tags = {tag.removeprefix(PREFIX) for tag in cell.metadata.get("tags", []) if tag.startswith(PREFIX)}
        require_tags(cell, tags, TAGS)
        if cell.cell_type == "code":
            cutter.take_code(cell, tags)
        elif cell.cell_type == "markdown":
            cutter.take_text(cell, tags)
    cutter.end_section()
    every = blocks.divided(closing.source)
    claims = next((block for block in every if block.kind == blocks.POINTS), TextBlock(blocks.TEXT, ""))
    recap = Slide("recap", chapter, "Recap", markup.of_list(blocks.items(claims.text)))
    recap.notes = [block.text for block in every if block.kind != blocks.HEADING and block != claims]
    return [*cutter.slides, recap]


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
        self.above, self.heading = chapter, chapter
        self.chapter, self.section = chapter, ""
        # Text below a heading belongs to the next slide, other text to the one before.
        self.notes = opening[-1].notes

    def take_text(self, cell: NotebookNode, tags: set[str]) -> None:
        """Show the parts of a cell's text that its tags name; note the others."""
        every = blocks.divided(cell.source)
        kinds = tags - {TAKEAWAY, CONTINUED}
        require_tags(cell, kinds, {block.kind for block in every})
        slide = self.slides[-1] if CONTINUED in tags else None
        for number, block in enumerate(every):
            leads = number + 1 < len(every) and every[number + 1].kind in kinds - {blocks.TEXT}
            if block.kind == blocks.HEADING:
                self._enter(block.text)
            elif TAKEAWAY in tags and number == 0:
                self.slides[-1].takeaway, rest = blocks.conclusion(block.text)
                self._note(rest)
            elif block.kind in kinds and (block.kind != blocks.TEXT or leads or kinds == {blocks.TEXT}):
                if slide is None or not (CONTINUED in tags or (slide.kind, block.kind) in TOGETHER):
                    slide = self._begin(block.kind)
                self._show(cell, block, slide, is_whole=leads and every[number + 1].kind == blocks.FORMULA)
            else:
                if leads and self.notes is self.slides[-1].notes:
                    self.notes = []
                self._note(block.text)

    def take_code(self, cell: NotebookNode, tags: set[str]) -> None:
        """Show what a cell printed and drew, or its code."""
        if not tags & {OUTPUT, blocks.CODE}:
            return
        content, notes = markup.of_code(cell.source) if blocks.CODE in tags else "", []
        if OUTPUT in tags:
            output, whole = markup.of_outputs(cell.outputs)
            if not output:
                raise PlainError(f"Cell {cell.id} has the tag {PREFIX}{OUTPUT} and shows neither text nor an SVG.")
            content += output
            notes = [f"```\n{whole}\n```"] if whole else []
            notes += [] if blocks.CODE in tags else [f"```python\n{cell.source}\n```"]
        question = self.slides[-1].asks
        slide = self.slides[-1] if CONTINUED in tags else self._begin(OUTPUT)
        if question and "<figure" not in content:
            content = markup.of_question_before(question) + content
        slide.content += content
        slide.notes += notes

    def _show(self, cell: NotebookNode, block: TextBlock, slide: Slide, is_whole: bool) -> None:
        """Put a part of the cell's text on the slide, and what is left of it into the notes."""
        if block.kind == blocks.PREDICT:
            slide.kind, slide.asks = blocks.PREDICT, block.text
            slide.content += markup.of_prediction(block.text)
            slide.notes.append(ASK)
        elif block.kind == blocks.QUIZ:
            quiz = quizzes.parsed(block.text)
            if quiz is None:
                raise PlainError(f"Cell {cell.id} has the tag {PREFIX}{blocks.QUIZ} and a question without choices.")
            slide.content += markup.of_quiz(quiz)
            slide.notes.append(quiz.answer)
        elif block.kind == blocks.PICTURE:
            slide.content += markup.of_picture(block.text, self.folder)
        elif block.kind == blocks.POINTS:
            shown = [blocks.conclusion(item)[0] for item in blocks.items(block.text)]
            slide.content += markup.of_list(shown, block.text[0].isdigit())
            slide.notes.append(block.text)
        elif block.kind == blocks.TEXT and not is_whole:
            first, rest = blocks.conclusion(block.text)
            slide.content += f"<p>{markup.of_line(first)}</p>"
            slide.notes += [rest] if rest else []
        else:
            slide.content += markup.of_markdown(block.text)

    def _begin(self, kind: str) -> Slide:
        """A new slide, whose notes begin with what was said since the heading."""
        waiting = [] if self.notes is self.slides[-1].notes else self.notes
        self.slides.append(Slide(kind, self.above, self.heading, notes=waiting))
        self.notes = waiting
        return self.slides[-1]

    def _enter(self, heading: str) -> None:
        """Go on below a heading: of a section, or of a part of one."""
        text = heading.lstrip("# ")
        if heading.startswith("###"):
            self.above, self.heading = self.section, text
        else:
            self.end_section()
            self.above, self.heading, self.section = self.chapter, text, text
        if self.notes is self.slides[-1].notes:
            self.notes = []

    def end_section(self) -> None:
        """Give what is said in a section without slides to the slide before it."""
        if self.notes is not self.slides[-1].notes and self.notes:
            self.slides[-1].notes += [f"**{self.heading}**", *self.notes]
        self.notes = self.slides[-1].notes

    def _note(self, text: str) -> None:
        """Note a text; what is folded as plain text."""
        if text:
            self.notes.append(re.sub(r"</?(?:details|summary)>", "", text).strip())

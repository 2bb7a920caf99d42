"""A chapter as slides: tags say which parts of its cells are shown; all other text becomes the speaker's notes.

The opening cell gives the title and the questions, the last cell the recap. A cell between them has tags:

- `slide-predict`, `slide-quiz`, `slide-picture`, `slide-table`, `slide-formula`, `slide-points`, `slide-code`: that
  part of its text is a slide; of each point its first sentence is shown.
- `slide-text`: the first sentence of each paragraph that leads to such a part, or of all if there is none.
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
IN_TEXT = {blocks.PREDICT, blocks.QUIZ, blocks.PICTURE, blocks.TABLE, blocks.FORMULA, blocks.POINTS, blocks.TEXT}
SHORT = (blocks.TEXT, blocks.FORMULA, blocks.PICTURE, blocks.TABLE, blocks.POINTS)
# Parts of one cell that share a slide.
TOGETHER = {(first, then) for first in (blocks.TEXT, blocks.FORMULA) for then in (*SHORT, blocks.PREDICT)}
TAGS = sorted(f"{PREFIX}{name}" for name in {*IN_TEXT, blocks.CODE, OUTPUT, TAKEAWAY, CONTINUED})
FIELD = re.compile(r"^(?:- )?\*\*([\w ]+)\.\*\*\s*(.*?)(?=^(?:- )?\*\*[\w ]+\.\*\*|\Z)", re.MULTILINE | re.DOTALL)
ASK = "Let everybody write an answer down before you go on."


class WrongSlideTag(PlainError):
    """A cell has a tag of slides that does not exist, or that names something that the cell does not have."""


class MissingPicture(PlainError):
    """A picture that a slide shows is not there."""


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


def slides(notebook: NotebookNode, folder: Path) -> list[Slide]:
    """The slides of a chapter; `folder` is that of its notebook, to which its pictures are relative.

    Raises WrongSlideTag and MissingPicture.
    """
    opening, *middle, closing = notebook.cells
    cutter = _Cutter(_opening(opening, title_of(notebook)), folder)
    for cell in middle:
        cutter.take(cell)
    return cutter.finished(closing)


def tags_of(cell: NotebookNode) -> set[str]:
    """The names after PREFIX among the tags of a cell. Raises WrongSlideTag."""
    tags = [tag for tag in cell.metadata.get("tags", []) if tag.startswith(PREFIX)]
    for tag in tags:
        if tag not in TAGS:
            raise WrongSlideTag(f"Cell {cell.id} has the tag {tag!r}; the tags for slides are {', '.join(TAGS)}.")
    return {tag.removeprefix(PREFIX) for tag in tags}


def _opening(cell: NotebookNode, title: str) -> list[Slide]:
    """The title with the goal, and the questions; the other fields of the opening block are notes."""
    fields = {name: text.strip() for name, text in FIELD.findall(cell.source)}
    goal = fields.pop("Goal", "")
    first = Slide("title", "", title, f'<p class="goal">{markup.of_line(goal)}</p>')
    if "Questions" not in fields:
        return [first]
    second = Slide(
        "questions", title, "Questions", markup.of_list(blocks.items(re.sub("(?m)^ +", "", fields.pop("Questions"))))
    )
    first.notes = [f"**{name}.** {text}" for name, text in fields.items()]
    second.notes = ["By the end of the chapter everybody can answer these; they come back in the recap."]
    return [first, second]


class _Cutter:
    """Takes the cells in their order; knows the headings, and to which slide a text belongs that is not shown."""

    def __init__(self, opening: list[Slide], folder: Path) -> None:
        self.slides = opening
        self.folder = folder
        self.chapter = opening[0].heading
        self.section = self.part = ""
        # Text below a heading belongs to the next slide, other text to the one before.
        self.waiting: list[str] | None = None

    def take(self, cell: NotebookNode) -> None:
        tags = tags_of(cell)
        if cell.cell_type == "code":
            self._take_code(cell, tags)
        elif cell.cell_type == "markdown":
            self._take_text(cell, tags)

    def finished(self, closing: NotebookNode) -> list[Slide]:
        """All slides, with the recap."""
        self._give_back_waiting()
        claims = [block for block in blocks.divided(closing.source) if block.kind == blocks.POINTS]
        recap = Slide("recap", self.chapter, "Recap")
        recap.content = markup.of_list(blocks.items(claims[0].text)) if claims else markup.of_markdown(closing.source)
        recap.notes = [
            block.text
            for block in blocks.divided(closing.source)
            if block.kind != blocks.HEADING and block not in claims[:1]
        ]
        return [*self.slides, recap]

    def _take_text(self, cell: NotebookNode, tags: set[str]) -> None:
        every = blocks.divided(cell.source)
        kinds = tags - {TAKEAWAY, CONTINUED}
        if missing := sorted(kinds - {block.kind for block in every}):
            raise WrongSlideTag(f"Cell {cell.id} has the tag {PREFIX}{missing[0]} and no such part.")
        slide = self.slides[-1] if CONTINUED in tags else None
        for number, block in enumerate(every):
            leads = number + 1 < len(every) and every[number + 1].kind in kinds - {blocks.TEXT}
            if block.kind == blocks.HEADING:
                self._enter(block.text)
            elif TAKEAWAY in tags and number == 0:
                self._take_away(block.text)
            elif block.kind in kinds and (block.kind != blocks.TEXT or leads or kinds == {blocks.TEXT}):
                if slide is None or not (CONTINUED in tags or (slide.kind, block.kind) in TOGETHER):
                    slide = self._begin(block.kind)
                self._show(cell, block, slide)
            else:
                if leads:
                    self.waiting = self.waiting or []
                self._note(block.text)

    def _take_code(self, cell: NotebookNode, tags: set[str]) -> None:
        if not tags & {OUTPUT, blocks.CODE}:
            return
        content = markup.of_code(cell.source) if blocks.CODE in tags else ""
        notes = []
        if OUTPUT in tags:
            output, whole = markup.of_outputs(cell.outputs)
            if not output:
                raise WrongSlideTag(f"Cell {cell.id} has the tag {PREFIX}{OUTPUT} and shows neither text nor an SVG.")
            content += output
            notes = [f"```\n{whole}\n```"] if whole else []
            notes += [] if blocks.CODE in tags else [f"```python\n{cell.source}\n```"]
        question = self.slides[-1].asks
        slide = self.slides[-1] if CONTINUED in tags else self._begin(OUTPUT)
        if question and "<figure" not in content:
            slide.content += markup.of_question_before(question)
        slide.content += content
        slide.notes += notes

    def _show(self, cell: NotebookNode, block: TextBlock, slide: Slide) -> None:
        """Put a part of the cell's text on the slide, and what is left of it into the notes."""
        if block.kind == blocks.PREDICT:
            slide.kind, slide.asks = blocks.PREDICT, block.text
            slide.content += markup.of_prediction(block.text)
            slide.notes.append(ASK)
        elif block.kind == blocks.QUIZ:
            quiz = quizzes.parsed(block.text)
            if quiz is None:
                raise WrongSlideTag(f"Cell {cell.id} has the tag {PREFIX}{blocks.QUIZ} and a question without choices.")
            slide.content += markup.of_quiz(quiz)
            slide.notes.append(quiz.answer)
        elif block.kind == blocks.PICTURE:
            try:
                slide.content += markup.of_picture(block.text, self.folder)
            except FileNotFoundError as error:
                raise MissingPicture(
                    f"Cell {cell.id} shows {error.filename}, which is missing; `make figures` draws it."
                ) from None
        elif block.kind == blocks.POINTS:
            items = blocks.items(block.text)
            slide.content += markup.of_list([blocks.begun(item)[0] for item in items], block.text[0].isdigit())
            slide.notes.append(block.text)
        elif block.kind == blocks.TEXT:
            first, rest = blocks.begun(block.text)
            slide.content += f"<p>{markup.of_line(first)}</p>"
            slide.notes += [rest] if rest else []
        else:
            slide.content += markup.of_markdown(block.text)

    def _begin(self, kind: str) -> Slide:
        slide = Slide(kind, self.section if self.part else self.chapter, self._heading(), notes=self.waiting or [])
        self.waiting = None
        self.slides.append(slide)
        return slide

    def _heading(self) -> str:
        return self.part or self.section or self.chapter

    def _enter(self, heading: str) -> None:
        level, text = len(heading) - len(heading.lstrip("#")), blocks.without_links(heading.lstrip("# "))
        if level <= 2:
            self._give_back_waiting()
            self.section, self.part = text, ""
        else:
            self.part = text
        self.waiting = self.waiting or []

    def _take_away(self, paragraph: str) -> None:
        self.slides[-1].takeaway, rest = blocks.conclusion(paragraph)
        if rest:
            self._note(rest)

    def _note(self, text: str) -> None:
        text = _unfolded(text)
        if self.waiting is None:
            self.slides[-1].notes.append(text)
        else:
            self.waiting.append(text)

    def _give_back_waiting(self) -> None:
        """A section without slides: its text is for the slide before it."""
        if self.waiting:
            self.slides[-1].notes += [f"**{self._heading()}**", *self.waiting]
        self.waiting = None


def _unfolded(text: str) -> str:
    """Folded text as plain text."""
    return re.sub(r"</?(?:details|summary)>", "", text).strip()

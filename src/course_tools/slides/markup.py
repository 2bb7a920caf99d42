"""The HTML of what a slide shows: words, questions, pictures with their descriptions, what a cell printed, code."""

import base64
import re
import textwrap
from collections.abc import Sequence
from html import escape, unescape
from itertools import filterfalse
from pathlib import Path

from nbconvert.filters import Highlight2HTML, strip_ansi
from nbconvert.filters.markdown_mistune import MarkdownWithMath
from nbformat import NotebookNode

from course_tools.html_pages import PageRenderer
from course_tools.site import quizzes
from course_tools.site.notebook_pages import WIDGET_IN_WORDS
from course_tools.slides import blocks
from course_tools.slides.blocks import TextBlock
from distlab.runtime.errors import PlainError

# A block of such a kind shares its slide with nothing that leads to it.
ALONE = (blocks.QUIZ, blocks.CODE)
PREDICT = "**Predict.**"
ASK = "Let everybody write an answer down before you go on."
LONGEST_LINE, LONGEST_SENTENCE, IN_LARGE_LETTERS = 120, 95, 66
LINES_BY_PICTURE, LINES_IN_LARGE_LETTERS, LINES_WITH_GAPS = 4, 9, 15
HIGH = 1.6  # a picture whose width is less than so many heights takes the whole height, and words the place left of it
WIDE = 2.5  # only below a picture whose width is so many heights there is room for what was printed
COMMAND = re.compile(r"\$ |[A-Z_]+=")
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.DOTALL)
VIEW_BOX = re.compile(r'viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)"')
WIDTH, HEIGHT = 1150, 500  # room for pictures
SVG = "image/svg+xml"


class SlideRenderer(PageRenderer):
    """Formulas are MathML. A slide leads nowhere, so links are only their words; a picture is its description."""

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """The words of a link."""
        return text

    def image(self, text: str, url: str, title: str | None = None) -> str:
        """The description of a picture."""
        return f"<em>Picture: {text}</em>"


def of_markdown(text: str) -> str:
    """The HTML of Markdown."""
    return str(MarkdownWithMath(SlideRenderer(Path(), Path(), exclude_anchor_links=True)).render(text))


def of_line(text: str) -> str:
    """The HTML of a line or paragraph of Markdown, without an element around it."""
    line = re.sub(r"^(\d+)\. ", r"\1\\. ", " ".join(text.split()))  # the number of a heading begins no list
    return re.sub(r"^<p>(.*)</p>$", r"\1", of_markdown(line).strip(), flags=re.DOTALL)


def of_list(items: Sequence[str], numbered: bool = False) -> str:
    """A list of short texts."""
    return of_markdown("\n".join(f"{'1.' if numbered else '-'} {item}" for item in items))


def asked(text: str) -> str:
    """What a prediction asks for, without the word before it."""
    return text.removeprefix(PREDICT)


def of_block(block: TextBlock, folder: Path, is_whole: bool = False) -> tuple[str, list[str]]:
    """What a slide shows of a block, and notes for the speaker.

    folder: where pictures are relative to.  is_whole: a paragraph is shown, not only its conclusion.
    """
    match block.kind:
        case blocks.PREDICT:
            return f'<p class="badge">Predict</p><div class="asked">{of_markdown(asked(block.text))}</div>', [ASK]
        case blocks.QUIZ:
            return _of_quiz(block.text)
        case blocks.PICTURE:
            [(description, file)] = PICTURE.findall(block.text)
            return _side_by_side([((folder / file).read_text(), " ".join(description.split()))]), []
        case blocks.POINTS:
            shown = [blocks.conclusion(item)[0] for item in blocks.items(block.text)]
            return of_list(shown, block.text[0].isdigit()), [block.text]
        case blocks.TEXT if not is_whole:
            first, rest = blocks.conclusion(block.text)
            return f"<p>{of_line(first)}</p>", [rest] if rest else []
        case _:
            return of_markdown(block.text), []


def _of_quiz(text: str) -> tuple[str, list[str]]:
    """A question with its choices, of which one key later the right one is marked; the answer is for the speaker."""
    quiz = quizzes.parsed(text)
    if quiz is None:
        raise PlainError(f"This question has no choices, or does not say which is right:\n\n{text}")
    choices = "".join(
        f'<li class="fragment custom {"right" if number == quiz.right else "wrong"}" data-fragment-index="0">'
        f"{of_line(choice)}</li>"
        for number, choice in enumerate(quiz.choices, start=1)
    )
    question = f'<p class="badge">Question</p><div class="asked"><p>{of_line(quiz.question)}</p></div>'
    return f"{question}<ol>{choices}</ol>", [quiz.answer]


def of_code(source: str) -> str:
    """Python with its colours; a long program without empty lines, so that its letters are larger."""
    if source.count("\n") >= LINES_WITH_GAPS:
        source = "\n".join(filter(str.strip, source.split("\n")))
    return f'<div class="code" {_columns(source)}>{Highlight2HTML(pygments_lexer="ipython3")(source)}</div>'


def of_outputs(outputs: Sequence[NotebookNode]) -> tuple[str, str]:
    """What a cell showed, pictures or a player first; and what it printed, where that is not all on the slide.

    Long lines are broken or cut. Below a wide picture there is room for LINES_BY_PICTURE, beside others for none, and
    for no program.
    """
    data = [output.data for output in outputs if "data" in output]
    players = [each["text/html"] for each in data if "distlab-player" in each.get("text/html", "")]
    drawn = [each[SVG] for each in data if SVG in each]
    pictures = [(svg, " ".join(unescape([*TITLE.findall(svg), ""][0]).split())) for svg in drawn]
    texts = []
    for said in (each["text/markdown"] for each in data if "text/markdown" in each):
        programs = "\n".join(re.findall(r"^```\w*\n(.*?)^```", said, re.MULTILINE | re.DOTALL))
        if not (pictures and programs):
            texts.append(f'<div class="said" {_columns(programs)}>{of_markdown(said)}</div>')
    streams = "".join(output.text for output in outputs if output.output_type == "stream").strip("\n")
    plain = [each["text/plain"] for each in data if set(each) == {"text/plain"}]
    results = [*filterfalse(WIDGET_IN_WORDS.fullmatch, plain)]
    printed = str(strip_ansi("\n".join(filter(None, [streams, *results]))))
    lines = printed.split("\n")
    width = IN_LARGE_LETTERS if len(lines) <= LINES_IN_LARGE_LETTERS else LONGEST_SENTENCE
    short = "\n".join(line for long in lines for line in _short_lines(long, width))
    beside = _side_by_side(pictures)
    if pictures and (printed.count("\n") >= LINES_BY_PICTURE or "pictures wide" not in beside):
        short = ""
    if short:
        texts.append(f'<pre class="printed" {_columns(short)}>{escape(short)}</pre>')
    return "".join([*(players or [beside]), *texts]), printed if printed != short else ""


def _columns(text: str) -> str:
    """For the style sheet: the characters of the longest line, which decide the size of the letters."""
    return f'style="--columns: {max(24, *map(len, text.split(chr(10))))}"'


def _short_lines(line: str, width: int) -> list[str]:
    """A sentence broken at the words; a row of a table or a command cut."""
    if re.search(r"\S {2,}\S", line):  # columns
        return [line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 2].rstrip()} …"]
    indent = line[: len(line) - len(line.lstrip())]
    most, width = (1, LONGEST_SENTENCE) if COMMAND.match(line) else (3, width)
    wrapper = textwrap.TextWrapper(width, indent, "    ", max_lines=most, placeholder=" …")
    wrapper.break_on_hyphens = False
    return wrapper.wrap(line) or [""]


def _side_by_side(pictures: Sequence[tuple[str, str]]) -> str:
    """SVG pictures with their descriptions, in a row or in a column, whichever makes them larger; one may be high."""
    if not pictures:
        return ""
    boxes = [VIEW_BOX.search(svg) for svg, _ in pictures]
    ratios = [float(box[1]) / float(box[2]) if box else 1.5 for box in boxes]
    in_row, in_column = min(HEIGHT, WIDTH / sum(ratios)), min(WIDTH, HEIGHT / sum(1 / ratio for ratio in ratios))
    direction = "high" if sum(ratios) < HIGH else "row" if in_row * ratios[0] >= in_column else "column"
    figures = (
        f'<figure style="--ratio: {ratio:.3f}"><img alt="{escape(description)}" src="data:{SVG};base64,'
        f'{base64.b64encode(svg.encode()).decode()}"></figure>'
        for (svg, description), ratio in zip(pictures, ratios, strict=True)
    )
    most = WIDTH * sum(1 / ratio for ratio in ratios) if direction == "column" else WIDTH / sum(ratios)
    direction = f"wide {direction}" if sum(ratios) >= WIDE else direction
    return f'<div class="pictures {direction}" style="--most: {most:.0f}px">{"".join(figures)}</div>'

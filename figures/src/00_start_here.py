"""A first step on two devices, the map of the course, and for the README a wrong answer with what its check says.

Run it from anywhere: python figures/src/00_start_here.py
"""

import inspect
import sys
import textwrap
from pathlib import Path
from xml.etree import ElementTree

import distlab  # noqa: F401  (selects the course's Keras before anything can import TensorFlow)
from distlab import collectives, draw, labs
from distlab.draw import arrow, box, canvas, row
from distlab.labs import registry
from distlab.labs.card import card

FOLDER = Path(__file__).parents[1]
NOTEBOOKS = FOLDER.with_name("notebooks")
# Where each chapter stands (column and row, from the top left), its name, and those it builds on directly.
CHAPTERS = {
    "00": ((0, 0), "00 start\nhere", ()),
    "01": ((1, 0), "01 why\ndistribute", ("00",)),
    "02": ((2, 0), "02 single\ndevice", ("01",)),
    "03": ((3, 0), "03 mirrored\nstrategy", ("02",)),
    "04": ((4, 0), "04 custom\nloop", ("03",)),
    "05": ((4, 1), "05 save\nand load", ("04",)),
    "06": ((2, 1), "06 ring\nall-reduce", ("04",)),
    "07": ((2, 2), "07 multi-\nworker", ("06",)),
    "08": ((1, 3), "08 other\nstrategies", ("07",)),
    "08b": ((1, 4), "08b Keras 3", ("08",)),
    "09": ((3, 3), "09 Horovod", ("07",)),
    "10": ((2, 4), "10 large\nbatches", ("09",)),
    "11": ((3, 4), "11 scaling,\nprofiling", ("09",)),
    "12": ((0, 2), "12 model\nparallelism", ("06",)),
    "13": ((4, 4), "13 fault\ntolerance", ("05", "09")),
    "14": ((0, 4), "14 other\nframeworks", ("08", "09", "12")),
    "15": ((3, 5), "15 clusters", ("13",)),
}

LINK = '<a href="{}" aria-label="{}"><rect x="{}" y="{}" width="{}" height="{}" rx="4" fill="transparent"/></a>'


def course_map(folder: Path) -> None:
    """The chapters, an arrow to each from those it builds on, and a link over each, for the site."""
    figure, axes = canvas(7.2, 4.8)
    lefts, width = row(5, 0.1, 7.1, 0.35)
    height, step = 0.48, 0.8
    described, links = ["The map of the course: which chapter builds on which."], []
    for (column, line), chapter, needed in CHAPTERS.values():
        left, bottom = lefts[column], 4.2 - step * line
        box(axes, (left, bottom), width, height, chapter)
        for number in needed:
            (from_column, from_line), _, _ = CHAPTERS[number]
            start = lefts[from_column] + width / 2, 4.2 - step * from_line
            if from_line == line:
                arrow(axes, (start[0] + width / 2, start[1] + height / 2), (left, bottom + height / 2))
            else:  # from below one chapter to the top of the next, a little towards each other
                lean = 0.12 * width * (column - from_column)
                arrow(axes, (start[0] + lean, start[1]), (left + width / 2 - lean, bottom + height))
        name = chapter.replace("-\n", "-").replace("\n", " ")
        page = next(NOTEBOOKS.glob(f"{name.split()[0]}_*.ipynb")).with_suffix(".html").name
        links.append(LINK.format(page, name, *(round(72 * each, 1) for each in (left, 4.32 - bottom, width, height))))
        if needed:
            described.append(f"{name} builds on {' and '.join(needed)}.")
    file = folder / "00_course_map.svg"
    draw.save(figure, file, " ".join(described))
    file.write_text(file.read_text().replace("</svg>", "\n".join([*links, "</svg>"])))


LINE, WRONG_LINE = (f"for step in range(rank.size - {number}):" for number in (1, 2))
# On the left what a student wrote and what the check says, on the right what the check draws; or one below the other,
# where a page gives it a high and narrow place.
CHECK = """<?xml version="1.0" encoding="utf-8"?>
<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{words}"
 width="652pt" height="381pt" viewBox="0 0 870 508" preserveAspectRatio="xMidYMin">
<title>{words}</title>
<style>@media (max-aspect-ratio: 1/1) {{
#said {{ transform: scale(2.4); }} #drawn {{ transform: translate(0, {below}px) scale(1.85); }} }}</style>
<rect width="870" height="508" fill="#fff"/>
<g id="said" font-family="sans-serif" font-size="15" fill="#222">
<text x="12" y="40" font-weight="bold">An answer in lab 06</text>
<rect x="12" y="56" width="280" height="40" rx="6" fill="#f6f8fa" stroke="#d9d9d9"/>
<text x="22" y="81" font-family="monospace" font-size="13">{line}</text>
<text x="12" y="140" font-weight="bold">What the check says</text>
<path d="M15 156v{height}" stroke="#b26a00" stroke-width="6"/>
<rect x="18" y="156" width="274" height="{height}" fill="#fff8ef"/>
{said}
</g>
<g id="drawn" transform="translate(296 0) scale(1.15)">{picture}</g>
</svg>
"""
# How the card's title, hint and grey lines are written: letters in a line, and attributes.
TITLE, HINT, GREY = (31, 'font-weight="bold"'), (29, 'font-size="17"'), (38, 'font-size="13" fill="#555"')


def first_step(folder: Path) -> None:
    """A batch is divided, two gradients are added, the weights get their sum."""
    figure, axes = canvas(7.4, 1.5)
    box(axes, (0.05, 0.45), 1.1, 0.6, "a batch of\n64 images")
    for device, bottom in enumerate((0.85, 0.05)):
        box(axes, (1.65, bottom), 2.3, 0.6, f"device {device}: gradient\nof its 32 images", device)
        arrow(axes, (1.15, 0.75), (1.65, bottom + 0.3))
        arrow(axes, (3.95, bottom + 0.3), (4.45, 0.75))
    box(axes, (4.45, 0.45), 0.9, 0.6, "sum of the\ngradients")
    arrow(axes, (5.35, 0.75), (5.75, 0.75))
    box(axes, (5.75, 0.45), 1.6, 0.6, "weights minus\nrate × sum / 64")
    words = (
        "A step on two devices: a batch of 64 images is divided, each device computes the gradient of its 32 images, "
        "and the sum of the two gradients, divided by 64, changes the weights."
    )
    draw.save(figure, folder / "00_first_step.svg", words)


def wrong_answer(folder: Path) -> None:
    """A line of a reduce-scatter with a round too few, and what the check of lab 06 says and draws."""
    program = inspect.getsource(collectives.reduce_scatter).replace(LINE, WRONG_LINE)
    namespace = {**vars(inspect.getmodule(collectives.reduce_scatter))}
    exec(program, namespace)
    exercise = registry.lab("06")["reduce_scatter"]
    verdict = exercise.verdict(labs.OwnAnswer(namespace))
    svg, description = verdict.picture()
    words, lines, y = f"A wrong answer and its check: {WRONG_LINE}", list[str](), 158
    for paragraph in ElementTree.fromstring(card("reduce_scatter", verdict, exercise.points, None)):
        style = paragraph.get("style")
        width, look = TITLE if "margin: 0" in style else HINT if "1.1em" in style else GREY
        written = "".join(paragraph.itertext())
        words += f" {written.removesuffix('.')}."
        y += 6
        for line in textwrap.wrap(written, width):
            y += 20
            lines.append(f'<text x="30" y="{y}" {look}>{line}</text>')
    height = y + 14 - 156
    below = round(2.4 * (172 + height))
    said = "\n".join(lines)
    text = CHECK.format(
        words=f"{words} {description}", line=WRONG_LINE, height=height, said=said, below=below, picture=svg
    )
    (folder / "00_check.svg").write_text(text)


def main(folder: Path = FOLDER) -> None:
    """Draw them into a folder."""
    draw.apply_style()
    first_step(folder)
    course_map(folder)
    wrong_answer(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)

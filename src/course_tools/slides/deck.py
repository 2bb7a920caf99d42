"""A deck as one HTML page, written by nbconvert's exporter of slides; reveal.js lies in a folder next to it."""

from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbconvert import SlidesExporter
from nbformat import NotebookNode

from course_tools.html_pages import with_mathml
from course_tools.slides.blocks import without_links
from course_tools.slides.markup import PICTURE
from course_tools.slides.storyboard import Slide

STATIC = Path(__file__).with_name("static")
REVEAL = "reveal"


def html(slides: Sequence[Slide], title: str) -> str:
    """The page of these slides; it looks for reveal.js in the folder REVEAL next to it."""
    exporter = SlidesExporter(
        raw_template=(STATIC / "deck.html.j2").read_text(),
        reveal_url_prefix=REVEAL,
        exclude_anchor_links=True,
    )
    style, script = ((STATIC / name).read_text() for name in ("deck.css", "deck.js"))
    page, _ = exporter.from_notebook_node(
        _notebook(slides), {"metadata": {"name": title}, "deck": {"style": style, "script": script}}
    )
    return str(page)


def _notebook(slides: Sequence[Slide]) -> NotebookNode:
    """Two cells for each slide, as nbconvert wants them: what is shown, and the notes."""
    cells = []
    for slide in slides:
        output = nbformat.v4.new_output("display_data", data={"text/html": slide.html()})
        metadata = {"slideshow": {"slide_type": "slide"}, "deck": {"kind": slide.kind}}
        cells.append(nbformat.v4.new_code_cell(outputs=[output], metadata=metadata))
        place = " – ".join(filter(None, [slide.section, slide.heading]))
        notes = "\n\n".join([f"*In the notebook: {place}*", *slide.notes])
        cells.append(
            nbformat.v4.new_markdown_cell(
                with_mathml(without_links(PICTURE.sub(r"*Picture: \g<description>*", notes))),
                metadata={"slideshow": {"slide_type": "notes"}},
            )
        )
    return nbformat.v4.new_notebook(cells=cells)

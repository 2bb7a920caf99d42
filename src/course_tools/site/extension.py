"""What Sphinx calls while it builds the site: the reference is listed, notebooks are changed as they are read.

Formulas become MathML, which browsers draw themselves; pictures get their size and their text; a chapter's header and
the paragraphs that begin with a word such as **Predict.** get the classes of their cards. The words of all pages go
into a file, from which the page of the search takes the line around what it has found.
"""

import json
import re
from html import unescape
from itertools import takewhile
from pathlib import Path
from xml.etree import ElementTree

import nbformat
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

from course_tools.glossary import entries as glossary_entries
from course_tools.site import notebook_pages, reference, wrong_answers
from course_tools.site.mathml import mathml

TITLE = re.compile(r"<title>.*?</title>", re.DOTALL)  # in a page it would be a hover text everywhere
# Code, emphasis and links of Markdown, which a hover text cannot show.
MARKUP = re.compile(r"[`*$]|\[([^\]]*)\]\([^)]*\)")
PIXELS_PER_POINT = 1.6  # a figure of 7.2 inches fills the column, and its text of 8 points has 12.8 pixels
HEADER = "Goal.", "Time.", "Before this.", "Questions.", "Hardware.", "How it works."
TAG = re.compile(r"<[^>]*>")
CARDS = {"Predict.": "predict", "Pitfall.": "pitfall"}


def setup(application: Sphinx) -> dict[str, bool]:
    """Register the events; called by Sphinx."""
    application.add_html_math_renderer("mathml", (_inline_formula, None), (_formula, None))
    application.connect("builder-inited", _write_reference)
    application.connect("source-read", _read)
    application.connect("doctree-read", _describe_pictures)
    application.connect("doctree-read", _make_cards)
    application.connect("build-finished", _write_words)
    application.connect("autodoc-skip-member", reference.leave_out_fields)
    application.connect("autodoc-process-signature", reference.with_array_like)
    application.connect("autodoc-process-docstring", reference.as_markup)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _write_reference(application: Sphinx) -> None:
    reference.write(Path(application.srcdir) / "reference")


def _read(application: Sphinx, page: str, content: list[str]) -> None:
    """Change the text of a notebook or a Markdown page before it is parsed."""
    file = Path(application.env.doc2path(page))
    glossary = glossary_entries(Path(application.srcdir) / "docs" / "glossary.md")
    meanings = {entry.anchor: _hover_text(entry.meaning) for entry in glossary}
    if file.suffix == ".md":
        content[0] = notebook_pages.prose(content[0], meanings)
        return
    notebook = nbformat.reads(content[0], as_version=4)
    solution = file.with_name("solution.ipynb")
    if file.name == "lab.ipynb":
        wrong_answers.show(notebook, file.parent.name[:2])
    if solution.is_file():
        notebook_pages.solve(notebook, nbformat.read(solution, as_version=4))
    content[0] = nbformat.writes(notebook_pages.page(notebook, meanings))


def _hover_text(meaning: str) -> str:
    """What is written in Markdown, as the title of a link in Markdown."""
    return MARKUP.sub(r"\1", meaning).replace("'", "’").replace('"', r"\"")


def _describe_pictures(application: Sphinx, document: nodes.document) -> None:
    """Give each picture its size, and if it has no text the description of its SVG; one that has links is inline."""
    for picture in [*document.findall(nodes.image)]:
        file = Path(application.srcdir) / picture["uri"]
        if file.suffix != ".svg" or not file.is_file():
            continue
        svg = file.read_text()
        if "<a " in svg:
            picture.replace_self(nodes.raw("", TITLE.sub("", svg).replace('"img"', '"group"', 1), format="html"))
            continue
        picture["classes"] += ["bitmap"] if "<image" in svg else []
        described = ElementTree.fromstring(svg)
        picture["alt"] = picture.get("alt") or described.get("aria-label", "")
        for side in ("width", "height"):
            points = described.get(side, "").removesuffix("pt")
            picture[side] = str(round(float(points) * PIXELS_PER_POINT))


def _make_cards(application: Sphinx, document: nodes.document) -> None:
    """Mark the paragraphs that are cards, and make one card of what a chapter or lab says under its title."""
    for bold in [*document.findall(nodes.strong)]:
        paragraph, page = bold.parent, bold.parent.parent
        if name := CARDS.get(bold.astext()):
            paragraph["classes"].append(name)
        elif bold.astext() == "Goal.":
            start = page.index(paragraph)
            texts = [
                *takewhile(lambda node: node.tagname == "bullet_list" or node.astext().startswith(HEADER), page[start:])
            ]
            page[start : start + len(texts)] = [nodes.container("", *texts, classes=["goal-card"])]


def _write_words(application: Sphinx, error: Exception | None) -> None:
    """Write the text of all pages for the search: a page opened as a file can fetch no other page."""
    if error is None:
        words = [(page, _sections(application.env.get_doctree(page))) for page in sorted(application.env.found_docs)]
        (Path(application.outdir) / "_static" / "words.js").write_text(f"courseWords({json.dumps(words)});\n")


def _sections(document: nodes.document) -> list[tuple[str, str, list[str], list[str]]]:
    """Each section of a page, and each name of the reference: anchor, heading, paragraphs, lines of code."""
    sections: list[tuple[str, str, list[str], list[str]]] = []
    for node in document.findall():
        if isinstance(node, nodes.section):
            sections.append((node["ids"][0], _words(node[0]), [], []))
        elif isinstance(node, addnodes.desc_signature) and node["ids"]:
            sections.append((node["ids"][0], node["fullname"], [], []))
        elif isinstance(node, nodes.row) and sections:
            sections[-1][2].append(" · ".join(filter(None, map(_words, node))))
        elif isinstance(node, nodes.paragraph) and sections and not isinstance(node.parent, nodes.entry):
            sections[-1][2].append(_words(node))
        elif isinstance(node, nodes.literal_block) and sections and not _is_folded(node.parent):
            sections[-1][3].extend(filter(None, node.astext().splitlines()))
    return sections


def _is_folded(code: nodes.Element) -> bool:
    """Whether it is the code of a cell that hides it."""
    return code.get("nb_element") == "cell_code_source" and "hide_mode" in code.parent


def _words(node: nodes.Node) -> str:
    """The text of a node without HTML, in one line; a formula is what its MathML says if that is one row, else dots."""
    parts = []
    for part in node.findall(nodes.Text):
        if isinstance(part.parent, nodes.raw):
            continue
        formula = isinstance(part.parent, nodes.math)
        row = unescape(TAG.sub("", mathml(part, "inline"))) if formula and "{" not in part else "…"
        parts.append(row if formula else part)
    return " ".join("".join(parts).split())


def _inline_formula(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _formula(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="formula">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode

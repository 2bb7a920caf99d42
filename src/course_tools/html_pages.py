"""HTML pages of notebooks that need no network: images inside, formulas as MathML."""

import base64
import mimetypes
import os
import re
from pathlib import Path
from typing import Any

import jinja2
import nbformat
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode

from course_tools import notebooks, user_folders
from course_tools.chapters import chapter_notebooks
from course_tools.site.mathml import mathml

TEMPLATES = Path(__file__).with_name("templates")
CHAPTER = re.compile(r"^(?:\.\./notebooks/)?(\d\d[a-z]?_\w+)\.ipynb")
GLOSSARY = "glossary.html"


class PageRenderer(IPythonRenderer):
    """nbconvert's renderer of Markdown: formulas are MathML, pictures are inside, links lead from page to page.

    folder: where the notebook belongs, to which its links and pictures are relative.  page: the file of the page.
    """

    def __init__(self, folder: Path, page: Path, attachments: dict[str, Any] | None = None, **options: Any) -> None:
        super().__init__(escape=False, attachments=attachments, **options)
        self.folder, self.page = folder, page

    def inline_math(self, body: str) -> str:
        """A formula in a line."""
        return mathml(body, "inline")

    def block_math(self, body: str) -> str:
        """A formula by itself."""
        return mathml(body, "block")

    def image(self, text: str, url: str, title: str | None = None) -> str:
        """A picture of the course or of the notebook."""
        if (file := self.folder / url).is_file():
            url = f"data:{mimetypes.guess_type(file)[0]};base64,{base64.b64encode(file.read_bytes()).decode()}"
        return str(super().image(text, url, title))

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """A link to another page, or to a file of the course."""
        url = CHAPTER.sub(r"\1.html", url).replace("../docs/glossary.md", GLOSSARY)
        if url.startswith("../"):
            url = f"{os.path.relpath(self.folder.parent, self.page.parent)}/{url.removeprefix('../')}"
        return str(super().link(text, url, title))


def write_pages() -> None:
    """Write a page of each committed notebook to `build/html`."""
    folder = Path("notebooks")
    files = chapter_notebooks(folder)
    pages = user_folders.announced("build", "the pages go") / "html"
    write_glossary(folder, pages)
    for notebook in files:
        page = pages / f"{notebook.stem}.html"
        write_page(notebooks.read(notebook), page, folder)
        print(page)


def write_glossary(folder: Path, pages: Path) -> None:
    """Convert docs/glossary.md, to which the notebooks in `folder` link, into a page next to theirs."""
    text = folder.parent / "docs" / "glossary.md"
    if text.is_file():
        cell = nbformat.v4.new_markdown_cell(text.read_text())
        write_page(nbformat.v4.new_notebook(cells=[cell]), pages / GLOSSARY, folder)


def write_page(notebook: NotebookNode, page: Path, folder: Path) -> None:
    """Convert a notebook with outputs into one HTML file that shows everything without a network.

    `folder` is where the notebook belongs.
    """

    @jinja2.pass_context
    def markdown2html(context: jinja2.runtime.Context, source: str) -> str:
        renderer = PageRenderer(folder, page, context["cell"].get("attachments"))
        return str(MarkdownWithMath(renderer).render(source))

    template = (TEMPLATES / "page.html.j2").read_text()
    exporter = HTMLExporter(raw_template=template, filters={"markdown2html": markdown2html})
    html, _ = exporter.from_notebook_node(notebook, {"metadata": {"name": title_of(notebook)}})
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(html)


def from_template(file: Path, page: Path, **values: object) -> Path:
    """Write a page from a template of Jinja; returns its file."""
    template = jinja2.Environment(autoescape=True).from_string(file.read_text())
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(template.render(values))
    return page


def title_of(notebook: NotebookNode) -> str:
    """The text of the notebook's first heading."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and (heading := re.search(r"^# +(.+)$", cell.source, re.MULTILINE)):
            return heading[1].strip()
    return "Notebook"

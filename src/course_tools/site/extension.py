"""What Sphinx calls while it builds the site: notebooks are changed as they are read, pictures get their text."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from course_tools.site import formulas, glossary, line_breaks, notebook_pages, pictures

LABEL = re.compile(r'<svg[^>]*? aria-label="([^"]*)"', re.DOTALL)
_AFTER_MYST_NB = 900


def setup(application: Sphinx) -> dict[str, bool]:
    """Register the events; called by Sphinx."""
    formulas.register(application)
    # When one of these changes, the pages of an earlier build are not used: see `build.build`.
    application.add_config_value("site_digest", "", "env", [str])
    application.add_config_value("site_solutions", [], "env", [list])
    application.connect("builder-inited", _keep_outputs_in_build, priority=_AFTER_MYST_NB)
    application.connect("source-read", _read)
    application.connect("doctree-read", _describe_pictures)
    application.connect("doctree-read", line_breaks.divide_code)
    application.connect("doctree-read", line_breaks.keep_percent_signs)
    application.connect("doctree-resolved", glossary.explain_terms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _keep_outputs_in_build(application: Sphinx) -> None:
    """Let myst-nb keep the notebooks' outputs beside Sphinx's own files.

    By itself it keeps them beside the folder of the pages, which may be a link to that of a web server.
    """
    environment: Any = application.env  # to which myst-nb adds its settings
    outputs = Path(application.doctreedir).with_name("site-outputs")
    environment.mystnb_config = environment.mystnb_config.copy(output_folder=str(outputs))


def _read(application: Sphinx, page: str, content: list[str]) -> None:
    file = Path(application.env.doc2path(page))
    if file.suffix == ".ipynb":
        content[0] = json.dumps(notebook_pages.changed(json.loads(content[0]), file))
        solution = file.with_name("solution.ipynb")
        if solution.is_file():
            application.env.note_dependency(solution, docname=page)
        if page != glossary.PAGE and f"#{glossary.PREFIX}" in content[0]:
            application.env.note_dependency(application.env.doc2path(glossary.PAGE), docname=page)
    else:
        content[0] = glossary.with_targets(content[0])


def _describe_pictures(application: Sphinx, document: nodes.document) -> None:
    """Give each picture its size, and if it has no text the description that is in its SVG.

    A picture is loaded when the reader comes near; with its size known, the text does not move then.
    """
    for picture in document.findall(nodes.image):
        file = Path(application.srcdir) / picture["uri"]
        picture["loading"] = "lazy"
        if file.suffix != ".svg" or not file.is_file():
            continue
        svg = file.read_text()
        if not picture.get("alt") and (label := LABEL.search(svg)):
            picture["alt"] = unescape(label[1])
        if size := pictures.size(svg):
            picture["width"], picture["height"] = map(str, size)

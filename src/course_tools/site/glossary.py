"""Links to the glossary, with the meaning of the term as hover text."""

import re

from docutils import nodes
from sphinx.application import Sphinx

PAGE = "docs/glossary"
PREFIX = "term-"
LINK = re.compile(r"\]\((?:\.\./docs/)?glossary\.md#([^)]+)\)")
ANCHOR = re.compile(r'^<a id="([^"]+)"></a>$', re.MULTILINE)
BEGINNING = re.compile(r"^.+?\): ", re.DOTALL)


def with_targets(text: str) -> str:
    """Markdown whose links to terms, and the terms' anchors, are targets that Sphinx knows and checks."""
    text = LINK.sub(lambda match: f"](#{PREFIX}{match[1]})", text)
    return ANCHOR.sub(lambda match: f"({PREFIX}{match[1]})=", text)


def explain_terms(application: Sphinx, document: nodes.document, page: str) -> None:
    """Give each link to a term the term's meaning as its title."""
    links = [
        link for link in document.findall(nodes.reference) if f"#{PREFIX}" in link.get("refuri", "") and page != PAGE
    ]
    if not links:
        return
    meanings = {
        name: " ".join(BEGINNING.sub("", entry.astext(), count=1).split())
        for entry in application.env.get_doctree(PAGE).findall(nodes.paragraph)
        for name in entry["ids"]
    }
    for link in links:
        link["reftitle"] = meanings.get(link["refuri"].split("#")[1], "")
        link["classes"].append("term")

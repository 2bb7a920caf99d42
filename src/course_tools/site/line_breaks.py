"""Where the lines of a page may break: inside long names in tables, but not between a number and its percent sign."""

import re

from docutils import nodes
from sphinx.application import Sphinx

MOST_LETTERS_IN_A_LINE = 20  # of code that stays whole
# Between the parts of a name, a path or a call: Parameter|Server|Strategy, tf.|train.|Checkpoint(|…).
PART_ENDS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=\w[/_(=,])(?=\w)|(?<=\w\.)(?=[^\W\d]\w\w)")
BEFORE_PERCENT = re.compile(r"(?<=\d) (?=%)")
VERBATIM = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw)


def keep_percent_signs(application: Sphinx, document: nodes.document) -> None:
    """Let no line begin with the percent sign of a number."""
    for text in list(document.findall(nodes.Text)):
        if BEFORE_PERCENT.search(text) and not isinstance(text.parent, VERBATIM):
            text.parent.replace(text, nodes.Text(BEFORE_PERCENT.sub("\N{NO-BREAK SPACE}", text)))


def divide_code(application: Sphinx, document: nodes.document) -> None:
    """Let code break at its spaces, in tables also between the parts of a name; only what is too long breaks anywhere.

    So an option stays whole, which a browser would otherwise break after its first hyphen.
    """
    for code in document.findall(nodes.literal):
        parts = PART_ENDS.split(code.astext()) if _is_in_table(code) else [code.astext()]
        longest = max((len(word) for part in parts for word in part.split()), default=0)
        code["classes"].append("has-short-parts" if longest <= MOST_LETTERS_IN_A_LINE else "has-long-parts")
        if len(parts) > 1:
            children: list[nodes.Node] = []
            for part in parts:
                children += [nodes.raw("", "<wbr>", format="html"), nodes.Text(part)]
            code[:] = children[1:]


def _is_in_table(node: nodes.Node) -> bool:
    while node.parent is not None:
        node = node.parent
        if isinstance(node, nodes.entry):
            return True
    return False

"""Formulas as MathML, which browsers draw themselves, instead of a script from the network."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

from course_tools.site.mathml import mathml

NAME = "mathml"


def register(application: Sphinx) -> None:
    """Make the renderer known to Sphinx under NAME."""
    application.add_html_math_renderer(NAME, (_inline, None), (_block, None))


def _inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="formula">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode

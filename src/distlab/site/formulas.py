"""Formulas as MathML, which browsers draw themselves, instead of a script from the network."""

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

NAME = "mathml"


def register(application: Sphinx) -> None:
    """Make the renderer known to Sphinx under NAME."""
    application.add_html_math_renderer(NAME, (_inline, None), (_block, None))


def _inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(convert(node.astext().strip(), display="inline").replace("\n", " "))
    raise nodes.SkipNode


def _block(translator: HTML5Translator, node: nodes.math_block) -> None:
    formula = convert(node.astext().strip(), display="block").replace("\n", " ")
    translator.body.append(f'<div class="formula">{formula}</div>')
    raise nodes.SkipNode

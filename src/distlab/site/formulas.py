"""Formulas as MathML, which browsers draw themselves, instead of a script from the network."""

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

NAME = "mathml"
# The name of a function, unless a bracket follows.
FUNCTION = re.compile(r"<mi>(?:exp|lg|ln|log|sin|cos)</mi>(?!(?:<mrow>)?<mo[^>]*>&#x00028;)")
THIN_SPACE = "0.167em"


def register(application: Sphinx) -> None:
    """Make the renderer known to Sphinx under NAME."""
    application.add_html_math_renderer(NAME, (_inline, None), (_block, None))


def mathml(formula: str, display: str) -> str:
    """MathML of a formula in LaTeX, in one line; display: "inline" or "block".

    The converter sets a function's name directly before its argument, as in "lnx".
    """
    converted = convert(formula.strip(), display=display).replace("\n", " ")
    return FUNCTION.sub(rf'\g<0><mspace width="{THIN_SPACE}"/>', converted)


def _inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="formula">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode

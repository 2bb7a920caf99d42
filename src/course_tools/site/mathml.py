"""Formulas in LaTeX as MathML, for the site, single pages and slides."""

import re

from latex2mathml.converter import convert

# The name of a function, unless a bracket follows.
FUNCTION = re.compile(r"<mi>(?:exp|lg|ln|log|sin|cos)</mi>(?!(?:<mrow>)?<mo[^>]*>&#x00028;)")
THIN_SPACE = "0.167em"
# The bars of |x|, which MathML would space like a relation.
BAR = re.compile(r"<mo([^>]*)>&#x0007C;</mo>")


def mathml(formula: str, display: str) -> str:
    """MathML of a formula in LaTeX, in one line; display: "inline" or "block".

    The converter sets a function's name directly before its argument, as in "lnx"; a space goes between them.
    Bars stand close to what they enclose.
    """
    converted = convert(formula.strip(), display=display).replace("\n", " ")
    converted = BAR.sub(r'<mo\1 lspace="0" rspace="0">&#x0007C;</mo>', converted)
    return FUNCTION.sub(rf'\g<0><mspace width="{THIN_SPACE}"/>', converted)

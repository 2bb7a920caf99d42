"""Formulas: a function stands apart from its argument."""

import re

import pytest

from course_tools.site.mathml import mathml


@pytest.mark.parametrize(
    ("formula", "has_space"),
    [(r"\ln 10", True), (r"\lg p", True), (r"-\ln\frac{1}{10}", True), (r"\sin\left(x\right)", False), ("p q", False)],
)
def test_the_name_of_a_function_stands_apart_unless_a_bracket_follows(formula: str, has_space: bool) -> None:
    text = mathml(formula, "inline")
    assert text.startswith("<math") and "\n" not in text
    assert bool(re.search(r"<mspace", text)) is has_space


def test_bars_stand_close_to_what_is_between_them() -> None:
    bars = re.findall(r"<mo([^>]*)>&#x0007C;</mo>", mathml(r"E|g|^2 = |G|", "block"))
    assert len(bars) == 4
    assert all('lspace="0" rspace="0"' in attributes for attributes in bars)

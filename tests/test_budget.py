"""The project stays small: each part has at most so many tokens of code as `[tool.distlab.budget]` allows.

Tokens are what Python reads: no comments, docstrings, blank lines or layout, so that joining lines or leaving out what
explains the code gains nothing. To raise a number is a commit of its own that says what the user gets for it.
"""

import tokenize
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from tests.documents.tracked_files import tracked_files

LAYOUT = {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
NOTHING = {tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER}


def tokens(file: Path) -> int:
    """How many tokens of code a Python file has; a string that is a statement of its own (a docstring) is none."""
    count, begins = 0, True
    with file.open("rb") as opened:
        for token in tokenize.tokenize(opened.readline):
            if token.type in LAYOUT:
                begins = True
            elif token.type not in NOTHING:
                count += not (begins and token.type == tokenize.STRING)
                begins = False
    return count


def part(file: Path, budget: dict[str, int]) -> str:
    """The longest folder or file of the budget that this file is, or is in; "" if there is none."""
    return max((name for name in budget if file.is_relative_to(name)), key=len, default="")


@pytest.mark.slow
def test_every_part_is_within_its_budget(root: Path) -> None:
    budget = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["distlab"]["budget"]
    sizes = Counter({name: 0 for name in budget})
    for file in tracked_files(root, "*.py"):
        sizes[part(file.relative_to(root), budget)] += tokens(file)
    print(*(f"{name:32}{size:>9,} of {budget.get(name, 0):>9,}" for name, size in sorted(sizes.items())), sep="\n")
    assert {name: size for name, size in sizes.items() if size > budget.get(name, 0)} == {}

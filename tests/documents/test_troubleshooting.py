"""The page of symptoms: what it quotes is really said."""

import re
from pathlib import Path

import pytest

HEAD = ["Symptom", "Cause", "Fix"]


def symptoms(root: Path) -> list[str]:
    """The first cell of every line of the tables of symptoms; each line has all cells."""
    rows = [line.strip("| ").split(" | ") for line in (root / "docs/troubleshooting.md").read_text().splitlines()]
    tables = [row for row in rows if len(row) == len(HEAD) and row != HEAD]
    assert all(all(row) for row in tables) and rows.count(HEAD) >= 10
    return [row[0] for row in tables]


def plain(text: str) -> str:
    """Without line breaks, and without quotes inside of sentences."""
    return re.sub(r"\s+", " ", re.sub(r"[\\\"']", "", text))


@pytest.mark.slow
def test_what_a_line_quotes_is_said_somewhere(root: Path) -> None:
    patterns = ("src/**/*.py", "tests/**/*.py", "notebooks/*.ipynb", "notebooks/programs/**/*.py", "labs/**/*.*")
    places = [root / "Makefile", *(file for pattern in patterns for file in root.glob(pattern))]
    text = " ".join(file.read_text() for file in places if "__pycache__" not in file.parts and file != Path(__file__))
    said = plain(re.sub(r"[\"']\s+f?[\"']", "", text))
    quotes = [quote for symptom in symptoms(root) for quote in re.findall(r'"([^"]+)"', symptom)]
    assert len(quotes) >= 15
    assert [quote for quote in quotes if plain(quote) not in said] == []

"""The page of symptoms: each line names a notebook or a test that shows it, and what it quotes is really said."""

import re
from pathlib import Path

import pytest

SYMPTOMS, PROMISES = ["Symptom", "Cause", "Fix", "Shown by"], ["When", "You get", "Held by"]


def lines(root: Path, columns: list[str]) -> list[list[str]]:
    """The cells of every line of the tables with these columns, without their heads."""
    found: list[list[str]] = []
    head: list[str] = []
    for line in (root / "docs" / "troubleshooting.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if cells in (SYMPTOMS, PROMISES):
            head = cells
        elif line.startswith("|") and head == columns and not cells[0].startswith("---"):
            found.append(cells)
    return found


def plain(text: str) -> str:
    """Without line breaks, and without quotes inside of sentences."""
    return re.sub(r"\s+", " ", re.sub(r"[\\\"']", "", text))


def test_a_test_or_a_notebook_shows_each_line_and_a_test_holds_each_of_25_promises(root: Path) -> None:
    files = [file for folder in ("tests", "labs") for file in (root / folder).rglob("test_*.py")]
    existing = {name for file in files for name in re.findall(r"^ *def (test_\w+)\(", file.read_text(), re.MULTILINE)}
    for cells in lines(root, SYMPTOMS):
        assert len(cells) == len(SYMPTOMS) and all(cells), cells
        named, linked = re.findall(r"`(test_\w+)`", cells[3]), re.findall(r"\]\(([^)]+)\)", cells[3])
        assert (named or linked) and set(named) <= existing, cells
        assert all((root / "docs" / link).is_file() for link in linked), cells
    promises = lines(root, PROMISES)
    assert 11 <= len(promises) <= 25
    assert {promise.strip("`") for *_, promise in promises} <= existing


@pytest.mark.slow
def test_what_a_line_quotes_is_said_somewhere(root: Path) -> None:
    patterns = ("src/**/*.py", "tests/**/*.py", "notebooks/*.ipynb", "notebooks/programs/**/*.py", "labs/**/*.*")
    places = [root / "Makefile", *(file for pattern in patterns for file in root.glob(pattern))]
    text = " ".join(file.read_text() for file in places if "__pycache__" not in file.parts and file != Path(__file__))
    said = plain(re.sub(r"[\"']\s+f?[\"']", "", text))
    quotes = [quote for symptom, *_ in lines(root, SYMPTOMS) for quote in re.findall(r'"([^"]+)"', symptom)]
    assert len(quotes) >= 15
    assert [quote for quote in quotes if plain(quote) not in said] == []

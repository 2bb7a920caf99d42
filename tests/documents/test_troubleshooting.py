"""The page of symptoms: each line names a notebook or a test that shows it, and what it quotes is really said."""

import re
from pathlib import Path

import pytest

COLUMNS, OF_PROMISES = ["Symptom", "Cause", "Fix", "Shown by"], ["When", "You get", "Held by"]


def lines(root: Path, columns: list[str] = COLUMNS) -> list[list[str]]:
    """The cells of every line of the tables with these columns, without their heads."""
    text = (root / "docs" / "troubleshooting.md").read_text()
    found: list[list[str]] = []
    head: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if cells in (COLUMNS, OF_PROMISES):
            head = cells
        elif line.startswith("|") and head == columns and not cells[0].startswith("---"):
            found.append(cells)
    return found


def names_of_tests(root: Path) -> set[str]:
    return {
        name
        for folder in ("tests", "labs")
        for file in (root / folder).rglob("test_*.py")
        for name in re.findall(r"^ *def (test_\w+)\(", file.read_text(), re.MULTILINE)
    }


@pytest.fixture(scope="module")
def said(root: Path) -> str:
    """All that our programs, tests and notebooks' outputs say, without line breaks and quotes inside of sentences."""
    places = [
        *(root / "src").rglob("*.py"),
        *(file for file in (root / "tests").rglob("*.py") if file.name != Path(__file__).name),
        *(root / "notebooks").glob("*.ipynb"),
        *(root / "labs").rglob("*.*"),
        *(root / "notebooks/programs").rglob("*.py"),
        root / "Makefile",
    ]
    text = " ".join(file.read_text() for file in places if "__pycache__" not in file.parts)
    return plain(re.sub(r"[\"']\s+f?[\"']", "", text))


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("\\", "").replace('"', "").replace("'", ""))


def test_every_line_has_a_symptom_a_cause_a_mend_and_what_shows_it(root: Path) -> None:
    found = lines(root)
    assert len(found) >= 25
    assert [cells for cells in found if len(cells) != len(COLUMNS) or not all(cells)] == []


def test_what_shows_a_line_exists(root: Path) -> None:
    existing = names_of_tests(root)
    for symptom, _, _, shown_by in lines(root):
        named = re.findall(r"`(test_\w+)`", shown_by)
        linked = re.findall(r"\]\(([^)]+)\)", shown_by)
        assert named or linked, symptom
        assert [name for name in named if name not in existing] == [], symptom
        assert [link for link in linked if not (root / "docs" / link).is_file()] == [], symptom


def test_there_are_at_most_25_promises_and_a_test_holds_each(root: Path) -> None:
    existing, promises = names_of_tests(root), lines(root, OF_PROMISES)
    assert 11 <= len(promises) <= 25
    assert [promise for *_, promise in promises if promise.strip("`") not in existing] == []


@pytest.mark.slow
def test_what_a_line_quotes_is_said_somewhere(root: Path, said: str) -> None:
    quotes = [quote for symptom, *_ in lines(root) for quote in re.findall(r'"([^"]+)"', symptom)]
    assert len(quotes) >= 15
    assert [quote for quote in quotes if plain(quote) not in said] == []


@pytest.mark.slow
def test_a_message_that_nobody_gives_is_found(said: str) -> None:
    assert plain("The flux capacitor " + "is not charged") not in said

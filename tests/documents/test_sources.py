"""docs/sources.md: its rows name places that exist, and no source of a notebook or a lab is missing."""

import re
from pathlib import Path

import pytest

from course_tools import source_tables

# The number of a paper at arXiv, or a digital object identifier.
NUMBER = re.compile(
    r"(?:arXiv:|arxiv\.org/abs/)(\d{4}\.\d{4,5})|(?:doi:|doi\.org/)(10\.\d{4,}/(?:[^\s()\]>,;]|\([^)]*\))+)",
    re.IGNORECASE,
)
LINK = re.compile(r"\[(?:arXiv:|doi:)([^\]]+)\]\(https://(?:arxiv\.org/abs|doi\.org)/((?:[^()]|\([^)]*\))+)\)")


def numbers(text: str) -> set[str]:
    """The papers that a text names, by their numbers."""
    return {arxiv or doi.rstrip(".").lower() for arxiv, doi in NUMBER.findall(text)}


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "sources.md").read_text()


def rows(page: str) -> list[list[str]]:
    """The rows of the tables that are written by hand."""
    by_hand = page[: page.index(source_tables.BEGIN)]
    lines = [
        line for line in by_hand.splitlines() if line.startswith("|") and not line.startswith(("| Number", "|---"))
    ]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_each_row_has_a_number_a_source_and_where_it_is_used(page: str, root: Path) -> None:
    assert len(rows(page)) >= 40
    for row in rows(page):
        assert len(row) == 3 and all(row), row
        linked, named = re.findall(r"\]\(([^)]+)\)", row[2]), re.findall(r"`([^`]+)`", row[2])
        assert linked or named, row
        assert [place for place in linked if not (root / "docs" / place).is_file()] == [], row
        assert [place for place in named if not (root / place).is_file()] == [], row


def test_a_link_leads_to_the_paper_that_it_names(page: str) -> None:
    links = LINK.findall(page)
    assert len(links) > 50
    assert [link for link in links if link[0] != link[1]] == []
    assert numbers(LINK.sub("", page)) == set(), "a paper without a link"


def test_every_source_of_a_notebook_and_a_lab_is_listed(page: str, root: Path) -> None:
    listed = numbers(page)
    for file in [*(root / "notebooks" / "src").glob("*.py"), *(root / "labs").glob("*/lab.py")]:
        assert numbers(file.read_text()) - listed == set(), file.name


def test_every_source_of_the_code_is_listed_and_every_listed_one_is_used(page: str, root: Path) -> None:
    folders = ("notebooks", "labs", "figures/src", "src/distlab")
    files = [file for folder in folders for kind in ("*.py", "*.toml") for file in (root / folder).rglob(kind)]
    used = {number for file in files for number in numbers(file.read_text())}
    assert used - numbers(page) == set()
    # A link of the page may say more than a chapter, which names some papers by their authors only.
    assert {number for number in numbers(page) - used if not number.startswith("10.")} == set()


def test_the_published_numbers_are_those_of_the_code(page: str) -> None:
    table = page[page.index(source_tables.BEGIN) + len(source_tables.BEGIN) : page.index(source_tables.END)]
    assert table.strip() == source_tables.published_numbers(), "run `make map`"


def test_papers_are_spelt_out_and_linked() -> None:
    source = source_tables.linked("QI, table 5: measured; arXiv:1706.02677, section 2")
    assert source.startswith("Qi et al., [arXiv:2401.10241](https://arxiv.org/abs/2401.10241), table 5")
    assert "[arXiv:1706.02677](https://arxiv.org/abs/1706.02677), section 2" in source

"""docs/sources.md: no paper of a notebook, a lab or the code is missing, and each listed one is used and linked."""

import re
from pathlib import Path

# The number of a paper at arXiv, or a digital object identifier.
NUMBER = re.compile(
    r"(?:arXiv:|arxiv\.org/abs/)(\d{4}\.\d{4,5})|(?:doi:|doi\.org/)(10\.\d{4,}/(?:[^\s()\]>,;]|\([^)]*\))+)",
    re.IGNORECASE,
)
LINK = re.compile(r"\[(?:arXiv:|doi:)([^\]]+)\]\(https://(?:arxiv\.org/abs|doi\.org)/((?:[^()]|\([^)]*\))+)\)")


def numbers(text: str) -> set[str]:
    """The papers that a text names, by their numbers."""
    return {arxiv or doi.rstrip(".").lower() for arxiv, doi in NUMBER.findall(text)}


def test_every_source_that_is_used_is_listed_and_every_listed_one_is_used(root: Path) -> None:
    page = (root / "docs" / "sources.md").read_text()
    folders = ("notebooks", "labs", "figures/src", "src/distlab")
    files = [file for folder in folders for kind in ("*.py", "*.toml") for file in (root / folder).rglob(kind)]
    used = {number for file in files for number in numbers(file.read_text())}
    assert used - numbers(page) == set()
    # A link of the page may say more than a chapter, which names some papers by their authors only.
    assert {number for number in numbers(page) - used if not number.startswith("10.")} == set()
    links = LINK.findall(page)
    assert len(links) > 50 and [link for link in links if link[0] != link[1]] == []
    assert numbers(LINK.sub("", page)) == set(), "a paper without a link"

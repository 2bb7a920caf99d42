"""The glossary: its form, its chapters, and the links to it from the first uses of its terms."""

import re
from pathlib import Path

import nbformat
import pytest

from course_tools import glossary, notebooks

FEWEST, MOST = 60, 80
LINK = re.compile(r"\[([^\]]+)\]\(\.\./docs/glossary\.md#([^)]+)\)")


@pytest.fixture(scope="module")
def page(root: Path) -> Path:
    return root / "docs" / "glossary.md"


@pytest.fixture(scope="module")
def entries(page: Path) -> list[glossary.GlossaryEntry]:
    return glossary.entries(page)


def text_of(notebook: nbformat.NotebookNode) -> str:
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def linked(text: str, tmp_path: Path) -> str:
    """The text as the middle cell of a notebook, with links to a glossary of three terms."""
    page = tmp_path / "glossary.md"
    terms = ("all-reduce", "rank", "ring all-reduce")
    page.write_text("\n\n".join(f'<a id="{term}"></a>\n**{term}** ([06](06.ipynb)): A meaning.' for term in terms))
    cells = [nbformat.v4.new_markdown_cell(source) for source in ("# A rank", text, "## Recap of a rank")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    glossary.link_first_uses(notebook, page, "page")
    assert [cell.source for cell in notebook.cells[::2]] == ["# A rank", "## Recap of a rank"]
    return notebook.cells[1].source


def test_there_are_as_many_terms_as_a_reader_can_look_through(
    entries: list[glossary.GlossaryEntry], page: Path
) -> None:
    assert FEWEST <= len(entries) <= MOST
    assert page.read_text().count("<a id=") == len(entries), "an entry has another form than the others"


def test_the_terms_are_in_alphabetical_order_and_have_anchors_of_their_own(
    entries: list[glossary.GlossaryEntry],
) -> None:
    terms = [entry.term.lower() for entry in entries]
    assert terms == sorted(terms)
    assert len({entry.anchor for entry in entries}) == len(entries)
    assert [entry.anchor for entry in entries if not re.fullmatch(r"[a-z0-9-]+", entry.anchor)] == []
    assert set(terms) > glossary.NOT_LINKED


def test_an_entry_is_one_sentence_or_two(entries: list[glossary.GlossaryEntry]) -> None:
    sentences = {entry.term: re.split(r"(?<=[.?!]) +(?=[A-Z0-9`])", entry.meaning) for entry in entries}
    assert {term: len(parts) for term, parts in sentences.items() if len(parts) > 2} == {}
    assert [term for term, parts in sentences.items() if not all(part.endswith(".") for part in parts)] == []


@pytest.mark.slow
def test_the_chapter_of_an_entry_has_its_term(entries: list[glossary.GlossaryEntry], root: Path) -> None:
    texts = {
        source.stem: text_of(notebooks.convert_plainly(source, source.stem[:2]))
        for source in notebooks.sources(root / "notebooks")
    }
    assert [entry for entry in entries if Path(entry.file).stem[:2] != entry.chapter] == []
    missing = [entry.term for entry in entries if not entry.occurs_in(texts[Path(entry.file).stem])]
    assert missing == []


@pytest.mark.slow
def test_links_lead_from_the_first_use_and_code_and_headings_stay(
    notebook: Path, entries: list[glossary.GlossaryEntry]
) -> None:
    source = notebook.parent / "src" / f"{notebook.stem}.py"
    plain, with_links = notebooks.convert_plainly(source, "NN"), notebooks.convert(source)
    links = LINK.findall(text_of(with_links))
    assert links
    anchors = [anchor for _, anchor in links]
    assert len(set(anchors)) == len(anchors)
    assert set(anchors) <= {entry.anchor for entry in entries}
    for before, after in zip(plain.cells, with_links.cells, strict=True):
        assert LINK.sub(r"\1", after.source) == before.source
        changed = [line for line in after.source.splitlines() if LINK.search(line)]
        assert not changed or after.cell_type == "markdown"
        assert [line for line in changed if re.match(r"#+ |\||    ", line)] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Each rank and another rank.", "Each [rank](page#rank) and another rank."),
        ("Ranks wait.", "[Ranks](page#rank) wait."),
        ("A ring\nall-reduce.", "A [ring\nall-reduce](page#ring all-reduce)."),
        ("**rank**", "**[rank](page#rank)**"),
        ("frank cross-rank RANK", "frank cross-rank RANK"),
        ("## A rank\n\n| rank |", "## A rank\n\n| rank |"),
        ("`rank` [a rank](there) $rank$", "`rank` [a rank](there) $rank$"),
        ("```\nrank\n```\n\n    rank\n", "```\nrank\n```\n\n    rank\n"),
        ("<details>\na rank\n</details>\n\nA rank.", "<details>\na rank\n</details>\n\nA [rank](page#rank)."),
    ],
)  # fmt: skip
def test_only_the_first_use_in_running_text_becomes_a_link(text: str, expected: str, tmp_path: Path) -> None:
    assert linked(text, tmp_path) == expected


def test_without_a_glossary_nothing_changes(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("a rank") for _ in range(3)])
    glossary.link_first_uses(notebook, tmp_path / "missing.md", "page")
    assert [cell.source for cell in notebook.cells] == ["a rank"] * 3

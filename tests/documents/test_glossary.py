"""The glossary: its form, its chapters, and the links to it from the first uses of its terms."""

import re
from pathlib import Path

import nbformat
import pytest

from course_tools import glossary, notebooks
from course_tools.chapters import number_of


def text_of(notebook: nbformat.NotebookNode) -> str:
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


@pytest.mark.slow
def test_the_terms_are_in_order_and_the_chapter_of_each_has_it(root: Path) -> None:
    page = root / "docs" / "glossary.md"
    entries = glossary.entries(page)
    assert page.read_text().count("<a id=") == len(entries) >= 60, "an entry has another form than the others"
    terms = [entry.term.lower() for entry in entries]
    assert terms == sorted(terms)
    letters = re.findall(r"(?m)^## (.)$", page.read_text())
    assert letters == sorted({term[0].upper() for term in terms} - {"1"})
    assert len({entry.anchor for entry in entries}) == len(entries)
    texts = {
        source.stem: text_of(notebooks.convert_plainly(source.read_text(), number_of(source.stem)))
        for source in notebooks.sources(root / "notebooks")
    }
    found = [re.search(glossary.pattern(entry.term), texts[Path(entry.file).stem]) for entry in entries]
    assert [entry.term for entry, match in zip(entries, found, strict=True) if not match] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Each rank and another rank.", "Each [rank](page#rank) and another rank."),
        ("Ranks wait.", "[Ranks](page#rank) wait."),
        ("A ring\nall-reduce.", "A [ring\nall-reduce](page#ring all-reduce)."),
        ("frank cross-rank RANK", "frank cross-rank RANK"),
        ("`rank` [a rank](there) $rank$", "`rank` [a rank](there) $rank$"),
        ("<details>\na rank\n</details>\n\nA rank.", "<details>\na rank\n</details>\n\nA [rank](page#rank)."),
    ],
)
def test_only_the_first_use_in_running_text_becomes_a_link(text: str, expected: str, tmp_path: Path) -> None:
    page = tmp_path / "glossary.md"
    terms = ("all-reduce", "rank", "ring all-reduce")
    page.write_text("\n\n".join(f'<a id="{term}"></a>\n**{term}** ([06](06.ipynb)): A meaning.' for term in terms))
    cells = [nbformat.v4.new_markdown_cell(source) for source in ("# A rank", text, "## Recap of a rank")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    glossary.link_first_uses(notebook, page, "page")
    assert [cell.source for cell in notebook.cells] == ["# A rank", expected, "## Recap of a rank"]

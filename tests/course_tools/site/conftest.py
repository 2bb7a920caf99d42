"""A course of one notebook and one lab."""

from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

TERM = '<a id="all-reduce"></a>\n**all-reduce** ([01](../notebooks/01_rings.ipynb)): The sum for "every" `rank`.'
WHERE = "A full solution is\nnext to this file, in [solution.ipynb](solution.ipynb). Then go on."


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A course of one notebook, one lab with its solution, a glossary and a README."""
    folder = tmp_path / "course"
    for name in ("notebooks", "labs/01_rings", "docs"):
        (folder / name).mkdir(parents=True)
    chapter = [
        new_markdown_cell(
            "# 01 Rings\n\nAn [all-reduce](../docs/glossary.md#all-reduce) adds $x^2$. See [below](#2.-Next-step)."
        ),
        new_markdown_cell("## 2. Next step"),
        code("1 + 1", "2\n"),
    ]
    nbformat.write(new_notebook(cells=chapter), folder / "notebooks" / "01_rings.ipynb")
    lab = new_notebook(cells=[new_markdown_cell(f"# Lab 01: add\n\nTry. {WHERE}"), code("answer = ...")])
    nbformat.write(lab, folder / "labs" / "01_rings" / "lab.ipynb")
    lab.cells[1] = code("answer = 42")
    nbformat.write(lab, folder / "labs" / "01_rings" / "solution.ipynb")
    (folder / "docs" / "glossary.md").write_text(f"# Glossary\n\n{TERM}\n")
    (folder / "README.md").write_text("# A course\n\nBegin with [this](notebooks/01_rings.ipynb).\n\n## Licence\n\nSee [LICENSE](LICENSE).\n")
    return folder


def code(source: str, printed: str = "") -> NotebookNode:
    """A cell that was run and printed this."""
    outputs = [new_output("stream", text=printed)] if printed else []
    return new_code_cell(source, execution_count=1, outputs=outputs)

"""A chapter with one cell of each kind that a slide can be made of."""

from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 100"><title>Two bars</title><rect/></svg>'
OPENING = """# 03 Rings

**Goal.** Add up arrays.

**Time.** 5 minutes.

**Questions.**
- Who sends?
- Who waits?

**Hardware.** Two cores."""
QUIZ = """**Question.** Which one is right?

1. The first.
2. The second.

<details>
<summary>Answer</summary>

1. No.
2. **Right.** Yes, it is.
</details>"""
CLOSING = """## Recap

- A ring has no centre.
- Nobody waits.

**Next.** 04."""


@pytest.fixture
def chapter() -> NotebookNode:
    """A chapter as it is committed: ids, tags, outputs."""
    cells = [
        new_markdown_cell(OPENING),
        new_code_cell("workers = 2", execution_count=1, metadata={"tags": ["parameters"]}),
        text("## 1. The ring\n\nRanks stand in a ring.\n\n**Predict.** How many steps for $p$ ranks?", "predict"),
        code("print(steps)", "output", new_output("stream", text="6 steps\n")),
        text("No. It takes $2(p-1)$ steps. Each is short.\n\nThe next picture shows them.", "takeaway"),
        code("draw()", "output", new_output("display_data", data={"image/svg+xml": SVG, "text/plain": "figure"})),
        text(
            "### Drawn\n\n![Four ranks in a ring, with arrows](../figures/ring.svg)\n\nArrows are messages.", "picture"
        ),
        text(QUIZ, "quiz"),
        text("## 2. Its cost\n\n| a | b |\n|---|---|\n| 1 | 2 |", "table"),
        text("## 3. Not shown\n\nOnly the speaker says this."),
        new_markdown_cell(CLOSING),
    ]
    return new_notebook(cells=cells)


@pytest.fixture
def course(tmp_path: Path, chapter: NotebookNode, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of that chapter and its picture, which is the working directory."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "ring.svg").write_text(SVG)
    nbformat.write(chapter, tmp_path / "notebooks" / "03_rings.ipynb")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def text(source: str, *tags: str) -> NotebookNode:
    """A cell of text with these tags of slides."""
    return new_markdown_cell(source, metadata={"tags": [f"slide-{tag}" for tag in tags]})


def code(source: str, tag: str, *outputs: NotebookNode) -> NotebookNode:
    """A cell of code with this tag of slides, and what it showed."""
    return new_code_cell(
        source, execution_count=1, outputs=list(outputs), metadata={"tags": ["varies", f"slide-{tag}"]}
    )

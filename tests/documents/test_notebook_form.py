"""The form of the notebooks: opening and closing blocks, sizes, parameters, pictures, agreement with their sources."""

import ast
import re
import socket
from pathlib import Path

import nbformat
import pytest

from course_tools import notebooks
from course_tools.chapters import number_of

OPENING = ("Goal", "Time", "Before this", "Questions", "Hardware")
# A path from the root, but not those that every Linux has.
PATH_OF_A_MACHINE = re.compile(r"(?<![\w.…/~\]>)])/(?!tmp/…|proc/|dev/|etc/|usr/)[a-z]\w*/\S*")


def read(notebook: Path) -> nbformat.NotebookNode:
    return nbformat.read(notebook, as_version=4)


def words(text: str) -> int:
    """Words of prose: without link targets, HTML tags, fenced code, and questions with their answers."""
    text = re.sub(r"```.*?```|\*\*Question\.\*\*.*?</details>|<[^>]+>|\]\([^)]*\)", " ", text, flags=re.DOTALL)
    return len(re.findall(r"[^\W_]+", text))


@pytest.mark.slow
def test_the_notebook_agrees_with_its_source_and_was_executed_from_top_to_bottom(notebook: Path) -> None:
    expected = notebooks.convert(notebook.parent / "src" / f"{notebook.stem}.py")
    notebooks.note_cells(expected)
    found = read(notebook)
    for name in ("source", "id", "metadata"):
        assert [cell[name] for cell in found.cells] == [cell[name] for cell in expected.cells]
    assert found.metadata == expected.metadata
    counts = [cell.execution_count for cell in found.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))


def test_it_opens_and_closes_as_all_do(notebook: Path) -> None:
    cells = read(notebook).cells
    first, quiz, last = cells[0], cells[-2], cells[-1]
    assert first.source.startswith(f"# {number_of(notebook.stem)} ") and "?" in first.source
    assert [name for name in OPENING if not re.search(rf"^(- )?\*\*{name}\b", first.source, re.MULTILINE)] == []
    requires = any("launch.require_horovod()" in cell.source for cell in cells if cell.cell_type == "code")
    assert ("needs-horovod" in first.metadata.get("tags", [])) == requires
    assert quiz.source == f'quizzes.ask("{number_of(notebook.stem)}")'
    assert last.source.startswith("## Recap") and "**Next" in last.source and "**Sources" in last.source
    [parameters] = [cell for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    assert re.findall(r"^(\w+) = ", parameters.source, re.MULTILINE) == ["dataset", "epochs", "workers"]


def test_the_notebook_keeps_to_the_sizes(notebook: Path) -> None:
    cells = [cell for cell in read(notebook).cells if not cell.source.startswith(("## Quiz", "quizzes.ask("))]
    text = [cell.source for cell in cells if cell.cell_type == "markdown"]
    # The blank lines that a formatter puts round a function are no load for the reader.
    code = [sum(map(bool, cell.source.split("\n"))) for cell in cells if cell.cell_type == "code"]
    assert len(cells) <= 50
    assert sum(map(words, text)) <= 2400
    assert [source[:60] for source in text if words(source) > 150] == []
    assert max(code) <= 25
    outputs = [output.get("data", {}).get("text/markdown", "") for cell in cells for output in cell.get("outputs", [])]
    shown = [cell.source for cell in cells if cell.cell_type == "code"]
    shown += [listing for listing in outputs if listing.startswith("```")]
    assert [line for text in shown for line in text.split("\n") if len(line) > 95] == []
    assert sum(lines <= 15 for lines in code) >= len(code) / 2


def test_the_chapters_teach_and_do_not_audit(root: Path) -> None:
    sources = [ast.parse(source.read_text()) for source in notebooks.sources(root / "notebooks")]
    assert sum(isinstance(node, ast.Assert) for source in sources for node in ast.walk(source)) <= 40


def test_every_picture_has_a_description(notebook: Path) -> None:
    for cell in read(notebook).cells:
        if cell.cell_type == "markdown":
            for description, _ in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", cell.source):
                assert words(description) >= 5, cell.source[:80]
        for output in cell.get("outputs", ()):
            pictures = [kind for kind in output.get("data", {}) if kind.startswith("image/")]
            assert pictures in ([], ["image/svg+xml"]), f"{cell.id}: show figures with distlab.draw.show"
            if pictures:
                title = re.search(r"<title>(.*?)</title>", output.data["image/svg+xml"], re.DOTALL)
                assert title and words(title[1]) >= 5, cell.id


def test_outputs_hold_no_error_no_warning_and_nothing_of_this_machine(notebook: Path) -> None:
    strangers = ["/Users/", "site-packages/", socket.gethostname()]
    for cell in read(notebook).cells:
        for output in cell.get("outputs", []):
            assert output.output_type != "error", cell.id
            text = str(output.get("text", "")) + str(output.get("data", {}).get("text/plain", ""))
            assert [name for name in strangers if name in text] == [], cell.id
            assert re.findall(r" at 0x\w+", text) == [], cell.id
            assert PATH_OF_A_MACHINE.findall(text.replace("#!/bin/bash", "")) == [], cell.id
            assert output.get("name") != "stderr", f"{cell.id}: {text[:200]}"

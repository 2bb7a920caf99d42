"""The form of the notebooks: opening and closing blocks, sizes, parameters, pictures, agreement with their sources."""

import ast
import re
import socket
from pathlib import Path

import nbformat
import pytest

from course_tools import notebooks
from course_tools.notebooks import VARIES

OPENING = ("Goal", "Time", "Before this", "Questions", "Hardware")
# A path from the root, but not those that every Linux has.
PATH_OF_A_MACHINE = re.compile(r"(?<![\w.…/~\]>)])/(?!tmp/…|proc/|dev/|etc/|usr/)[a-z]\w*/\S*")
PARAMETERS = ("dataset", "epochs", "workers")


def read(notebook: Path) -> nbformat.NotebookNode:
    return nbformat.read(notebook, as_version=4)


def words(text: str) -> int:
    """Words of prose: without link targets, HTML tags and fenced code."""
    text = re.sub(r"```.*?```|<[^>]+>|\]\([^)]*\)", " ", text, flags=re.DOTALL)
    return len(re.findall(r"[^\W_]+", text))


def test_every_source_has_its_notebook_and_every_notebook_its_source(root: Path) -> None:
    sources = {source.stem for source in notebooks.sources(root / "notebooks")}
    assert sources == {notebook.stem for notebook in (root / "notebooks").glob("*.ipynb")}
    assert sources


@pytest.mark.slow
def test_the_notebook_agrees_with_its_source(notebook: Path) -> None:
    expected = notebooks.convert(notebook.parent / "src" / f"{notebook.stem}.py")
    notebooks.note_cells(expected)
    found = read(notebook)
    assert [cell.source for cell in found.cells] == [cell.source for cell in expected.cells]
    assert [cell.id for cell in found.cells] == [cell.id for cell in expected.cells]
    assert [cell.metadata for cell in found.cells] == [cell.metadata for cell in expected.cells]
    assert found.metadata == expected.metadata


def test_a_changed_cell_is_seen_as_a_difference(root: Path, tmp_path: Path) -> None:
    source = notebooks.sources(root / "notebooks")[0]
    (tmp_path / "src").mkdir()
    changed = tmp_path / "src" / source.name
    changed.write_text(source.read_text().replace("# **Goal", "# **Aim", 1))
    assert notebooks.convert(changed).cells[0].source != notebooks.convert(source).cells[0].source


def test_the_notebook_was_executed_from_top_to_bottom(notebook: Path) -> None:
    counts = [cell.execution_count for cell in read(notebook).cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))


def test_the_first_cell_is_the_opening_block(notebook: Path) -> None:
    first = read(notebook).cells[0]
    assert first.cell_type == "markdown"
    assert first.source.startswith(f"# {notebook.stem[:2]} ")
    missing = [name for name in OPENING if not re.search(rf"^(- )?\*\*{name}\b", first.source, re.MULTILINE)]
    assert missing == []
    assert "?" in first.source


def test_a_notebook_that_cannot_do_without_horovod_says_so_in_its_first_cell(notebook: Path) -> None:
    cells = read(notebook).cells
    requires = any("launch.require_horovod()" in cell.source for cell in cells if cell.cell_type == "code")
    assert ("needs-horovod" in cells[0].metadata.get("tags", [])) == requires


def test_the_last_cell_is_the_closing_block(notebook: Path) -> None:
    last = read(notebook).cells[-1]
    assert last.source.startswith("## Recap")
    assert "**Next" in last.source and "**Sources" in last.source
    claims = re.findall(r"^(?:[-*]|\d+\.) ", last.source, re.MULTILINE)
    assert len(claims) >= 3


def test_the_quiz_of_the_chapter_comes_before_it(notebook: Path) -> None:
    assert read(notebook).cells[-2].source == f'quizzes.ask("{notebook.stem[:2]}")'


def test_one_cell_holds_the_parameters(notebook: Path) -> None:
    tagged = [cell for cell in read(notebook).cells if "parameters" in cell.metadata.get("tags", [])]
    assert len(tagged) == 1
    names = re.findall(r"^(\w+) = ", tagged[0].source, re.MULTILINE)
    assert tuple(names) == PARAMETERS


def test_the_notebook_keeps_to_the_sizes(notebook: Path) -> None:
    cells = [cell for cell in read(notebook).cells if not cell.source.startswith(("## Quiz", "quizzes.ask("))]
    text = [cell.source for cell in cells if cell.cell_type == "markdown"]
    # The blank lines that a formatter puts round a function are no load for the reader.
    code = [sum(map(bool, cell.source.split("\n"))) for cell in cells if cell.cell_type == "code"]
    assert len(cells) <= 70
    assert sum(map(words, text)) <= 3500
    assert [source[:60] for source in text if words(source) > 150] == []
    assert max(code) <= 25
    assert sum(lines <= 10 for lines in code) > len(code) / 2


def test_the_chapters_teach_and_do_not_audit(root: Path) -> None:
    sources = [ast.parse(source.read_text()) for source in notebooks.sources(root / "notebooks")]
    assert sum(isinstance(node, ast.Assert) for source in sources for node in ast.walk(source)) <= 40


def test_no_cell_prints_only_that_something_is_true(notebook: Path) -> None:
    printed = [output for cell in read(notebook).cells for output in cell.get("outputs", ()) if "text" in output]
    audits = [output.text for output in printed if re.fullmatch(r"(.*\b(True|False)\W*\n?)+", output.text)]
    assert audits == []


def test_the_reader_is_asked(notebook: Path) -> None:
    text = "\n".join(cell.source for cell in read(notebook).cells if cell.cell_type == "markdown")
    assert text.count("<details>") >= 2
    assert text.count("<details>") == text.count("</details>") == text.count("<summary>")


def test_every_picture_has_a_description(notebook: Path) -> None:
    for cell in read(notebook).cells:
        if cell.cell_type == "markdown":
            for description, _ in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", cell.source):
                assert words(description) >= 5, cell.source[:80]
            assert "<img" not in cell.source
            continue
        for output in cell.outputs:
            pictures = [kind for kind in output.get("data", {}) if kind.startswith("image/")]
            if pictures:
                assert pictures == ["image/svg+xml"], f"{cell.id}: show figures with distlab.draw.show"
                title = re.search(r"<title>(.*?)</title>", output.data["image/svg+xml"], re.DOTALL)
                assert title and words(title[1]) >= 5, cell.id


def test_outputs_hold_no_error_no_warning_and_nothing_of_this_machine(notebook: Path) -> None:
    strangers = ["/Users/", "site-packages/", socket.gethostname()]
    for cell in read(notebook).cells:
        for output in cell.get("outputs", []):
            assert output.output_type != "error", cell.id
            text = str(output.get("text", "")) + str(output.get("data", {}).get("text/plain", ""))
            assert [name for name in strangers if name in text] == [], cell.id
            assert PATH_OF_A_MACHINE.findall(text.replace("#!/bin/bash", "")) == [], cell.id
            assert output.get("name") != "stderr", f"{cell.id}: {text[:200]}"


@pytest.mark.parametrize(
    ("text", "count"),
    [("in /srv/ann/x and /mnt/class/b", 2), ("at (/scratch/data/mnist.npz)", 1), ("km/h, /dev/shm, …/a/b", 0)],
)
def test_paths_of_a_machine_are_recognised(text: str, count: int) -> None:
    assert len(PATH_OF_A_MACHINE.findall(text)) == count


def test_numbers_that_vary_are_marked_only_where_there_are_outputs(notebook: Path) -> None:
    silent = [
        cell.id for cell in read(notebook).cells
        if VARIES in cell.metadata.get("tags", []) and not cell.get("outputs")
    ]  # fmt: skip
    assert silent == []


@pytest.mark.parametrize(
    ("text", "count"), [("two words", 2), ("[a link](somewhere/else.md)", 2), ("<details>one</details>", 1)]
)
def test_words_are_counted_as_a_reader_does(text: str, count: int) -> None:
    assert words(text) == count

"""The site of the whole course, built once for all tests of the package, also where several workers run them."""

import json
from pathlib import Path

import pytest
from filelock import FileLock

from course_tools.site import build

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> build.Site:
    """The site of the committed notebooks, with solutions, and what Sphinx warned of."""
    shared = tmp_path_factory.getbasetemp() if worker_id == "master" else tmp_path_factory.getbasetemp().parent
    folder = shared / "whole-site"
    with FileLock(f"{folder}.lock"):
        record = folder / "warnings.json"
        if not record.is_file():
            folder.mkdir(exist_ok=True)
            warnings = build.build(ROOT, folder).warnings
            record.write_text(json.dumps(warnings))
        return build.Site(folder / "site" / "index.html", json.loads(record.read_text()))


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A course of one notebook, one lab with its solution, a glossary and a README."""
    folder = tmp_path / "course"
    cells = [
        _markdown("# 01 Rings\n\nAn [all-reduce](../docs/glossary.md#all-reduce) adds. See [below](#2.-Next-step)."),
        _markdown("## 2. Next step"),
        _code("1 + 1", {"output_type": "execute_result", "data": {"text/plain": "2"}, "metadata": {}}),
    ]
    write_notebook(folder / "notebooks" / "01_rings.ipynb", cells)
    task = [_markdown("# Lab 01: add\n\nThe answer is in [solution.ipynb](solution.ipynb)."), _code("answer = ...")]
    write_notebook(folder / "labs" / "01_rings" / "lab.ipynb", task)
    write_notebook(folder / "labs" / "01_rings" / "solution.ipynb", [task[0], _code("answer = 42")])
    (folder / "docs").mkdir()
    entry = '<a id="all-reduce"></a>\n**all-reduce** ([01](../notebooks/01_rings.ipynb)): The sum for every rank.'
    (folder / "docs" / "glossary.md").write_text(f"# Glossary\n\n{entry}\n")
    sections = "\n\n".join(f"## {title}\n\nText." for title in ("Two commands", "The course", "When something fails"))
    (folder / "README.md").write_text(
        f"# A course\n\nIt begins.\n\n{sections}\n\n### Labs\n\nText.\n\n## Licence\n\nMIT.\n"
    )
    return folder


def write_notebook(file: Path, cells: list[dict]) -> None:
    """Write a notebook of these cells."""
    file.parent.mkdir(parents=True, exist_ok=True)
    named = [cell | {"id": f"cell-{number}"} for number, cell in enumerate(cells)]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3"}, "language_info": {"name": "python"}}
    file.write_text(json.dumps({"cells": named, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}))


def _markdown(text: str) -> dict:
    return {"cell_type": "markdown", "metadata": {}, "source": text}


def _code(text: str, *outputs: dict) -> dict:
    full = [{"execution_count": 1} | output for output in outputs]
    return {"cell_type": "code", "metadata": {}, "source": text, "execution_count": 1, "outputs": full}

"""What a page shows of a notebook: no widgets, links of this site, solutions of a lab."""

import json
from pathlib import Path
from typing import Any

import pytest

from course_tools.site import notebook_pages


def page_of(file: Path) -> dict[str, Any]:
    return notebook_pages.changed(json.loads(file.read_text()), file)


def lab_of(text: str) -> dict[str, Any]:
    """A lab of one cell of text, and the answer's cell that the solution of `course` has too."""
    cells = [{"cell_type": "markdown", "metadata": {}, "source": text}]
    answer = {"cell_type": "code", "id": "answer", "metadata": {}, "source": "answer = ...", "outputs": []}
    return {"metadata": {}, "cells": [*cells, answer]}


def test_links_to_terms_and_headings_are_those_of_the_site(course: Path) -> None:
    text = page_of(course / "notebooks" / "01_rings.ipynb")["cells"][0]["source"]
    assert "[all-reduce](#term-all-reduce)" in text
    assert "[below](#2-next-step)" in text


def test_a_lab_has_its_solution_folded_behind_the_answers_cell(course: Path) -> None:
    cells = page_of(course / "labs" / "01_rings" / "lab.ipynb")["cells"]
    assert [cell["source"] for cell in cells[1:]] == ["answer = ...", "answer = 42"]
    assert "tags" not in cells[1]["metadata"]
    assert cells[2]["metadata"]["tags"] == ["hide-cell"]
    assert "{download}`solution.ipynb <solution.ipynb>`" in cells[0]["source"]


def test_what_a_check_says_of_the_solution_is_folded(course: Path) -> None:
    folder = course / "labs" / "01_rings"
    for name, outputs in (("lab", []), ("solution", [{"output_type": "stream", "name": "stdout", "text": "right"}])):
        notebook = json.loads((folder / f"{name}.ipynb").read_text())
        check = {"cell_type": "code", "id": "check", "metadata": {}, "source": "check()", "outputs": outputs}
        notebook["cells"].append(check)
        (folder / f"{name}.ipynb").write_text(json.dumps(notebook))
    check = page_of(folder / "lab.ipynb")["cells"][-1]
    assert check["outputs"][0]["text"] == "right"
    assert check["metadata"]["tags"] == ["hide-output"]
    assert check["metadata"]["mystnb"]["code_prompt_show"] == notebook_pages.OUTPUT_PROMPTS[0]


def test_a_lab_with_its_solution_says_where_the_page_has_it(course: Path) -> None:
    text = "Run the check. A full solution is\nnext to this file, in [solution.ipynb](solution.ipynb). Then go on."
    page = notebook_pages.changed(lab_of(text), course / "labs" / "01_rings" / "lab.ipynb")
    assert page["cells"][0]["source"] == (
        "Run the check. A full solution is\nfolded below each answer, "
        "and in {download}`solution.ipynb <solution.ipynb>`. Then go on."
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Do it. A full solution is next to\nthis file, in [solution.ipynb](solution.ipynb). Then go on.",
            "Do it. Then go on.",
        ),
        ("One.\n\nThe answer is in [solution.ipynb](solution.ipynb).\n\nTwo.", "One.\n\nTwo."),
        ("Use [a list](list.md).\nIt is `short`.", "Use [a list](list.md).\nIt is `short`."),
    ],
)
def test_a_lab_without_its_solution_says_nothing_of_it(course: Path, text: str, expected: str) -> None:
    file = course / "labs" / "01_rings" / "lab.ipynb"
    file.with_name("solution.ipynb").unlink()
    assert notebook_pages.changed(lab_of(text), file)["cells"][0]["source"] == expected
    assert notebook_pages.without_solution(lab_of(text))["cells"][0]["source"] == expected


def test_a_stepper_becomes_a_film_and_another_widget_its_description(course: Path) -> None:
    view = {notebook_pages.WIDGET_VIEW: {"model_id": "1"}, "text/plain": "[A slider.]"}
    output = {"output_type": "display_data", "data": view, "metadata": {}}
    cell = {"cell_type": "code", "metadata": {"jupyter": {"source_hidden": True}}, "outputs": [output]}
    sources = "draw.Stepper(ring_all_reduce, size=3)", "ipywidgets.IntSlider()"
    notebook = {
        "metadata": {"widgets": {}},
        "cells": [json.loads(json.dumps(cell | {"source": text})) for text in sources],
    }
    page = notebook_pages.changed(notebook, course / "notebooks" / "01_rings.ipynb")
    film, slider = (cell["outputs"][0]["data"] for cell in page["cells"])
    assert 'data-program="ring_all_reduce"' in film["text/html"] and '<option value="3" selected>' in film["text/html"]
    assert slider["text/html"] == '<p class="widget-in-words">A slider.</p>'
    assert page["cells"][0]["metadata"]["tags"] == ["hide-input"]
    assert "widgets" not in page["metadata"]


def test_numbers_that_a_cell_returns_are_no_widget(course: Path) -> None:
    output = {"output_type": "execute_result", "data": {"text/plain": "[[1, 2], None]"}, "metadata": {}}
    cell = {"cell_type": "code", "metadata": {}, "source": "table", "outputs": [output]}
    page = notebook_pages.changed({"metadata": {}, "cells": [cell]}, course / "notebooks" / "01_rings.ipynb")
    assert page["cells"][0]["outputs"][0]["data"] == {"text/plain": "[[1, 2], None]"}

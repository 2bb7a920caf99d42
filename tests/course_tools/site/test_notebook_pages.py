"""What a page shows of a notebook: links of this site, no widgets, formulas, and of a lab what its solution gave."""

import re
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course_tools.notebooks import WIDGET_VIEW
from course_tools.site import notebook_pages
from course_tools.site.mathml import mathml
from tests.course_tools.site.conftest import WHERE, code


def test_links_lead_to_terms_with_their_meaning_and_to_headings() -> None:
    text = notebook_pages.prose(
        "An [all-reduce](../docs/glossary.md#all-reduce), see [below](#2.-Next-step).", {"all-reduce": "A sum."}
    )
    assert text == 'An [all-reduce](#term-all-reduce "A sum."), see [below](#2-next-step).'


def test_a_widget_becomes_its_words_and_a_result_stays() -> None:
    outputs = [
        new_output("display_data", data={WIDGET_VIEW: {"model_id": "1"}, "text/plain": "[A slider.]"}),
        new_output("execute_result", data={"text/plain": "[[1, 2], None]"}),
    ]
    cells = [
        new_code_cell(source, outputs=[output], metadata={"jupyter": {"source_hidden": True}})
        for source, output in zip(("ipywidgets.IntSlider()", "table"), outputs, strict=True)
    ]
    page = notebook_pages.page(new_notebook(cells=cells, metadata={"widgets": {}}), {})
    slider, table = (cell.outputs[0].data for cell in page.cells)
    assert slider["text/html"] == '<p class="widget-in-words">A slider.</p>'
    assert table == {"text/plain": "[[1, 2], None]"}
    assert page.cells[0].metadata.tags == ["hide-input"] and "widgets" not in page.metadata


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("# First:\n\nimport distlab\n\ndraw.ring()", "the imports"),
        ("figure, axes = plt.subplots()", "the code of the picture"),
        ("checks.assert_equal(one, other)", "the code of the comparison"),
        ("from_one = 1", "the code"),
    ],
)
def test_a_folded_cell_says_which_code_it_has(source: str, what: str) -> None:
    cell = new_code_cell(source, metadata={"jupyter": {"source_hidden": True}})
    notebook_pages.page(new_notebook(cells=[cell]), {})
    assert cell.metadata.mystnb == {"code_prompt_show": f"Show {what}", "code_prompt_hide": f"Hide {what}"}


@pytest.mark.parametrize(
    ("formula", "space"),
    [(r"\ln 10", True), (r"-\ln\frac{1}{10}", True), (r"\sin\left(x\right)", False), ("p q", False)],
)
def test_the_name_of_a_function_stands_apart_unless_a_bracket_follows(formula: str, space: bool) -> None:
    text = mathml(formula, "inline")
    assert text.startswith("<math") and "\n" not in text
    assert ("<mspace" in text) is space
    assert all('rspace="0"' in bar for bar in re.findall("<mo[^>]*>&#x0007C;", mathml("E|g|", "inline")))


def solved(*given: tuple[str, str, bool], no_solutions: bool = False) -> list[NotebookNode]:
    """A lab's cells: its text, an answer, and given cells of source, output and whether they are a check."""
    solution = [new_markdown_cell(WHERE), code("import os\nanswer = 42")]
    for source, printed, is_check in given:
        solution.append(code(source, printed))
        solution[-1].metadata.nbgrader = {"grade": is_check}
    lab = [new_markdown_cell(WHERE), code("...")]
    lab += [new_code_cell(cell.source, metadata=cell.metadata) for cell in solution[2:]]
    notebook = new_notebook(cells=lab)
    notebook_pages.solve(notebook, new_notebook(cells=solution), no_solutions)
    return notebook.cells


@pytest.mark.parametrize("no_solutions", [True, False])
def test_a_lab_has_solutions_folded_below_the_answers(no_solutions: bool) -> None:
    text, answer, *rest = solved(("check()", "right", True), no_solutions=no_solutions)
    folded = "On screen a full solution is folded below each answer, and in {download}`solution.ipynb "
    assert text.source.startswith(folded) is not no_solutions
    assert answer.source == "..." and answer.metadata.tags == ["exercise"]
    if not no_solutions:
        assert (rest[0].source, rest[0].metadata.tags) == ("import os\nanswer = 42", ["hide-cell"])
        assert (rest[1].outputs[0].text, rest[1].metadata.tags) == ("right", ["hide-output"])
        assert rest[1].metadata.mystnb.code_prompt_show == "Show the check of the solution"
    else:
        assert [cell.outputs for cell in rest] == [[]]


@pytest.mark.parametrize(
    ("source", "is_open"),
    [
        ("print(1)", True),
        ("def f():\n    return answer", False),
        ("%%bash\ncat file", False),
    ],
)
def test_what_a_given_cell_shows_stands_open_unless_it_comes_from_an_answer(source: str, is_open: bool) -> None:
    cell = solved((source, "output", False))[3]
    assert cell.outputs
    assert ("tags" not in cell.metadata) is is_open


def test_every_lab_shows_what_it_gives_and_openly_no_word_of_a_check(root: Path) -> None:
    for file in root.glob("labs/*/lab.ipynb"):
        lab, solution = (nbformat.read(path, as_version=4) for path in (file, file.with_name("solution.ipynb")))
        notebook_pages.solve(lab, solution, no_solutions=True)
        shown = [cell for cell in lab.cells if cell.get("outputs")]
        assert not any(cell.metadata.get("nbgrader", {}).get("solution") for cell in shown)
        assert "\u2714" not in "".join(map(str, (cell.outputs for cell in shown)))
        assert not any("solution.ipynb" in cell.source for cell in lab.cells)

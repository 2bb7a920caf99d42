"""A notebook as its page shows it: text through `prose`, outputs through `_change_output`; a lab gets its solution's.

The result is a notebook again, which myst-nb makes HTML of.
"""

import ast
import copy
import re
from collections.abc import Mapping
from html import escape

from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

from course_tools.notebooks import WIDGET_VIEW
from course_tools.site import quizzes

TERM = re.compile(r"\]\((?:\.\./docs/)?glossary\.md#([^)]+)\)")
ANCHOR = re.compile(r'^<a id="([^"]+)"></a>$', re.MULTILINE)
NOT_IN_AN_ANCHOR = re.compile(r"[^\w\- ]")
LINK_IN_PAGE = re.compile(r"\]\(#([^)]+)\)")
# What `draw.show_widget` leaves where no widget can be: a sentence in brackets.
WIDGET_IN_WORDS = re.compile(r"\[([A-Z].*\.)\]")
WHERE_THE_SOLUTION_IS = re.compile(
    r"A\s+full\s+solution\s+is\s+next\s+to\s+this\s+file,\s+in\s+\[solution\.ipynb\]\(solution\.ipynb\)([^.]*\.)"
)
FOLDED = r"On screen a full solution is folded below each answer, and in {download}`solution.ipynb <solution.ipynb>`\1"
COMMAND = "get_ipython"  # what IPython makes of a line for the shell


def page(notebook: NotebookNode, meanings: Mapping[str, str]) -> NotebookNode:
    """The notebook, changed in place for its page.

    meanings: those of the glossary's terms, by the names of their anchors.
    """
    notebook.metadata.pop("widgets", None)
    notebook.metadata.setdefault("language_info", {"name": "python"})["pygments_lexer"] = "ipython3"
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = prose(cell.source, meanings)
        elif cell.cell_type == "code":
            for output in cell.outputs:
                _change_output(output, meanings)
            if cell.metadata.get("jupyter", {}).get("source_hidden"):
                _tag(cell, "hide-input", what_code(cell.source))
    return notebook


def what_code(source: str) -> str:
    """What a folded cell's code is, in words."""
    lines = [line for line in source.split("\n") if line.strip() and not line.startswith("#")]
    if lines and lines[0].startswith(("import ", "from ")):
        return "the imports"
    if "checks.assert_" in source:
        return "the code of the comparison"
    return "the code of the picture" if "plt." in source or "draw." in source else "the code"


def prose(text: str, meanings: Mapping[str, str]) -> str:
    """The text of a cell or of a handbook: questions are quizzes, links lead to headings and terms of the site.

    Jupyter's anchor of a heading, `9.-Keras-3`, is `9-keras-3` here. A term has its meaning as hover text.
    """

    def heading(link: re.Match[str]) -> str:
        return f"](#{NOT_IN_AN_ANCHOR.sub('', link[1].lower())})"

    def term(link: re.Match[str]) -> str:
        return f'](#term-{link[1]} "{meanings.get(link[1], "")}")'

    text = TERM.sub(term, LINK_IN_PAGE.sub(heading, text))
    return quizzes.with_quizzes(ANCHOR.sub(r"(term-\1)=", text))


def _change_output(output: NotebookNode, meanings: Mapping[str, str]) -> None:
    """Put words in the place of a widget; what is Markdown is prose."""
    data = output.get("data", {})
    is_widget = data.pop(WIDGET_VIEW, None) is not None or set(data) == {"text/plain"}
    if is_widget and (words := WIDGET_IN_WORDS.fullmatch(data.get("text/plain", ""))):
        data["text/html"] = f'<p class="widget-in-words">{escape(words[1])}</p>'
    if "text/markdown" in data:
        data["text/markdown"] = prose(data["text/markdown"], meanings)


def solve(lab: NotebookNode, solution: NotebookNode, no_solutions: bool = False) -> None:
    """Give a lab what its executed solution printed and drew, and unless `no_solutions` the answers.

    What a given cell shows whatever a student answers stands open. The rest is folded: the answers, what they gave, the
    checks, and cells that use what an answer has made or run a command after one, which may read its file.
    """
    cells: list[NotebookNode] = []
    made_by_answers: set[str] = set()
    for cell, solved in zip(lab.cells, solution.cells, strict=True):
        cells.append(cell)
        if cell.cell_type == "markdown":
            cell.source = WHERE_THE_SOLUTION_IS.sub("" if no_solutions else FOLDED, cell.source).rstrip(" ")
        if cell.cell_type != "code":
            continue
        made, used = names(solved.source)
        is_answer = cell.source != solved.source
        if not is_answer and not cell.metadata.get("nbgrader", {}).get("grade") and not used & made_by_answers:
            cell.outputs = solved.outputs
            continue
        made_by_answers |= made | {COMMAND}
        if is_answer:
            cell.metadata.setdefault("tags", []).append("exercise")
        if is_answer and not no_solutions:
            cells.append(copy.deepcopy(solved))
            cells[-1].id = f"{cell.id}-solution"
            _tag(cells[-1], "hide-cell", "the solution")
        elif solved.outputs and not no_solutions:
            cell.outputs = solved.outputs
            is_check = cell.metadata.get("nbgrader", {}).get("grade")
            _tag(cell, "hide-output", "the check of the solution" if is_check else "what the solution gives")
    lab.cells = cells


def names(source: str) -> tuple[set[str], set[str]]:
    """The names that a cell makes, and those that it uses."""
    nodes = [*ast.walk(ast.parse(TransformerManager().transform_cell(source)))]
    names = [node for node in nodes if isinstance(node, ast.Name)]
    made = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    made |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    made |= {node.asname or node.name.partition(".")[0] for node in nodes if isinstance(node, ast.alias)}
    return made, {node.id for node in names}


def _tag(cell: NotebookNode, tag: str, what: str) -> None:
    """Fold a part of a cell, with a prompt that says what is shown."""
    cell.metadata.setdefault("tags", []).append(tag)
    cell.metadata["mystnb"] = {"code_prompt_show": f"Show {what}", "code_prompt_hide": f"Hide {what}"}

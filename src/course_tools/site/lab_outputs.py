"""What a lab's given cells print and draw, taken from its executed solution; nothing that an answer has made."""

import ast
import copy
import re
from collections.abc import Iterator
from typing import Any

Cell = dict[str, Any]
# A line for the shell or for IPython, which Python cannot read.
COMMAND = re.compile(r"^\s*[!%]")


def with_outputs(cells: list[Cell], solved: list[Cell]) -> list[Cell]:
    """The cells of a lab, each that gives the same whatever a student answers with its output.

    cells, solved: those of the lab and of its executed solution, in the same order. A cell keeps its own outputs;
    checks and cells that use what an answer has made stay without.
    """
    made_by_answers: set[str] = set()
    every = []
    for cell, solution in zip(cells, solved, strict=True):
        if cell["cell_type"] == "code":
            is_answer = source(cell) != source(solution)
            if is_answer or is_check(cell) or _uses(source(solution), made_by_answers):
                made_by_answers |= set(_bound(source(solution)))
            elif not cell["outputs"]:
                cell = cell | {"outputs": copy.deepcopy(solution["outputs"])}
        every.append(cell)
    return every


def is_check(cell: Cell) -> bool:
    """Whether the cell judges an answer."""
    return bool(cell["metadata"].get("nbgrader", {}).get("grade"))


def source(cell: Cell) -> str:
    """The text of a cell, which a file may have as lines."""
    text: str | list[str] = cell["source"]
    return text if isinstance(text, str) else "".join(text)


def _uses(code: str, names: set[str]) -> bool:
    """Whether the code mentions one of the names, or runs a command after an answer, which may read its file."""
    if names and (any(map(COMMAND.match, code.splitlines())) or _parsed(code) is None):
        return True
    return any(isinstance(node, ast.Name) and node.id in names for node in _nodes(code))


def _bound(code: str) -> Iterator[str]:
    for node in _nodes(code):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.partition(".")[0]


def _parsed(code: str) -> ast.Module | None:
    """None for what is no Python, such as a cell for the shell."""
    try:
        return ast.parse("\n".join("" if COMMAND.match(line) else line for line in code.splitlines()))
    except SyntaxError:
        return None


def _nodes(code: str) -> Iterator[ast.AST]:
    tree = _parsed(code)
    return iter(()) if tree is None else ast.walk(tree)

"""Whether a cell takes its answer from where the course has it: the judges' modules, or others that a lab names.

It reads the text alone, so that it finds the import of a function that is asked for, not one whose name is hidden in
pieces; such a text is for the instructor to see, on the page of feedback.
"""

import ast
import re
from collections.abc import Iterable, Iterator

JUDGES = "distlab.labs"


def taken(text: str, given: Iterable[str], solved_in: Iterable[str] = ()) -> list[str]:
    """The names below `distlab.labs` and the modules `solved_in` that a cell uses, and no text in `given` does."""
    modules = (JUDGES, *solved_in)
    allowed = {name for one in given for name in _names(one)}
    return sorted(
        name
        for name in set(_names(text)) - allowed
        if any(name == module or name.startswith(f"{module}.") for module in modules)
    )


def _names(text: str) -> Iterator[str]:
    """The dotted names that a cell imports, reads or has as a text."""
    tree = _parsed(text) or _parsed(re.sub(r"^(\s*)[%!].*$", r"\1pass", text, flags=re.MULTILINE))  # IPython's magics
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield ast.unparse(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _parsed(text: str) -> ast.AST | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None

"""What the source of a program tells before it is started: which packages it imports, which variables it sets.

A source that Python itself cannot read tells nothing: Python will say why.
"""

import ast
from collections.abc import Iterable
from pathlib import Path


def begins_with(program: Path, package: str) -> bool:
    """Whether the program imports the package in any case: not in a function that may never be called."""
    return package in _imported(_tree(program).body)


def imported_packages(program: Path) -> set[str]:
    """The packages that a Python file and the files beside it that it imports name; {} where it cannot be parsed."""
    return set().union(*(_imported(ast.walk(tree)) for tree in _trees(program)))


def variables_set(program: Path) -> set[str]:
    """The environment variables that a program and the files beside it that it imports set, as far as it names them."""
    names: set[str] = set()
    for node in (node for tree in _trees(program) for node in ast.walk(tree)):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and _is_environ(node.value):
            names |= _texts([node.slice])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if _is_environ(node.func.value) and node.func.attr in ("setdefault", "update"):
                names |= _texts(node.args[:1]) | {each.arg for each in node.keywords if each.arg}
            elif node.func.attr == "putenv":
                names |= _texts(node.args[:1])
        elif isinstance(node, ast.AugAssign) and _is_environ(node.target):
            names |= _texts([node.value])
    return names


def _trees(program: Path) -> list[ast.Module]:
    """Those of the program and of the files beside it that it imports."""
    trees, waiting, seen = [], [program], {program}
    while waiting:
        trees.append(_tree(waiting.pop()))
        beside = {program.with_name(f"{name}.py") for name in _imported(ast.walk(trees[-1]))} - seen
        waiting += [file for file in beside if file.exists()]
        seen |= beside
    return trees


def _imported(nodes: Iterable[ast.AST]) -> set[str]:
    """The packages that these statements import."""
    names: list[str] = []
    for node in nodes:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
    return {name.partition(".")[0] for name in names}


def _is_environ(node: ast.AST) -> bool:
    return ast.unparse(node) in ("os.environ", "environ")


def _texts(nodes: Iterable[ast.AST]) -> set[str]:
    """The texts among these, and those that are keys of dictionaries among them."""
    nodes = [key for node in nodes for key in (node.keys if isinstance(node, ast.Dict) else [node]) if key]
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def _tree(program: Path) -> ast.Module:
    try:
        return ast.parse(program.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ast.Module(body=[], type_ignores=[])

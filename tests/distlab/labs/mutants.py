"""Mutants of a solution: its text with one small change each, such as students make by mistake.

`mutants(text)` gives them in a fixed order. A mutant's `change` is the smallest statement before and after, which names
it wherever the statement stands.
"""

import ast
import copy
from collections.abc import Iterator
from typing import NamedTuple

BINARY = {
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.FloorDiv, ast.Add],
    ast.Div: [ast.FloorDiv, ast.Mult],
    ast.FloorDiv: [ast.Div, ast.Mult],
    ast.Mod: [ast.FloorDiv],
    ast.Pow: [ast.Mult],
}
COMPARED = {
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}
NAMES = {
    "min": "max",
    "max": "min",
    "ceil": "floor",
    "floor": "ceil",
    "minimum": "maximum",
    "maximum": "minimum",
    "mean": "sum",
    "sum": "mean",
    "ones": "zeros",
    "size": "local_size",
    "rank": "local_rank",
    "local_rank": "rank",
    "all_gather": "ring_all_reduce",
    "ring_all_reduce": "all_gather",
}
"""A name or attribute that is taken for another one: the other bound, the other rounding, local for global."""
OF_HOROVOD = ("size", "rank")  # only of `hvd`: a rank of the virtual cluster has no local size


class Mutant(NamedTuple):
    """A changed solution: its whole text, and the statement before and after."""

    text: str
    change: str


def mutants(text: str) -> list[Mutant]:
    """All mutants of the functions in `text`, each once."""
    tree = ast.parse(text)
    unchanged = ast.unparse(tree)
    found: dict[str, Mutant] = {}
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        variables = sorted({node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)})
        variables += sorted({node.id for node in ast.walk(function) if _is_stored(node)} - set(variables))
        for statement in [node for node in ast.walk(function) if isinstance(node, ast.stmt)][1:]:
            for before, after in _changes(statement, variables):
                mutant = _changed(tree, statement, before, after)
                if mutant is not None and mutant.text != unchanged:
                    found.setdefault(mutant.text, mutant)
    return list(found.values())


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement, without those of the statements in it."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop(0)
        yield node
        waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]


def _changes(statement: ast.stmt, variables: list[str]) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Pairs of a node of the statement and what replaces it."""
    if isinstance(statement, (ast.Assign, ast.AugAssign, ast.Expr)) and not _is_docstring(statement):
        yield statement, ast.Pass()
    for node in _own_nodes(statement):
        match node:
            case ast.BinOp():
                yield from ((node, _with(node, op=kind())) for kind in BINARY.get(type(node.op), []))
            case ast.AugAssign():
                yield from ((node, _with(node, op=kind())) for kind in BINARY.get(type(node.op), []))
            case ast.Compare(ops=[op]):
                yield from ((node, _with(node, ops=[kind()])) for kind in COMPARED.get(type(op), []))
            case ast.BoolOp():
                yield node, _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
                yield from ((node, value) for value in node.values)
            case ast.UnaryOp():
                yield node, node.operand
            case ast.IfExp():
                yield from ((node, part) for part in (node.body, node.orelse))
            case ast.If():
                yield from ((node.test, ast.Constant(value)) for value in (True, False))
            case ast.comprehension(ifs=[_]):
                yield node, _with(node, ifs=[])
            case ast.Constant(value=value) if type(value) is int:
                yield from ((node, ast.Constant(value + step)) for step in (1, -1))
            case ast.Constant(value=value) if type(value) is float:
                yield from ((node, ast.Constant(value * factor)) for factor in (2, 0.5))
            case ast.Call(args=[first, second, *rest]):
                yield node, _with(node, args=[second, first, *rest])
            case ast.Slice():
                yield from (
                    (node, _with(node, **{part: None})) for part in ("lower", "upper", "step") if _has(node, part)
                )
            case ast.Await():
                yield node, node.value
            case ast.Name(ctx=ast.Load()):
                others = _next(node.id, variables) if node.id in variables else []
                others += [NAMES[node.id]] if node.id in NAMES and node.id not in variables else []
                yield from ((node, ast.Name(name, ast.Load())) for name in others)
            case ast.Attribute() if node.attr in NAMES:
                of_horovod = isinstance(node.value, ast.Name) and node.value.id == "hvd"
                if of_horovod or node.attr not in OF_HOROVOD:
                    yield node, _with(node, attr=NAMES[node.attr])


def _next(name: str, variables: list[str]) -> list[str]:
    """The two variables after this one, the first after the last: all would be several hundred mutants."""
    place = variables.index(name)
    return [other for other in (variables + variables)[place + 1 : place + 3] if other != name]


def _has(node: ast.Slice, part: str) -> bool:
    return getattr(node, part) is not None


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


class _Replace(ast.NodeTransformer):
    def __init__(self, before: ast.AST, after: ast.AST) -> None:
        self._before, self._after = before, after

    def visit(self, node: ast.AST) -> ast.AST:
        return self._after if node is self._before else super().visit(node)


def _changed(tree: ast.Module, statement: ast.stmt, before: ast.AST, after: ast.AST) -> Mutant | None:
    """The tree with `after` instead of `before`; the tree itself stays as it is."""
    # A deep copy keeps no identities, so that both trees are walked side by side.
    copied = copy.deepcopy(tree)
    places = {id(original): clone for original, clone in zip(ast.walk(tree), ast.walk(copied), strict=True)}
    own, target = places[id(statement)], places[id(before)]
    was = _head(own)
    replacement = copy.deepcopy(after)
    changed = _Replace(target, replacement).visit(copied)
    now = _head(replacement if target is own else own)
    ast.fix_missing_locations(changed)
    try:
        return Mutant(ast.unparse(changed), f"{was}  →  {now}")
    except (ValueError, AttributeError):  # no Python
        return None


def _head(statement: ast.AST) -> str:
    """A statement without the statements in it."""
    bare = copy.copy(statement)
    if hasattr(bare, "body") and isinstance(bare.body, list):
        bare.body = [ast.Expr(ast.Constant(...))]
    if getattr(bare, "orelse", None) and isinstance(bare, ast.stmt):
        bare.orelse = []
    return " ".join(ast.unparse(ast.fix_missing_locations(bare)).removesuffix("...").split())

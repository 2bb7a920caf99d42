"""Mutants of a solution: its text with one small change each, such as students make by mistake."""

import ast
import copy
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

OPERATORS: dict[type, list[type]] = {
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.FloorDiv, ast.Add],
    ast.Div: [ast.FloorDiv, ast.Mult],
    ast.FloorDiv: [ast.Div, ast.Mult],
    ast.Mod: [ast.FloorDiv],
    ast.Pow: [ast.Mult],
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
    ast.And: [ast.Or],
    ast.Or: [ast.And],
}
PAIRS = ["min max", "ceil floor", "minimum maximum", "mean sum", "rank local_rank", "all_gather ring_all_reduce"]
NAMES = {"ones": "zeros", "size": "local_size"}
NAMES |= {one: other for one, other in map(str.split, PAIRS)} | {other: one for one, other in map(str.split, PAIRS)}
"""A name or attribute that is taken for another one: the other bound, the other rounding, local for global."""
SYMMETRIC = re.compile(r"(min|max|isclose|allclose|maximum|minimum)$")  # the order of the arguments changes nothing


class Mutant(NamedTuple):
    """A changed solution: its whole text, and the smallest statement before and after."""

    text: str
    before: str
    after: str


def mutants(text: str) -> list[Mutant]:
    """All mutants of the functions in `text`, each once, in a fixed order."""
    tree = ast.parse(text)
    unchanged = ast.unparse(tree)
    found: dict[str, Mutant] = {}
    for function in [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]:
        variables = sorted({node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)})
        names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
        variables += sorted({node.id for node in names if isinstance(node.ctx, ast.Store)} - set(variables))
        for statement in [node for node in ast.walk(function) if isinstance(node, ast.stmt)][1:]:
            before = _head(statement)
            for node, after in list(_changes(statement, variables)):
                with _instead(node, after):
                    try:
                        changed, now = ast.unparse(tree), _head(statement)
                    except (ValueError, AttributeError):  # no Python
                        continue
                if changed != unchanged:
                    now = f"without {before}" if isinstance(after, ast.Pass) else now
                    found.setdefault(changed, Mutant(changed, before, now))
    return list(found.values())


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement, without those of the statements in it."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop(0)
        yield node
        waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]


def _changes(statement: ast.stmt, variables: list[str]) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Pairs of a node of the statement and what replaces it."""
    # A docstring, and `a = b = None` at the beginning, do nothing.
    if isinstance(statement, (ast.Assign, ast.AugAssign, ast.Expr)) and not _does_nothing(statement.value):
        yield statement, ast.Pass()
    for node in _own_nodes(statement):
        yield from ((node, after) for after in _instead_of(node, variables))


def _does_nothing(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and (value.value is None or isinstance(value.value, str))


def _instead_of(node: ast.AST, variables: list[str]) -> Iterator[ast.AST]:
    """What may stand in the place of a node by mistake."""
    match node:
        case ast.BinOp() | ast.AugAssign():
            yield from (_with(node, op=kind()) for kind in OPERATORS.get(type(node.op), []))
        case ast.Compare(ops=[operator]):
            yield from (_with(node, ops=[kind()]) for kind in OPERATORS.get(type(operator), []))
        case ast.BoolOp():
            yield from (_with(node, op=kind()) for kind in OPERATORS[type(node.op)])
            yield from node.values
        case ast.UnaryOp():
            yield node.operand
        case ast.IfExp():
            yield from (node.body, node.orelse)
        case ast.If():
            yield from (_with(node, test=ast.Constant(value)) for value in (True, False))
        case ast.comprehension(ifs=[_]):
            yield _with(node, ifs=[])
        case ast.Constant(value=value) if type(value) is int:
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))
        case ast.Constant(value=value) if type(value) is float:
            yield from (ast.Constant(value * 2), ast.Constant(value * 0.5))
        case ast.Call(args=[first, second, *rest]) if not SYMMETRIC.search(ast.unparse(node.func)):
            yield _with(node, args=[second, first, *rest])
        case ast.Slice():
            yield from (_with(node, **{part: None}) for part in ("lower", "upper", "step") if getattr(node, part))
        case ast.Await():
            yield node.value
        case ast.Name(ctx=ast.Load()) if node.id in variables:
            place = variables.index(node.id)  # the next two, the first after the last: all would be several hundred
            others = (variables + variables)[place + 1 : place + 3]
            yield from (ast.Name(other, ast.Load()) for other in others if other != node.id)
        case ast.Name(ctx=ast.Load()) if node.id in NAMES:
            yield ast.Name(NAMES[node.id], ast.Load())
        case ast.Attribute() if node.attr in NAMES:  # of the virtual cluster no rank has a local size
            if ast.unparse(node.value) == "hvd" or node.attr not in ("size", "rank"):
                yield _with(node, attr=NAMES[node.attr])


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    vars(changed).update(fields)
    return changed


@contextmanager
def _instead(node: ast.AST, after: ast.AST) -> Iterator[None]:
    """Let the node be another one in its tree for a while."""
    kind, fields = node.__class__, dict(vars(node))
    node.__class__, node.__dict__ = after.__class__, dict(vars(after))
    yield
    node.__class__, node.__dict__ = kind, fields


def _head(statement: ast.AST) -> str:
    """A statement without the statements in it."""
    bare = copy.copy(statement)
    if isinstance(getattr(bare, "body", None), list):
        bare.body = [ast.Expr(ast.Constant(...))]
    if getattr(bare, "orelse", None):
        bare.orelse = []
    return " ".join(ast.unparse(bare).removesuffix("...").split())

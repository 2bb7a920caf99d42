"""Answers that a student has written below the untouched cell of an exercise, where they do not count."""

import ast
import re
import warnings
from collections.abc import Iterator, Sequence

from course_tools.grading.material import LabStep


def where(steps: Sequence[LabStep], name: str, stub: str) -> str | None:
    """Which added cells define what the exercise `name` asks for, such as "code cell 7 defines staleness"; or None.

    What it asks for is its own name, or what `stub`, the untouched cell, defines. A copy of that cell does not count,
    nor a cell that is not Python, nor what is defined inside of functions, classes, conditions and loops.
    """
    asked, untouched = {name, *defined(stub)}, "".join(stub.split())
    definitions = {step.name: asked & _defined_if_named(step.text, asked) for step in steps}
    cells = [step.name for step in steps if definitions[step.name] and "".join(step.text.split()) != untouched]
    if not cells:
        return None
    names = sorted(set[str]().union(*(definitions[cell] for cell in cells)))
    return f"{' and '.join(cells)} {'define' if len(cells) > 1 else 'defines'} {' and '.join(names)}"


def _defined_if_named(text: str, names: set[str]) -> set[str]:
    """What a cell defines; only a cell that has one of the names in it is parsed."""
    return set(defined(text)) if names & set(re.findall(r"\w+", text)) else set()


def statements(text: str) -> list[ast.stmt]:
    """The statements at the top level of a cell; none if it is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the student's code, such as an unknown escape in a text
            return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def defined(text: str) -> Iterator[str]:
    """The names that a cell defines or assigns at its top level."""
    for statement in statements(text):
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=targets):
                for target in targets:
                    yield from _assigned(target)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                yield from _assigned(target)


def _assigned(target: ast.expr) -> Iterator[str]:
    match target:
        case ast.Name(id=name):
            yield name
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _assigned(part)
        case ast.Starred(value=part):
            yield from _assigned(part)

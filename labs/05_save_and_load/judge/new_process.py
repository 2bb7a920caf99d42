"""A student's function as a new process would define it: its cells run again, next to everything else as it is.

No process is started: that would need the notebook's imports again, and TensorFlow among them.
"""

import ast
import inspect
import io
import linecache
import os
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import numpy as np

Function = Callable[..., Any]
_SEED = 90210  # for what the student's program has not seeded


class CannotRunAgain(Exception):
    """The cells are not known, or do not run a second time."""


@contextmanager
def defined_again(namespace: Mapping[str, Any], name: str) -> Iterator[Function]:
    """The function `name` out of its own cell and those of the functions that it calls, run again.

    In the block, `random` and NumPy's global generator are in another state, `hash` gives other numbers for texts, and
    `os.getpid` another process number.
    What other cells have computed is as it was. Raises CannotRunAgain before the block begins.
    """
    files: list[str] = []
    _collect(namespace, name, files, set())
    states, own_number = (random.getstate(), np.random.get_state()), os.getpid
    random.seed(_SEED)
    np.random.seed(_SEED)
    other_number = own_number() + 1
    try:
        os.getpid = lambda: other_number
        copy = {name: os.getpid if value is own_number else value for name, value in namespace.items()}
        copy["hash"] = _hash_of_another_process
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            try:
                for file in files:
                    _run(file, copy)
            except (Exception, SystemExit) as error:
                raise CannotRunAgain(f"{type(error).__name__}: {error}") from error
            yield copy[name]
    finally:
        os.getpid = own_number
        random.setstate(states[0])
        np.random.set_state(states[1])


def _collect(namespace: Mapping[str, Any], name: str, files: list[str], seen: set[str]) -> None:
    """Append the cell of a function after those of the functions that it calls."""
    function = inspect.unwrap(getattr(namespace[name], "python_function", namespace[name]))
    if name in seen or not inspect.isfunction(function) or function.__globals__ is not namespace:
        if not seen:
            raise CannotRunAgain(f"{name} is not a function of the notebook")
        return
    seen.add(name)
    for used_name in function.__code__.co_names:
        if callable(namespace.get(used_name)):
            _collect(namespace, used_name, files, seen)
    if function.__code__.co_filename not in files:
        files.append(function.__code__.co_filename)


def _run(file: str, namespace: dict[str, Any]) -> None:
    """Run a cell, except the statements that use the lab: a check in it would run the cell again."""
    text = "".join(linecache.getlines(file))
    if not text:
        raise CannotRunAgain(f"the text of {file} is not known")
    tree = ast.parse(text)
    tree.body = [statement for statement in tree.body if not _uses(statement, ("lab", "get_ipython"))]
    exec(compile(tree, file, "exec"), namespace)


def _uses(statement: ast.stmt, names: tuple[str, ...]) -> bool:
    return any(isinstance(node, ast.Name) and node.id in names for node in ast.walk(statement))


def _hash_of_another_process(value: object) -> int:
    """As `hash`, which depends on the process for texts and bytes, and for tuples of them."""
    if isinstance(value, tuple):
        return hash(tuple(map(_hash_of_another_process, value)))
    return hash((_SEED, value)) if isinstance(value, (str, bytes)) else hash(value)

"""The functions that a student has written in a notebook, as the text of a program."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import CodeType
from typing import Any

from distlab.labs.answer import is_untouched

Function = Callable[..., Any]


def written(namespace: Mapping[str, Any], name: str) -> Function | None:
    """The student's function; None if there is none or it is untouched."""
    function = namespace.get(name)
    is_function = callable(function) and not is_untouched(getattr(function, "python_function", function))
    return function if is_function else None


def text_of(namespace: Mapping[str, Any], names: Iterable[str]) -> str:
    """The functions of these names that are written, each after the notebook's functions and modules that it uses."""
    sources: dict[str, str] = {}
    for name in names:
        if (function := written(namespace, name)) is not None:
            _collect(namespace, name, function, sources)
    return "\n\n".join(sources.values())


def _collect(namespace: Mapping[str, Any], name: str, function: Function, sources: dict[str, str]) -> None:
    function = getattr(function, "python_function", function)
    sources[name] = ""
    for used_name in _names(function.__code__):
        used = getattr(namespace.get(used_name), "python_function", namespace.get(used_name))
        if used_name in sources:
            continue
        if inspect.ismodule(used):
            sources[used_name] = f"import {used.__name__} as {used_name}\n"
        elif inspect.isfunction(used) and used.__globals__ is function.__globals__:
            _collect(namespace, used_name, used, sources)
    del sources[name]
    sources[name] = inspect.getsource(function)  # after what it may need while it is defined


def _names(code: CodeType) -> Iterator[str]:
    """The global names that a function uses, also in its comprehensions and inner functions."""
    yield from code.co_names
    for inner in code.co_consts:
        if inspect.iscode(inner):
            yield from _names(inner)

"""The functions that a student has written in a notebook, as the text of a program."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from distlab.labs.answer import is_untouched

Function = Callable[..., Any]


def written(namespace: Mapping[str, Any], name: str) -> Function | None:
    """The student's function; None if there is none or it is untouched."""
    function = namespace.get(name)
    is_function = callable(function) and not is_untouched(getattr(function, "python_function", function))
    return function if is_function else None


def text_of(namespace: Mapping[str, Any], names: Iterable[str]) -> str:
    """The functions of these names that are written, each after those of the notebook that it calls."""
    sources: dict[str, str] = {}
    for name in names:
        if (function := written(namespace, name)) is not None:
            _collect(namespace, name, function, sources)
    return "\n\n".join(sources.values())


def _collect(namespace: Mapping[str, Any], name: str, function: Function, sources: dict[str, str]) -> None:
    function = getattr(function, "python_function", function)
    sources[name] = ""
    for used_name in function.__code__.co_names:
        called = getattr(namespace.get(used_name), "python_function", namespace.get(used_name))
        if used_name not in sources and inspect.isfunction(called) and called.__globals__ is function.__globals__:
            _collect(namespace, used_name, called, sources)
    del sources[name]
    sources[name] = inspect.getsource(function)  # after what it may need while it is defined

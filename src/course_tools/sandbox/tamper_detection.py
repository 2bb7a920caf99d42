"""Whether a student's code has changed what the checker works with: the judges' functions, Python's, Keras's.

Python cannot keep code from changing the process that it runs in. So the grader gets what matters to an exercise as raw
data (`Answer.inside` in `distlab.labs.answer`), and everything else is compared here with its state before the first
cell ran. That reveals code that replaces functions, methods, their code or whole modules. It does not reveal code that
puts everything back before the comparison, or that reaches the record or the connection itself through the
interpreter's frames or its memory: that takes more than any exercise, and can be read in the submitted notebook.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

_PYTHON = [
    "builtins",
    "contextlib",
    "functools",
    "importlib",
    "inspect",
    "json",
    "json.decoder",
    "json.encoder",
    "msgpack",
    "os",
    "pathlib",
    "posixpath",
    "shutil",
    "socket",
    "struct",
    "tempfile",
    "threading",
    "time",
    "unittest.mock",
    "numpy",
]
_TENSORFLOW = ("tensorflow", "tensorflow.config", "tensorflow.config.experimental")
_CLASSES = [
    "GradientTape",
    "Tensor",
    "Variable",
    "data.Dataset",
    "distribute.DistributedDataset",
    "distribute.MirroredStrategy",
    "keras.Model",
    "keras.Sequential",
    "keras.layers.Dense",
    "keras.layers.Dropout",
    "keras.layers.Flatten",
    "keras.optimizers.SGD",
    "keras.losses.SparseCategoricalCrossentropy",
    "train.Checkpoint",
]
_MOST_NAMES = 3

_FunctionState = tuple[object, object, object]
"""The code of a function, its defaults, and those of its keyword arguments."""


class _Namespace(NamedTuple):
    """The names of a module, class or object, and what they held at first; `may_grow` allows new names."""

    name: str
    names: Mapping[str, Any]
    at_first: dict[str, Any]
    may_grow: bool


class _Function(NamedTuple):
    name: str
    function: FunctionType
    at_first: _FunctionState


def watch(*objects: object) -> Callable[[], list[str]]:
    """A function that returns the names, a few at most, of what has been changed since this call.

    Watched are all modules of the course that are loaded by now, `objects`, and what of Python, NumPy and TensorFlow
    the judges use.
    """
    modules = {name: module for name, module in sys.modules.items() if _is_watched(name) and module is not None}
    namespaces: dict[int, _Namespace] = {}
    functions: dict[int, _Function] = {}

    def keep(name: str, holder: object, may_grow: bool, everything: bool = False) -> None:
        if id(holder) in namespaces:
            return
        names = vars(holder)
        at_first = {key: value for key, value in names.items() if _matters(key, value, everything)}
        namespaces[id(holder)] = _Namespace(name, names, at_first, may_grow)
        for key, value in at_first.items():
            for function in _functions_in(value):
                functions[id(function)] = _Function(f"{name}.{key}", function, _state(function))

    def keep_class(name: str, kind: type) -> None:
        for ancestor in kind.__mro__:
            if ancestor.__module__ != "builtins":
                keep(name if ancestor is kind else ancestor.__qualname__, ancestor, may_grow=False)

    for name, module in modules.items():
        ours = _is_ours(name)
        keep(name, module, may_grow=not ours, everything=ours)
        for key, value in list(vars(module).items()):
            if isinstance(value, type) and _is_watched(value.__module__):
                keep_class(f"{name}.{key}", value)
            elif ours and _is_ours(type(value).__module__) and hasattr(value, "__dict__"):
                keep(f"{name}.{key}", value, may_grow=False)
    for value in objects:
        keep(type(value).__name__, value, may_grow=False)
    for name, kind in _tensorflow_classes():
        keep_class(name, kind)

    return _comparison(modules, list(namespaces.values()), list(functions.values()))


def _comparison(
    modules: Mapping[str, ModuleType], namespaces: list[_Namespace], functions: list[_Function]
) -> Callable[[], list[str]]:
    # Builtin functions are looked up here once: later they may be a student's.
    as_list, is_callable, state_of, loaded = list, callable, _state, sys.modules

    def changed() -> list[str]:
        changes = [name for name, module in modules.items() if loaded.get(name) is not module]
        for name, names, at_first, may_grow in namespaces:
            changes += [f"{name}.{key}" for key, value in at_first.items() if names.get(key) is not value]
            if not may_grow:
                now = as_list(names.items())
                changes += [f"{name}.{key}" for key, value in now if key not in at_first and is_callable(value)]
        for name, function, (code, defaults, keyword_defaults) in functions:
            code_now, defaults_now, keyword_defaults_now = state_of(function)
            if code_now is not code or defaults_now is not defaults or keyword_defaults_now is not keyword_defaults:
                changes += [name]
        return changes[:_MOST_NAMES]

    return changed


def _is_watched(module: str) -> bool:
    return _is_ours(module) or module in _PYTHON or module in _TENSORFLOW


def _is_ours(module: str) -> bool:
    return module.startswith(("distlab", "course_tools", "lab_"))


def _matters(key: str, value: object, everything: bool) -> bool:
    """Whether something must not be replaced: what can be called, and in the course's own modules constants too."""
    if isinstance(value, (property, staticmethod, classmethod)) or callable(value):
        return True
    return everything and not key.startswith("_")


def _functions_in(value: object) -> Iterator[FunctionType]:
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    parts = (value.fget, value.fset) if isinstance(value, property) else (value,)
    yield from (part for part in parts if isinstance(part, FunctionType))


def _state(function: FunctionType) -> _FunctionState:
    return function.__code__, function.__defaults__, function.__kwdefaults__


def _tensorflow_classes() -> Iterator[tuple[str, type]]:
    """Those that the judges use; none as long as TensorFlow has not been imported."""
    if "tensorflow" not in sys.modules:
        return
    for name in _CLASSES:
        kind: Any = sys.modules["tensorflow"]
        for part in name.split("."):
            kind = getattr(kind, part, None)
        if isinstance(kind, type):
            yield f"tensorflow.{name}", kind

"""Whether a student's code has changed what the checker works with beside it: the judges' functions, Python's, Keras's.

Python cannot keep code from changing the process that it runs in. What an exercise turns on is therefore taken to the
grader as raw data (`Answer.inside` in `distlab.labs.answer`), and what is left is compared here with how it was before
the first cell ran. That finds whoever replaces functions, methods, their code or whole modules. It does not find who
puts everything back before anybody looks, or who reaches for the record or the connection itself through the
interpreter's frames or its memory: that takes more than any exercise, and stands in the notebook that was handed in.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any

_PYTHON = [
    "builtins",
    "contextlib",
    "functools",
    "importlib",
    "inspect",
    "json",
    "json.decoder",
    "json.encoder",
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

Record = dict[str, Any]


def watch(*objects: object) -> Callable[[], list[str]]:
    """A function that gives the names, a few at most, of what has been changed since this call.

    Watched are all modules of the course that are loaded by now, `objects`, and what of Python, NumPy and TensorFlow
    the judges use.
    """
    modules = {name: module for name, module in sys.modules.items() if _is_watched(name) and module is not None}
    holders: dict[int, tuple[str, Mapping[str, Any], Record, bool]] = {}
    functions: dict[int, tuple[str, FunctionType, tuple]] = {}

    def keep(name: str, holder: object, may_grow: bool, everything: bool = False) -> None:
        if id(holder) in holders:
            return
        namespace = vars(holder)
        record = {key: value for key, value in namespace.items() if _matters(key, value, everything)}
        holders[id(holder)] = (name, namespace, record, may_grow)
        for key, value in record.items():
            for function in _functions_in(value):
                functions[id(function)] = (f"{name}.{key}", function, _parts(function))

    def keep_class(name: str, kind: type) -> None:
        for one in kind.__mro__:
            if one.__module__ != "builtins":
                keep(name if one is kind else one.__qualname__, one, may_grow=False)

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

    return _comparison(modules, list(holders.values()), list(functions.values()))


def _comparison(modules: Mapping[str, ModuleType], holders: list, functions: list) -> Callable[[], list[str]]:
    # Builtin functions are looked up here once: later they may be a student's.
    in_list, is_callable, get_code, loaded = list, callable, _parts, sys.modules

    def changed() -> list[str]:
        found = [name for name, module in modules.items() if loaded.get(name) is not module]
        for name, namespace, record, may_grow in holders:
            found += [f"{name}.{key}" for key, value in record.items() if namespace.get(key) is not value]
            if not may_grow:
                now = in_list(namespace.items())
                found += [f"{name}.{key}" for key, value in now if key not in record and is_callable(value)]
        for name, function, (code, defaults, named) in functions:
            one, other, third = get_code(function)
            if one is not code or other is not defaults or third is not named:
                found += [name]
        return found[:_MOST_NAMES]

    return changed


def _is_watched(module: str) -> bool:
    return _is_ours(module) or module in _PYTHON or module in _TENSORFLOW


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == "distlab"


def _matters(key: str, value: object, everything: bool) -> bool:
    """Whether something may not be replaced: what can be called; in the course's own modules constants too."""
    if isinstance(value, (property, staticmethod, classmethod)) or callable(value):
        return True
    return everything and not key.startswith("_")


def _functions_in(value: object) -> Iterator[FunctionType]:
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    parts = (value.fget, value.fset) if isinstance(value, property) else (value,)
    yield from (part for part in parts if isinstance(part, FunctionType))


def _parts(function: FunctionType) -> tuple:
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

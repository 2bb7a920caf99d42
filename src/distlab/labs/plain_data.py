"""Data without surprises: what may pass between a judge and a student's answer.

`plain` gives a copy made of Python's and NumPy's own types alone, so that an object of the student's making (one that
equals everything, an array that lies about its sum) never reaches a judge.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from types import UnionType
from typing import Any, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from distlab.labs.answer_errors import NotPlain

Array: TypeAlias = NDArray[Any]
"""Of numbers, truth values or texts; judges look at shape and dtype themselves."""
PlainKey: TypeAlias = "bool | int | float | str | tuple[PlainKey, ...]"
Number: TypeAlias = bool | int | float | complex
Plain: TypeAlias = "Number | str | bytes | Array | list[Plain] | tuple[Plain, ...] | dict[PlainKey, Plain] | None"
"""What `plain` gives. It is copied whenever it crosses, so that a list or dictionary has one owner."""

Record = TypeVar("Record")

MOST_BYTES = 16 * 2**20
_MOST_BITS = 1000  # of a whole number; a float holds 1023
MOST_ITEMS = 1_000_000
_DEEPEST = 20
_ARRAY_KINDS = "biufcUS"
# How an instance of a subclass becomes one of the type itself, whatever methods the subclass has.
_EXACT: dict[type, Callable[[Any], Plain]] = {
    str: str.__str__,
    int: int.__index__,
    float: float.__float__,
    complex: complex.__complex__,
    bytes: bytes.__bytes__,
}
_LISTS = (*map(type, ({}.keys(), {}.values(), {}.items())), range, Iterator)  # are written as lists


def plain(value: object, what: str = "the answer") -> Plain:
    """A copy of `value` out of None, bool, int, float, complex, str, bytes, list, tuple, dict and NumPy arrays.

    NumPy scalars and arrays without dimensions stay what they are to arithmetic: the former become Python numbers.
    What a dictionary gives by keys(), values() or items(), a range and an iterator become a list.
    Fractions and decimal numbers become float. Whatever has a method `numpy` (a TensorFlow tensor or variable) becomes
    its array; other mappings become dict, and so do dataclasses, by the names of their fields.
    `what` is the subject of the error. Raises NotPlain for all else, and for what is deeper or larger than any answer.
    """
    return _Copy(what).of(value, 0)


def as_record(value: Plain, kind: type[Record], what: str = "the answer") -> Record:
    """The dataclass `kind` again, out of the dictionary that `plain` made of one next to student code.

    That may be forged, so names and types are compared (of a list or dictionary not the items'). Raises NotPlain.
    """
    types = get_type_hints(kind, localns=globals())  # in which `Plain` has its names
    if isinstance(value, dict) and set(value) == set(types):
        named = cast(dict[str, Any], value)
        if all(_has_type(named[name], field_type) for name, field_type in types.items()):
            return kind(**named)
    raise NotPlain(f"{what} does not have the form that the check needs")


def _has_type(value: Plain, expected: Any) -> bool:
    if get_origin(expected) in (Union, UnionType):
        return any(_has_type(value, alternative) for alternative in get_args(expected))
    return isinstance(value, get_origin(expected) or expected)


class _Copy:
    def __init__(self, what: str) -> None:
        self._what, self._bytes, self._items = what, 0, 0

    def of(self, value: object, depth: int) -> Plain:
        self._items += 1
        if depth > _DEEPEST or self._items > MOST_ITEMS:
            raise NotPlain(f"{self._what} is nested too deeply or holds more than {MOST_ITEMS:,} items")
        if value is None or type(value) in (bool, float):
            return cast(Plain, value)
        verb = "holds" if depth else "is"
        if isinstance(value, np.generic):
            return cast(Plain, self._array(np.asarray(value), verb).item())
        if isinstance(value, np.ndarray):
            return self._array(value, verb)
        for kind, exact in _EXACT.items():
            if isinstance(value, kind):
                own = exact(value)
                self._count(len(own) if isinstance(own, (str, bytes)) else 0)
                if isinstance(own, int) and own.bit_length() > _MOST_BITS:
                    raise NotPlain(f"{self._what} {verb} a whole number of more than 300 digits")
                return own
        if isinstance(value, _LISTS):
            value = list(islice(cast(Iterable[object], value), MOST_ITEMS))
        if is_dataclass(type(value)):
            value = {each.name: getattr(value, each.name, None) for each in fields(cast(Any, value))}
        if isinstance(value, list):
            return [self.of(item, depth + 1) for item in list.__iter__(value)]
        if isinstance(value, tuple):
            return tuple([self.of(item, depth + 1) for item in tuple.__iter__(value)])
        if isinstance(value, Mapping):
            return {self._key(key): self.of(item, depth + 1) for key, item in value.items()}
        if callable(getattr(type(value), "numpy", None)):
            return self.of(np.asarray(cast(Any, value).numpy()), depth + 1)
        if type(value) in (Fraction, Decimal):
            return float(cast(Any, value))
        if inspect.iscoroutine(value):
            value.close()  # or Python warns of it later, under another check
            raise NotPlain(f"{self._what} {verb} the coroutine {value.__name__}(…): is an `await` missing?")
        raise NotPlain(f"{self._what} {verb} {_named(value)}, not a number, an array, a text or a list of these")

    def _key(self, key: object) -> PlainKey:
        if not isinstance(key, (str, int, float, tuple, np.generic)):
            raise NotPlain(f"{self._what} holds a dictionary with {_named(key)} as key")
        return cast(PlainKey, self.of(key, _DEEPEST - 1))

    def _array(self, array: Array, verb: str) -> Array:
        if array.dtype.kind not in _ARRAY_KINDS:
            raise NotPlain(f"{self._what} {verb} an array of dtype {array.dtype}, not of numbers")
        self._count(array.nbytes)
        return np.array(array, array.dtype.newbyteorder("="), order="C", subok=False, copy=True)

    def _count(self, size: int) -> None:
        self._bytes += size
        if self._bytes > MOST_BYTES:
            raise NotPlain(f"{self._what} is larger than {MOST_BYTES // 2**20} MiB")


def _named(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"

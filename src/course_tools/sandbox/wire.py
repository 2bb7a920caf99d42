"""Plain data over a socket, between a grader and a process that may send anything: no pickles, no surprises.

A message is its length and a flat sequence of msgpack values. A number, a text and bytes are one value. A list, tuple,
dictionary, array, complex number or large integer begins with an extension value that says which of these follows and
how many items it has. msgpack's own arrays and maps are refused: msgpack builds them before we can count their items,
so a short message could take a lot of memory.
"""

import math
import re
import socket
import struct
import time
from collections.abc import Callable, Iterator
from enum import IntEnum
from itertools import islice
from typing import cast

import msgpack
import numpy as np

from distlab.labs.plain_data import MOST_BITS, MOST_BYTES, MOST_ITEMS, Array, Plain, PlainKey

_LENGTH = struct.Struct(">Q")
_LONGEST = 3 * MOST_BYTES
_MOST_VALUES = 4 * MOST_ITEMS
_DEEPEST = 40
# Numbers and tuples with one hash are easily made, and a dictionary compares each of them with all others.
_MOST_KEYS, _MOST_KEYS_OTHER_THAN_TEXTS = 100_000, 1000
_DTYPE = re.compile(r"[|]b1|[<>|][iufc]\d{1,2}|[<>]U[1-9]\d{0,6}|[|]S[1-9]\d{0,6}")


class BrokenMessage(Exception):
    """What arrived is not a message; the text says why."""


class Closed(Exception):
    """The other end is closed."""


class OutOfTime(Exception):
    """The deadline passed before the whole message arrived."""


Deadline = float | Callable[[], float] | None
"""A `time.monotonic()`; or a function that gives the seconds after which to call it again, and raises OutOfTime."""


class Composite(IntEnum):
    """What is made of several values: the code of the extension value in front of them."""

    LIST, TUPLE, DICTIONARY, COMPLEX, INTEGER, ARRAY = range(6)


def send(connection: socket.socket, value: Plain, deadline: Deadline = None) -> None:
    """Send plain data (see `distlab.labs.plain_data`). Raises Closed and OutOfTime."""
    message = memoryview(encode(value))
    while message:
        try:
            _limit(connection, deadline)
            message = message[connection.send(message) :]
        except TimeoutError:
            continue  # `_limit` decides
        except OSError:
            raise Closed from None


def receive(connection: socket.socket, deadline: Deadline = None) -> Plain:
    """The next message. Raises BrokenMessage, Closed and OutOfTime."""
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size, deadline))
    if length > _LONGEST:
        raise BrokenMessage("it is too large")
    try:
        return _decoded(_exactly(connection, length, deadline))
    except StopIteration:
        raise BrokenMessage("it ends too early or holds too many values") from None
    except (ValueError, TypeError, RecursionError, OverflowError, MemoryError, msgpack.UnpackException) as error:
        raise BrokenMessage(f"{type(error).__name__}: {error}") from None


def encode(value: Plain) -> bytes:
    """A message as it is sent. Raises TypeError for what is not plain."""
    packer = msgpack.Packer(autoreset=False, unicode_errors="backslashreplace")  # half a surrogate pair is no UTF-8
    for part in _flat(value):
        packer.pack(part)
    content: bytes = packer.bytes()
    return _LENGTH.pack(len(content)) + content


def _limit(connection: socket.socket, deadline: Deadline) -> None:
    """Set for how long the next call may wait; raises OutOfTime at the deadline."""
    if callable(deadline):
        connection.settimeout(deadline())
        return
    left = None if deadline is None else deadline - time.monotonic()
    if left is not None and left <= 0:
        raise OutOfTime
    connection.settimeout(left)


def _exactly(connection: socket.socket, size: int, deadline: Deadline) -> bytes:
    parts = []
    while size:
        _limit(connection, deadline)
        try:
            part = connection.recv(min(size, 2**20))
        except TimeoutError:
            continue
        except OSError:
            part = b""
        if not part:
            raise Closed
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _flat(value: Plain) -> Iterator[object]:
    """The value as msgpack gets it."""
    if value is None or isinstance(value, (bool, float, str, bytes)) or (type(value) is int and abs(value) < 2**63):
        yield value
        return
    items: list[Plain] | tuple[Plain, ...]
    match value:
        case list():
            composite, items = Composite.LIST, value
        case tuple():
            composite, items = Composite.TUPLE, value
        case dict():
            composite, items = Composite.DICTIONARY, [part for pair in value.items() for part in pair]
        case complex():
            composite, items = Composite.COMPLEX, [value.real, value.imag]
        case int():
            composite, items = Composite.INTEGER, [value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)]
        case np.ndarray() if _DTYPE.fullmatch(value.dtype.str):
            composite, items = Composite.ARRAY, [value.dtype.str, value.shape, value.tobytes()]
        case _:
            raise TypeError(f"{type(value).__name__} is not plain")
    yield msgpack.ExtType(composite, len(items).to_bytes(4, "big"))
    for item in items:
        yield from _flat(item)


def _decoded(content: bytes) -> Plain:
    unpacker = msgpack.Unpacker(
        max_buffer_size=_LONGEST, max_array_len=0, max_map_len=0, max_ext_len=4, unicode_errors="backslashreplace"
    )
    unpacker.feed(content)
    values = islice(unpacker, _MOST_VALUES)
    value = _next(values, 0)
    if unpacker.tell() != len(content):
        raise ValueError("something follows the value")
    return value


def _next(values: Iterator[object], depth: int) -> Plain:
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    value = next(values)
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return value
    if not isinstance(value, msgpack.ExtType):
        raise ValueError(f"{type(value).__name__} is not plain")
    composite, items = (
        Composite(value.code),
        [_next(values, depth + 1) for _ in range(int.from_bytes(value.data, "big"))],
    )
    match composite, items:
        case Composite.LIST, _:
            return items
        case Composite.TUPLE, _:
            return tuple(items)
        case Composite.DICTIONARY, _:
            return _dictionary(items[::2], items[1::2])
        case Composite.COMPLEX, [float() as real, float() as imaginary]:
            return complex(real, imaginary)
        case Composite.INTEGER, [bytes() as content] if len(content) <= MOST_BITS // 8 + 1:
            return int.from_bytes(content, "big", signed=True)
        case Composite.ARRAY, [str() as dtype, tuple() as shape, bytes() as content]:
            return _array(dtype, shape, content)
    raise ValueError(f"this is no {composite.name}")


def _dictionary(keys: list[Plain], values: list[Plain]) -> dict[PlainKey, Plain]:
    others = sum(not isinstance(key, str) for key in keys)
    if len(keys) > _MOST_KEYS or others > _MOST_KEYS_OTHER_THAN_TEXTS:
        raise ValueError("a dictionary has too many keys")
    return dict(zip(cast(list[PlainKey], keys), values, strict=True))


def _array(kind: str, shape: tuple[Plain, ...], content: bytes) -> Array:
    lengths = [length for length in shape if type(length) is int and length >= 0]
    if not _DTYPE.fullmatch(kind) or len(lengths) != len(shape):
        raise ValueError("no array of numbers")
    dtype = np.dtype(kind)
    if len(lengths) > 32 or math.prod(lengths) * dtype.itemsize != len(content):
        raise ValueError("the shape does not fit the bytes")
    if not content:
        return np.empty(lengths, dtype)
    flat = np.frombuffer(content, dtype)
    if dtype.kind == "b":  # other bytes than 0 and 1 are neither true nor false
        flat = flat.view(np.uint8) != 0
    if dtype.kind == "U" and int(flat.view(np.uint32).max()) > 0x10FFFF:
        raise ValueError("no text")
    return flat.reshape(lengths).copy()

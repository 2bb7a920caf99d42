"""Plain data over a socket, between a grader and a process that may send anything: JSON, no pickles, no surprises.

A message is its length and JSON, in which {"t": …} is a tuple, and so on for all that JSON has not. What a message
holds may still be larger than any answer: `distlab.labs.plain_data.plain` looks at that.
msgpack was tried: it builds whatever is nested in a short message before anybody can count it.
"""

import base64
import json
import math
import re
import socket
from collections.abc import Callable
from typing import Any

import numpy as np

from distlab.labs.plain_data import MOST_BYTES, MOST_ITEMS, Array, Plain, PlainKey

_LONGEST, _MOST_VALUES = 3 * MOST_BYTES, 4 * MOST_ITEMS
# Numbers and tuples with one hash are easily made, and a dictionary compares each of them with all others.
_MOST_KEYS_OTHER_THAN_TEXTS = 1000
_DTYPE = re.compile(r"[|]b1|[<>|][iufc]\d{1,2}|[<>]U[1-9]\d{0,6}|[|]S[1-9]\d{0,6}")

Look = Callable[[], float | None]
"""Says how many seconds may pass until it is asked again; raises what ends the waiting."""


class BrokenMessage(Exception):
    """What arrived is not a message; the text says why."""


class Closed(Exception):
    """The other end is closed."""


def send(connection: socket.socket, value: Plain, look: Look = lambda: None) -> None:
    """Send plain data (see `distlab.labs.plain_data`). Raises Closed, TypeError and what `look` raises."""
    content = json.dumps(_tagged(value)).encode()
    message = memoryview(len(content).to_bytes(8, "big") + content)
    while message:
        message = message[_waiting(look, connection, connection.send, message) :]


def receive(connection: socket.socket, look: Look = lambda: None) -> Plain:
    """The next message. Raises BrokenMessage, Closed and what `look` raises."""

    def exactly(size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            part = _waiting(look, connection, connection.recv, min(size - len(received), 2**20))
            if not part:
                raise Closed
            received += part
        return bytes(received)

    length = int.from_bytes(exactly(8), "big")
    if length > _LONGEST:
        raise BrokenMessage("it is too large")
    content = exactly(length)
    if sum(map(content.count, (b",", b"[", b"{"))) > _MOST_VALUES:  # before any of them is built
        raise BrokenMessage("it holds too many values")
    try:
        return json.loads(content, object_hook=_untagged)  # type: ignore[no-any-return]  # it can hold nothing else
    except (ValueError, TypeError, RecursionError, OverflowError, MemoryError) as error:
        raise BrokenMessage(f"{type(error).__name__}: {error}"[:200]) from None


def _waiting(look: Look, connection: socket.socket, act: Callable[[Any], Any], argument: object) -> Any:
    while True:
        connection.settimeout(look())
        try:
            return act(argument)
        except TimeoutError:
            continue
        except OSError:
            raise Closed from None


def _tagged(value: Plain) -> object:
    match value:
        case list():
            return [_tagged(item) for item in value]
        case tuple():
            return {"t": [_tagged(item) for item in value]}
        case dict():
            return {"d": [[_tagged(key), _tagged(item)] for key, item in value.items()]}
        case complex():
            return {"c": [value.real, value.imag]}
        case bytes():
            return {"b": base64.b64encode(value).decode()}
        case np.ndarray() if _DTYPE.fullmatch(value.dtype.str):
            return {"a": [value.dtype.str, list(value.shape), base64.b64encode(value.tobytes()).decode()]}
    return value  # what JSON does not know raises TypeError


def _untagged(tagged: dict[str, Any]) -> Plain:
    match next(iter(tagged.items())) if len(tagged) == 1 else None:
        case ("t", list() as items):
            return tuple(items)
        case ("d", list() as pairs):
            if sum(not isinstance(key, str) for key, _ in pairs) > _MOST_KEYS_OTHER_THAN_TEXTS:
                raise ValueError("a dictionary has too many keys")
            return dict[PlainKey, Plain](pairs)
        case ("c", [float() as real, float() as imaginary]):
            return complex(real, imaginary)
        case ("b", str() as content):
            return base64.b64decode(content, validate=True)
        case ("a", [str() as dtype, list() as shape, str() as content]) if _DTYPE.fullmatch(dtype):
            return _array(np.dtype(dtype), shape, base64.b64decode(content, validate=True))
    raise ValueError("it is not plain")


def _array(dtype: np.dtype[Any], shape: list[Any], content: bytes) -> Array:
    is_shape = len(shape) <= 32 and all(type(length) is int and length >= 0 for length in shape)
    if not is_shape or math.prod(shape) * dtype.itemsize != len(content):
        raise ValueError("the shape does not fit the bytes")
    flat = np.frombuffer(content, dtype) if content else np.empty(0, dtype)
    if dtype.kind == "b":  # other bytes than 0 and 1 are neither true nor false
        flat = flat.view(np.uint8) != 0
    if dtype.kind == "U" and content and int(flat.view(np.uint32).max()) > 0x10FFFF:
        raise ValueError("no text")
    return flat.reshape(shape).copy()

"""Plain data over a socket, between a grader and a process that may send anything: no pickles, no surprises.

A message is a length, a length, a JSON text and the bytes of arrays. What JSON does not have is an object with one key:
{"t": tuple}, {"d": pairs of a dictionary}, {"c": complex}, {"b": bytes}, {"a": array}.
"""

import json
import math
import re
import socket
import struct
import time

import numpy as np

from distlab.labs.plain_data import MOST_BITS, MOST_BYTES, Plain

_LENGTHS = struct.Struct(">QQ")
_MOST_TEXT = 32 * 2**20
_DEEPEST = 40
_DTYPE = re.compile(r"[|]b1|[<>|][iufc]\d{1,2}|[<>]U\d{1,7}|[|]S\d{1,7}")


class BrokenMessage(Exception):
    """What came is no message; the message says why."""


class Closed(Exception):
    """Nobody is at the other end any more."""


class OutOfTime(Exception):
    """The deadline passed before the message was there."""


def send(connection: socket.socket, value: Plain, deadline: float | None = None) -> None:
    """Send plain data (see `distlab.labs.plain_data`). Raises Closed and OutOfTime."""
    buffers: list[bytes] = []
    text = json.dumps(_packed(value, buffers), separators=(",", ":")).encode()
    body = b"".join(buffers)
    try:
        _limit(connection, deadline)
        connection.sendall(_LENGTHS.pack(len(text), len(body)) + text + body)
    except TimeoutError:
        raise OutOfTime from None
    except OSError:
        raise Closed from None


def receive(connection: socket.socket, deadline: float | None = None) -> Plain:
    """The next message; `deadline` is a `time.monotonic()`. Raises BrokenMessage, Closed and OutOfTime."""
    text_length, body_length = _LENGTHS.unpack(_exactly(connection, _LENGTHS.size, deadline))
    if text_length > _MOST_TEXT or body_length > 2 * MOST_BYTES:
        raise BrokenMessage("it is too large")
    text, body = _exactly(connection, text_length, deadline), _exactly(connection, body_length, deadline)
    try:
        return _unpacked(json.loads(text), memoryview(body), 0)
    except (ValueError, TypeError, KeyError, IndexError, RecursionError, OverflowError, MemoryError) as error:
        raise BrokenMessage(f"{type(error).__name__}: {error}") from None


def _limit(connection: socket.socket, deadline: float | None) -> None:
    if deadline is None:
        connection.settimeout(None)
        return
    left = deadline - time.monotonic()
    if left <= 0:
        raise OutOfTime
    connection.settimeout(left)


def _exactly(connection: socket.socket, size: int, deadline: float | None) -> bytes:
    parts = []
    while size:
        _limit(connection, deadline)
        try:
            part = connection.recv(min(size, 2**20))
        except TimeoutError:
            raise OutOfTime from None
        except OSError:
            part = b""
        if not part:
            raise Closed
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _packed(value: Plain, buffers: list[bytes]) -> object:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list):
        return [_packed(item, buffers) for item in value]
    if isinstance(value, tuple):
        return {"t": [_packed(item, buffers) for item in value]}
    if isinstance(value, dict):
        return {"d": [[_packed(key, buffers), _packed(item, buffers)] for key, item in value.items()]}
    if isinstance(value, complex):
        return {"c": [value.real, value.imag]}
    start = sum(map(len, buffers))
    if isinstance(value, bytes):
        buffers.append(value)
        return {"b": [start, len(value)]}
    if isinstance(value, np.ndarray) and _DTYPE.fullmatch(value.dtype.str):
        buffers.append(value.tobytes())
        return {"a": [value.dtype.str, list(value.shape), start, value.nbytes]}
    raise TypeError(f"{type(value).__name__} is not plain")


def _unpacked(value: object, body: memoryview, depth: int) -> Plain:
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    if isinstance(value, list):
        return [_unpacked(item, body, depth + 1) for item in value]
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()  # half a surrogate pair cannot be printed
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise ValueError("a number of more than 300 digits")
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "t":
        return tuple(_unpacked(item, body, depth + 1) for item in content)
    if kind == "d":
        return {_unpacked(key, body, depth + 1): _unpacked(item, body, depth + 1) for key, item in content}
    if kind == "c":
        return complex(*content)
    if kind == "b":
        return bytes(_part(body, *content))
    if kind == "a":
        return _array(body, *content)
    raise ValueError(f"unknown kind {kind!r}")


def _part(body: memoryview, start: int, size: int) -> memoryview:
    if type(start) is not int or type(size) is not int or not 0 <= start <= start + size <= len(body):
        raise ValueError("bytes outside of the message")
    return body[start : start + size]


def _array(body: memoryview, kind: str, shape: list[int], start: int, size: int) -> np.ndarray:
    if not _DTYPE.fullmatch(kind) or not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError("no array of numbers")
    dtype = np.dtype(kind)
    if len(shape) > 32 or math.prod(shape) * dtype.itemsize != size:
        raise ValueError("the shape does not fit the bytes")
    if not size:
        return np.empty(shape, dtype)
    flat = np.frombuffer(_part(body, start, size), dtype)
    if dtype.kind == "b":  # other bytes than 0 and 1 are neither true nor false
        return (flat.view(np.uint8) != 0).reshape(shape)
    if dtype.kind == "U" and int(flat.view(np.uint32).max()) > 0x10FFFF:
        raise ValueError("no text")
    return flat.reshape(shape).copy()

"""Plain data between a grader and a process that may send anything: JSON, no pickles, no surprises.

In the JSON of a message {"t": …} is a tuple, and so on for all that JSON has not. What a message holds may still be
larger than any answer: `distlab.labs.plain_data.plain` looks at that.
msgpack was tried: it builds whatever is nested in a short message before anybody can count it.
"""

import base64
import json
import re
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from distlab.labs.plain_data import MOST_BYTES, MOST_ITEMS, Plain, PlainKey

Wire: TypeAlias = "Connection[bytes, bytes]"
_LONGEST, _MOST_VALUES = 3 * MOST_BYTES, 4 * MOST_ITEMS
# Numbers and tuples with one hash are easily made, and a dictionary compares each of them with all others.
_MOST_KEYS_OTHER_THAN_TEXTS = 1000
_DTYPE = re.compile(r"[|]b1|[<>|][iufc]\d{1,2}|[<>]U[1-9]\d{0,6}|[|]S[1-9]\d{0,6}")


class BrokenMessage(Exception):
    """What arrived is not a message; the text says why."""


def send(connection: Wire, value: Plain) -> None:
    """Send plain data (see `distlab.labs.plain_data`). Raises TypeError for other data, OSError if nobody receives."""
    connection.send_bytes(json.dumps(_tagged(value)).encode())


def receive(connection: Wire) -> Plain:
    """The next message. Raises BrokenMessage, OSError if it is too long or cut off, EOFError if there is none."""
    content = connection.recv_bytes(_LONGEST)
    if sum(map(content.count, (b",", b"[", b"{"))) > _MOST_VALUES:  # before any of them is built
        raise BrokenMessage("it holds too many values")
    try:
        return json.loads(content, object_hook=_untagged)  # type: ignore[no-any-return]  # it can hold nothing else
    except (ValueError, TypeError, RecursionError, OverflowError, MemoryError) as error:
        raise BrokenMessage(f"{type(error).__name__}: {error}"[:200]) from None


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
        case ("a", [str() as dtype, list() as shape, str() as text]) if _DTYPE.fullmatch(dtype):
            values = base64.b64decode(text, validate=True)
            flat: NDArray[Any] = np.frombuffer(values, dtype) if values else np.empty(0, dtype)
            if flat.dtype.kind == "b":  # other bytes than 0 and 1 are neither true nor false
                flat = flat.view(np.uint8) != 0
            if flat.dtype.kind == "U" and values and int(flat.view(np.uint32).max()) > 0x10FFFF:
                raise ValueError("no text")
            return flat.reshape(shape).copy()
    raise ValueError("it is not plain")

"""What crosses between grader and jail is plain data, or refused."""

import json
import socket
import threading

import numpy as np
import pytest

from course_tools.sandbox import wire

VALUES = [
    *(None, True, -0.0, 1e400, 2**900, 1j, "a\nb\x00é", b"\xff", [], [1, (2.5, ["x"]), {}]),
    {"a": 1, 2: None, (0, 1): [b""], 1.5: {}},
    np.arange(6, dtype=">i2").reshape(2, 3),
    *map(np.array, ([[], []], ["ab", "c"], [True, False], 5.0)),
]


def received(content: bytes) -> object:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sender = threading.Thread(target=lambda: (theirs.sendall(content), theirs.close()))
        sender.start()
        try:
            return wire.receive(ours)
        finally:
            ours.close()
            sender.join()


def message(value: object) -> bytes:
    content = json.dumps(value).encode()
    return len(content).to_bytes(8, "big") + content


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_what_is_sent_arrives(value: object) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        wire.send(ours, value)
        got = wire.receive(theirs)
    assert type(got) is type(value)
    assert repr(got) == repr(value)
    assert not isinstance(value, np.ndarray) or got.dtype == value.dtype


REFUSED = {
    "an unknown letter": {"x": 1},
    "a list as a key": {"d": [[[], 1]]},
    "many keys with one hash": {"d": [[n * (2**61 - 1), 0] for n in range(1001)]},
    "an array of objects": {"a": ["|O8", [1], ""]},
    "an array too short": {"a": ["<f8", [2], "AAAAAAAAAAA="]},
    "what is no base64": {"b": "?"},
    "too many values": [0] * (wire._MOST_VALUES + 1),
}


@pytest.mark.parametrize("value", REFUSED.values(), ids=REFUSED)
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(wire.BrokenMessage):
        received(message(value))


@pytest.mark.parametrize("content", [b"\xff" * 30, b"\x00" * 7 + b"\x02[1", b"\x00" * 7 + b"\x09{}"])
def test_what_is_no_message_is_refused(content: bytes) -> None:
    with pytest.raises((wire.BrokenMessage, wire.Closed)):
        received(content)


def test_an_object_is_not_sent() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(TypeError):
        wire.send(ours, [object()])

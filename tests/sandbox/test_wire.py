"""Plain data over a socket: what was sent comes out, and nothing else does, whatever the other end sends."""

import json
import socket
import struct
import time
from collections.abc import Iterator

import numpy as np
import pytest

from distlab.sandbox import wire


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    first, second = socket.socketpair()
    with first, second:
        yield first, second


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        2**900,
        1.5,
        float("inf"),
        2 - 1j,
        "text \u2713",
        b"\x00bytes",
        [1, [2, "x"]],
        (1, (2,)),
        {"a": {1: [2]}, (0, 1): None},
        [],
        {},
    ],
)
def test_plain_data_come_out_as_they_went_in(ends: tuple[socket.socket, socket.socket], value: object) -> None:
    wire.send(ends[0], value)
    received = wire.receive(ends[1], time.monotonic() + 5)
    assert received == value
    assert type(received) is type(value)


@pytest.mark.parametrize("kind", ["bool", "int8", "uint64", "float16", "float64", "complex128", "<U5", "S3", ">i4"])
def test_arrays_keep_their_dtype_and_shape(ends: tuple[socket.socket, socket.socket], kind: str) -> None:
    array = np.arange(12).reshape(3, 4).astype(kind)
    for sent in (array, array[:0], array[:1, 0].reshape(()), array.T):
        wire.send(ends[0], [sent, b"after"])
        received, after = wire.receive(ends[1], time.monotonic() + 5)
        assert received.dtype == sent.dtype
        assert np.array_equal(received, sent)
        assert after == b"after"


def message(text: str, body: bytes = b"") -> bytes:
    return struct.pack(">QQ", len(text.encode()), len(body)) + text.encode() + body


BROKEN = {
    "too long": struct.pack(">QQ", 2**40, 0),
    "too large": struct.pack(">QQ", 2, 2**40),
    "no JSON": message("{"),
    "nested without end": message("[" * 100_000),
    "nested deeply": message("[" * 50 + "]" * 50),
    "a huge number": message("9" * 5000),
    "a large number": message("9" * 400),
    "an unknown kind": message('{"pickle": 1}'),
    "two kinds": message('{"t": [], "d": []}'),
    "an unhashable key": message('{"d": [[[], 1]]}'),
    "bytes outside": message('{"b": [0, 5]}', b"abc"),
    "bytes from before": message('{"b": [-1, 2]}', b"abc"),
    "an array of objects": message(json.dumps({"a": ["|O8", [1], 0, 8]}), bytes(8)),
    "an array of another size": message(json.dumps({"a": ["<f8", [2], 0, 8]}), bytes(8)),
    "an array of negative length": message(json.dumps({"a": ["<f8", [-1, -1], 0, 8]}), bytes(8)),
    "an array of lengths that are no numbers": message(json.dumps({"a": ["<f8", [True], 0, 8]}), bytes(8)),
    "an array of a dtype that is code": message(json.dumps({"a": ["f8,(9,9)i4", [1], 0, 8]}), bytes(8)),
    "a text beyond Unicode": message(json.dumps({"a": ["<U1", [1], 0, 4]}), b"\xff" * 4),
}


@pytest.mark.parametrize("sent", BROKEN.values(), ids=BROKEN)
def test_what_is_no_message_is_refused(ends: tuple[socket.socket, socket.socket], sent: bytes) -> None:
    ends[0].sendall(sent)
    with pytest.raises(wire.BrokenMessage):
        wire.receive(ends[1], time.monotonic() + 5)


def test_truth_values_are_true_or_false_whatever_their_bytes(ends: tuple[socket.socket, socket.socket]) -> None:
    ends[0].sendall(message(json.dumps({"a": ["|b1", [3], 0, 3]}), b"\x00\x01\x77"))
    received = wire.receive(ends[1], time.monotonic() + 5)
    assert received.view(np.uint8).tolist() == [0, 1, 1]


def test_half_a_surrogate_pair_becomes_printable(ends: tuple[socket.socket, socket.socket]) -> None:
    ends[0].sendall(message('"\\ud800"'))
    assert wire.receive(ends[1], time.monotonic() + 5).encode() == b"\\ud800"


def test_silence_and_a_message_that_trickles_end_at_the_deadline(ends: tuple[socket.socket, socket.socket]) -> None:
    with pytest.raises(wire.OutOfTime):
        wire.receive(ends[1], time.monotonic() + 0.05)
    ends[0].sendall(message('"text"')[:-1])
    with pytest.raises(wire.OutOfTime):
        wire.receive(ends[1], time.monotonic() + 0.05)


def test_nobody_at_the_other_end_is_noticed(ends: tuple[socket.socket, socket.socket]) -> None:
    ends[0].close()
    with pytest.raises(wire.Closed):
        wire.receive(ends[1])
    with pytest.raises(wire.Closed):
        wire.send(ends[1], "x" * 10**7)

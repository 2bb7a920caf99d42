"""Plain data over a socket: what was sent comes out, and nothing else does, whatever the other end sends."""

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import msgpack
import numpy as np
import pytest

from course_tools.sandbox import wire
from course_tools.sandbox.wire import Composite


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
        -1,
        2**63 - 1,
        2**63,
        -(2**63),
        -(2**63) - 1,
        2**900,
        2**1000 - 1,
        -(2**1000) + 1,
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
    received = wire.receive(ends[1], time.monotonic() + 60)
    assert received == value
    assert type(received) is type(value)


@pytest.mark.parametrize("kind", ["bool", "int8", "uint64", "float16", "float64", "complex128", "<U5", "S3", ">i4"])
def test_arrays_keep_their_dtype_and_shape(ends: tuple[socket.socket, socket.socket], kind: str) -> None:
    array = np.arange(12).reshape(3, 4).astype(kind)
    for sent in (array, array[:0], array[:1, 0].reshape(()), array.T):
        wire.send(ends[0], [sent, b"after"])
        received, after = wire.receive(ends[1], time.monotonic() + 60)
        assert received.dtype == sent.dtype
        assert np.array_equal(received, sent)
        assert after == b"after"


def message(*values: object) -> bytes:
    """A message of these msgpack values, whatever they are."""
    content = b"".join(map(msgpack.packb, values))
    return struct.pack(">Q", len(content)) + content


def begin(composite: int, count: int) -> msgpack.ExtType:
    return msgpack.ExtType(composite, count.to_bytes(4, "big"))


def array(dtype: object, shape: list[object], content: object) -> list[object]:
    """The values of an array."""
    return [begin(Composite.ARRAY, 3), dtype, begin(Composite.TUPLE, len(shape)), *shape, content]


BROKEN = {
    "too long": struct.pack(">Q", 2**40),
    "empty": message(),
    "not msgpack": struct.pack(">Q", 1) + b"\xc1",
    "a list that ends too early": message(begin(Composite.LIST, 2), 1),
    "a list of a huge length": message(begin(Composite.LIST, 2**32 - 1)),
    "a text that ends too early": struct.pack(">Q", 2) + b"\xa5x",
    "a text of a huge length": struct.pack(">Q", 5) + b"\xdb\xff\xff\xff\xff",
    "two values": message(1, 2),
    "too many values": struct.pack(">Q", 2**23 + 6) + msgpack.packb(begin(Composite.LIST, 2**23)) + b"\xc0" * 2**23,
    "nested without end": message(*[begin(Composite.LIST, 1)] * 100_000),
    "nested deeply": message(*[begin(Composite.LIST, 1)] * 50, None),
    "msgpack's own arrays": message([1]),
    "msgpack's own empty array": message([]),
    "msgpack's own arrays without end": struct.pack(">Q", 2**20) + b"\x91" * 2**20,
    "msgpack's own maps": message({"pickle": 1}),
    "msgpack's own empty map": message({}),
    "msgpack's own time": message(msgpack.Timestamp(1)),
    "a large extension": message(msgpack.ExtType(Composite.LIST, bytes(1000))),
    "a huge number": message(begin(Composite.INTEGER, 1), b"\x01" * 5000),
    "a large number": message(begin(Composite.INTEGER, 1), b"\x01" * 200),
    "a number out of a text": message(begin(Composite.INTEGER, 1), "1"),
    "a complex number out of a text": message(begin(Composite.COMPLEX, 1), "1j"),
    "an unknown kind": message(begin(100, 1), 1),
    "an unhashable key": message(begin(Composite.DICTIONARY, 2), begin(Composite.LIST, 0), 1),
    "keys with one hash": message(
        begin(Composite.DICTIONARY, 4096),
        *(
            part
            for number in range(2048)
            for part in (begin(Composite.TUPLE, 11), *(-1 - (number >> bit & 1) for bit in range(11)), None)
        ),
    ),
    "a key without a value": message(begin(Composite.DICTIONARY, 1), 1),
    "an array of objects": message(*array("|O8", [1], bytes(8))),
    "an array of another size": message(*array("<f8", [2], bytes(8))),
    "an array of negative length": message(*array("<f8", [-1, -1], bytes(8))),
    "an array of lengths that are no numbers": message(*array("<f8", [True], bytes(8))),
    "an array of a dtype that is code": message(*array("f8,(9,9)i4", [1], bytes(8))),
    "an array of items without a size": message(*array("|S0", [2**40], b"")),
    "an array of numbers instead of bytes": message(*array("<f8", [1], 1.0)),
    "a text beyond Unicode": message(*array("<U1", [1], b"\xff" * 4)),
}


@pytest.mark.slow
@pytest.mark.parametrize("sent", BROKEN.values(), ids=BROKEN)
def test_what_is_no_message_is_refused(ends: tuple[socket.socket, socket.socket], sent: bytes) -> None:
    def send() -> None:
        with suppress(OSError):  # the other end may be closed before all is sent
            ends[0].sendall(sent)

    threading.Thread(target=send, daemon=True).start()
    with pytest.raises(wire.BrokenMessage):
        wire.receive(ends[1], time.monotonic() + 60)


def test_truth_values_are_true_or_false_whatever_their_bytes(ends: tuple[socket.socket, socket.socket]) -> None:
    ends[0].sendall(message(*array("|b1", [3], b"\x00\x01\x77")))
    received = wire.receive(ends[1], time.monotonic() + 60)
    assert received.view(np.uint8).tolist() == [0, 1, 1]


@pytest.mark.parametrize("text", ["\ud800", "before \udfff after"])
def test_half_a_surrogate_pair_becomes_printable(ends: tuple[socket.socket, socket.socket], text: str) -> None:
    wire.send(ends[0], text)
    assert wire.receive(ends[1], time.monotonic() + 60) == text.encode(errors="backslashreplace").decode()
    content = msgpack.packb(text, unicode_errors="surrogatepass")
    ends[0].sendall(struct.pack(">Q", len(content)) + content)
    assert wire.receive(ends[1], time.monotonic() + 60).isprintable()


def test_silence_and_a_message_that_arrives_slowly_end_at_the_deadline(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    with pytest.raises(wire.OutOfTime):
        wire.receive(ends[1], time.monotonic() + 0.05)
    ends[0].sendall(message("text")[:-1])
    with pytest.raises(wire.OutOfTime):
        wire.receive(ends[1], time.monotonic() + 0.05)


@pytest.mark.parametrize("value", [object(), {1}, [lambda: 1], np.array([object()]), np.array("2020", "M8[Y]")])
def test_what_is_not_plain_is_not_sent(ends: tuple[socket.socket, socket.socket], value: object) -> None:
    with pytest.raises(TypeError, match="is not plain"):
        wire.send(ends[0], value)


def test_a_closed_connection_is_noticed(ends: tuple[socket.socket, socket.socket]) -> None:
    ends[0].close()
    with pytest.raises(wire.Closed):
        wire.receive(ends[1])
    with pytest.raises(wire.Closed):
        wire.send(ends[1], "x" * 10**7)

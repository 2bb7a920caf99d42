"""What crosses between grader and jail is plain data, or refused."""

from multiprocessing import Pipe

import numpy as np
import pytest

from course_tools.sandbox import wire

VALUES = [
    *(None, True, -0.0, 1e400, 2**900, 1j, "a\nb\x00é", b"\xff", [], [1, (2.5, ["x"]), {}]),
    {"a": 1, 2: None, (0, 1): [b""], 1.5: {}},
    np.arange(6, dtype=">i2").reshape(2, 3),
    *map(np.array, ([[], []], ["ab", "c"], [True, False], 5.0)),
]
REFUSED = {
    "an unknown letter": {"x": 1},
    "a list as a key": {"d": [[[], 1]]},
    "many keys with one hash": {"d": [[n * (2**61 - 1), 0] for n in range(1001)]},
    "an array of objects": {"a": ["|O8", [1], ""]},
    "an array too short": {"a": ["<f8", [2], "AAAAAAAAAAA="]},
    "what is no base64": {"b": "?"},
    "an object": object(),
}


def crossed(value: object) -> object:
    ours, theirs = Pipe()
    with ours, theirs:
        wire.send(ours, value)
        return wire.receive(theirs)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_what_is_sent_arrives(value: object) -> None:
    got = crossed(value)
    assert type(got) is type(value)
    assert repr(got) == repr(value)
    assert not isinstance(value, np.ndarray) or got.dtype == value.dtype


@pytest.mark.parametrize("value", REFUSED.values(), ids=REFUSED)
def test_anything_else_is_refused(value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "_tagged", lambda value: value)
    with pytest.raises((wire.BrokenMessage, TypeError)):
        crossed(value)


def test_what_holds_too_many_values_is_refused_before_it_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = Pipe()
    monkeypatch.setattr(ours, "recv_bytes", lambda most: b"[" + b"0," * wire._MOST_VALUES + b"0]")
    with ours, theirs, pytest.raises(wire.BrokenMessage, match="too many"):
        wire.receive(ours)

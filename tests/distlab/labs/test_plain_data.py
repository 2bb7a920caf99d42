"""Only plain data reaches a judge: copies made of Python's and NumPy's own types."""

import re
from collections import OrderedDict
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from distlab.labs import NotPlain
from distlab.labs.plain_data import Array, Plain, as_record, plain
from tests.distlab.labs.test_answer import EqualsEverything, LyingArray, LyingFloat


class Tensor:
    def numpy(self) -> np.ndarray:
        return np.arange(3.0)


@pytest.mark.parametrize(
    "value",
    [None, True, 3, -0.0, 1 + 2j, "text", b"bytes", [1, [2.5]], (1, "a"), {"a": [1], 2: None, (0, 1): 3.0}],
)
def test_plain_data_stays_what_it_is(value: object) -> None:
    copied = plain(value)
    assert copied == value
    assert type(copied) is type(value)


def test_subclasses_become_their_base() -> None:
    assert type(plain(LyingFloat(2.0))) is float
    array = plain(np.arange(3.0).view(LyingArray))
    assert type(array) is np.ndarray
    assert array.sum() == 3
    assert type(plain(OrderedDict(a=1))) is dict
    assert type(plain(np.float32(1.5))) is float
    assert [plain(Fraction(1, 3)), plain(Decimal("0.5"))] == [1 / 3, 0.5]
    assert type(plain(np.bool_(True))) is bool
    assert np.array_equal(plain(Tensor()), np.arange(3.0))


def test_what_reads_like_a_list_becomes_one() -> None:
    numbers = {"a": 1, "b": 2}
    assert [plain(view) for view in (numbers.keys(), numbers.values(), numbers.items())] == [
        ["a", "b"],
        [1, 2],
        [("a", 1), ("b", 2)],
    ]
    assert plain({"means": numbers.values(), "steps": range(2, 8, 2)}) == {"means": [1, 2], "steps": [2, 4, 6]}
    for huge in (range(10**12), range(10**30)):
        with pytest.raises(NotPlain, match="holds more than 1,000,000 items"):
            plain(huge)


@pytest.mark.parametrize(
    "value", [object(), np.array([object()]), {1, 2}, iter([3]), lambda: 1, {EqualsEverything: 1}, 1e3j.conjugate]
)
def test_what_is_not_plain_is_refused_by_name(value: object) -> None:
    with pytest.raises(NotPlain, match=r"the answer (is an?|holds) "):
        plain(value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"keep": [3], "delete": {1, 2}}, "holds a set in its entry ['delete'], not a number, an array, "),
        ([{"a": (1, np.array([object()]))}], "holds an array of dtype object in its entry [0]['a'][1], not of numbers"),
        ({"a" * 100: {1}}, "the answer holds a set, not a number"),
        ({1}, "the answer is a set, not a number"),
    ],
)
def test_the_entry_that_is_not_plain_is_named(value: object, said: str) -> None:
    with pytest.raises(NotPlain, match=re.escape(said)):
        plain(value)


def test_a_list_that_holds_itself_or_is_huge_is_refused() -> None:
    endless: list = []
    endless.append(endless)
    with pytest.raises(NotPlain, match="nested too deeply"):
        plain(endless)
    with pytest.raises(NotPlain, match="larger than"):
        plain([np.zeros(1_500_000), np.zeros(1_500_000)])
    with pytest.raises(NotPlain, match="more than"):
        plain([0] * 1_000_001)


def test_a_list_that_is_too_long_is_refused_before_its_items_are_looked_at() -> None:
    with pytest.raises(NotPlain, match="holds more than 1,000,000 items"):
        plain([object()] * 1_000_001)


def test_a_number_that_no_float_can_hold_is_refused() -> None:
    assert plain(2**999) == 2**999
    with pytest.raises(NotPlain, match="more than 300 digits"):
        plain([10**400])


@dataclass
class Observed:
    problem: str
    sizes: list[int]
    images: Array
    share: float | None
    value: Plain


OBSERVED = Observed("", [1, 2], np.zeros(2), None, (1, "a"))


def test_a_record_comes_back_from_its_fields() -> None:
    assert asdict(as_record(plain(asdict(OBSERVED)), Observed)).keys() == asdict(OBSERVED).keys()
    assert as_record(plain(asdict(OBSERVED)), Observed).value == (1, "a")


@pytest.mark.parametrize(
    "forged", [None, [], {}, {"problem": 1}, {"sizes": (1, 2)}, {"images": [0.0]}, {"share": "all"}, {"more": 1}]
)
def test_a_forged_record_is_refused(forged: object) -> None:
    value = asdict(OBSERVED) | forged if forged else forged
    with pytest.raises(NotPlain, match="what it observes does not have the form"):
        as_record(plain(value), Observed, "what it observes")

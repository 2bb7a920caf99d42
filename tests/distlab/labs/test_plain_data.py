"""Only plain data reaches a judge: copies made of Python's and NumPy's own types."""

import re
from collections import OrderedDict
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from distlab.labs import NotPlain
from distlab.labs.plain_data import Array, Plain, as_record, plain


class LyingFloat(float):
    def __sub__(self, other: object) -> float:
        return 0.0


class LyingArray(np.ndarray):
    def sum(self) -> float:
        return 42.0


class Tensor:
    def numpy(self) -> np.ndarray:
        return np.arange(3.0)


def test_plain_data_stays_what_it_is() -> None:
    for value in (None, True, 3, 2.5, 1 + 2j, "text", b"bytes", [1, [2.5]], (1, "a"), {"a": [1], (0, 1): 3.0}):
        assert plain(value) == value and type(plain(value)) is type(value)


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
    assert plain({"means": numbers.values(), "steps": range(2, 8, 2)}) == {"means": [1, 2], "steps": [2, 4, 6]}
    assert plain([zip("ab", map(abs, (-1, 2)), strict=True)]) == [[("a", 1), ("b", 2)]]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"keep": [3], "delete": {1, 2}}, "holds a set, not a number, an array, "),
        ([{"a": (1, np.array([object()]))}], "holds an array of dtype object, not of numbers"),
        ({Tensor: 1}, "the answer holds a dictionary with a type as key"),
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
    for huge in (range(10**30), [0] * 1_000_001):
        with pytest.raises(NotPlain, match="holds more than 1,000,000 items"):
            plain(huge)
    with pytest.raises(NotPlain, match="more than 300 digits"):
        plain([10**400])


@dataclass
class Observed:
    problem: str
    sizes: list[int]
    images: Array
    share: float | None
    value: Plain


OBSERVED = {"problem": "", "sizes": [1, 2], "images": np.zeros(2), "share": None, "value": (1, "a")}


@pytest.mark.parametrize(
    "forged", [None, [], {"problem": 1}, {"sizes": (1, 2)}, {"images": [0.0]}, {"share": "all"}, {"more": 1}]
)
def test_a_record_comes_back_from_its_fields_and_a_forged_one_is_refused(forged: object) -> None:
    assert as_record(plain(OBSERVED), Observed).value == (1, "a")
    with pytest.raises(NotPlain, match="what it observes does not have the form"):
        as_record(plain(OBSERVED | forged if forged else forged), Observed, "what it observes")

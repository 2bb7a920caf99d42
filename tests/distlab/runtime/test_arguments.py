"""A slip in what is handed to a function is one sentence."""

import math

import numpy as np
import pytest

from distlab.runtime import arguments
from distlab.runtime.arguments import WrongArgument


@pytest.mark.parametrize("number", [1, 0.5, np.float32(2), np.ones(3), True])
def test_numbers_and_arrays_of_numbers_are_taken(number: object) -> None:
    arguments.require_number("seconds", number, above=0)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("4", "seconds is the text '4'; give a number above 0: write 4 without quotes."),
        (0, "seconds is 0; give a number above 0."),
        (math.nan, "seconds is nan; give a number above 0."),
        (None, "seconds is None, which a function without `return` gives; give a number above 0."),
        ([1, 2], "seconds is of the type list; give a number above 0."),
        (math.sqrt, "seconds is the function sqrt, which was not called; give a number above 0."),
        (np.array([1.0, -1.0]), "seconds is -1.0; give a number above 0."),
    ],
)
def test_what_is_no_number_is_described(value: object, sentence: str) -> None:
    with pytest.raises(WrongArgument) as raised:
        arguments.require_number("seconds", value, above=0)
    assert str(raised.value) == sentence


def test_a_quotient_is_no_whole_number() -> None:
    arguments.require_whole("ranks", np.int64(4), least=1)
    with pytest.raises(WrongArgument, match=r"^ranks is 4\.0; give a whole number of 1 or more: write 4, or divide by"):
        arguments.require_whole("ranks", 8 / 2, least=1)


def test_a_coroutine_is_named_and_closed() -> None:
    async def program() -> None: ...

    with pytest.raises(WrongArgument, match=r"the coroutine program\(…\), which was never awaited"):
        arguments.require_kind("array", program(), np.ndarray, "an array")

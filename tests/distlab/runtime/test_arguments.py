"""A slip in what is handed to a function is one sentence."""

import math

import numpy as np
import pytest

from distlab.runtime import arguments
from distlab.runtime.arguments import WrongArgument


@pytest.mark.parametrize("number", [1, 0.5, np.float32(2), np.ones(3)])
def test_numbers_and_arrays_of_numbers_are_taken(number: object) -> None:
    arguments.require_number("seconds", number, above=0)


@pytest.mark.parametrize("value", ["4", 0, math.nan, math.inf, None, [1, 2], math.sqrt, np.array([1.0, -1.0])])
def test_what_is_no_number_above_the_bound_is_refused(value: object) -> None:
    with pytest.raises(WrongArgument, match=r"^seconds is .*; give a number above 0\.$"):
        arguments.require_number("seconds", value, above=0)


def test_a_quotient_is_no_whole_number() -> None:
    arguments.require_whole("ranks", np.int64(4), least=1)
    with pytest.raises(WrongArgument, match=r"^ranks is 4\.0; give a whole number of 1 or more\.$"):
        arguments.require_whole("ranks", 8 / 2, least=1)

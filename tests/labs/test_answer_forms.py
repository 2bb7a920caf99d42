"""What came instead of numbers, in words."""

import numpy as np
import pytest

from distlab.labs.answer_forms import described
from distlab.labs.plain_data import Plain


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (2.5, "one number"),
        (np.array(2.5), "one number"),
        ([], "an empty list"),
        ((1,), "a tuple of 1 number"),
        ([1, 2.0], "a list of 2 numbers"),
        ([1, None], "a list of 2 items, of which item 1 is None"),
        ([np.ones(3), np.ones(4)], "a list of 2 items, of which item 0 is an array of shape (3,)"),
        (([1, 2, 3], 6), "a tuple of 2 items, of which item 0 is a list of 3 numbers"),
        (np.ones((1, 4)), "an array of shape (1, 4)"),
        ({0: 1.0}, "a dict"),
        ("1, 2", "a text"),
        (True, "a bool"),
    ],
)
def test_an_answer_is_described(answer: Plain, words: str) -> None:
    assert described(answer) == words

"""How numbers are drawn and written."""

import numpy as np
import pytest

from distlab.quizzes.numbers import Numbers, amount, figure


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (8.0, "8"),
        (1_250_000, "1,250,000"),
        (1_234.56, "1,235"),
        (66.666, "66.7"),
        (0.0123456, "0.0123"),
        (0.5, "0.5"),
        (-2.345, "-2.35"),
        (0, "0"),
        (float("inf"), "infinitely many"),
    ],
)
def test_a_number_is_written_as_a_person_would(value: float, text: str) -> None:
    assert figure(value) == text


def test_what_was_drawn_is_remembered_by_name() -> None:
    numbers = Numbers(np.random.default_rng(1))
    ranks = numbers.pick("ranks", (2, 4, 8))
    workers = numbers.several("workers", range(10), 3)
    assert numbers.drawn == {"ranks": ranks, "workers": workers}
    assert len(set(workers)) == 3


def test_every_value_is_drawn_equally_often() -> None:
    numbers = Numbers(np.random.default_rng(2))
    drawn = [numbers.pick("x", "abc") for _ in range(3_000)]
    assert all(850 < drawn.count(letter) < 1_150 for letter in "abc")


def test_one_of_a_unit_is_in_the_singular() -> None:
    units = ("steps", "batches", "devices", "ms", "times", "images/s", "")
    assert [amount(1, unit) for unit in units] == [
        "1 step",
        "1 batch",
        "1 device",
        "1 ms",
        "1 times",
        "1 images/s",
        "1",
    ]
    assert amount(2, "steps") == "2 steps"

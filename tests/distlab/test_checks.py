"""The proof that ends a parallel notebook: it says so when weights are equal, and rejects everything else."""

import numpy as np
import pytest

from distlab import checks

KERNEL = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
BIAS = np.zeros(4, np.float32)
WEIGHTS, NOT_FINITE = [KERNEL, BIAS], [KERNEL, BIAS + np.float32(np.nan)]


def test_a_difference_within_the_tolerance_is_printed_and_a_larger_one_fails(capsys: pytest.CaptureFixture) -> None:
    checks.assert_equal_weights(WEIGHTS, [KERNEL.copy(), BIAS.copy()])
    checks.assert_equal([[2.0, 1.0]], [[2.0, 1.0 + 2**-20]], "losses")
    checks.assert_equal_weights(WEIGHTS, [KERNEL, BIAS + 0.25], tolerance=0.5)
    for one_is_off in ([KERNEL - 2e-5 * np.eye(3, 4), BIAS], [KERNEL, BIAS + 2e-5]):
        with pytest.raises(AssertionError, match=r"the weights differ by up to .*, more than the tolerance 1e-05"):
            checks.assert_equal_weights(WEIGHTS, one_is_off)
    assert capsys.readouterr().out.splitlines() == [
        "largest difference of the weights: 0 (tolerance 1e-05)",
        "largest difference of the losses: 1e-06 (tolerance 1e-05)",
        "largest difference of the weights: 0.2 (tolerance 0.5)",
    ]


def test_the_largest_difference_is_exact_and_symmetric_and_does_not_wrap_around() -> None:
    changed = [KERNEL, BIAS + np.array([0, 0.5, -0.75, 0], np.float32)]
    assert checks.largest_difference(WEIGHTS, changed) == checks.largest_difference(changed, WEIGHTS) == 0.75
    assert checks.largest_difference([np.array([0], np.uint8)], [np.array([1], np.uint8)]) == 1


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (NOT_FINITE, NOT_FINITE, "array 1 holds values that are not finite"),
        (WEIGHTS, [KERNEL[:1], BIAS], "array 0 has shape"),  # which would broadcast
        (WEIGHTS, [KERNEL], "cannot be compared with"),
        ([KERNEL[:0]], [KERNEL[:0]], "nothing to compare"),
    ],
)
def test_what_cannot_be_compared_is_refused(first: list, second: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        checks.assert_equal_weights(first, second)


def test_a_number_that_is_not_finite_ends_the_program() -> None:
    checks.end_unless_finite(7, 0.5, *WEIGHTS)
    for numbers in ([0.5, *NOT_FINITE], [np.inf, *WEIGHTS], [[0.5, -np.inf]]):
        with pytest.raises(SystemExit, match="after step 7: take a smaller --rate"):
            checks.end_unless_finite(7, *numbers, option="--rate")

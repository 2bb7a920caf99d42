"""The proof that ends a parallel notebook: it says so when weights are equal, and rejects everything else."""

import numpy as np
import pytest

from distlab import checks

KERNEL = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
BIAS = np.zeros(4, np.float32)
WEIGHTS = [KERNEL, BIAS]


def with_one_value(value: float) -> list[np.ndarray]:
    """The weights with one kernel entry, which is -1 / 11, replaced."""
    kernel = KERNEL.copy()
    kernel[1, 1] = value
    return [kernel, BIAS]


def test_the_largest_difference_is_printed_with_what_was_compared(capsys: pytest.CaptureFixture) -> None:
    checks.assert_equal_weights(WEIGHTS, [KERNEL.copy(), BIAS.copy()])
    checks.assert_equal([[2.0, 1.0]], [[2.0, 1.0 + 2**-20]], "losses")
    assert capsys.readouterr().out.splitlines() == [
        "largest difference of the weights: 0 (tolerance 1e-05)",
        "largest difference of the losses: 1e-06 (tolerance 1e-05)",
    ]


def test_rounding_below_the_tolerance_passes_which_can_be_chosen() -> None:
    checks.assert_equal_weights(WEIGHTS, with_one_value(KERNEL[1, 1] + 0.9e-5))
    checks.assert_equal_weights(WEIGHTS, [KERNEL, BIAS + 0.25], tolerance=0.5)


def test_one_value_that_is_off_fails_and_nothing_is_said(capsys: pytest.CaptureFixture) -> None:
    for weights in (with_one_value(KERNEL[1, 1] - 2e-5), [KERNEL, BIAS + 2e-5]):
        with pytest.raises(AssertionError, match=r"the weights differ by up to .*, more than the tolerance 1e-05"):
            checks.assert_equal_weights(WEIGHTS, weights)
    assert capsys.readouterr().out == ""


def test_the_largest_difference_is_exact_and_symmetric_and_does_not_wrap_around() -> None:
    changed = [KERNEL, BIAS + np.array([0, 0.5, -0.75, 0], np.float32)]
    assert checks.largest_difference(WEIGHTS, changed) == checks.largest_difference(changed, WEIGHTS) == 0.75
    assert checks.largest_difference([np.array([0], np.uint8)], [np.array([1], np.uint8)]) == 1


def test_values_that_are_not_finite_are_rejected_even_if_both_have_them() -> None:
    broken = with_one_value(np.nan)
    for first, second in [(WEIGHTS, broken), (broken, WEIGHTS), (broken, broken)]:
        with pytest.raises(ValueError, match="array 0 holds values that are not finite"):
            checks.assert_equal_weights(first, second)


def test_what_has_another_form_or_nothing_in_it_is_rejected() -> None:
    for arrays in ([KERNEL.T, BIAS], [KERNEL[:1], BIAS]):  # the second would broadcast
        with pytest.raises(ValueError, match="array 0 has shape"):
            checks.assert_equal_weights(WEIGHTS, arrays)
    with pytest.raises(ValueError, match="cannot be compared with"):
        checks.assert_equal_weights(WEIGHTS, [KERNEL])
    for nothing in ([], [KERNEL[:0], BIAS[:0]]):
        with pytest.raises(ValueError, match="nothing to compare"):
            checks.assert_equal_weights(nothing, nothing)


def test_a_number_that_is_not_finite_ends_the_program_and_names_the_option() -> None:
    for numbers in ([0.5, *with_one_value(np.nan)], [np.inf, *WEIGHTS], [[0.5, -np.inf]]):
        with pytest.raises(SystemExit) as end:
            checks.end_unless_finite(7, *numbers, option="--rate")
        assert end.value.code == "The loss is no longer finite after step 7: take a smaller --rate."
    checks.end_unless_finite(7, 0.5, *WEIGHTS)

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


@pytest.mark.parametrize(
    "weights",
    [with_one_value(KERNEL[1, 1] + offset) for offset in (2e-5, -2e-5, 1e6)] + [[KERNEL, BIAS + 2e-5]],
)
def test_one_value_that_is_off_fails_and_nothing_is_said(
    weights: list[np.ndarray], capsys: pytest.CaptureFixture
) -> None:
    with pytest.raises(AssertionError, match=r"the weights differ by up to .*, more than the tolerance 1e-05"):
        checks.assert_equal_weights(WEIGHTS, weights)
    assert capsys.readouterr().out == ""


def test_the_largest_difference_is_exact_and_symmetric_and_does_not_wrap_around() -> None:
    changed = [KERNEL, BIAS + np.array([0, 0.5, -0.75, 0], np.float32)]
    assert checks.largest_difference(WEIGHTS, changed) == checks.largest_difference(changed, WEIGHTS) == 0.75
    assert checks.largest_difference([np.array([0], np.uint8)], [np.array([1], np.uint8)]) == 1


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_rejected_even_if_both_have_them(value: float) -> None:
    broken = with_one_value(value)
    for first, second in [(WEIGHTS, broken), (broken, WEIGHTS), (broken, broken)]:
        with pytest.raises(ValueError, match="array 0 holds values that are not finite"):
            checks.assert_equal_weights(first, second)


@pytest.mark.parametrize(
    "arrays",
    [
        pytest.param([KERNEL.T, BIAS], id="transposed"),
        pytest.param([KERNEL[:1], BIAS], id="would broadcast"),
        pytest.param([KERNEL[:0], BIAS], id="no rows"),
        pytest.param([BIAS, KERNEL], id="another order"),
    ],
)
def test_another_shape_is_rejected(arrays: list[np.ndarray]) -> None:
    with pytest.raises(ValueError, match="array 0 has shape"):
        checks.assert_equal_weights(WEIGHTS, arrays)


@pytest.mark.parametrize("arrays", [[KERNEL], [KERNEL, BIAS, BIAS]], ids=["one missing", "one more"])
def test_another_number_of_arrays_is_rejected(arrays: list[np.ndarray]) -> None:
    with pytest.raises(ValueError, match="cannot be compared with"):
        checks.assert_equal_weights(WEIGHTS, arrays)


@pytest.mark.parametrize("nothing", [[], [KERNEL[:0], BIAS[:0]]], ids=["no arrays", "arrays without values"])
def test_nothing_is_not_equal_to_nothing(nothing: list[np.ndarray]) -> None:
    with pytest.raises(ValueError, match="nothing to compare"):
        checks.assert_equal_weights(nothing, nothing)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_ends_the_program_and_names_the_option(value: float) -> None:
    for numbers in ([0.5, *with_one_value(value)], [value, *WEIGHTS], [[0.5, value]]):
        with pytest.raises(SystemExit) as end:
            checks.end_unless_finite(7, *numbers, option="--rate")
        assert end.value.code == "The loss is no longer finite after step 7: take a smaller --rate."
    checks.end_unless_finite(7, 0.5, *WEIGHTS)

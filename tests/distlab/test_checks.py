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


def test_rounding_below_the_tolerance_passes() -> None:
    checks.assert_equal_weights(WEIGHTS, with_one_value(KERNEL[1, 1] + 0.9e-5))


@pytest.mark.parametrize("offset", [2e-5, -2e-5, 0.17, 1e6])
def test_one_value_that_is_off_fails_and_nothing_is_said(offset: float, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(AssertionError, match="more than the tolerance 1e-05"):
        checks.assert_equal_weights(WEIGHTS, with_one_value(KERNEL[1, 1] + offset))
    assert capsys.readouterr().out == ""


def test_the_last_array_is_compared_too() -> None:
    with pytest.raises(AssertionError):
        checks.assert_equal_weights(WEIGHTS, [KERNEL, BIAS + 2e-5])


def test_the_failure_states_the_difference() -> None:
    with pytest.raises(AssertionError, match=r"differ by up to 0\.25,"):
        checks.assert_equal_weights(WEIGHTS, [KERNEL, BIAS - 0.25])


def test_the_tolerance_can_be_chosen() -> None:
    checks.assert_equal_weights(WEIGHTS, [KERNEL, BIAS + 0.25], tolerance=0.5)
    with pytest.raises(AssertionError):
        checks.assert_equal_weights(WEIGHTS, [KERNEL, BIAS + 0.25], tolerance=0.125)


def test_the_largest_difference_is_exact_and_symmetric() -> None:
    changed = [KERNEL, BIAS + np.array([0, 0.5, -0.75, 0], np.float32)]
    assert checks.largest_difference(WEIGHTS, changed) == checks.largest_difference(changed, WEIGHTS) == 0.75


def test_unsigned_integers_do_not_wrap_around() -> None:
    assert checks.largest_difference([np.array([0], np.uint8)], [np.array([1], np.uint8)]) == 1


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_rejected_even_if_both_have_them(value: float) -> None:
    broken = with_one_value(value)
    for first, second in [(WEIGHTS, broken), (broken, WEIGHTS), (broken, broken)]:
        with pytest.raises(ValueError, match="array 0 holds values that are not finite"):
            checks.assert_equal_weights(first, second)


@pytest.mark.parametrize(
    "arrays",
    [
        pytest.param([KERNEL.T, BIAS], id="transposed"),
        pytest.param([KERNEL[None], BIAS], id="one more axis"),
        pytest.param([KERNEL[:1], BIAS], id="would broadcast"),
        pytest.param([np.float32(0), BIAS], id="a scalar"),
        pytest.param([KERNEL[:0], BIAS], id="no rows"),
    ],
)
def test_another_shape_is_rejected(arrays: list[np.ndarray]) -> None:
    with pytest.raises(ValueError, match="array 0 has shape"):
        checks.assert_equal_weights(WEIGHTS, arrays)


def test_arrays_in_another_order_are_rejected() -> None:
    with pytest.raises(ValueError, match="shape"):
        checks.assert_equal_weights(WEIGHTS, WEIGHTS[::-1])


@pytest.mark.parametrize("arrays", [[], [KERNEL], [KERNEL, BIAS, BIAS]], ids=["none", "one missing", "one more"])
def test_another_number_of_arrays_is_rejected(arrays: list[np.ndarray]) -> None:
    with pytest.raises(ValueError, match="cannot be compared with"):
        checks.assert_equal_weights(WEIGHTS, arrays)


@pytest.mark.parametrize("nothing", [[], [KERNEL[:0], BIAS[:0]]], ids=["no arrays", "arrays without values"])
def test_nothing_is_not_equal_to_nothing(nothing: list[np.ndarray]) -> None:
    with pytest.raises(ValueError, match="nothing to compare"):
        checks.assert_equal_weights(nothing, nothing)


class Model:
    """A network; comparing it instead of its weights is the usual mistake."""

    def get_weights(self) -> list[np.ndarray]:
        """As Keras does."""
        return WEIGHTS


@pytest.mark.parametrize("wrong", [Model(), Model().get_weights, {"kernel": KERNEL}, [Model()], ["text"]])
def test_what_is_no_list_of_arrays_is_named_with_what_to_give(wrong: object) -> None:
    for pair in ((wrong, WEIGHTS), (WEIGHTS, wrong), (wrong, wrong)):
        with pytest.raises(checks.NotWeights, match=r"is no list of arrays of numbers; .* model\.get_weights\(\)"):
            checks.assert_equal_weights(*pair)  # type: ignore[arg-type]


class Variable(np.ndarray):
    """An array that can be assigned to, as a variable of TensorFlow."""

    def assign(self, value: np.ndarray) -> None:
        """As TensorFlow does."""
        self[...] = value


def test_a_variable_is_not_compared_with_itself() -> None:
    variables = [array.view(Variable) for array in WEIGHTS]
    before = variables
    with pytest.raises(checks.NotWeights, match="the same variable, which would be compared with itself"):
        checks.assert_equal_weights(variables, before)  # type: ignore[arg-type]
    checks.assert_equal_weights(variables, WEIGHTS)  # type: ignore[arg-type]


def test_generators_of_arrays_are_compared() -> None:
    with pytest.raises(AssertionError, match="differ by up to 1,"):
        checks.assert_equal_weights((array for array in WEIGHTS), (array + 1 for array in WEIGHTS))  # type: ignore[arg-type]


@pytest.mark.parametrize("tolerance", [float("nan"), float("inf"), -1e-5, "1e-5", None, [1e-5]])
def test_a_tolerance_that_proves_nothing_is_refused(tolerance: float) -> None:
    with pytest.raises(ValueError, match="it must be a number of 0 or more"):
        checks.assert_equal_weights(WEIGHTS, with_one_value(1.0), tolerance)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_ends_the_program_and_names_the_option(value: float) -> None:
    for numbers in ([0.5, *with_one_value(value)], [value, *WEIGHTS], [[0.5, value]]):
        with pytest.raises(SystemExit) as end:
            checks.end_unless_finite(7, *numbers, option="--rate")
        assert end.value.code == "The loss is no longer finite after step 7: take a smaller --rate."
    checks.end_unless_finite(7, 0.5, *WEIGHTS)

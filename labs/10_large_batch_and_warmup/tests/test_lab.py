"""Lab 10: the judge's own numbers against the papers and calculations by hand."""

import numpy as np
import pytest
from lab_10 import lab, noise_scale, plan, warm_up
from lab_10_tests import answers_10

from tests.distlab.labs.known_wrong import assert_not_done

LAB = lab.LAB


@pytest.mark.parametrize(("name", "names"), [("plan", plan.NUMBERS), ("noise_scale", noise_scale.NUMBERS)])
def test_names_without_numbers_are_not_done_yet(name: str, names: tuple[str, ...]) -> None:
    assert_not_done(LAB, name, {name: lambda *arguments: dict.fromkeys(names)})


def test_eight_ranks_with_the_known_batch_get_eight_times_the_rate() -> None:
    numbers = plan.plan(60_000, 2, 4, 100, 0.01, 100, 10_000)
    assert list(numbers.values()) == [100, 800, 75, pytest.approx(0.08)]


def test_goyal_s_warm_up_rises_by_the_same_amount_in_every_iteration() -> None:
    steps, epochs, first, full = 156, 5, 0.1, 3.2  # ImageNet with batches of 8k, section 5.1
    rates = [warm_up.warm_up(step, steps, epochs, first, full) for step in range(steps * epochs + 2)]
    assert rates[0] == first and rates[-2] == pytest.approx(full) and rates[-1] == pytest.approx(full)
    assert np.diff(rates[:-1]) == pytest.approx((full - first) / (steps * epochs))


def test_the_estimate_of_many_steps_is_the_scale_that_the_gradients_were_made_with() -> None:
    generator, batch, ranks, parameters = np.random.default_rng(5), 16, 8, 30
    variance, true = 900.0, np.ones(parameters)
    noise = generator.normal(size=(2000, ranks, parameters)) * np.sqrt(variance / parameters / batch)
    numbers = noise_scale.noise_scale(true + noise, batch)
    assert numbers["squared gradient"] == pytest.approx(30, rel=0.03)
    assert numbers["variance"] == pytest.approx(variance, rel=0.03)
    assert numbers["noise scale"] == pytest.approx(30, rel=0.05)


def test_the_targets_are_what_a_calculation_by_hand_gives() -> None:
    numbers = [line.split()[-1] for line in LAB.target("noise_scale").splitlines()[1:]]
    assert numbers == ["10", "32", "3.2"]  # (16 · 12 − 8 · 14) / 8, (14 − 12) / (1/8 − 1/16), their ratio
    rates = [line.split()[-1] for line in LAB.target("warm_up").splitlines()[1:]]
    assert rates[0] == "0.01000" and rates[6] == "0.04500" and rates[12:] == ["0.08000", "0.08000"]
    numbers = [line.split()[-1] for line in LAB.target("plan").splitlines()[1:]]
    assert numbers == ["187", "1496", "40", "0.1496"]


def test_every_estimate_but_for_the_right_one_is_wrong_for_the_example_by_hand() -> None:
    right = noise_scale.noise_scale(*noise_scale.EXAMPLE)
    hidden = []
    for answer in answers_10.ANSWERS.wrong_answers["noise_scale"]:
        numbers = answer.namespace["noise_scale"](*noise_scale.EXAMPLE)
        if isinstance(numbers, dict) and numbers == pytest.approx(right):
            hidden.append(answer.title)
    # Where the estimate is positive, as by hand, there is nothing to cut off; the hint of both says so.
    assert hidden == ["estimate_cut_off", "negative_scale"]


def test_the_lab_needs_no_tensorflow() -> None:
    assert not LAB.tensorflow

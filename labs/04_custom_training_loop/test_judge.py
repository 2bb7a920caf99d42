"""Lab 04: other right answers, and the judge's numbers against TensorFlow's functions and calculations by hand."""

from fractions import Fraction

import numpy as np
import pytest
from lab_04 import judge
from lab_04.judge import LAB, LOOP, LOSSES, MICRO_BATCHES, OTHER_LOOP, PADDED

from tests.distlab.labs.known_wrong import SEEDS, assert_right, verdict_on

EMPTY = [*LOSSES, np.array([])]


def by_counting_images(replicas, images, micro_batches):
    loops = {
        "means, summed": (1 / images, 1),
        "means, averaged": (1 / images, 1 / replicas),
        "sums, summed": (1, 1),
        "sums, averaged": (1, 1 / replicas),
        "global means, averaged": (1 / images / replicas, 1 / replicas),
    }
    return {name: replicas * images * each * then for name, (each, then) in loops.items()} | {
        MICRO_BATCHES: micro_batches * replicas * images / (images * replicas)
    }


def in_fractions(replicas, images, micro_batches):
    return {name: Fraction(value) for name, value in judge.factors(replicas, images, micro_batches).items()} | {
        "global means, averaged": Fraction(1, replicas)
    }


def by_a_dot_product(losses):
    weights = 1 / len(np.concatenate(losses))
    return np.array([own @ np.full(len(own), weights) for own in losses])


def penalty_by_replicas(losses, penalty):
    examples = np.concatenate(losses).size
    return tuple((sum(own) * len(losses) + penalty * examples) / (examples * len(losses)) for own in losses)


def by_weights(gradients, counts):
    present = counts.ravel() > 0
    return np.average(gradients.reshape(-1, gradients.shape[2])[present], axis=0, weights=counts.ravel()[present])


def by_selection(losses, masks):
    words = sum(mask.sum() for mask in masks)
    return [own[mask == 1].sum() / words for own, mask in zip(losses, masks, strict=True)]


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("factors", by_counting_images),
        ("factors", in_fractions),
        ("replica_losses", by_a_dot_product),
        ("with_penalty", penalty_by_replicas),
        ("accumulated", by_weights),
        ("masked_losses", by_selection),
    ],
)
def test_another_right_answer_gets_full_marks(name, answer):
    for seed in SEEDS:
        assert_right(verdict_on(LAB, name, {name: answer}, seed))


@pytest.mark.parametrize("loop", [LOOP, OTHER_LOOP])
def test_the_factors_are_those_of_loops_that_are_carried_out(loop):
    replicas, images, micro_batches = loop
    gradients = np.random.default_rng(3).normal(size=(micro_batches, replicas, images)) + 1
    first = gradients[0]
    expected = {
        "means, summed": first.mean(axis=1).sum() / first.mean(),
        "means, averaged": first.mean(axis=1).mean() / first.mean(),
        "sums, summed": first.sum(axis=1).sum() / first.mean(),
        "sums, averaged": first.sum(axis=1).mean() / first.mean(),
        "global means, averaged": (first.sum(axis=1) / first.size).mean() / first.mean(),
        MICRO_BATCHES: (gradients.sum(axis=2) / first.size).sum() / gradients.mean(),
    }
    assert judge.factors(*loop) == pytest.approx(expected)


def test_the_losses_are_those_of_tensorflow_and_add_up_to_the_mean_and_one_penalty():
    tf = pytest.importorskip("tensorflow")
    expected = [float(tf.nn.compute_average_loss(tf.constant(own), global_batch_size=4)) for own in EMPTY]
    assert judge.replica_losses(EMPTY) == pytest.approx(expected)
    assert sum(judge.with_penalty(EMPTY, 0.3)) == pytest.approx(np.concatenate(EMPTY).mean() + 0.3)


def test_the_accumulated_gradient_is_that_of_all_images_at_once():
    generator, counts = np.random.default_rng(4), np.array([[3, 1, 2], [2, 0, 5]])
    images = [[generator.normal(size=(count, 4)) for count in of_rank] for of_rank in counts]
    means = np.array([[one.mean(axis=0) if len(one) else np.full(4, np.nan) for one in of_rank] for of_rank in images])
    expected = np.concatenate([one for of_rank in images for one in of_rank]).mean(axis=0)
    assert judge.accumulated(means, counts) == pytest.approx(expected)


def test_the_masked_losses_add_up_to_the_mean_over_all_words():
    words = np.concatenate([own[mask == 1] for own, mask in zip(*PADDED, strict=True)])
    assert sum(judge.masked_losses(*PADDED)) == pytest.approx(words.mean())


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("factors", "6      3    0.5      7"),
        ("replica_losses", "[2.25, 1.75]"),  # (1 + 2 + 6) / 4, 7 / 4
        ("with_penalty", "[2.5, 2.0]"),
        ("accumulated", "[3.0]"),  # (3 · 1 + 5 + 2 + 8) / 6
        ("masked_losses", "[2.25, 1.25]"),  # (2 + 4 + 3) / 4, 5 / 4
    ],
)
def test_the_targets_are_what_a_calculation_by_hand_gives(name, numbers):
    text = LAB.target(name)
    assert (
        [line.split()[-1] for line in text.splitlines()[-4:]] == numbers.split()
        if name == "factors"
        else (numbers in text)
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_an_empty_replica_or_micro_batch_is_never_the_first_or_the_last(seed):
    generator = np.random.default_rng(seed)
    counts = [list(map(len, losses)) for (losses,) in judge.global_batches(generator)]
    counts += [of_one for _, each in judge.micro_batches(generator) for of_one in (*each.tolist(), *each.T.tolist())]
    assert sum(0 in of_one for of_one in counts) == 3
    assert all(of_one[0] and of_one[-1] for of_one in counts if 0 in of_one)

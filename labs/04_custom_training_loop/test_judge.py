"""Lab 04: other right answers, the judge's numbers against TensorFlow's and by hand."""

import numpy as np
import pytest
from lab_04 import judge
from lab_04.judge import LAB, LOOP, LOSSES, MICRO_BATCHES, OTHER_LOOP

from tests.distlab.labs.known_wrong import right_answers

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


def by_a_dot_product(losses):
    weights = 1 / len(np.concatenate(losses))
    return np.array([own @ np.full(len(own), weights) for own in losses])


test_another_right_answer_gets_full_marks = right_answers(
    LAB, ("factors", by_counting_images), ("replica_losses", by_a_dot_product)
)


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

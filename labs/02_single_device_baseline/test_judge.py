"""Lab 02: other right answers; the same programs on TensorFlow, in a process of their own."""

import math
from fractions import Fraction

import pytest
from lab_02.judge import LAB, PLAN

from tests.distlab.labs.judged_apart import assert_told_apart, judged_apart
from tests.distlab.labs.known_wrong import SEEDS, assert_right, verdict_on


def by_fractions(steps, every, python, graph):
    together = every
    for k in range(every, 0, -1):
        if every % k == 0 and Fraction(python, python + k * graph) <= Fraction(1, 20):
            together = k
    executions = math.ceil(Fraction(steps, together))
    seconds = Fraction(executions * python + steps * graph, 10**6)
    return dict(zip(PLAN, (together, executions, seconds, steps * (python + graph) / seconds / 10**6), strict=True))


def by_the_share_of_the_steps(steps, every, python, graph):
    divisors = [k for k in range(1, every + 1) if every % k == 0]
    together = next((k for k in divisors if 1 - k * graph / (python + k * graph) <= 0.05), every)
    executions = math.ceil(steps / together)
    seconds = (executions * python + steps * graph) * 1e-6
    return dict(zip(PLAN, (together, executions, seconds, steps * (python + graph) * 1e-6 / seconds), strict=True))


@pytest.mark.parametrize("plan", [by_fractions, by_the_share_of_the_steps])
def test_a_right_plan_in_another_style_gets_full_marks(plan):
    for seed in SEEDS:
        assert_right(verdict_on(LAB, "plan", {"plan": plan}, seed))


@pytest.mark.parametrize("value", [1, "True"])
def test_what_is_no_truth_value_is_named(value):
    verdict = verdict_on(LAB, "repeats", {"repeats": lambda dataset: {"order": value, "augmentation": value}})
    assert verdict.text.startswith('give `True` or `False` for "order"')


def test_a_training_in_executions_that_are_too_long_hears_of_the_callback():
    def train(records, decode, augment, model, batch, together, epochs):
        model.compile("sgd", "mse", steps_per_execution=99)
        images = records.map(decode).cache().shuffle(len(records)).batch(batch).map(augment).prefetch(1)
        model.fit(images, epochs=epochs)

    verdict = verdict_on(LAB, "train", {"train": train})
    assert "a callback has to see every 4 steps" in verdict.text and verdict.share == pytest.approx(3 / 4)


@pytest.mark.slow
def test_on_tensorflow_each_mistake_gets_the_same_hint():
    assert_told_apart(judged_apart("02", "lab_02.known_answers"))

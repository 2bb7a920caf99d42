"""Lab 02: other right answers; the same programs on TensorFlow, in a process of their own."""

import math

import pytest
from lab_02.judge import LAB, PLAN

from tests.distlab.labs.judged_apart import assert_told_apart
from tests.distlab.labs.known_wrong import right_answers


def by_the_share_of_the_steps(steps, every, python, graph):
    divisors = [k for k in range(1, every + 1) if every % k == 0]
    together = next((k for k in divisors if 1 - k * graph / (python + k * graph) <= 0.05), every)
    executions = math.ceil(steps / together)
    seconds = (executions * python + steps * graph) * 1e-6
    return dict(zip(PLAN, (together, executions, seconds, steps * (python + graph) * 1e-6 / seconds), strict=True))


test_another_right_answer_gets_full_marks = right_answers(LAB, ("plan", by_the_share_of_the_steps))


@pytest.mark.slow
def test_on_tensorflow_each_mistake_gets_the_same_hint():
    assert_told_apart("02")

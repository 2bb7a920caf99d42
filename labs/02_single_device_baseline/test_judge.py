"""Lab 02: another right answer."""

import math

from lab_02.judge import LAB, PLAN

from tests.distlab.labs.known_wrong import right_answers


def by_the_share_of_the_steps(steps, every, python, graph):
    divisors = [k for k in range(1, every + 1) if every % k == 0]
    together = next((k for k in divisors if 1 - k * graph / (python + k * graph) <= 0.05), every)
    executions = math.ceil(steps / together)
    seconds = (executions * python + steps * graph) * 1e-6
    return dict(zip(PLAN, (together, executions, seconds, steps * (python + graph) * 1e-6 / seconds), strict=True))


test_another_right_answer_gets_full_marks = right_answers(LAB, ("plan", by_the_share_of_the_steps))

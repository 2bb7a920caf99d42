"""Lab 02: another right answer, and what is said to pipelines of TensorFlow."""

import json
import math
from pathlib import Path

from lab_02.judge import LAB, PLAN

from tests.distlab.labs.known_wrong import right_answers, without_measured


def by_the_share_of_the_steps(steps, every, python, graph):
    divisors = [k for k in range(1, every + 1) if every % k == 0]
    together = next((k for k in divisors if 1 - k * graph / (python + k * graph) <= 0.05), every)
    executions = math.ceil(steps / together)
    seconds = (executions * python + steps * graph) * 1e-6
    return dict(zip(PLAN, (together, executions, seconds, steps * (python + graph) * 1e-6 / seconds), strict=True))


test_another_right_answer_gets_full_marks = right_answers(LAB, ("plan", by_the_share_of_the_steps))


def test_on_tensorflow_a_mistake_is_told_what_it_is_told_on_fake_pipelines():
    said = json.loads(Path(__file__).with_name("known_answers.json").read_text())
    titled = [pair for by_title in said.values() for pair in by_title.items() if pair[0][0].isdigit()]
    assert len(titled) > 40 and all(text == without_measured(title) for title, text in titled)

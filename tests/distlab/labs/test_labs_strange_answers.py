"""Whatever an answer gives, a judge has a verdict and a hint of its own, and it is not right."""

import numpy as np
import pytest

from distlab.labs import NOT_DONE, WRONG, registry
from tests.distlab.labs.judged_apart import START_TENSORFLOW
from tests.distlab.labs.known_wrong import verdict_on

STRANGE = [
    *(None, True, 3, float("nan"), "x", [], [[1, [2]], {"a": ()}], len),
    {"A": [[], []], "loss": [], "global batch size": [], "cluster": 1, "task": []},
    *(np.array(["a", "b"]), np.full(4, np.inf), np.ones((2, 2))),
]


def functions_that_give(value: object) -> list:
    """An ordinary function and a rank program, both with any arguments."""

    async def program(*arguments: object) -> object:
        return value

    return [lambda *arguments: value, program]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")  # a coroutine where a function belongs
@pytest.mark.parametrize("value", STRANGE, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("number", registry.MODULES)
def test_a_strange_answer_is_not_right(number: str, value: object) -> None:
    lab = registry.lab(number)
    for exercise in lab:
        if (number, exercise.name) in START_TENSORFLOW:
            continue
        for answer in [value, *functions_that_give(value)]:
            verdict = verdict_on(lab, exercise.name, {exercise.name: answer})
            assert verdict.state in (WRONG, NOT_DONE) and verdict.share < 1, (exercise.name, verdict)
            assert "could not cope" not in verdict.text, (exercise.name, verdict)

"""Whatever an answer gives, a judge has a verdict and a hint of its own, and it is not right."""

import numpy as np
import pytest

from distlab.labs import NOT_DONE, WRONG, registry
from tests.distlab.labs.known_wrong import verdict_on

STRANGE = {
    "nothing": None,
    "an ellipsis": ...,
    "a truth value": True,
    "a number": 3,
    "no number": float("nan"),
    "a text": "x",
    "bytes": b"x",
    "an empty list": [],
    "a nested list": [[1, [2]], {"a": ()}],
    "an empty dictionary": {},
    "a dictionary of lists": {"A": [[], []], "loss": [], "global batch size": [], "cluster": 1, "task": []},
    "an array without dimensions": np.array(3),
    "an array of texts": np.array(["a", "b"]),
    "complex numbers": np.ones(4, complex),
    "infinities": np.full(4, np.inf),
    "truth values": np.ones(4, bool),
    "an empty array": np.empty(0),
    "a table": np.ones((2, 2)),
    "an object": object(),
    "a function": len,
}


def functions_that_give(value: object) -> list:
    """An ordinary function and a rank program, both with any arguments."""

    async def program(*arguments: object) -> object:
        return value

    return [lambda *arguments: value, program]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")  # a coroutine where a function belongs
@pytest.mark.parametrize("value", STRANGE.values(), ids=STRANGE)
@pytest.mark.parametrize("number", [number for number in registry.MODULES if number != "09"])
def test_a_strange_answer_is_not_right(number: str, value: object) -> None:
    lab = registry.lab(number)
    for exercise in lab:
        if lab.tensorflow and exercise.name in ("make_model", "make_batches", "mirrored", "run", "train"):
            continue  # they start TensorFlow; that `elapsed_seconds` waits is enough for here
        for answer in [value, *functions_that_give(value)]:
            verdict = verdict_on(lab, exercise.name, {exercise.name: answer})
            assert verdict.state in (WRONG, NOT_DONE) and verdict.share < 1, (exercise.name, verdict)
            assert "could not cope" not in verdict.text, (exercise.name, verdict)

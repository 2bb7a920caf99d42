"""Whatever an answer gives, a judge has a verdict and a hint of its own, and it is not right."""

import numpy as np
import pytest
from lab_02 import lab as lab_02
from lab_03 import lab as lab_03
from lab_04 import lab as lab_04
from lab_05 import lab as lab_05
from lab_06 import lab as lab_06
from lab_07 import lab as lab_07
from lab_08 import lab as lab_08
from lab_10 import lab as lab_10
from lab_11 import lab as lab_11
from lab_12 import lab as lab_12
from lab_13 import lab as lab_13
from lab_14 import lab as lab_14
from lab_15 import lab as lab_15
from lab_16 import lab as lab_16

from distlab.labs import NOT_DONE, WRONG
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
@pytest.mark.parametrize(
    "lab",
    [
        lab_02.LAB,
        lab_03.LAB,
        lab_04.LAB,
        lab_05.LAB,
        lab_06.LAB,
        lab_07.LAB,
        lab_08.LAB,
        lab_10.LAB,
        lab_11.LAB,
        lab_12.LAB,
        lab_13.LAB,
        lab_14.LAB,
        lab_15.LAB,
        lab_16.LAB,
    ],
    ids=lambda lab: lab.name,
)
def test_a_strange_answer_is_not_right(lab: object, value: object) -> None:
    for exercise in lab:
        if lab.tensorflow and exercise.name in ("make_model", "make_batches", "mirrored", "run", "train"):
            continue  # they start TensorFlow; that `elapsed_seconds` waits is enough for here
        for answer in [value, *functions_that_give(value)]:
            verdict = verdict_on(lab, exercise.name, {exercise.name: answer})
            assert verdict.state in (WRONG, NOT_DONE) and verdict.share < 1, (exercise.name, verdict)
            assert "could not cope" not in verdict.text, (exercise.name, verdict)

"""A search for accepted wrong answers: no check accepts a solution with a small change, unless it changes nothing.

Each exercise's own solution is changed in one place at a time (`mutants`), and the check must reject the result with
the seed of the check; ten mutants of each exercise are tried. Those that it accepts are listed, with the reason why
each gives the same on every legal input; another survivor fails the test.
"""

import importlib
import json
import sys

import numpy as np
import pytest

from distlab.labs import OwnAnswer, registry
from tests.distlab.labs.judged_apart import WITH_TENSORFLOW, printed_apart
from tests.distlab.labs.mutants import mutants
from tests.distlab.labs.solutions import solved_cells

SECONDS = 1.0  # for a mutant that never ends; the check says so

STARTS_PROCESSES = ("07", "start")  # its mutants are not tried
QUICK = [
    (number, exercise.name)
    for number in registry.MODULES
    for exercise in registry.lab(number)
    if (number, exercise.name) not in (*WITH_TENSORFLOW, STARTS_PROCESSES)
]
SURVIVORS = {
    "model.fit(batches.prefetch(tf.data.AUTOTUNE), epochs=epochs, verbose=1)": "it only prints",
    "model.compile(tf.keras.optimizers.SGD(rate * epochs), loss)": "WarmUp sets the rate before every step",
    "if np.ptp(run['after'], axis=0).max() >= 1e-05:": "no two copies differ by exactly that",
    "return 'step count' if np.allclose(factors, factors[-1]) else 'averages'": "if all are equal, any of them is",
    "if int(training.step) % every == 0 or int(checkpoint.step) == last_step:": "both are the same variable",
    "without rates, choice = (dict.fromkeys(('synchronous', 'backup workers', 'asynchronous')), None)": (
        "each name gets another value in any case"
    ),
    "images = events(log, 'step')[-1]['images']": "they are the same in all steps",
    "return 1 / slow / (1 // slow + (workers - 1) / normal)": "the rounding is less than the 3 % that the text allows",
    "if coming[0] > end:": "the text leaves open what a fault does at the very moment at which something ends",
    "return 'no shuffling' if first == sorted(second) else 'no set_epoch'": "all three orders are the same here",
}


def accepted(number: str, exercise: str, seconds: float, **known: object) -> list[str]:
    """The mutants that the check takes for right, as it does the solution; it may call names that are `known`."""

    def is_right(text: str, seconds: float = 60.0) -> bool:
        namespace: dict[str, object] = {"__name__": "notebook", **known}
        for name, cell in solved_cells(number).items():
            exec(compile(text if name == exercise else cell, f"<{name}>", "exec"), namespace)
        return registry.lab(number)[exercise].verdict(OwnAnswer(namespace, seconds)).is_right

    solution = solved_cells(number)[exercise]
    assert is_right(solution)
    found = list(mutants(solution).items())
    tried = [found[round(place)] for place in np.linspace(0, len(found) - 1, min(10, len(found)))]
    return [changed for text, changed in tried if changed not in SURVIVORS and is_right(text, seconds)]


@pytest.mark.filterwarnings("ignore")  # mutants divide by zero and forget to await
@pytest.mark.parametrize(("number", "exercise"), QUICK)
def test_no_mutant_is_accepted_without_a_reason(number: str, exercise: str) -> None:
    assert accepted(number, exercise, SECONDS) == []


@pytest.mark.slow
@pytest.mark.parametrize(("number", "exercise"), WITH_TENSORFLOW)
def test_no_mutant_that_needs_tensorflow_is_accepted_without_a_reason(number: str, exercise: str) -> None:
    assert printed_apart("tests.distlab.labs.test_labs_mutants", number, exercise) == []


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("def f(a, b):\n    return a // b", {"return a / b", "return a * b", "return b // b", "return a // a"}),
        ("def f(a):\n    if a < 3:\n        a = 1\n    return a", {"if a <= 3:", "if True:", "without a = 1"}),
        ("def f(a, b):\n    return min(a, b)", {"return max(a, b)"}),
        ("async def f(rank, a):\n    return await g(a[1:])", {"return g(a[1:])", "return await g(a[:])"}),
        ("def f():\n    return hvd.size()", {"return hvd.local_size()"}),
    ],
)
def test_a_mutant_has_one_small_change(text: str, changes: set[str]) -> None:
    assert changes <= {*mutants(text).values()}


if __name__ == "__main__":
    import distlab  # before TensorFlow: it selects tf-keras

    assert distlab
    known = importlib.import_module(f"lab_{sys.argv[1]}.known_answers").GIVEN
    print(json.dumps(accepted(*sys.argv[1:], seconds=60.0, **known)))

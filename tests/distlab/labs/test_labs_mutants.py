"""A search for accepted wrong answers: no check accepts a solution with a small change, unless it changes nothing.

Each exercise's own solution is changed in one place at a time (`mutants`), and the check must reject the result with
the seed of the check. The mutants that it accepts are listed in `surviving_mutants`, with the reason why each gives the
same on every legal input; another survivor fails the test.

Ten mutants of each exercise are tried in every run. `MUTANTS=all pytest tests/distlab/labs/test_labs_mutants.py` tries
all of them, which takes half an hour, and finds what is listed and rejected by now.
"""

import functools
import importlib
import os

import numpy as np
import pytest

from distlab.labs import OwnAnswer, registry
from tests.distlab.labs.judged_apart import WITH_TENSORFLOW, apart
from tests.distlab.labs.mutants import Mutant, mutants
from tests.distlab.labs.solutions import solved_cells
from tests.distlab.labs.surviving_mutants import SURVIVORS

ALL = os.environ.get("MUTANTS") == "all"
SECONDS = 1.0  # for a mutant that never ends; the check says so

STARTS_PROCESSES = ("07", "start")  # its mutants are not tried
QUICK = [
    (number, exercise.name)
    for number in registry.MODULES
    for exercise in registry.lab(number)
    if (number, exercise.name) not in (*WITH_TENSORFLOW, STARTS_PROCESSES)
]


@functools.cache
def tried(number: str, exercise: str) -> list[Mutant]:
    """All mutants, or ten from all over the solution."""
    found = mutants(solved_cells(number)[exercise])
    count = len(found) if ALL else min(10, len(found))
    return [found[round(place)] for place in np.linspace(0, len(found) - 1, count)]


def accepted(number: str, exercise: str, seconds: float, **known: object) -> list[Mutant]:
    """The mutants that the check takes for right, as it does the solution; it may call names that are `known`."""
    listed = SURVIVORS.get((number, exercise), {})

    def is_right(text: str, seconds: float = 60.0) -> bool:
        namespace: dict[str, object] = {"__name__": "notebook", **known}
        for name, cell in solved_cells(number).items():
            exec(compile(text if name == exercise else cell, f"<{name}>", "exec"), namespace)
        return registry.lab(number)[exercise].verdict(OwnAnswer(namespace, seconds)).is_right

    assert is_right(solved_cells(number)[exercise])
    return [
        mutant
        for mutant in tried(number, exercise)
        if is_right(mutant.text, 60.0 if mutant.after in listed else seconds)
    ]


def assert_all_listed(number: str, exercise: str, accepted: list[Mutant]) -> None:
    """Only the listed mutants are accepted, and those of the list are."""
    listed = SURVIVORS.get((number, exercise), {})
    survivors = [mutant[1:] for mutant in accepted if mutant.after not in listed]
    assert not survivors, f"lab {number} accepts {len(survivors)} wrong answers to {exercise}: {survivors}"
    obsolete = set(listed) - {mutant.after for mutant in accepted} if ALL else set()
    assert not obsolete, f"these are rejected, or there are no such mutants: {obsolete}"


@pytest.mark.filterwarnings("ignore")  # mutants divide by zero and forget to await
@pytest.mark.parametrize(("number", "exercise"), QUICK)
def test_no_mutant_is_accepted_without_a_reason(number: str, exercise: str) -> None:
    assert_all_listed(number, exercise, accepted(number, exercise, SECONDS))


def accepted_with_tensorflow(number: str, exercise: str) -> list[Mutant]:
    known = importlib.import_module(f"lab_{number}.known_answers").GIVEN
    return accepted(number, exercise, seconds=60.0, **known)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "exercise"), WITH_TENSORFLOW)
def test_no_mutant_that_needs_tensorflow_is_accepted_without_a_reason(number: str, exercise: str) -> None:
    assert_all_listed(number, exercise, apart(accepted_with_tensorflow, number, exercise))


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
    assert changes <= {mutant.after for mutant in mutants(text)}

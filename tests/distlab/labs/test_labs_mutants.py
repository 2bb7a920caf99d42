"""A search for accepted wrong answers: no check accepts a solution with a small change, unless it changes nothing.

Each exercise's own solution is changed in one place at a time (`mutants`), and the check must reject the result with
the seed of the check. The mutants that it accepts are listed in `surviving_mutants`, with the reason why each gives the
same on every legal input; another survivor fails the test.

Ten mutants of each exercise are tried in every run. `MUTANTS=all pytest tests/distlab/labs/test_labs_mutants.py` tries
all of them, which takes half an hour, and finds what is listed and rejected by now.
"""

import functools
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from distlab.labs import OwnAnswer, Verdict, registry
from tests.distlab.labs.mutants import Mutant, mutants
from tests.distlab.labs.solutions import solved_cells
from tests.distlab.labs.surviving_mutants import SURVIVORS

ALL = os.environ.get("MUTANTS") == "all"
SECONDS = 1.0  # for a mutant that never ends; the check says so

NUMERIC = {
    "02": ("plan",),
    "03": ("numbers", "diagnose"),
    "04": ("factors", "replica_losses", "with_penalty"),
    "05": ("numbers_of", "lacks", "housekeeping"),
    "06": ("reduce_scatter", "all_gather", "ring_all_reduce", "halving_doubling_all_reduce"),
    "07": ("tf_config", "samples_seen", "save"),
    "08": ("staleness", "may_begin", "limits", "choose", "next_shares"),
    "10": ("plan", "warm_up", "noise_scale"),
    "11": ("audit", "corrected", "amdahl", "alpha_beta", "predicted"),
    "12": ("one_forward_one_backward", "plan", "by_columns", "by_rows", "two_layers"),
    "13": ("diagnose", "cure", "plan", "elapsed", "compare"),
    "14": ("samples", "diagnose", "uneven", "accumulate"),
    "15": ("attempt", "read_table", "rent"),
    "16": ("throughput", "profile", "predict", "job_script"),
}
WITH_TENSORFLOW = {
    "02": ("mixed_batches", "repeats", "train"),
    "03": ("mirrored",),
    "04": ("distributed",),
    "05": ("run",),
    "09": ("start", "feeding", "training"),
    "16": ("train",),
}
DEADLINE = 1500


@functools.cache
def tried(number: str, exercise: str) -> list[Mutant]:
    """All mutants, or ten from all over the solution."""
    found = mutants(solved_cells(number)[exercise])
    places = range(len(found)) if ALL else {round(place) for place in np.linspace(0, len(found) - 1, 10)}
    return [found[place] for place in sorted(places)]


def verdict_on_mutant(number: str, exercise: str, text: str, seconds: float, seed: int = 0, **known: object) -> Verdict:
    """What the check says of the notebook's solutions, one of which has this text instead."""
    namespace: dict[str, object] = {"__name__": "notebook", **known}
    for name, cell in solved_cells(number).items():
        exec(compile(text if name == exercise else cell, f"<{name}>", "exec"), namespace)
    return registry.lab(number)[exercise].verdict(OwnAnswer(namespace, seconds), seed)


def assert_rejected(number: str, exercise: str, accepted: list[Mutant]) -> None:
    """Only the listed mutants are accepted, and those of the list are."""
    listed = SURVIVORS.get((number, exercise), {})
    survivors = [mutant[1:] for mutant in accepted if mutant.after not in listed]
    assert not survivors, f"lab {number} accepts {len(survivors)} wrong answers to {exercise}: {survivors}"
    obsolete = set(listed) - {mutant.after for mutant in accepted} if ALL else set()
    assert not obsolete, f"these are rejected, or there are no such mutants: {obsolete}"


@pytest.mark.filterwarnings("ignore")  # mutants divide by zero and forget to await
@pytest.mark.parametrize(
    ("number", "exercise"), [(number, exercise) for number, names in NUMERIC.items() for exercise in names]
)
def test_no_mutant_is_accepted_without_a_reason(number: str, exercise: str) -> None:
    assert verdict_on_mutant(number, exercise, solved_cells(number)[exercise], 60.0).is_right
    accepted, listed = [], SURVIVORS.get((number, exercise), {})
    for mutant in tried(number, exercise):
        seconds = 60.0 if mutant.after in listed else SECONDS
        accepted += [mutant] if verdict_on_mutant(number, exercise, mutant.text, seconds).is_right else []
    assert_rejected(number, exercise, accepted)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "exercise"), [(number, exercise) for number, names in WITH_TENSORFLOW.items() for exercise in names]
)
def test_no_mutant_that_needs_tensorflow_is_accepted_without_a_reason(number: str, exercise: str) -> None:
    command = [sys.executable, "-m", "tests.distlab.labs.test_labs_mutants", number, exercise]
    folder = Path(__file__).parents[3]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    assert_rejected(number, exercise, [Mutant(*fields) for fields in json.loads(run.stdout.splitlines()[-1])])


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


def _accepted(number: str, exercise: str) -> list[Mutant]:
    import distlab  # before TensorFlow: it selects tf-keras

    assert distlab
    known = importlib.import_module(f"lab_{number}.known_answers").GIVEN

    def is_right(text: str) -> bool:
        return verdict_on_mutant(number, exercise, text, 60.0, **known).is_right

    assert is_right(solved_cells(number)[exercise])
    return [mutant for mutant in tried(number, exercise) if is_right(mutant.text)]


if __name__ == "__main__":
    print(json.dumps(_accepted(*sys.argv[1:])))

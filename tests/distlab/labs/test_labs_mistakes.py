"""For every exercise that is judged by programs: each mistake's own program gets its own hint, and so they all differ.

The solution in the lab's text gets full marks, the cell that nobody has touched none. What is said to each mistake, and
the share of the points that it earns, is in the lab's `hints.json`; `pytest --snapshot-update` writes it.
"""

import functools
from collections.abc import Mapping, Sequence

import pytest
from syrupy.assertion import SnapshotAssertion

from distlab.labs import Verdict, registry
from distlab.labs.by_programs import ByPrograms, Mistake
from tests.distlab.labs.judged_apart import START_TENSORFLOW
from tests.distlab.labs.known_wrong import (
    SEEDS,
    assert_not_done,
    assert_right,
    assert_wrong_state,
    in_words,
    of_lab,
    verdict_on,
)
from tests.distlab.labs.solutions import namespace_of

ALL = {(number, exercise.name): exercise for number in registry.MODULES for exercise in registry.lab(number)}
EXERCISES = [key for key, exercise in ALL.items() if isinstance(exercise.judge, ByPrograms)]
every_exercise = pytest.mark.parametrize(("number", "name"), EXERCISES)
also_observed_ones = pytest.mark.parametrize(("number", "name"), [key for key in ALL if key not in START_TENSORFLOW])


def mistakes_in(number: str, name: str) -> Sequence[Mistake]:
    judge = ALL[number, name].judge
    assert isinstance(judge, ByPrograms)
    return judge.mistakes


@functools.cache
def verdicts(number: str, name: str, seed: int) -> list[Verdict]:
    lab = registry.lab(number)
    return [verdict_on(lab, name, {name: mistake.program}, seed) for mistake in mistakes_in(number, name)]


@every_exercise
def test_each_mistake_s_own_program_gets_its_own_hint(number: str, name: str) -> None:
    others = []
    for seed in SEEDS:
        for mistake, said in zip(mistakes_in(number, name), verdicts(number, name, seed), strict=True):
            own = list(mistake.hint.values()) if isinstance(mistake.hint, Mapping) else [mistake.hint]
            assert_wrong_state(said)
            others += [] if said.hints and all(hint in own for hint in said.hints) else [(own, said.text)]
    assert not others, "\n\n".join(map(str, others))


@also_observed_ones
def test_the_solution_gets_full_marks(number: str, name: str) -> None:
    for seed in SEEDS:
        assert_right(verdict_on(registry.lab(number), name, namespace_of(number, solved=True), seed))


@also_observed_ones
def test_the_untouched_cell_gets_nothing(number: str, name: str) -> None:
    assert_not_done(registry.lab(number), name, namespace_of(number, solved=False))
    assert_not_done(registry.lab(number), name, {})


@pytest.mark.parametrize("number", registry.MODULES)
def test_hints_and_shares_are_those_of_the_snapshot(number: str, snapshot: SnapshotAssertion) -> None:
    said = {name: [in_words(said) for said in verdicts(number, name, 0)] for lab, name in EXERCISES if lab == number}
    assert said == snapshot(extension_class=of_lab(number, "hints"))

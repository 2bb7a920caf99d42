"""For every exercise that is judged by programs: each mistake's own program gets its own hint, and so they all differ.

The solution in the lab's text gets full marks, the cell that nobody has touched none. What is said to each mistake, and
the share of the points that it earns, is in the lab's `hints.json`; `pytest --snapshot-update` writes it.
"""

import functools
from collections.abc import Mapping

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension
from syrupy.location import PyTestLocation
from syrupy.types import SnapshotIndex

from distlab.labs import Exercise, Verdict, registry
from distlab.labs.by_programs import ByPrograms, Mistake
from tests.distlab.labs.known_wrong import SEEDS, assert_not_done, assert_right, assert_wrong_state, verdict_on
from tests.distlab.labs.solutions import namespace_of

EXERCISES = [
    (number, exercise.name)
    for number in registry.MODULES
    for exercise in registry.lab(number)
    if isinstance(exercise.judge, ByPrograms)
]
every_exercise = pytest.mark.parametrize(("number", "name"), EXERCISES)


def of(number: str, name: str) -> tuple[Exercise, list[Mistake]]:
    exercise = registry.lab(number)[name]
    assert isinstance(exercise.judge, ByPrograms)
    return exercise, list(exercise.judge.mistakes)


@functools.cache
def verdict(number: str, name: str, place: int, seed: int) -> Verdict:
    _, mistakes = of(number, name)
    return verdict_on(registry.lab(number), name, {name: mistakes[place].program}, seed)


@every_exercise
def test_each_mistake_s_own_program_gets_its_own_hint(number: str, name: str) -> None:
    others = []
    for place, mistake in enumerate(of(number, name)[1]):
        own = list(mistake.hint.values()) if isinstance(mistake.hint, Mapping) else [mistake.hint]
        for said in (verdict(number, name, place, seed) for seed in SEEDS):
            assert_wrong_state(said)
            others += [] if said.hints and all(hint in own for hint in said.hints) else [(place, own, said.text)]
    assert not others, "\n\n".join(map(str, others))


@every_exercise
def test_the_solution_gets_full_marks(number: str, name: str) -> None:
    for seed in SEEDS:
        assert_right(verdict_on(registry.lab(number), name, namespace_of(number, solved=True), seed))


@every_exercise
def test_the_untouched_cell_gets_nothing(number: str, name: str) -> None:
    assert_not_done(registry.lab(number), name, namespace_of(number, solved=False))
    assert_not_done(registry.lab(number), name, {})


def hints_file(number: str) -> type[JSONSnapshotExtension]:
    class Hints(JSONSnapshotExtension):
        @classmethod
        def dirname(cls, *, test_location: PyTestLocation) -> str:
            return str(registry.JUDGES[number])

        @classmethod
        def get_file_basename(cls, *, test_location: PyTestLocation, index: SnapshotIndex) -> str:
            return "hints"

        @classmethod
        def get_snapshot_name(cls, *, test_location: PyTestLocation, index: SnapshotIndex = 0) -> str:
            return "hints"

    return Hints


@pytest.mark.parametrize("number", sorted({number for number, _ in EXERCISES}))
def test_hints_and_shares_are_those_of_the_snapshot(number: str, snapshot: SnapshotAssertion) -> None:
    said = {
        name: [
            f"{verdict(number, name, place, 0).share:.3g}: {verdict(number, name, place, 0).text}" for place in places
        ]
        for of_lab, name in EXERCISES
        if of_lab == number
        for places in [range(len(of(number, name)[1]))]
    }
    assert said == snapshot(extension_class=hints_file(number))

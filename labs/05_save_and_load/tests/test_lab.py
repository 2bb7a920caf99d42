"""Lab 05: the runs of broken checkpoints show what they lack; resumed programs in a process of their own."""

import json
from collections.abc import Callable

import numpy as np
import pytest
from lab_05 import broken_runs, given, lab
from lab_05.hints import Lab05Hint
from lab_05_tests.answers_05 import first_that_differs, likeness, true_lacks

from course_tools.sandbox.cells import Cells
from distlab.labs import OwnAnswer, Verdict, registry
from tests.distlab.labs.judged_apart import assert_told_apart, judged_apart
from tests.distlab.labs.known_wrong import LABS

LAB = lab.LAB


@pytest.mark.slow
@pytest.mark.parametrize("kind", [broken_runs.EARLY, broken_runs.LATE, broken_runs.SMALL], ids=str)
@pytest.mark.parametrize("part", given.PARTS)
def test_the_first_step_shows_what_is_lacking(part: str, kind: broken_runs.TrainingKind) -> None:
    for seed in range(20):
        runs = broken_runs.drawn_runs(np.random.default_rng(seed), part, kind)
        assert true_lacks(**runs) == part


def test_a_lost_step_count_changes_all_weights_by_the_factor_of_adam() -> None:
    runs = broken_runs.drawn_runs(np.random.default_rng(3), "step count")
    before, after = runs["straight"][0], runs["resumed"][0]
    steps = before["step"] + 1
    factor = (1 - 0.9**steps) / np.sqrt(1 - 0.999**steps) * np.sqrt(1 - 0.999) / (1 - 0.9)
    np.testing.assert_allclose(np.array(after["changes"]) / before["changes"], factor, rtol=1e-4)


def test_with_averages_of_zero_each_weight_changes_by_the_same_amount_or_not_at_all() -> None:
    runs = broken_runs.drawn_runs(np.random.default_rng(3), "averages")
    sizes = np.abs(runs["resumed"][0]["changes"])
    np.testing.assert_allclose(sizes[sizes > 0], sizes.max(), rtol=1e-4)
    assert sizes.max() > 0


def test_lost_averages_may_only_shorten_the_changes() -> None:
    runs = broken_runs.averages_lost_from_smooth_gradients()
    factors = np.array(runs["resumed"][0]["changes"]) / runs["straight"][0]["changes"]
    assert set(np.floor(factors)) == {0} and np.ptp(factors) > 0.5
    assert true_lacks(**runs) == "averages"


@pytest.mark.parametrize("part", ["averages", "step count"])
def test_smooth_gradients_keep_their_signs_and_show_what_is_lacking_by_a_few_per_cent(part: str) -> None:
    for seed in range(5):
        runs = broken_runs.drawn_runs(np.random.default_rng(seed), part, broken_runs.SMOOTH)
        factors = np.divide(runs["resumed"][0]["changes"], runs["straight"][0]["changes"])
        assert (factors > 0).all() and np.ptp(factors) < 0.05 * factors.mean()
        assert true_lacks(**runs) == part


def lacks_by(is_one_factor: Callable, loss_tolerance: Callable = lambda loss: 1e-5 * loss) -> Callable:
    """`lacks` with other rules for changes that differ by one factor, and for losses that are equal."""

    def lacks(straight: list[dict], resumed: list[dict]) -> str:
        before, after = straight[0], resumed[0]
        same_loss = abs(after["loss"] - before["loss"]) < loss_tolerance(before["loss"])
        factors = np.divide(after["changes"], before["changes"])
        same = likeness(before, after) | {"weights": same_loss, "averages": is_one_factor(factors)}
        return first_that_differs(same)

    return lacks


RULES_FOR_MANY_RUNS = {
    "averages turn signs": (lambda factors: (factors > 0).all(),),
    "factors within 30 %": (lambda factors: np.ptp(factors) < 0.3 * abs(factors.mean()),),
    "factors within 5 %": (lambda factors: np.ptp(factors) < 0.05 * abs(factors.mean()),),
    "factors with a small deviation": (lambda factors: np.std(factors) < 0.05,),
    "the first two factors": (lambda factors: np.isclose(factors[0], factors[1]),),
    "the last two factors": (lambda factors: np.isclose(factors[-2], factors[-1]),),
    "losses within a tenth": (lambda factors: np.ptp(factors) < 0.001, lambda loss: 0.1),
}


@pytest.mark.slow
@pytest.mark.parametrize("title", RULES_FOR_MANY_RUNS)
def test_a_rule_that_holds_for_many_runs_only_is_rejected_for_one_part_with_any_seed(title: str) -> None:
    for seed in (0, 1, 2):
        verdict = LAB["lacks"].verdict(OwnAnswer({"lacks": lacks_by(*RULES_FOR_MANY_RUNS[title])}), seed)
        assert verdict.share == 5 / 6, verdict
        assert set(verdict.hints) <= {Lab05Hint.NOT_AVERAGES, Lab05Hint.NOT_WEIGHTS}


@pytest.mark.slow
def test_other_tolerances_for_rounding_are_right() -> None:
    rule = lacks_by(lambda factors: np.ptp(factors) < 0.01 * abs(factors).max(), lambda loss: 0.01 * loss)
    assert LAB["lacks"].verdict(OwnAnswer({"lacks": rule})).is_right


ORDER_IN_ITS_CELL = """
import functools, random
import numpy as np

generators, orders = {{}}, {{}}

{order}

def numbers_of(step, images, batch, seed):
    epoch, place = divmod(step, images // batch)
    return order(seed, epoch, images)[place * batch : (place + 1) * batch]
"""
LOST_AT_RESTART = {
    "cached, not seeded": """
@functools.lru_cache(None)
def order(seed, epoch, images):
    return np.random.permutation(images)
""",
    "by first asking": """
def order(seed, epoch, images):
    generator = generators.setdefault(seed, np.random.default_rng(seed))
    if (seed, epoch, images) not in orders:
        orders[seed, epoch, images] = generator.permutation(images)
    return orders[seed, epoch, images]
""",
    "hash of a text": """
def order(seed, epoch, images):
    order = list(range(images))
    random.Random(hash(f"{seed},{epoch}")).shuffle(order)
    return order
""",
    "number of the process": """
import os
from os import getpid
def order(seed, epoch, images):
    return np.random.default_rng([seed, epoch, os.getpid(), getpid()]).permutation(images)
""",
    "begun at random": """
begin = random.randrange(1000)
def order(seed, epoch, images):
    return np.random.default_rng([seed, epoch, begin]).permutation(images)
""",
}
SAME_AFTER_RESTART = {
    "in the order of the epochs": """
def order(seed, epoch, images):
    generator, made = orders.setdefault((seed, images), (np.random.default_rng(seed), []))
    while len(made) <= epoch:
        made.append(generator.permutation(images))
    return made[epoch]
""",
    "hash of numbers": """
def order(seed, epoch, images):
    return np.random.default_rng(abs(hash((seed, epoch)))).permutation(images)
""",
    "global state, seeded": """
np.random.seed(3)
begin = np.random.randint(1000)
def order(seed, epoch, images):
    return np.random.default_rng([seed, epoch, begin]).permutation(images)
""",
}


def verdict_on_cell(text: str) -> Verdict:
    cells = Cells(10_000)
    cells.run(text, "numbers_of")
    return LAB["numbers_of"].verdict(OwnAnswer(cells.namespace))


@pytest.mark.parametrize("title", LOST_AT_RESTART)
def test_an_order_that_a_new_process_does_not_find_again_is_rejected(title: str) -> None:
    verdict = verdict_on_cell(ORDER_IN_ITS_CELL.format(order=LOST_AT_RESTART[title]))
    assert verdict.hints == (Lab05Hint.LOST_AT_RESTART,), verdict


@pytest.mark.parametrize("title", SAME_AFTER_RESTART)
def test_an_order_that_a_new_process_finds_again_is_right(title: str) -> None:
    assert verdict_on_cell(ORDER_IN_ITS_CELL.format(order=SAME_AFTER_RESTART[title])).is_right


def test_the_lab_s_file_has_the_runs_of_four_checkpoints() -> None:
    written = json.loads((LABS / LAB.name / "broken_runs.json").read_text())
    for letter, runs in broken_runs.lettered_runs().items():
        for name, records in runs.items():
            for record, expected in zip(written[letter][name], records, strict=True):
                assert set(record) == set(expected)
                for key, value in expected.items():
                    np.testing.assert_allclose(record[key], value, rtol=1e-9)
    assert set(written) == set(broken_runs.LETTERS)


def test_what_students_read_does_not_say_what_is_lacking() -> None:
    text = (LABS / LAB.name / "broken_runs.json").read_text()
    assert not any(f'"{part}"' in text for part in given.PARTS)
    assert "broken_runs" not in registry.NEXT_TO_STUDENTS


def test_two_runs_are_described_step_by_step() -> None:
    text = given.described(broken_runs.lettered_runs()["A"])
    assert len(text.splitlines()) == 2 * broken_runs.RECORDS
    assert text.splitlines()[0].split()[0] == "straight" and text.splitlines()[1].split()[0] == "resumed"


@pytest.mark.slow
def test_resumed_programs_are_told_apart() -> None:
    assert_told_apart(judged_apart("05", "lab_05_tests.answers_05_run"), ("own_file",))

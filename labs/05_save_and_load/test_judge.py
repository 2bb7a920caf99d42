"""Lab 05: orders of images, what checkpoints lack, which to use; resumed programs in a process of their own."""

import numpy as np
import pytest
from lab_05 import given, judge
from lab_05.broken_runs import LETTERS, drawn_runs, lettered_runs
from lab_05.judge import LAB, first_difference, housekeeping, is_whole

from course_tools.sandbox.cells import Cells
from distlab.labs import registry
from distlab.labs.by_programs import changed
from tests.distlab.labs.judged_apart import assert_told_apart, judged_apart
from tests.distlab.labs.known_wrong import SEEDS, assert_right, assert_wrong_state, verdict_on

# The images of a step ------------------------------------------------------------------------------------------------

NUMBERS_OF = """
def numbers_of(step, images, batch, seed):
    epoch, place = divmod(step, images // batch)
    order = np.random.default_rng([seed, epoch]).permutation(images)
    return order[place * batch : (place + 1) * batch]
"""
ORDER = "np.random.default_rng([seed, epoch]).permutation(images)"
GENERATOR = np.random.default_rng(0)
WRONG_ORDERS = {
    "in each step": (("[seed, epoch]", "[seed, step]"), "are in the same epoch, and both have image"),
    "same in each epoch": (("[seed, epoch]", "seed"), "must the order depend on besides the seed?"),
    "without the seed": (("[seed, epoch]", "epoch"), "give the same orders. Where does the seed come in?"),
    "cut first": (("(images)", "(images // batch * batch)"), "Are the images shuffled before or after the cut?"),
    "last batch smaller": (("images // batch", "-(-images // batch)"), "whole numbers for each step"),
    "drawn": (("permutation(images)", "integers(0, images, images)"), "Are the images drawn, or shuffled?"),
}


@pytest.mark.parametrize("title", WRONG_ORDERS)
def test_a_wrong_order_gets_its_hint(title):
    change, words = WRONG_ORDERS[title]
    answer = changed(NUMBERS_OF, change, GENERATOR=GENERATOR)
    for seed in SEEDS:
        verdict = verdict_on(LAB, "numbers_of", {"numbers_of": answer}, seed)
        assert_wrong_state(verdict)
        assert words in verdict.text and verdict.share == 0


def by_another_generator(step, images, batch, seed):
    order = list(range(images))
    np.random.RandomState(1000 * seed + step // (images // batch)).shuffle(order)
    return order[step % (images // batch) * batch :][:batch]


def test_another_right_answer_gets_full_marks():
    seed_plus_epoch = changed(NUMBERS_OF, ("[seed, epoch]", "seed + epoch"))
    for seed in SEEDS:
        assert_right(verdict_on(LAB, "numbers_of", {"numbers_of": seed_plus_epoch}, seed))
        assert_right(verdict_on(LAB, "numbers_of", {"numbers_of": by_another_generator}, seed))
        assert_right(verdict_on(LAB, "lacks", {"lacks": by_the_spread_of_the_factors}, seed))
        assert_right(verdict_on(LAB, "housekeeping", {"housekeeping": by_going_back}, seed))


IN_ITS_CELL = """
import functools, os, random
import numpy as np
generators, orders, begin = {}, {}, random.randrange(1000)
np.random.seed(3)
seeded = np.random.randint(1000)

def in_turn(seed, epoch, images):
    generator, made = orders.setdefault((seed, images), (np.random.default_rng(seed), []))
    while len(made) <= epoch:
        made.append(generator.permutation(images))
    return made[epoch]

@functools.lru_cache(None)
def not_seeded(seed, epoch, images):
    return np.random.permutation(images)

@functools.lru_cache(None)
def by_first_asking(seed, epoch, images):
    return generators.setdefault(seed, np.random.default_rng(seed)).permutation(images)
"""
SEEDED = "np.random.default_rng([seed, epoch, {}]).permutation(images)"
LOST_AT_RESTART = ["not_seeded(seed, epoch, images)", "by_first_asking(seed, epoch, images)"]
LOST_AT_RESTART += [SEEDED.format(more) for more in ("abs(hash('text'))", "os.getpid()", "begin")]
SAME_AFTER_RESTART = ["in_turn(seed, epoch, images)", SEEDED.format("hash((seed, 1)) % 99"), SEEDED.format("seeded")]


def cells(*texts):
    run = Cells(10_000)
    for number, text in enumerate(texts):
        assert run.run(text, f"of test {number}")["error"] is None
    return run.namespace


@pytest.mark.parametrize("order", [*LOST_AT_RESTART, *SAME_AFTER_RESTART])
def test_an_order_must_be_found_again_by_a_new_process(order):
    verdict = verdict_on(LAB, "numbers_of", cells(IN_ITS_CELL + NUMBERS_OF.replace(ORDER, order)))
    assert verdict.is_right if order in SAME_AFTER_RESTART else "in a new process" in verdict.text, verdict


# What a checkpoint lacks ---------------------------------------------------------------------------------------------


def lacks_by(is_one_factor, same_loss=lambda loss, known: abs(loss - known) < 1e-5 * known):
    """`lacks` with other rules for changes that differ by one factor, and for losses that are equal."""

    def lacks(straight, resumed):
        part = first_difference(straight, resumed, same_loss)
        factors = np.divide(resumed[0]["changes"], straight[0]["changes"])
        return ("step count" if is_one_factor(factors) else "averages") if part in ("averages", "step count") else part

    return lacks


by_the_spread_of_the_factors = lacks_by(lambda factors: np.ptp(factors) < 0.001)
RULES = {
    "factors within 30 %": lacks_by(lambda factors: np.ptp(factors) < 0.3 * abs(factors.mean())),
    "the first two factors": lacks_by(lambda factors: np.isclose(factors[0], factors[1])),
    "losses within a tenth": lacks_by(lambda factors: np.ptp(factors) < 0.001, lambda loss, known: loss - known < 0.1),
}
"""They hold for many runs only."""


@pytest.mark.slow
@pytest.mark.parametrize("title", RULES)
def test_a_rule_that_does_not_hold_for_all_runs_costs_one_part_with_any_seed(title):
    for seed in SEEDS:
        verdict = verdict_on(LAB, "lacks", {"lacks": RULES[title]}, seed)
        assert verdict.share == 5 / 6, verdict


def test_a_lost_step_count_changes_all_weights_by_the_factor_of_adam_and_lost_averages_by_the_same_amount():
    runs = drawn_runs(np.random.default_rng(3), "step count")
    steps = runs["straight"][0]["step"] + 1
    factor = (1 - 0.9**steps) / np.sqrt(1 - 0.999**steps) * np.sqrt(1 - 0.999) / (1 - 0.9)
    np.testing.assert_allclose(
        np.divide(runs["resumed"][0]["changes"], runs["straight"][0]["changes"]), factor, rtol=1e-4
    )
    sizes = np.abs(drawn_runs(np.random.default_rng(3), "averages")["resumed"][0]["changes"])
    np.testing.assert_allclose(sizes[sizes > 0], sizes.max(), rtol=1e-4)


def test_what_students_read_shows_what_is_lacking_and_does_not_say_it():
    assert {letter: judge.lacks(**runs) for letter, runs in lettered_runs().items()} == LETTERS
    text = (registry.JUDGES["05"] / "broken_runs.json").read_text()
    assert not any(f'"{part}"' in text for part in given.PARTS)
    lines = given.described(lettered_runs()["A"]).splitlines()
    assert len(lines) == 6 and lines[0].split()[0] == "straight" and lines[1].split()[0] == "resumed"


# Which checkpoint to use ---------------------------------------------------------------------------------------------


def by_going_back(checkpoints, keep):
    newest, kept, to_delete = None, 0, []
    for files in sorted(checkpoints, key=lambda files: -files["number"]):
        sizes = (files["index"], *files["data"])
        whole = None not in sizes and 0 not in sizes
        newest = files["number"] if whole and newest is None else newest
        kept += whole
        if newest is not None and (not whole or kept > keep):
            to_delete.append(files["number"])
    return {"resume": newest, "delete": to_delete}


def chosen(checkpoints, fits=is_whole):
    return [files["number"] for files in checkpoints if fits(files)]


def damaged(checkpoints):
    return chosen(checkpoints, lambda files: not is_whole(files))


def older(checkpoints):
    newest = max(chosen(checkpoints), default=0)
    return [files["number"] for files in checkpoints if files["number"] < newest]


RESUMES = {
    "is newer and whole too": lambda checkpoints: next(iter(chosen(checkpoints)), None),
    "What does `restore` do at a first start?": lambda checkpoints: max(chosen(checkpoints), default=0),
    "lacks a data file": lambda checkpoints: max(chosen(checkpoints, lambda files: files["index"]), default=None),
}
DELETES = {
    "in the middle of being written": lambda checkpoints, right: sorted({*right, *damaged(checkpoints)}),
    "who would ever use it?": lambda checkpoints, right: [number for number in right if number in chosen(checkpoints)],
    "How many does `keep` allow?": lambda checkpoints, right: [
        number for number in right if number in damaged(checkpoints)
    ],
    "one of the newest whole ones": lambda checkpoints, right: older(checkpoints),
}


@pytest.mark.parametrize(
    ("name", "words"), [*(("resume", words) for words in RESUMES), *(("delete", words) for words in DELETES)]
)
def test_a_wrong_choice_costs_its_half_and_is_named(name, words):
    def answer(checkpoints, keep):
        right = housekeeping(checkpoints, keep)
        value = RESUMES[words](checkpoints) if name == "resume" else DELETES[words](checkpoints, right["delete"])
        return right | {name: value}

    for seed in SEEDS:
        verdict = verdict_on(LAB, "housekeeping", {"housekeeping": answer}, seed)
        assert verdict.share == 0.5 and f"{name}: wrong: with whole ones" in verdict.text and words in verdict.text


@pytest.mark.slow
def test_resumed_programs_are_told_apart():
    assert_told_apart(judged_apart("05", "lab_05.known_answers"), ("own file",))

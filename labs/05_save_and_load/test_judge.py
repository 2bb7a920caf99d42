"""Lab 05: orders of images, what checkpoints lack, which to use."""

import numpy as np
import pytest
from lab_05 import given, judge
from lab_05.broken_runs import LETTERS, lettered_runs
from lab_05.judge import LAB, first_difference

from course_tools.sandbox.student import Student
from distlab.labs import registry
from distlab.labs.by_programs import changed
from tests.distlab.labs.known_wrong import right_answers, verdict_on, wrong_answers

NUMBERS_OF = """
def numbers_of(step, images, batch, seed):
    epoch, place = divmod(step, images // batch)
    order = np.random.default_rng([seed, epoch]).permutation(images)
    return order[place * batch : (place + 1) * batch]
"""
ORDER = "np.random.default_rng([seed, epoch]).permutation(images)"
test_a_wrong_order_gets_its_hint = wrong_answers(
    LAB,
    *(
        ("numbers_of", changed(NUMBERS_OF, change), 0, words)
        for change, words in (
            (("[seed, epoch]", "[seed, step]"), "are in the same epoch, and both have image"),
            (("[seed, epoch]", "seed"), "must the order depend on besides the seed?"),
            (("[seed, epoch]", "epoch"), "give the same orders. Where does the seed come in?"),
            (("(images)", "(images // batch * batch)"), "Are the images shuffled before or after the cut?"),
            (("images // batch", "-(-images // batch)"), "whole numbers for each step"),
            (("permutation(images)", "integers(0, images, images)"), "Are the images drawn, or shuffled?"),
        )
    ),
)


def by_another_generator(step, images, batch, seed):
    order = list(range(images))
    np.random.RandomState(1000 * seed + step // (images // batch)).shuffle(order)
    return order[step % (images // batch) * batch :][:batch]


IN_ITS_CELL = """
import functools
import numpy as np
orders = {}

def in_turn(seed, epoch, images):
    generator, made = orders.setdefault((seed, images), (np.random.default_rng(seed), []))
    while len(made) <= epoch:
        made.append(generator.permutation(images))
    return made[epoch]

@functools.lru_cache(None)
def not_seeded(seed, epoch, images):
    return np.random.permutation(images)
"""


@pytest.mark.parametrize(("order", "is_right"), [("in_turn", True), ("not_seeded", False)])
def test_an_order_must_be_found_again_by_a_new_process(order, is_right):
    run = Student()
    text = IN_ITS_CELL + NUMBERS_OF.replace(ORDER, f"{order}(seed, epoch, images)")
    assert run.run_cell(text) == ["", None]
    verdict = verdict_on(LAB, "numbers_of", run.namespace)
    assert verdict.is_right if is_right else "in a new process" in verdict.text, verdict


def by_the_spread_of_the_factors(straight, resumed):
    part = first_difference(straight, resumed, lambda loss, known: abs(loss - known) < 1e-5 * known)
    factors = np.divide(resumed[0]["changes"], straight[0]["changes"])
    return ("step count" if np.ptp(factors) < 0.001 else "averages") if part in ("averages", "step count") else part


def test_what_students_read_shows_what_is_lacking_and_does_not_say_it():
    assert {letter: judge.lacks(**runs) for letter, runs in lettered_runs().items()} == LETTERS
    text = (registry.JUDGES["05"] / "broken_runs.json").read_text()
    assert not any(f'"{part}"' in text for part in given.PARTS)
    lines = given.described(lettered_runs()["A"]).splitlines()
    assert len(lines) == 6 and lines[0].split()[0] == "straight" and lines[1].split()[0] == "resumed"


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


test_another_right_answer_gets_full_marks = right_answers(
    LAB,
    ("numbers_of", by_another_generator),
    ("lacks", by_the_spread_of_the_factors),
    ("housekeeping", by_going_back),
)

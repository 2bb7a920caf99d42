"""Lab 07: other right answers, and a fix is right exactly if the job starts after it."""

import contextlib
import shutil
import tempfile
from pathlib import Path

import pytest
from lab_07 import given, judge
from lab_07.judge import LAB

from tests.distlab.labs.known_wrong import SEEDS, assert_not_done, assert_right, verdict_on, written_solution

SOLUTION = written_solution("07", "diagnosis")


def glued_by_hand(cluster, task_type, index):
    jobs = ", ".join(
        '"{}": [{}]'.format(job, ", ".join(f'"{address}"' for address in addresses))
        for job, addresses in sorted(cluster.items())
    )
    return f'{{"task": {{"index": {index}, "type": "{task_type}"}},\n"cluster": {{{jobs}}}}}'


def by_the_first_address(cluster, task_type, index):
    first = cluster.get("chief", cluster["worker"])[0]
    return cluster[task_type][index] == first


def with_a_finally(worker, model, accuracy, folder):
    place = folder if worker.is_chief else Path(tempfile.mkdtemp())
    try:
        model.save(str(place / "model.keras"))
        value = accuracy.result()
        if worker.is_chief:
            with open(folder / "accuracy.txt", "w") as file:  # noqa: PTH123
                file.write(f"{value:.4f}\n")
    finally:
        if not worker.is_chief:
            shutil.rmtree(place)


def with_a_stack(worker, model, accuracy, folder):
    with contextlib.ExitStack() as stack:
        place = folder if worker.is_chief else Path(stack.enter_context(tempfile.TemporaryDirectory()))
        value = accuracy.result()
        model.save(place / "model.keras")
        (place / "accuracy.txt").write_text(str(value))


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("tf_config", glued_by_hand),
        ("is_chief", by_the_first_address),
        ("diagnosis", {letter: list(SOLUTION[letter]) for letter in "FEDCBA"}),
        ("save", with_a_finally),
        ("save", with_a_stack),
    ],
)
def test_another_right_answer_gets_full_marks(name, answer):
    for seed in SEEDS:
        assert_right(verdict_on(LAB, name, {name: answer}, seed))


@pytest.mark.parametrize("letter", given.BROKEN)
def test_a_broken_job_starts_after_one_fix_and_no_other(letter):
    assert not judge.starts(given.BROKEN[letter])
    choices = [(field, fix) for field in given.FIELDS for fix in given.FIXES]
    assert [choice for choice in choices if judge.starts_after(letter, *choice)] == [SOLUTION[letter]]


def test_every_fix_can_be_done_somewhere_and_some_fix_nothing():
    assert {fix for _, fix in SOLUTION.values()} < set(given.FIXES)
    assert {field for field, _ in given.CHANGES.values()} == set(given.FIELDS)


@pytest.mark.parametrize(
    ("letter", "choice", "words"),
    [
        ("A", ("task.index", "give every process a number of its own"), judge.SYMPTOMS["A"][1]),
        ("C", ("cluster.worker", "write the same list in every process"), "the place is right; with this fix"),
        ("F", ("task.type", "write the same list in every process"), "cannot be done in task.type."),
        ("E", ("index", "count from 0"), "'index' is not in the list of fields."),
    ],
)
def test_a_wrong_choice_costs_its_point_and_says_what_would_be_seen(letter, choice, words):
    verdict = verdict_on(LAB, "diagnosis", {"diagnosis": SOLUTION | {letter: choice}})
    assert words in verdict.text and verdict.share == pytest.approx(5 / 6)


def test_a_partly_filled_diagnosis_earns_what_is_right():
    verdict = verdict_on(LAB, "diagnosis", {"diagnosis": {letter: SOLUTION[letter] for letter in "ABC"}})
    assert verdict.share == 0.5 and "D, E, F: not done yet" in verdict.text
    assert_not_done(LAB, "diagnosis", {"diagnosis": dict.fromkeys("ABCDEF", (None, None))})

"""Lab 15: the judges' own numbers against calculations by hand and independent ones."""

import numpy as np
import pytest
from lab_15 import enlargement, given, lab, rent, requeued_job, scaling_table

from distlab.simulate import Rank
from tests.distlab.labs.known_wrong import assert_not_done, assert_right, verdict_on, written_solution

LAB = lab.LAB


def test_names_without_values_are_not_done_yet() -> None:
    nothing = dict.fromkeys(scaling_table.NAMES)
    assert_not_done(LAB, "read_table", {"read_table": lambda runs: nothing})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_every_planned_attempt_does_each_step_once(seed: int) -> None:
    for planned in requeued_job.planned_attempts(np.random.default_rng(seed)):
        run = requeued_job.right_run(planned)
        assert requeued_job.hint_of_run(planned, run) is None
        steps, saves = requeued_job._done(planned, run)
        assert steps == [*range(planned.saved + 1, planned.last + 1)]
        assert [save.step for save in saves] == [planned.last] * planned.is_cut
        assert set(run.results) == {85 if planned.is_cut else 0}


@pytest.mark.parametrize("seed", range(20))
def test_attempts_in_a_row_lose_no_step_and_do_none_twice(seed: int) -> None:
    generator = np.random.default_rng(seed)
    done, saved, steps = [], 0, 12
    while saved < steps:
        notices = [int(notice) if notice > saved else None for notice in generator.integers(1, 20, 3)]
        planned = requeued_job.PlannedAttempt(requeued_job.NEXT, steps, saved, notices)
        own, saves = requeued_job._done(planned, requeued_job.right_run(planned))
        done += own
        saved = saves[0].step if saves else steps
    assert done == [*range(1, steps + 1)]


def test_a_sum_before_the_first_step_is_not_right() -> None:
    async def attempt(rank: Rank, job: given.QueuedJob) -> int:
        await given.add_up(rank, int(given.has_notice(rank, job)))
        return await requeued_job.attempt(rank, job)

    verdict = verdict_on(LAB, "attempt", {"attempt": attempt})
    assert verdict.share == 0 and "before step 1 the ranks add something up" in verdict.text


def test_the_example_of_the_table_by_hand() -> None:
    table = scaling_table.read_table(scaling_table.EXAMPLE)
    assert (table["trusted"], table["pays"]) == ([0, 1, 2], 2)
    assert table["speedup"] == pytest.approx([1, 2 * 0.1 / 0.11, 4 * (32 / 0.08) / (64 / 0.1)])


@pytest.mark.parametrize("seed", range(20))
def test_studies_have_one_trusted_run_for_every_size_and_others_only_if_disturbed(seed: int) -> None:
    for runs in scaling_table.drawn_studies(np.random.default_rng(seed)):
        seconds = np.zeros(max(run.end for run in runs))
        for run in runs:
            seconds[run.start : run.end] += 1
        alone = [
            place
            for place, run in enumerate(runs)
            if run.state == "COMPLETED" and (seconds[run.start : run.end] == 1).all()
        ]
        assert scaling_table.trusted(runs) == alone
        sizes = [runs[place].nodes for place in alone]
        assert len(set(sizes)) == len(sizes) and 1 in sizes


def test_nodes_that_bring_exactly_half_pay() -> None:
    assert enlargement.pays_up_to({1: 1.0, 2: 2.0, 6: 4.0, 10: 5.0}) == 6


def test_the_example_of_the_offers_by_hand() -> None:
    # 108 million images: 60 h on one small node. Two: 60 / 1.9 h, two jobs.
    choice = rent.rent(*rent.EXAMPLE)
    assert choice is not None and (choice.name, choice.nodes) == ("small", 2)
    assert (choice.done, choice.cost) == pytest.approx((60 / 1.9 + 2, 2 * 2 * 60 / 1.9))


@pytest.mark.parametrize("seed", range(20))
def test_every_case_has_a_single_cheapest_choice(seed: int) -> None:
    for part, (offers, images, deadline) in rent.drawn_cases(np.random.default_rng(seed)):
        in_time = [choice for choice in rent.choices(offers, images) if choice.done <= deadline]
        assert bool(in_time) == (part == rent.CHOICE)
        costs = sorted(choice.cost for choice in in_time)
        assert len(costs) < 2 or costs[1] > 1.0001 * costs[0]


def test_the_targets_show_the_numbers() -> None:
    assert LAB.target("rent").splitlines()[-1].endswith("'done': 33.5789, 'cost': 126.3158}")
    assert LAB.target("read_table").splitlines()[-1].split() == ["'pays'", "2"]


@pytest.mark.slow
@pytest.mark.parametrize("exercise", ["batch", "array", "long", "read_table", "rent"])
def test_the_solution_of_the_text_is_right(exercise: str) -> None:
    solution = written_solution("15", exercise)
    for seed in (0, 7, 8):
        assert_right(verdict_on(LAB, exercise, {exercise: solution}, seed))


def test_the_lab_needs_no_tensorflow() -> None:
    assert not LAB.tensorflow

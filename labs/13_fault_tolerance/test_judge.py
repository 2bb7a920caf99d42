"""Lab 13: other right answers, and the judge's own numbers against logs and formulas."""

import numpy as np
import pytest
from lab_13 import diagnosis, jobs, judge
from lab_13.disturbed_runs import elapsed, expected_seconds
from lab_13.judge import LAB

from tests.distlab.labs.known_wrong import right_answers


def lost_twice_the_saves(workers, days, save, step):
    between = days * judge.DAY / workers
    lost = (2 * save / between) ** 0.5
    return {
        "between faults": between,
        "interval": lost * between,
        "lost": lost,
        "steps": int(lost * between / step + 0.5),
    }


def half_second_by_half_second(work, interval, save, restart, faults):
    """A clock of half a second; all times are multiples of it."""
    clock, done, unsaved, saving, starting = 0, 0.0, 0.0, 0.0, 0.0
    faults = {round(2 * fault) for fault in faults}
    while done + unsaved < work:
        if clock in faults:
            unsaved, saving, starting = 0.0, 0.0, restart
        if starting > 0:
            starting -= 0.5
        elif unsaved == interval:
            saving += 0.5
            if saving == save:
                done, unsaved, saving = done + unsaved, 0.0, 0.0
        else:
            unsaved += 0.5
        clock += 1
    return clock / 2


def by_a_loop(intervals, work, save, restart, runs):
    means = {one: sum(elapsed(work, one, save, restart, run) for run in runs) / len(runs) for one in intervals}
    return {"best": min(means, key=means.get), "means": means.values()}


test_another_right_answer_gets_full_marks = right_answers(
    LAB, ("plan", lost_twice_the_saves), ("elapsed", half_second_by_half_second), ("compare", by_a_loop)
)


@pytest.mark.parametrize("seed", range(14))
def test_every_job_is_diagnosed_by_its_log_alone(seed):
    variant = seed % 7
    for job in jobs.drawn_jobs(np.random.default_rng(seed), variant).values():
        assert tuple(diagnosis.diagnose(job.log).values()) == (job.illness, job.worker, job.step)


def test_the_simulated_mean_is_that_of_the_closed_formula():
    work, interval, save, restart, between = 10_000.0, 400.0, 40.0, 150.0, 2_000.0
    faults = np.cumsum(np.random.default_rng(5).exponential(between, (3000, 60)), axis=1)
    seconds = np.array([elapsed(work, interval, save, restart, run.tolist()) for run in faults])
    assert seconds.max() < faults[:, -1].min()
    error = seconds.std() / len(seconds) ** 0.5
    assert abs(seconds.mean() - expected_seconds(work, interval, save, restart, between)) < 4 * error

"""Lab 13: the judge's own numbers against closed formulas, a plain simulation and the logs."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from lab_13 import comparison, diagnosis, elapsed_seconds, given, jobs, lab
from lab_13.disturbed_runs import Rules, elapsed, expected_seconds
from lab_13.hints import Lab13Hint
from lab_13.plan import plan, young_interval
from lab_13_tests import answers_13
from lab_13_tests.answers_13 import simulated_by, true_cure, true_diagnosis

from distlab.labs import Hint
from tests.distlab.labs.known_wrong import assert_not_done, assert_right, verdict_on, written_solution

LAB = lab.LAB


def test_names_without_values_are_not_done_yet() -> None:
    assert_not_done(LAB, "diagnose", {"diagnose": lambda log: {"illness": None, "worker": None, "step": None}})
    assert_not_done(LAB, "compare", {"compare": lambda *arguments: {"means": None, "best": None}})


@pytest.mark.parametrize("seed", range(30))
def test_every_job_is_diagnosed_and_cured_by_its_log_alone(seed: int) -> None:
    variant = seed % 5
    for job in jobs.drawn_jobs(np.random.default_rng(seed), variant).values():
        found = true_diagnosis(job.log)
        assert (found["illness"], found["worker"], found["step"]) == (job.illness, job.worker, job.step)
        if variant in diagnosis.CURED_VARIANTS:
            assert true_cure(job.log, job.illness, job.worker, job.step) == pytest.approx(job.cure, rel=0.03)


def straggler_of(seed: int, variant: int) -> tuple[jobs.SickJob, dict[int, list[float]]]:
    """A straggler's job, and what each worker computed step by step."""
    job = next(
        job for job in jobs.drawn_jobs(np.random.default_rng(seed), variant).values() if job.step and job.cure < 1
    )
    times: dict[int, list[float]] = {}
    for event in job.log:
        if event["event"] == "step":
            times.setdefault(event["worker"], []).append(event["computing"])
    return job, times


@pytest.mark.parametrize("seed", range(5))
def test_a_straggler_can_be_slow_in_the_last_three_steps_only(seed: int) -> None:
    job, times = straggler_of(seed, variant=2)
    assert len(times[job.worker]) == job.step + 2 and job.step > 7
    assert min(times[job.worker][-3:]) > 2 * max(times[job.worker][-4], np.median(times[job.worker]))


@pytest.mark.parametrize("seed", range(5))
def test_another_worker_can_have_its_single_slow_step_at_the_end(seed: int) -> None:
    job, times = straggler_of(seed, variant=3)
    last = {worker: seconds[-1] for worker, seconds in times.items()}
    other = max(last, key=lambda worker: last[worker])
    assert other != job.worker and last[other] > 4 * max(times[other][:-1])


@pytest.mark.parametrize("variant", [3, 4])
def test_a_killed_job_can_be_started_again_rightly(variant: int) -> None:
    for seed in range(5):
        job = next(
            job for job in jobs.drawn_jobs(np.random.default_rng(seed), variant).values() if job.illness == jobs.KILLED
        )
        place = next(place for place, event in enumerate(job.log) if event["event"] == "restored")
        saves = [event for event in job.log[:place] if event["event"] == "saved"]
        assert job.log[place]["step"] == max(event["step"] for event in saves if event["sealed"])
        assert saves[-1]["sealed"] == (variant == 3)


@pytest.mark.parametrize("workers", [4, 5, 6])
@pytest.mark.parametrize("factor", jobs.FACTORS)
def test_no_two_wrong_shares_of_a_straggler_are_alike(workers: int, factor: float) -> None:
    others = workers - 1
    shares = [1 / (1 + factor * others), 1 / workers, 1 / factor, 1 / factor / others, 1 / factor / workers]
    shares = np.sort([*shares, 1 / (1 + factor), factor / (factor + others)])
    assert (np.diff(shares) > 0.03 * shares[1:]).all()


def test_every_illness_has_a_letter() -> None:
    drawn = jobs.drawn_jobs(np.random.default_rng(1), variant=1)
    assert {job.illness for job in drawn.values()} == set(given.ILLNESSES)
    assert set(given.LOGS) == set(drawn)


@pytest.mark.parametrize("letter", jobs.LETTERS)
def test_a_log_in_words_has_a_line_for_every_step_and_every_other_event(letter: str) -> None:
    log, text = given.LOGS[letter], given.described(letter)
    others = [event for event in log if event["event"] != "step"]
    steps = text.count("images, ms")
    assert len(text.splitlines()) == 1 + len(others) + steps
    assert steps >= len({event["step"] for event in log if event["event"] == "step"})


def test_the_words_do_not_give_the_illness_away() -> None:
    shown = "\n".join(given.described(letter) for letter in given.LOGS)
    assert not any(illness in shown for illness in given.ILLNESSES)


def test_a_second_before_or_after_young_loses_more_by_the_formula_of_first_order() -> None:
    save, between = 30.0, 17_280.0
    best = young_interval(save, between)
    lost = [save / seconds + seconds / (2 * between) for seconds in (best - 1, best, best + 1)]
    assert lost[1] == min(lost) == pytest.approx(plan(500, 100, save, 2.0)["lost"])


def test_the_simulated_mean_is_that_of_the_closed_formula() -> None:
    generator = np.random.default_rng(5)
    work, interval, save, restart, between = 10_000.0, 400.0, 40.0, 150.0, 2_000.0
    faults = np.cumsum(generator.exponential(between, (3000, 60)), axis=1)
    seconds = np.array([elapsed(work, interval, save, restart, run.tolist()) for run in faults])
    assert seconds.max() < faults[:, -1].min()
    error = seconds.std() / len(seconds) ** 0.5
    assert abs(seconds.mean() - expected_seconds(work, interval, save, restart, between)) < 4 * error


@pytest.mark.parametrize("seed", range(5))
def test_youngs_interval_is_the_best_candidate_and_faults_never_run_out(seed: int) -> None:
    drawn, between = comparison._drawn(np.random.default_rng(seed))
    seconds = drawn.seconds()
    best = drawn.intervals[int(seconds.mean(axis=1).argmin())]
    assert best == pytest.approx(young_interval(drawn.save, between), abs=1)
    assert seconds.max() < min(run[-1] for run in drawn.runs)


def test_no_fault_comes_at_the_moment_at_which_something_ends() -> None:
    cases = [case.run for seed in range(20) for case in elapsed_seconds._drawn_cases(np.random.default_rng(seed))]
    for run in cases:
        for shift in (-1e-6, 1e-6):
            assert elapsed(*run._replace(faults=[fault + shift for fault in run.faults])) == pytest.approx(
                elapsed(*run)
            )


@pytest.mark.parametrize(
    ("run", "seconds"),
    [
        ((40, 10, 2, 5, [100]), 46),
        ((10, 10, 2, 5, []), 10),
        ((5, 10, 2, 5, []), 5),
        ((40, 10, 2, 5, [11, 13, 17]), 22 + 46),
    ],
)
def test_more_hand_examples_of_the_simulation(run: tuple, seconds: float) -> None:
    assert elapsed(*run) == seconds


@pytest.mark.parametrize("seed", range(8))
def test_where_faults_come_after_saves_the_longest_interval_is_the_best_and_not_youngs(seed: int) -> None:
    drawn = comparison._drawn_with_faults_after_saves(np.random.default_rng(seed))
    means = drawn.seconds().mean(axis=1)
    assert drawn.intervals[int(means.argmin())] == max(drawn.intervals) != comparison._nearest_to_young(drawn)
    assert np.diff(np.sort(means))[0] > 1


@pytest.mark.parametrize("seed", [0, 7, 8])
def test_a_straggler_that_is_compared_with_the_mean_of_all_is_not_found(seed: int) -> None:
    diagnose = answers_13.slow_from(2, among=answers_13.mean_of_all)
    hints = verdict_on(LAB, "diagnose", {"diagnose": diagnose}, seed).hints
    assert hints == (Lab13Hint.NOTHING_FOUND, Lab13Hint.STRAGGLER_NOT_FOUND)


@pytest.mark.parametrize("seed", range(4))
def test_a_wrong_elapsed_is_shown_with_a_short_run_for_which_it_is_wrong(seed: int) -> None:
    namespace = simulated_by(lambda *run: elapsed(*run, rules=Rules(start_can_fail=False)))
    text = verdict_on(LAB, "compare", namespace, seed).text
    (faults,) = re.findall(r"elapsed\(.*\[(.*)\]\) gives", text)
    assert faults.count(",") == 1


@pytest.mark.parametrize("seed", [0, 7, 8])
@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (answers_13.at_least_one_save, Lab13Hint.SAVED_FIRST),
        (answers_13.last_fault_within_the_start, Lab13Hint.START_AGAIN_DISTURBED),
        (answers_13.shorter_intervals, Lab13Hint.INTERVAL_WITH_SAVE),
    ],
)
def test_another_form_of_a_known_mistake_gets_its_hint(answer: Callable, hint: Hint, seed: int) -> None:
    verdict = verdict_on(LAB, "elapsed", {"elapsed": answer}, seed)
    assert not verdict.is_right and set(verdict.hints) == {hint}


def test_the_hand_example_of_the_simulation() -> None:
    # 11 s: in the first save, so all is lost; again from 16 s, saved at 28 s; 30 s: 2 s lost; again from 35 s
    assert elapsed(40, 10, 2, 5, [11, 30]) == 35 + 10 + 2 + 10 + 2 + 10


@pytest.mark.parametrize(("name", "numbers"), [("plan", ["17280", "1018.23", "509", "0.0589256"]), ("elapsed", ["69"])])
def test_the_targets_show_the_numbers(name: str, numbers: list[str]) -> None:
    assert [line.split()[-1] for line in LAB.target(name).splitlines()[1:]] == numbers


@pytest.mark.parametrize("exercise", ["diagnose", "cure", "elapsed"])
def test_the_solution_of_the_text_is_right(exercise: str) -> None:
    solution = written_solution("13", exercise)
    solution.__globals__["np"] = np
    for seed in (0, 7, 8):
        assert_right(verdict_on(LAB, exercise, {exercise: solution}, seed))


def test_the_lab_needs_no_tensorflow() -> None:
    assert not LAB.tensorflow


def test_the_first_hidden_log_that_is_not_right_is_shown() -> None:
    def diagnose(log: list[dict]) -> dict:
        true = true_diagnosis(log)
        return true | {"worker": len(log[0]["addresses"]) - 1} if true["illness"] == jobs.COME_AND_GO else true

    text = verdict_on(
        LAB,
        "diagnose",
        {"diagnose": lambda log: diagnose(log) if log not in given.LOGS.values() else true_diagnosis(log)},
        7,
    ).text
    assert "Another log like that of job E:\n" in text and "launcher  cluster" in text

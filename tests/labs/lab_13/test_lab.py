"""Lab 13: the judge's own numbers against closed formulas, a plain simulation and the logs."""

import numpy as np
import pytest

from distlab.labs.lab_13 import comparison, given, jobs, lab
from distlab.labs.lab_13.disturbed_runs import elapsed, expected_seconds
from distlab.labs.lab_13.plan import plan, young_interval
from tests.labs.known_wrong import assert_not_done, assert_right, verdict_on, written_solution
from tests.labs.lab_13.answers_13 import true_cure, true_diagnosis

LAB = lab.LAB


def test_names_without_values_are_not_done_yet() -> None:
    assert_not_done(LAB, "diagnose", {"diagnose": lambda log: {"illness": None, "worker": None, "step": None}})
    assert_not_done(LAB, "compare", {"compare": lambda *arguments: {"means": None, "best": None}})


@pytest.mark.parametrize("seed", range(30))
def test_every_job_is_diagnosed_and_cured_by_its_log_alone(seed: int) -> None:
    for job in jobs.drawn_jobs(np.random.default_rng(seed), variant=seed % 2).values():
        found = true_diagnosis(job.log)
        assert (found["illness"], found["worker"], found["step"]) == (job.illness, job.worker, job.step)
        assert true_cure(job.log, job.illness, job.worker, job.step) == pytest.approx(job.cure, rel=0.03)


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

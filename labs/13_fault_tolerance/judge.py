"""The judge of lab 13: six sick jobs diagnosed and cured by their logs, and the interval between checkpoints."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from lab_13 import observe
from lab_13.diagnosis import (
    DIAGNOSE,
    JOBS,
    LETTERS,
    Log,
    before_the_second_start,
    computing,
    in_words,
    logs,
    of,
    shown,
    whole,
)
from lab_13.disturbed_runs import (
    FIRST_START,
    HAS_SAVE,
    OTHER_RULES,
    RUN,
    RUN_PARTS,
    by_remainders,
    elapsed,
    expected_seconds,
    runs,
    young_interval,
)
from lab_13.jobs import COME_AND_GO, HALF_WRITTEN, KILLED, NEVER_COMES, NOTICE, STRAGGLER
from numpy.typing import NDArray

from distlab.labs import Answer, Exercise, Lab
from distlab.labs.by_programs import ByPrograms, Follows, Mistake, OfPart, formulas
from distlab.labs.number_judge import described, is_near, number

# Cure ----------------------------------------------------------------------------------------------------------------

SHARE_TOLERANCE = 0.03  # the seconds in a log vary by half a per cent from step to step


def cure(log: Log, illness: str, worker: int, step: int) -> float:
    """The number that cures this job."""
    before, workers = before_the_second_start(log), len(log[0]["addresses"])
    if illness == KILLED:
        return step - max((event["step"] for event in whole(before)), default=0)
    if illness == STRAGGLER:
        return 1 / (1 + (workers - 1) * times_slower(log, worker, step, np.median))
    if illness == NEVER_COMES:
        return int(next(e["address"] for e in of(log, "listens") if e["worker"] == worker).partition(":")[2])
    if illness == HALF_WRITTEN:
        return max(event["step"] for event in whole(before))
    if illness == COME_AND_GO:
        return of(log, "step")[0]["images"] * workers / (workers - 1)
    return step + 1


def times_slower(log: Log, worker: int, first: int, typical: Callable[[list[float]], Any]) -> float:
    """How many times as long as the others a worker computes, from a step on."""
    late = [times for step, times in computing(log).items() if step >= first]
    own, others = (
        [times[worker] for times in late],
        [time for of in late for peer, time in of.items() if peer != worker],
    )
    return float(typical(own) / typical(others))


def known_of_job(log: Log, illness: str, worker: int, step: int) -> dict[str, Any]:
    """What formulas may use."""
    workers, addresses = len(log[0]["addresses"]), log[0]["addresses"]
    sealed, sealed_ever = ([event["step"] for event in whole(some)] for some in (before_the_second_start(log), log))
    saved = [event["step"] for event in of(log, "saved")]
    images = next((event["images"] for event in of(log, "step")), 0)
    if illness == STRAGGLER:
        rules = (step, np.median), (step, np.mean), (1, np.mean), (1, np.median)
        factor, mean_factor, by_mean, by_median = (times_slower(log, worker, *rule) for rule in rules)
    return locals()


ALL_STEPS = "this uses steps in which the worker was as fast as the others. From which step on is it slow?"
SAVED_AGAIN = (
    "this counts from a checkpoint that was saved after the second start. Which ones were there when the worker was "
    "killed?"
)
CURES: dict[str, dict[str, Any]] = {
    KILLED: {
        "step - right": "this is the step from which the job goes on. How many steps were done after it?",
        "step - max(sealed)": "there may be no checkpoint yet. From which step does the job go on then?",
        "step - max([0, *sealed_ever])": SAVED_AGAIN,
        "step - max(sealed_ever)": SAVED_AGAIN,
        "step - saved[-1]": lambda case, said: (
            SAVED_AGAIN
            if of(case[0], "restored")
            else "this counts from a checkpoint without a seal. Which checkpoint can the job read?"
        ),
    },
    STRAGGLER: {
        "1 / workers": "this is the share that it has now. With it the others wait.",
        "1 / factor": "this is its speed compared with the others'. What share is that of the sum of all speeds?",
        "1 / (1 + factor)": "this counts one other worker only. How many share the batch with it?",
        "1 / factor / (workers - 1)": (
            "this compares its speed with those of the others only. Does its own belong to the sum?"
        ),
        "1 / factor / workers": "its speed is divided by the number of workers, so the shares do not add up to 1.",
        "factor / (factor + workers - 1)": (
            "this gives the slow worker more than the others. Speed is one divided by time."
        ),
        "1 / (1 + (workers - 1) * mean_factor)": (
            "in some logs one slow step of another worker is in this mean. What is the usual time of a step?"
        ),
        "1 / (1 + (workers - 1) * by_mean)": ALL_STEPS,
        "1 / (1 + (workers - 1) * by_median)": ALL_STEPS,
        "100 * right": "a share is between 0 and 1.",
    },
    NEVER_COMES: {
        "int(addresses[worker].partition(':')[2])": (
            "this is the port in the list, where nobody listens. Where does the worker listen?"
        ),
    },
    HALF_WRITTEN: {
        "step": "that checkpoint has no seal. Which is the newest one that has?",
        "0": "from step 0 all work is lost. Which whole checkpoints were there?",
        "min(sealed)": "there is a newer checkpoint with a seal.",
    },
    COME_AND_GO: {
        "images": (
            "with as many images per rank the global batch is smaller now. Who takes over those of the lost rank?"
        ),
        "images * workers": "this is the global batch. How many ranks share it after the change?",
        "images * (workers - 1) / workers": (
            "this makes the global batch smaller still. Do fewer ranks need more images each, or fewer?"
        ),
    },
    NOTICE: {
        "step": "when one worker learns of the notice, others may have begun the next step. After which do all know?",
    },
}
RESUME = "the job should go on from a checkpoint with a seal, saved before it began again: the newest."
CURE = ByPrograms(
    cure,
    lambda generator: [
        OfPart(case.part, case[0].log, case[0].illness, case[0].worker, case[0].step)
        for case in logs(generator, range(7))
    ],
    said=in_words,
    parts=list(JOBS),
    split=OfPart.split,
    tolerance={name: SHARE_TOLERANCE if name == f"job {LETTERS[STRAGGLER]}" else 1e-9 for name in JOBS},
    below=shown,
    otherwise={
        f"job {LETTERS[illness]}": hint
        for illness, hint in {
            KILLED: "steps done twice are those after the newest whole checkpoint, up to the last one done.",
            STRAGGLER: "with the right share all workers compute equally long. Try 3 workers, one 2 times slower.",
            NEVER_COMES: "the port is the number after the colon of an address of this worker.",
            HALF_WRITTEN: RESUME,
            COME_AND_GO: "the images per rank times the ranks left must be the global batch of the beginning.",
            NOTICE: "all workers learn of the notice in the sum of the next step, and save after that step.",
        }.items()
    },
    mistakes=[
        mistake
        for illness, table in CURES.items()
        for mistake in formulas(
            cure,
            {"": {f"({formula}) if illness == {illness!r} else right": hint for formula, hint in table.items()}},
            known_of_job,
        )
    ],
)

# How often to save ---------------------------------------------------------------------------------------------------

BETWEEN, INTERVAL, STEPS, LOST = NUMBERS = ("between faults", "interval", "steps", "lost")
DAY = 24 * 3600.0


SAVED_JOB = 500, 100.0, 30.0, 2.0


def lost(save: float, interval: float, between_faults: float) -> float:
    """The share of the time."""
    return save / interval + interval / (2 * between_faults)


def plan(workers: int, days: float, save: float, step: float) -> dict[str, float]:
    """The seconds between faults of the job, Young's interval in seconds and in steps, and the share of time lost."""
    between_faults = days * DAY / workers
    interval = young_interval(save, between_faults)
    values = between_faults, interval, float(round(interval / step)), lost(save, interval, between_faults)
    return dict(zip(NUMBERS, values, strict=True))


def saved_jobs(generator: np.random.Generator) -> list[tuple[int, float, float, float]]:
    """The example, and jobs whose interval is a number of steps, few or many, and a part of a step more."""
    drawn = []
    for part_of_step, fewest, most in ((0.3, 80, 400), (0.8, 80, 400), (0.4, 3, 8)):
        workers, days = int(generator.integers(100, 900)), float(generator.integers(50, 400))
        save, steps = float(generator.integers(10, 90)), int(generator.integers(fewest, most)) + part_of_step
        drawn.append((workers, days, save, young_interval(save, days * DAY / workers) / steps))
    return [SAVED_JOB, *drawn]


NOT_IN_SECONDS = "this is not in seconds."
PLAN_FORMULAS = {
    BETWEEN: {
        f"days * {DAY}": "that is the time between faults of one worker. The job stops when any one of {workers} does.",
        f"days * {DAY} * workers": "more workers would make faults rarer. Is it so?",
        "days / workers": NOT_IN_SECONDS,
        "days * 24 / workers": NOT_IN_SECONDS,
    },
    INTERVAL: {
        "interval / math.sqrt(2)": (
            "a factor is missing under the root: a fault costs half an interval on average, not a whole one."
        ),
        "interval**2": "the square root is missing: look at the unit.",
        f"math.sqrt(2 * save * days * {DAY})": (
            "this uses the faults of one worker. How often is the whole job disturbed?"
        ),
        "interval / 60": NOT_IN_SECONDS,
    },
    STEPS: {
        "interval / step": "there are no parts of steps.",
        "interval // step": "this is rounded down; asked for is the nearest whole number.",
        "-(-interval // step)": "this is rounded up; asked for is the nearest whole number.",
    },
    LOST: {
        "save / interval": (
            "this is what the saves cost, or what the faults cost, which is as much. Which of them is missing?"
        ),
        "save / interval + interval / between_faults": (
            "a fault does not cost a whole interval: it comes early or late in it."
        ),
        "save / between_faults + interval / (2 * between_faults)": (
            "a save comes once in an interval, not once between two faults."
        ),
        "save / (interval + save) + interval / (2 * between_faults)": (
            "this counts the save as a part of the interval. The interval has seconds of work only."
        ),
        "100 * lost": "a share is between 0 and 1.",
    },
}
PLAN = ByPrograms(
    plan,
    saved_jobs,
    said=lambda job: "for {} workers, {:g} days, a save of {:g} s, steps of {:g} s".format(*job),
    parts=NUMBERS,
    otherwise={
        BETWEEN: lambda job, said: f"if one worker fails once in so many seconds, how often does one of {job[0]} fail?",
        INTERVAL: "Young's interval follows from the time of a save and the time between the faults of the job.",
        STEPS: "how many steps fit into the interval?",
        LOST: "add what a save costs per second of an interval, and what a fault costs per second.",
    },
    follows=[
        Follows(INTERVAL, BETWEEN, lambda job, own: young_interval(job[2], max(own[BETWEEN], 0))),
        Follows(STEPS, INTERVAL, lambda job, own: float(round(own[INTERVAL] / job[3]))),
        Follows(LOST, INTERVAL, lambda job, own: lost(job[2], own[INTERVAL], own[BETWEEN])),
    ],
    mistakes=formulas(plan, PLAN_FORMULAS),
)

# A disturbed job -----------------------------------------------------------------------------------------------------

CHANGED = "changed"


def observed(answer: Answer, case: OfPart) -> Any:
    """The seconds; that the list of faults was changed where they are right."""
    seconds = answer.call("elapsed", *case)
    is_right = is_near(number(seconds), elapsed(*case))
    return CHANGED if is_right and answer.inside(observe.faults_left, *case) != case[4] else seconds


def said_of_run(case: OfPart) -> str:
    """A run in words."""
    faults = f"faults at {', '.join(f'{fault:g}' for fault in case[4])} s" if case[4] else "no fault"
    return "{:g} s of work, saves every {:g} s that take {:g} s, a start of {:g} s, ".format(*case[:4]) + faults


def after_end(case: OfPart, said: Any) -> str:
    """Of faults that do not matter."""
    return f"the job is done after {elapsed(*case):g} s. Do faults after that matter?"


def run_otherwise(case: OfPart, said: Any) -> str:
    """By how near the seconds are, and by what is new in the case."""
    true = elapsed(*case)
    if is_near(number(said), true, 0.003):
        return f"this is near {true:g} s, as with small steps of time. What happens next, and in which second exactly?"
    if any(fault > true for fault in case[4]):
        return after_end(case, said)
    return f"not {number(said) or 0:.10g} s: the job takes {true:g} s. Draw a line of time, and mark saves and faults."


def takes_faults_out(work: float, interval: float, save: float, restart: float, faults: list[float]) -> float:
    """The right seconds, and the faults before them taken out of the list."""
    seconds = elapsed(work, interval, save, restart, faults)
    faults[:] = [fault for fault in faults if fault > seconds]
    return seconds


ADDED_UP = "this adds up the numbers in `faults`. Since when do these seconds count?"
NO_SECONDS = "`elapsed` must give one number, the seconds from the start to the end; yours gives a tuple of 2 numbers."
ELAPSED_FORMULAS: dict[str, Any] = {
    "elapsed(work, interval, save, restart, [])": "the faults change nothing here. What does each of them cost?",
    "right + restart": FIRST_START,
    "by_remainders(work, interval, save, restart, faults)": (
        "a fault while the job starts again loses work here. Has the job worked since it began to start again?"
    ),
    "elapsed(work, interval - save, save, restart, faults) if interval > save else right": HAS_SAVE,
    "elapsed(work, interval, 0, restart, faults)": "the saves take no time here.",
    "elapsed(work, interval, save, 0, faults)": "starting again takes no time here.",
    "elapsed(work, interval, save, restart, faults[:1])": "only the first fault counts here.",
    "elapsed(work, interval, save, restart, np.cumsum(faults).tolist())": ADDED_UP,
    "elapsed(work, interval, save, restart, [sum(faults[:n + 1]) + n * restart for n in range(len(faults))])": ADDED_UP,
    "elapsed(work, interval, save, restart, []) + len(faults) * (restart + interval / 2)": (
        "this takes half an interval for each fault, as on average. When does each of these faults come?"
    ),
    "right + restart * sum(fault > right for fault in faults)": after_end,
    "right + (save if work <= interval else 0)": "all work is done before the first save is due. Is there a save?",
    "math.floor(right)": "a part of a second is missing here. At which moments may a fault come?",
    "(work, right)": NO_SECONDS,
}
ELAPSED = ByPrograms(
    elapsed,
    runs,
    observe=observed,
    said=said_of_run,
    parts=RUN_PARTS,
    split=OfPart.split,
    otherwise=run_otherwise,
    mistakes=[
        *formulas(elapsed, {"": ELAPSED_FORMULAS}, lambda *run: {"elapsed": elapsed, "by_remainders": by_remainders}),
        *(Mistake(hint, program) for hint, program in OTHER_RULES.items()),
        Mistake(
            "the seconds are right, but `elapsed` changes its list. Which faults come in the next run?",
            takes_faults_out,
        ),
    ],
)

# Which interval is the best ------------------------------------------------------------------------------------------

MEANS, BEST = "means", "best"
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
Array = NDArray[np.float64]


class Candidates(NamedTuple):
    """Candidates for the interval, the seconds of work, of a save and of a start; for each run when faults come."""

    intervals: list[float]
    work: float
    save: float
    restart: float
    runs: list[list[float]]


THREE_RUNS = Candidates([40.0, 10.0, 20.0], 80.0, 2.0, 5.0, [[11.0, 50.0], [70.0], [18.0, 300.0]])
MOST_RUNS = Candidates([10.0, 80.0], 80.0, 2.0, 5.0, [[], [], [70.0]])
"""In two of three runs the second interval is better, and its mean is worse."""


def all_seconds(intervals: list[float], work: float, save: float, restart: float, runs: list[list[float]]) -> Array:
    """What each run takes with each interval, shape (intervals, runs)."""
    return np.array([[elapsed(work, interval, save, restart, run) for run in runs] for interval in intervals])


def compare(*case: Any) -> dict[str, Any]:
    """The mean seconds with each interval, and the best interval."""
    means = all_seconds(*case).mean(axis=1)
    return {MEANS: means.tolist(), BEST: case[0][int(means.argmin())]}


def candidates(generator: np.random.Generator) -> list[Candidates]:
    """The example; Young's interval with shorter and longer ones, in any order; and where it is not the best.

    In the last one every fault comes soon after a save of the longest interval, which is far from Young's.
    """
    young, save = float(generator.integers(280, 480)), float(generator.integers(15, 40))
    between_faults = young**2 / (2 * save)
    work = 4.0 * young * round(40 * between_faults / young / 4)
    intervals = [factor * young for factor in generator.permutation(FACTORS)]
    # Enough that none runs out of faults, also with the worst interval.
    faults = np.cumsum(generator.exponential(between_faults, (24, 120)), axis=1).round(6)
    drawn = Candidates(intervals, work, save, float(generator.integers(60, 200)), faults.tolist())
    longest, save, restart = (float(generator.integers(*limits)) for limits in ((60, 90), (2, 4), (5, 9)))
    cycle = longest + save + restart
    soon = [[longest + save + late + place * (cycle + late) for place in range(8)] for late in (0.5, 1.0, 1.5)]
    shorter = generator.permutation([longest, longest / 2, longest / 4]).tolist()
    return [THREE_RUNS, drawn, MOST_RUNS, Candidates(shorter, 5 * longest, save, restart, soon)]


def known_of_runs(*case: Any) -> dict[str, Any]:
    """What formulas may use."""
    intervals, work, save, restart, runs = case
    seconds = all_seconds(*case)
    between = float(np.concatenate([np.diff([0.0, *run]) for run in runs]).mean())
    coming, later = [list(run) for run in runs], []  # of whoever takes every fault that has come out of its list
    for interval in intervals:
        later.append([elapsed(work, interval, save, restart, run) for run in coming])
        coming = [[fault for fault in run if fault >= end] for run, end in zip(coming, later[-1], strict=True)]
    wins, nearest = np.bincount(seconds.argmin(axis=0), minlength=len(intervals)), young_interval(save, between)
    return {**locals(), "all_seconds": all_seconds}


COMPARE_FORMULAS: dict[str, dict[str, Any]] = {
    MEANS: {
        "seconds.sum(axis=1)": "these are sums over the runs, not means.",
        "seconds[:, 0]": "these are the seconds of one run. The mean of all runs is asked for.",
        "sorted(means)": "these are the right means in another order. Keep the order of the intervals.",
        "np.median(seconds, axis=1)": "these are medians. A few runs with many faults count for the mean.",
        "seconds.mean(axis=1) - work": "these are the seconds lost. Asked for are the seconds that the job takes.",
        "np.mean(later, axis=1)": (
            "for all intervals but the first, faults are missing. Does `elapsed` change its list of faults?"
        ),
        "all_seconds(intervals, work, restart, save, runs).mean(axis=1)": (
            "save and restart are exchanged. In which order does `elapsed` take them?"
        ),
        "np.round(means)": "this is the right number, but not exact. Is it rounded, or computed in float32?",
    },
    BEST: {
        "min(means)": "this is the lowest mean. Which interval has it?",
        "intervals.index(best)": "this is the place of the interval in the list. Which interval is it?",
        "intervals[int(wins.argmax())]": "this interval is the best in most runs. Which one has the lowest mean?",
        "min(intervals, key=lambda interval: abs(interval - nearest))": (
            "this is the candidate nearest to Young's interval, which is for faults at random. Which one has the "
            "lowest mean in these runs?"
        ),
        "intervals[int(np.argmax(means))]": "with this interval the job takes longest.",
    },
}


def means_otherwise(case: Candidates, said: Any) -> str:
    """The first mean that is not right."""
    means = compare(*case)[MEANS]
    if not isinstance(said, (list, tuple, np.ndarray)) or len(said) != len(means):
        count = f"for each of the {len(means)} intervals"
        return f"the means must be a list with one number {count}; yours are {described(said)}."
    place = next(place for place, mean in enumerate(means) if not is_near(number(said[place]), mean))
    return (
        f"for an interval of {case.intervals[place]:g} s the mean is {means[place]:.6g} s. Does `elapsed` pass its own "
        "check?"
    )


def table(cases: Sequence[Candidates]) -> str:
    """Simulated and expected seconds of every drawn interval, the shortest first."""
    intervals, work, save, restart, _ = cases[1]
    young = float(np.median(intervals))
    between_faults = young**2 / (2 * save)
    lines = [
        f"{work:g} s of work, a fault every {between_faults:.0f} s, a save of {save:g} s: "
        f"Young's interval is {young:.0f} s.",
        "interval   mean of your runs   expected (Daly)",
    ]
    for interval, mean in sorted(zip(intervals, compare(*cases[1])[MEANS], strict=True)):
        expected = expected_seconds(work, interval, save, restart, between_faults)
        lines.append(f"{interval:>6.0f} s {mean:>17.0f} s {expected:>15.0f} s")
    return "\n".join(lines)


COMPARE = ByPrograms(
    compare,
    candidates,
    said=lambda case: f"for {len(case.intervals)} intervals and {len(case.runs)} runs",
    parts=(MEANS, BEST),
    otherwise={
        MEANS: means_otherwise,
        BEST: lambda case, said: (
            "this is not the interval with the lowest mean. The candidates are in no order."
            if number(said) in case.intervals
            else f'"best" is one of the numbers in `intervals`, not {said!r}.'
        ),
    },
    follows=[Follows(BEST, MEANS, lambda case, own: case.intervals[int(np.argmin(own[MEANS]))])],
    praise=table,
    mistakes=formulas(compare, COMPARE_FORMULAS, known_of_runs),
)

# The lab -------------------------------------------------------------------------------------------------------------


def target(name: str) -> str:
    """One call of an exercise's function and what it must give."""
    if name == "diagnose":
        return 'diagnose(log)\n    {"illness": one of lab.given.ILLNESSES, "worker": a number, "step": a number}'
    if name == "cure":
        return "cure(log, illness, worker, step)\n    a number"
    if name == "plan":
        lines = [f"    {number:16}{value:>12.6g}" for number, value in plan(*SAVED_JOB).items()]
        return "\n".join(["plan(workers={}, days={:g}, save={:g}, step={:g})".format(*SAVED_JOB), *lines])
    if name == "elapsed":
        call = "elapsed(work={:g}, interval={:g}, save={:g}, restart={:g}, faults={})\n    {:g}"
        return call.format(*RUN, elapsed(*RUN))
    call = "compare(intervals={}, work={:g}, save={:g}, restart={:g},\n        runs={})".format(*THREE_RUNS)
    numbers = compare(*THREE_RUNS)
    means = ", ".join(f"{mean:.6g}" for mean in numbers[MEANS])
    return f'{call}\n    {{"means": [{means}], "best": {numbers[BEST]:g}}}'


LAB = Lab(
    "13_fault_tolerance",
    [
        Exercise("diagnose", 6, DIAGNOSE),
        Exercise("cure", 6, CURE),
        Exercise("plan", 4, PLAN),
        Exercise("elapsed", 4, ELAPSED),
        Exercise("compare", 2, COMPARE),
    ],
    target=target,
)

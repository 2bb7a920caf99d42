"""The judge of lab 13: six sick jobs diagnosed and cured by their logs, and the interval between checkpoints."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from lab_13 import given, jobs, observe
from lab_13.given import in_lines
from lab_13.jobs import COME_AND_GO, HALF_WRITTEN, KILLED, NEVER_COMES, NOTICE, STRAGGLER
from numpy.typing import NDArray

from distlab.labs import Exercise, Lab
from distlab.labs.by_programs import ByPrograms, Follows, Mistake, OfPart, formulas
from distlab.labs.number_judge import is_near, number, problem_of_names

Log = list[dict[str, Any]]
Diagnosis = dict[str, Any]

# Diagnosis -----------------------------------------------------------------------------------------------------------

ILLNESS, WORKER, STEP = KEYS = ("illness", "worker", "step")
LETTERS = {job.illness: letter for letter, job in jobs.lettered_jobs().items()}
JOBS = {f"job {letter}": {key: f"{key} of job {letter}" for key in KEYS} for letter in jobs.LETTERS}


def of(log: Log, event: str) -> Log:
    """The events of this name."""
    return [entry for entry in log if entry["event"] == event]


def before_the_second_start(log: Log) -> Log:
    """What went wrong came before."""
    return next((log[:place] for place, event in enumerate(log) if event["event"] == "restored"), log)


def diagnose(log: Log) -> Diagnosis:
    """What ails a job, which worker and which step are concerned, by its log alone."""
    before = before_the_second_start(log)
    exits, signals, saves, steps = (of(before, name) for name in ("exit", "signal", "saved", "step"))
    if not steps:
        listed = log[0]["addresses"]
        missing = [event["worker"] for event in of(before, "listens") if event["address"] != listed[event["worker"]]]
        return dict(zip(KEYS, (NEVER_COMES, missing[0], 0), strict=True))
    last = max(event["step"] for event in steps)
    if of(before, "size"):
        return dict(zip(KEYS, (COME_AND_GO, exits[0]["worker"], last), strict=True))
    if before is not log and log[len(before)]["step"] != max(save["step"] for save in [*whole(before), {"step": 0}]):
        return dict(zip(KEYS, (HALF_WRITTEN, 0, saves[-1]["step"]), strict=True))
    if signals and before.index(signals[0]) < before.index(exits[0]):
        return dict(zip(KEYS, (NOTICE, signals[0]["worker"], last), strict=True))
    if exits:
        return dict(zip(KEYS, (KILLED, exits[0]["worker"], last), strict=True))
    worker, step = straggler(log, 2.0, 3, np.median) or (0, 0)
    return dict(zip(KEYS, (STRAGGLER, worker, step), strict=True))


def whole(log: Log) -> Log:
    """The checkpoints with a seal."""
    return [event for event in of(log, "saved") if event["sealed"]]


def computing(log: Log) -> dict[int, dict[int, float]]:
    """The seconds that each worker computes, by step."""
    steps: dict[int, dict[int, float]] = {}
    for event in of(log, "step"):
        steps.setdefault(event["step"], {})[event["worker"]] = event["computing"]
    return steps


def straggler(
    log: Log,
    factor: float,
    least: int,
    typical: Callable[[list[float]], Any],
    backwards: bool = False,
    own: bool = False,
) -> tuple[int, int] | None:
    """The worker that in the last steps, so many at least, is so many times as slow, and since when; None if none is.

    `own`: it is compared with all workers, itself among them.
    """
    steps = computing(log)
    for worker in sorted(steps[1], reverse=backwards):
        fast = [
            step
            for step, times in steps.items()
            if times[worker] < factor * typical([times[peer] for peer in times if own or peer != worker])
        ]
        first = 1 + max(fast, default=0)
        if len(steps) - first + 1 >= least:
            return worker, first
    return None


def fact(log: Log, step: float) -> str:
    """What in the log shows that the step is not the right one."""
    illness, worker, right = diagnose(log).values()
    if illness != STRAGGLER:
        return (
            f"it had {f'also done step {math.floor(step) + 1}' if step < right else f'not done step {step:g}'} by then"
        )
    if step >= right:
        return "it was slow before"
    times = computing(log)[right - 1]
    factor = times[worker] / np.mean([seconds for peer, seconds in times.items() if peer != worker])
    said = "is as fast as" if factor < 1.1 else f"computes {factor:.1f} times as long as"  # less than twice
    return f"in step {right - 1} it {said} the others"


NOT_THE_ILLNESS = {
    KILLED: (
        "the first thing that goes wrong is an exit. With which code? If the job began again, did it use the newest "
        "whole checkpoint?"
    ),
    STRAGGLER: "nobody exits, and steps go on. Compare the workers' computing and waiting in the last steps.",
    NEVER_COMES: "nobody does a step here. Is everybody where the launcher's list says?",
    HALF_WRITTEN: "the exit was harmless: the job began again. From which step, and which checkpoints were there?",
    COME_AND_GO: "steps go on after the exit, without a new start of the job. What has changed since?",
    NOTICE: "what did the first worker that exited receive before, and what did it do alone?",
}
NOT_THE_WORKER = {
    KILLED: "is not the worker that was killed. Which exit came first? The launcher ended the others.",
    STRAGGLER: "is not the straggler. Who is slow in every step at the end, not in one step only?",
    NEVER_COMES: "is where it should be. Whose line `listens` differs from its place in the list?",
    HALF_WRITTEN: "did not write the checkpoints. Who writes them?",
    COME_AND_GO: "is still there after the change. Who is missing in the steps after it?",
    NOTICE: "got no notice. Which worker received a signal, before anyone exited?",
}
NOT_THE_STEP = {
    KILLED: "is not the last step that the worker did before it was killed: {fact}.",
    STRAGGLER: "is not the first step from which on the straggler is always slow: {fact}.",
    NEVER_COMES: "although no step was done: the step is 0.",
    HALF_WRITTEN: "is not the newest checkpoint that lacks its seal before the job began again.",
    COME_AND_GO: "is not the last step that the lost rank did: {fact}. The others did some steps again.",
    NOTICE: "is not the step that was done last when the signal came: {fact}.",
}


def hints_on(illness: str) -> dict[str, Any]:
    """By part of a job, what is said of a wrong illness, worker and step."""
    names = JOBS[f"job {LETTERS[illness]}"]

    def of_illness(case: OfPart, said: Any) -> str:
        if said not in jobs.ILLNESSES:
            return f"{said!r} is none of the six names in `lab.given.ILLNESSES`."
        return NOT_THE_ILLNESS[illness]

    return {
        names[ILLNESS]: of_illness,
        names[WORKER]: lambda case, said: f"worker {said} {NOT_THE_WORKER[illness]}",
        names[STEP]: lambda case, said: f"step {said} " + NOT_THE_STEP[illness].format(fact=fact(case[0], said)),
    }


WRONG = {part: hint for illness in jobs.ILLNESSES for part, hint in hints_on(illness).items()}
"""What is said of wrong values, by part."""


def if_ill(illness: str, change: Callable[[Log], Mapping[str, Any]]) -> Callable[[Log], Diagnosis]:
    """The right diagnosis, but what a function of the log gives for one illness."""

    def program(log: Log) -> Diagnosis:
        true = diagnose(log)
        return {**true, **(change(log) if true[ILLNESS] == illness else {})}

    return program


def slow(*rule: Any, **options: bool) -> Callable[[Log], Mapping[str, Any]]:
    """The straggler by another rule."""

    def change(log: Log) -> Mapping[str, Any]:
        worker, step = straggler(log, *rule, **options) or (None, None)
        return {WORKER: worker, STEP: step} | ({} if worker is not None else {ILLNESS: None})

    return change


def own_steps(log: Log, is_slow: bool) -> list[int]:
    """The steps in which the straggler is slow, or fast."""
    worker, normal = diagnose(log)[WORKER], np.median([event["computing"] for event in of(log, "step")])
    return [step for step, times in computing(log).items() if (times[worker] > 2 * normal) == is_slow]


def least_waiting(log: Log) -> Mapping[str, Any]:
    """Backwards from the end, as long as the same worker waits least."""
    steps: dict[int, list[tuple[float, int]]] = {}
    for event in of(log, "step"):
        steps.setdefault(event["step"], []).append((event["waiting"], event["worker"]))
    least = [min(steps[step])[1] for step in sorted(steps, reverse=True)]
    others = [place for place, worker in enumerate(least) if worker != least[0]]
    return {WORKER: least[0], STEP: len(least) - min(others, default=len(least)) + 1}


def newest_unsealed(log: Log) -> Mapping[str, Any]:
    """A job that began again has a half-written checkpoint if the newest one has no seal, whatever it then used."""
    before = before_the_second_start(log)
    return {} if before is log or of(before, "saved")[-1]["sealed"] else {ILLNESS: HALF_WRITTEN}


KILLS = (NOTICE, HALF_WRITTEN, COME_AND_GO, NEVER_COMES)
NOT_FOUND = {
    JOBS["job B"][ILLNESS]: (
        "`diagnose` finds no illness: nobody exits, and steps go on. How many times as long as the others must a worker "
        "compute, in how many steps, and is it one of those with which you compare it?"
    )
}
TOO_FEW = {
    JOBS["job B"][WORKER]: "this worker is slow in the last steps only. In how many steps must a straggler be slow?"
}
NO_NUMBER = {
    part: lambda case, said: f'this is a whole number, like event["worker"] and event["step"], not {said!r}.'
    for names in JOBS.values()
    for part in (names[WORKER], names[STEP])
}
STRAGGLER_RULES = [
    *(Mistake(TOO_FEW, if_ill(STRAGGLER, slow(2.0, least, np.median))) for least in (1, 2)),
    *(Mistake(TOO_FEW, if_ill(STRAGGLER, slow(2.0, least, np.median, backwards=True))) for least in (1, 2)),
    Mistake(NOT_FOUND, if_ill(STRAGGLER, slow(3.0, 3, np.median))),
    Mistake(NOT_FOUND, if_ill(STRAGGLER, slow(2.0, 4, np.median))),
    Mistake(NOT_FOUND, if_ill(STRAGGLER, slow(2.0, 3, np.mean, own=True))),
    Mistake(WRONG, if_ill(STRAGGLER, slow(1.5, 3, np.median))),
    Mistake(WRONG, if_ill(STRAGGLER, lambda log: {STEP: min(own_steps(log, is_slow=True))})),
    Mistake(WRONG, if_ill(STRAGGLER, lambda log: {STEP: max(own_steps(log, is_slow=True))})),
    Mistake(
        WRONG, if_ill(STRAGGLER, lambda log: {WORKER: max(of(log, "step"), key=lambda e: e["computing"])["worker"]})
    ),
    Mistake(WRONG, if_ill(STRAGGLER, least_waiting)),
]
DIAGNOSES = [
    *(Mistake(WRONG, if_ill(illness, lambda log: {ILLNESS: KILLED})) for illness in (*KILLS, STRAGGLER)),
    Mistake(WRONG, if_ill(KILLED, lambda log: {ILLNESS: NOTICE} if len(of(log, "signal")) == 1 else {})),
    Mistake(WRONG, if_ill(KILLED, lambda log: {ILLNESS: HALF_WRITTEN} if of(log, "restored") else {})),
    Mistake(WRONG, if_ill(KILLED, newest_unsealed)),
    Mistake(WRONG, if_ill(KILLED, lambda log: {WORKER: of(before_the_second_start(log), "exit")[-1][WORKER]})),
    Mistake(WRONG, if_ill(KILLED, lambda log: {STEP: max(event[STEP] for event in of(log, "step"))})),
    Mistake(WRONG, if_ill(HALF_WRITTEN, lambda log: {WORKER: of(log, "exit")[0][WORKER]})),
    Mistake(
        WRONG, if_ill(HALF_WRITTEN, lambda log: {STEP: [e[STEP] for e in of(log, "saved") if not e["sealed"]][-1]})
    ),
    Mistake(WRONG, if_ill(HALF_WRITTEN, lambda log: {STEP: whole(before_the_second_start(log))[-1][STEP]})),
    Mistake(WRONG, if_ill(COME_AND_GO, lambda log: {WORKER: len(log[0]["addresses"]) - 1})),
    Mistake(WRONG, if_ill(COME_AND_GO, lambda log: {STEP: max(event[STEP] for event in of(log, "step"))})),
    Mistake(WRONG, if_ill(NOTICE, lambda log: {WORKER: of(log, "exit")[1][WORKER]})),
    Mistake(WRONG, if_ill(NOTICE, lambda log: {STEP: of(log, "saved")[-2][STEP]})),
    Mistake(WRONG, if_ill(NEVER_COMES, lambda log: {WORKER: 0})),
    Mistake(WRONG, if_ill(NEVER_COMES, lambda log: {STEP: 1})),
    Mistake(NO_NUMBER, lambda log: {**diagnose(log), WORKER: f"worker {diagnose(log)[WORKER]}"}),
    *(
        Mistake(NO_NUMBER, lambda log, form=form: {key: form(value) for key, value in diagnose(log).items()})
        for form in (str, lambda value: value if isinstance(value, str) else [value])
    ),
]


def logs(generator: np.random.Generator, variants: Sequence[int]) -> list[OfPart]:
    """Those that students see, and hidden ones of each variant, with their jobs."""
    seed = int(generator.integers(2**63))
    drawn = [jobs.lettered_jobs(), *(jobs.hidden_jobs(seed, variant) for variant in variants)]
    return [OfPart(f"job {letter}", job) for of_letter in drawn for letter, job in of_letter.items()]


def is_hidden(case: OfPart) -> bool:
    """Whether students do not see this log."""
    return case[0] is not jobs.lettered_jobs()[case.part[-1]].log


def in_words(case: OfPart) -> str:
    """Which log it is."""
    return "in another log like this one" if is_hidden(case) else "in its log"


def shown(case: OfPart) -> str:
    """A hidden log."""
    return f"Another log like that of {case.part}:\n{in_lines(case[0])}" if is_hidden(case) else ""


def of_diagnosis(case: OfPart, said: Mapping[str, Any]) -> Mapping[str, Any]:
    """The three parts of a job."""
    return {part: said[key] for key, part in JOBS[case.part].items()}


DIAGNOSE = ByPrograms(
    diagnose,
    lambda generator: [OfPart(case.part, case[0].log) for case in logs(generator, range(7))],
    said=in_words,
    parts=[part for names in JOBS.values() for part in names.values()],
    together=JOBS,
    split=of_diagnosis,
    form=lambda case, said: getattr(problem_of_names("diagnose", KEYS, said), "text", None),
    below=shown,
    otherwise=WRONG,
    mistakes=[*STRAGGLER_RULES, *DIAGNOSES],
)

# Cure ----------------------------------------------------------------------------------------------------------------

SHARE_TOLERANCE = 0.03  # the seconds in a log vary by half a per cent from step to step


def cure(log: Log, illness: str, worker: int, step: int) -> float:
    """The number that cures this job."""
    before, workers = before_the_second_start(log), len(log[0]["addresses"])
    if illness == KILLED:
        return step - max((event["step"] for event in whole(before)), default=0)
    if illness == STRAGGLER:
        return 1 / (1 + (workers - 1) * times_slower(log, worker, step))
    if illness == NEVER_COMES:
        return int(next(e["address"] for e in of(log, "listens") if e["worker"] == worker).partition(":")[2])
    if illness == HALF_WRITTEN:
        return max(event["step"] for event in whole(before))
    if illness == COME_AND_GO:
        return of(log, "step")[0]["images"] * workers / (workers - 1)
    return step + 1


def times_slower(log: Log, worker: int, first: int, typical: Callable[[list[float]], Any] = np.mean) -> float:
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
        factor, by_mean, by_median = (times_slower(log, worker, *rule) for rule in ((step,), (1,), (1, np.median)))
        times = [[seconds[peer] for seconds in computing(log).values()] for peer in range(workers)]
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
        "1 / (1 + (workers - 1) * by_mean)": ALL_STEPS,
        "1 / (1 + (workers - 1) * by_median)": ALL_STEPS,
        "1 / np.mean(times[worker]) / sum(1 / np.mean(own) for own in times)": ALL_STEPS,
        "1 / np.median(times[worker]) / sum(1 / np.median(own) for own in times)": ALL_STEPS,
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
CURE = ByPrograms(
    cure,
    # In a log of variant 3, 5 or 6 the mean of the other workers' times is no measure.
    lambda generator: [
        OfPart(case.part, case[0].log, case[0].illness, case[0].worker, case[0].step)
        for case in logs(generator, (0, 1, 2, 4))
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
            HALF_WRITTEN: "the job should go on from a checkpoint with a seal, saved before it began again: the newest.",
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


class SavedJob(NamedTuple):
    """Workers, the days between two faults of one of them, the seconds of a save and of a step."""

    workers: int
    days: float
    save: float
    step: float


SAVED_JOB = SavedJob(500, 100.0, 30.0, 2.0)


def young_interval(save: float, between_faults: float) -> float:
    """The seconds between two saves with which the least time is lost (Young 1974), for a save that is short."""
    return math.sqrt(2 * save * between_faults)


def lost(save: float, interval: float, between_faults: float) -> float:
    """The share of the time."""
    return save / interval + interval / (2 * between_faults)


def plan(workers: int, days: float, save: float, step: float) -> dict[str, float]:
    """The seconds between faults of the job, Young's interval in seconds and in steps, and the share of time lost."""
    between_faults = days * DAY / workers
    interval = young_interval(save, between_faults)
    values = between_faults, interval, float(round(interval / step)), lost(save, interval, between_faults)
    return dict(zip(NUMBERS, values, strict=True))


def saved_jobs(generator: np.random.Generator) -> list[SavedJob]:
    """The example, and jobs whose interval is a number of steps, few or many, and a part of a step more."""
    drawn = []
    for part_of_step, fewest, most in ((0.3, 80, 400), (0.8, 80, 400), (0.4, 3, 8)):
        workers, days = int(generator.integers(100, 900)), float(generator.integers(50, 400))
        save, steps = float(generator.integers(10, 90)), int(generator.integers(fewest, most)) + part_of_step
        drawn.append(SavedJob(workers, days, save, young_interval(save, days * DAY / workers) / steps))
    return [SAVED_JOB, *drawn]


NOT_IN_SECONDS = "this is not in seconds."
PLAN_FORMULAS = {
    BETWEEN: {
        f"days * {DAY}": "that is the time between faults of one worker. The job stops when any one of {workers} does.",
        f"days * {DAY} * workers": "more workers would make faults rarer. Is it so?",
        "days / workers": NOT_IN_SECONDS,
        "days * 24 / workers": NOT_IN_SECONDS,
        "days * 24 * 60 / workers": NOT_IN_SECONDS,
    },
    INTERVAL: {
        "interval / math.sqrt(2)": (
            "a factor is missing under the root: a fault costs half an interval on average, not a whole one."
        ),
        "interval**2": "the square root is missing: look at the unit.",
        "interval * math.sqrt(2)": "the 2 is under the root.",
        f"math.sqrt(2 * save * days * {DAY})": (
            "this uses the faults of one worker. How often is the whole job disturbed?"
        ),
        "interval / 3600": NOT_IN_SECONDS,
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
        "save / rounded + rounded / (2 * between_faults)": (
            "this is what the rounded interval loses. Which interval comes before it is rounded?"
        ),
    },
}
PLAN = ByPrograms(
    plan,
    saved_jobs,
    said=lambda job: "for {} workers, {:g} days, a save of {:g} s, steps of {:g} s".format(*job),
    parts=NUMBERS,
    otherwise={
        BETWEEN: lambda job, said: (
            f"if one worker fails once in so many seconds, how often does one of {job.workers} fail?"
        ),
        INTERVAL: "Young's interval follows from the time of a save and the time between the faults of the job.",
        STEPS: "how many steps fit into the interval?",
        LOST: "add what a save costs per second of an interval, and what a fault costs per second.",
    },
    follows=[
        Follows(INTERVAL, BETWEEN, lambda job, own: young_interval(job.save, max(own[BETWEEN], 0))),
        Follows(STEPS, INTERVAL, lambda job, own: float(round(own[INTERVAL] / job.step))),
        Follows(LOST, INTERVAL, lambda job, own: lost(job.save, own[INTERVAL], own[BETWEEN])),
    ],
    mistakes=formulas(plan, PLAN_FORMULAS, lambda *job: {"rounded": max(plan(*job)[STEPS], 1.0) * job[3]}),
)

# A disturbed job -----------------------------------------------------------------------------------------------------

QUIET, COMPUTING, SAVING, STARTING = RUN_PARTS = (
    "no fault before the end",
    "while it computes",
    "while it saves",
    "while it starts again",
)
RUN = OfPart(SAVING, 40.0, 10.0, 2.0, 5.0, [11.0, 30.0])


@dataclass(frozen=True)
class Rules:
    """The rules of a simulated run; the usual mistakes change one of them."""

    saves_at_end: bool = False
    loses_work: bool = True
    loses_saved_work: bool = False
    broken_saves_count: bool = False
    start_can_fail: bool = True
    second_start_can_fail: bool = True
    interval_has_save: bool = False
    first_start_counts: bool = False


def simulated(
    rules: Rules, work: float, interval: float, save: float, restart: float, faults: Sequence[float]
) -> float:
    """The seconds from the start of a job until its work is done, under some rules."""
    second, saved, coming = 0.0, 0.0, list(reversed(faults))
    if rules.first_start_counts:
        second = restart
        while coming and coming[-1] < second:
            second = coming.pop() + restart
    while True:
        is_last = work - saved <= interval
        piece = work - saved if is_last else interval - (save if rules.interval_has_save else 0.0)
        computed = second + piece
        end = computed + (save if not is_last or rules.saves_at_end else 0.0)
        while coming and coming[-1] < second:
            coming.pop()
        if not coming or coming[-1] >= end:
            second, saved = end, saved + piece
            if is_last:
                return end
            continue
        fault = coming.pop()
        if fault >= computed and rules.broken_saves_count:
            saved += piece
        elif not rules.loses_work:
            saved += min(fault - second, piece)
        elif rules.loses_saved_work:
            saved = 0.0
        second = fault + restart
        while rules.start_can_fail and coming and coming[-1] < second:
            second = coming.pop() + restart
            if not rules.second_start_can_fail:
                break


def elapsed(work: float, interval: float, save: float, restart: float, faults: Sequence[float]) -> float:
    """The seconds from the start of a job until its work is done.

    After every `interval` seconds of work the job saves, except at the end of the work. A fault loses what was done
    since the last complete save; the job then starts again, `restart` seconds, and a fault in these makes the start
    begin again. `faults` are seconds since the start, increasing.
    """
    return simulated(Rules(), work, interval, save, restart, faults)


def runs(generator: np.random.Generator) -> list[OfPart]:
    """Drawn until saves that are counted in the interval show in every part, and as no other mistake."""
    while True:
        drawn = drawn_runs(generator)
        if all(map(shows_saves_in_intervals, {case.part: case for case in reversed(drawn)}.values())):
            return drawn


def drawn_runs(generator: np.random.Generator) -> list[OfPart]:
    """What is new in a case comes after simpler ones of its part; the work is a whole number of intervals in two."""
    # With so many intervals, and saves so long, every usual mistake gives another number.
    save, restart = float(generator.integers(6, 10)), float(generator.integers(12, 16))
    # Of an even interval half is a whole number, and no fault that comes at half a second loses as much.
    interval, half = 2.0 * float(generator.integers(10, 15)), 0.5
    work, cycle = 9 * interval + float(generator.integers(3, 15)), interval + save
    # After two saves, so that to lose all work costs more than one interval; and in the first half of an interval.
    fault = 2 * cycle + float(generator.integers(5, int(interval) // 2 - 2)) + half
    saving = 2 * cycle + interval + float(generator.integers(0, int(save))) + half
    twice = fault + restart + cycle + interval / 2 + half
    # So late after a save that a start before all others would lose no save.
    later = 2 * cycle + restart + float(generator.integers(1, 4)) + half
    starting = [later, later + float(generator.integers(2, int(restart) - 2)), later + 2 * restart - half]
    again = [later + starts * (restart - 2) for starts in range(4)]

    def job(part: str, faults: list[float], work: float = work, interval: float = interval) -> OfPart:
        return OfPart(part, work, interval, save, restart, faults)

    def and_after_the_end(part: str, faults: list[float]) -> OfPart:
        end = elapsed(work, interval, save, restart, faults)
        return job(part, [*faults, end + 7.5, end + 71.5])

    return [
        job(QUIET, [], 9 * interval),
        job(QUIET, []),
        and_after_the_end(QUIET, []),
        *(job(QUIET, [], shorter) for shorter in (interval, interval - 7)),
        job(COMPUTING, [fault]),
        job(COMPUTING, [fault, twice]),
        and_after_the_end(COMPUTING, [fault]),
        job(SAVING, [saving]),
        RUN,
        *(job(STARTING, faults) for faults in (starting[:2], starting)),
        # A start that takes longer than a piece of work: whoever counts it wrongly does work in the time it takes.
        job(STARTING, [half, restart], 4 * (restart // 3), restart // 3),
        *(job(STARTING, faults) for faults in (again[:3], again)),
    ]


def shows_saves_in_intervals(case: OfPart) -> bool:
    """Whether saves that count as a part of the interval change the seconds, and not as other mistakes do."""
    work, interval, save, restart, faults = case
    changes = (Rules(), Rules(saves_at_end=True), Rules(start_can_fail=False), Rules(first_start_counts=True))
    others = [*(simulated(rules, *case) for rules in changes), elapsed(work, interval, save, restart, faults[:1])]
    shorter = elapsed(work, interval - save, save, restart, faults)
    return simulated(Rules(interval_has_save=True), *case) not in others and shorter not in others


CHANGED = "changed"


def of_run(case: OfPart, seen: Any) -> Mapping[str, Any]:
    """The seconds; that the list was changed where they are right."""
    seconds, left = seen if isinstance(seen, list) and len(seen) == 2 else (seen, case[4])
    is_changed = is_near(number(seconds), elapsed(*case)) and left != case[4]
    return {case.part: CHANGED if is_changed else seconds}


def said_of_run(case: OfPart) -> str:
    """A run in words."""
    faults = f"faults at {', '.join(f'{fault:g}' for fault in case[4])} s" if case[4] else "no fault"
    return "{:g} s of work, saves every {:g} s that take {:g} s, a start of {:g} s, ".format(*case[:4]) + faults


def run_otherwise(case: OfPart, said: Any) -> str:
    """By how near the seconds are, and by what is new in the case."""
    true = elapsed(*case)
    if is_near(number(said), true, 0.003):
        return f"this is near {true:g} s, as with small steps of time. What happens next, and in which second exactly?"
    if any(fault > true for fault in case[4]):
        return f"the job is done after {true:g} s. Do faults after that matter?"
    return f"{number(said) or 0:.10g} s? The job takes {true:g} s. Draw a line of time, and mark saves and faults."


def by_remainders(work: float, interval: float, save: float, restart: float, faults: Sequence[float]) -> float:
    """What it takes if every fault loses the seconds since the last save, also those of a start."""
    total = elapsed(work, interval, save, restart, [])
    for fault in faults:
        if fault <= total:
            lost_work = (fault - (total - elapsed(work, interval, save, restart, []))) % (interval + save)
            total += restart + lost_work
    return total


def takes_faults_out(work: float, interval: float, save: float, restart: float, faults: list[float]) -> float:
    """The right seconds, and the faults before them taken out of the list."""
    seconds = elapsed(work, interval, save, restart, faults)
    faults[:] = [fault for fault in faults if fault > seconds]
    return seconds


FIRST_START = "the first start costs nothing: the job works from second 0 on. After what does it start again?"
AGAIN = "each fault but the first comes during a start, also during one that has begun again."
HAS_SAVE = "the interval is work only. When does the next save begin, if the last one takes time as well?"
AFTER_END = "the job is done before the last faults come. Do faults after that matter?"
BY_RULES = {
    FIRST_START: Rules(first_start_counts=True),
    "this saves once more when the work is done.": Rules(saves_at_end=True),
    "a save that a fault interrupts counts as complete here.": Rules(broken_saves_count=True),
    "a fault loses no work here. What was done since the last complete save?": Rules(loses_work=False),
    "a fault loses all work here, also what was saved.": Rules(loses_saved_work=True),
    "a fault while the job starts again is left out here. It makes the start begin again.": Rules(start_can_fail=False),
    HAS_SAVE: Rules(interval_has_save=True),
    AGAIN: Rules(second_start_can_fail=False),
}
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
    "elapsed(work, interval, save, restart, np.cumsum(faults).tolist())": (
        "this adds up the numbers in `faults`. Since when do these seconds count?"
    ),
    "elapsed(work, interval, save, restart, []) + len(faults) * (restart + interval / 2)": (
        "this takes half an interval for each fault, as on average. When does each of these faults come?"
    ),
    "right + restart * sum(fault > right for fault in faults)": AFTER_END,
    "right + (save if work <= interval else 0)": "all work is done before the first save is due. Is there a save?",
    "math.floor(right)": "this is the right number, but not exact. Is it rounded, or computed in float32?",
    "math.ceil(right)": "this is the right number, but not exact. Is it rounded, or computed in float32?",
    "(work, right)": "`elapsed` must give one number, the seconds from the start to the end.",
}
ELAPSED = ByPrograms(
    elapsed,
    runs,
    observe=lambda answer, case: answer.inside(observe.seconds_and_faults, *case),
    said=said_of_run,
    parts=RUN_PARTS,
    split=of_run,
    otherwise=run_otherwise,
    mistakes=[
        *formulas(elapsed, {"": ELAPSED_FORMULAS}, lambda *run: {"elapsed": elapsed, "by_remainders": by_remainders}),
        *(
            Mistake(hint, lambda *run, rules=rules: simulated(rules, *run) if run[1] > run[2] else elapsed(*run))
            for hint, rules in BY_RULES.items()
        ),
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


def compare(
    intervals: list[float], work: float, save: float, restart: float, runs: list[list[float]]
) -> dict[str, Any]:
    """The mean seconds with each interval, and the best interval."""
    means = all_seconds(intervals, work, save, restart, runs).mean(axis=1)
    return {MEANS: means.tolist(), BEST: intervals[int(means.argmin())]}


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
    joined = sorted(fault for run in runs for fault in run)
    between = float(np.concatenate([np.diff([0.0, *run]) for run in runs]).mean())
    coming, later = [list(run) for run in runs], []  # of whoever takes every fault that has come out of its list
    for interval in intervals:
        later.append([elapsed(work, interval, save, restart, run) for run in coming])
        coming = [[fault for fault in run if fault >= end] for run, end in zip(coming, later[-1], strict=True)]
    exchanged = [[elapsed(interval, work, save, restart, run) for run in runs] for interval in intervals]
    wins, nearest = np.bincount(seconds.argmin(axis=0), minlength=len(intervals)), young_interval(save, between)
    return {**locals(), "all_seconds": all_seconds}


COMPARE_FORMULAS = {
    MEANS: {
        "seconds.sum(axis=1)": "these are sums over the runs, not means.",
        "seconds[:, 0]": "these are the seconds of one run. The mean of all runs is asked for.",
        "seconds[:, -1]": "these are the seconds of one run. The mean of all runs is asked for.",
        "np.median(seconds, axis=1)": "these are medians. A few runs with many faults count for the mean.",
        "seconds.mean(axis=1) - work": "these are the seconds lost. Asked for are the seconds that the job takes.",
        "np.mean(later, axis=1)": (
            "for all intervals but the first, faults are missing. Does `elapsed` change its list of faults?"
        ),
        "all_seconds(intervals, work, restart, save, runs).mean(axis=1)": (
            "save and restart are exchanged. In which order does `elapsed` take them?"
        ),
        "np.mean(exchanged, axis=1)": "work and interval are exchanged. In which order does `elapsed` take them?",
        "all_seconds(intervals, work, save, restart, [joined]).mean(axis=1)": (
            "this puts the faults of all runs into one. How many jobs are simulated with each interval?"
        ),
        "sorted(means)": "these are the right means in another order. Keep the order of the intervals.",
        "np.round(means)": "this is the right number, but not exact. Is it rounded, or computed in float32?",
        "float(np.mean(means))": "the means must be a list with one number for each of the {len(intervals)} intervals.",
    },
    BEST: {
        "min(means)": "this is the lowest mean. Which interval has it?",
        "intervals.index(best)": "this is the place of the interval in the list. Which interval is it?",
        "intervals[int(wins.argmax())]": "this interval is the best in most runs. Which one has the lowest mean?",
        "min(intervals, key=lambda interval: abs(interval - nearest))": (
            "this is the candidate nearest to Young's interval, which is for faults at random. Which one has the lowest "
            "mean in these runs?"
        ),
        "intervals[int(np.argmax(means))]": "with this interval the job takes longest.",
    },
}


def means_otherwise(case: Candidates, said: Any) -> str:
    """The first mean that is not right."""
    means = compare(*case)[MEANS]
    if not isinstance(said, (list, tuple, np.ndarray)) or len(said) != len(means):
        return f"the means must be a list with one number for each of the {len(means)} intervals."
    place = next(place for place, mean in enumerate(means) if not is_near(number(said[place]), mean))
    return (
        f"for an interval of {case.intervals[place]:g} s the mean is {means[place]:.6g} s. Does `elapsed` pass its own "
        "check?"
    )


def expected_seconds(work: float, interval: float, save: float, restart: float, between_faults: float) -> float:
    """The mean of `elapsed` if the times between faults are exponential, for an integer number of intervals.

    The last interval has no save. Source: Daly, Future Generation Computer Systems 22 (2006), 303–312.
    """

    def until_done(seconds: float) -> float:
        return between_faults * math.exp(restart / between_faults) * math.expm1(seconds / between_faults)

    intervals = math.ceil(work / interval)
    last = work - (intervals - 1) * interval
    return (intervals - 1) * until_done(interval + save) + until_done(last)


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
    otherwise={MEANS: means_otherwise, BEST: "this is not the interval with the lowest mean. They are in no order."},
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
    given_module=given,
)

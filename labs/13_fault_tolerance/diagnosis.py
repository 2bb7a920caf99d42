"""What ails a job, by its log: an exercise of lab 13, its right program and known-wrong ones."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from lab_13 import jobs
from lab_13.given import in_lines
from lab_13.jobs import COME_AND_GO, HALF_WRITTEN, KILLED, NEVER_COMES, NOTICE, STRAGGLER

from distlab.labs.by_programs import ByPrograms, Mistake, OfPart
from distlab.labs.number_judge import problem_of_names

Log = list[dict[str, Any]]
Diagnosis = dict[str, Any]

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

    def found(illness: str, worker: int, step: int) -> Diagnosis:
        return {ILLNESS: illness, WORKER: worker, STEP: step}

    before = before_the_second_start(log)
    exits, signals, saves, steps = (of(before, name) for name in ("exit", "signal", "saved", "step"))
    if not steps:
        listed = log[0]["addresses"]
        missing = [event["worker"] for event in of(before, "listens") if event["address"] != listed[event["worker"]]]
        return found(NEVER_COMES, missing[0], 0)
    last = max(event["step"] for event in steps)
    if of(before, "size"):
        return found(COME_AND_GO, exits[0]["worker"], last)
    if before is not log and log[len(before)]["step"] != max(save["step"] for save in [*whole(before), {"step": 0}]):
        return found(HALF_WRITTEN, 0, saves[-1]["step"])
    if signals and before.index(signals[0]) < before.index(exits[0]):
        return found(NOTICE, signals[0]["worker"], last)
    if exits:
        return found(KILLED, exits[0]["worker"], last)
    worker, step = straggler(log, 2.0, 3, np.median) or (0, 0)
    return found(STRAGGLER, worker, step)


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


HINTS = {
    KILLED: (
        "the first thing that goes wrong is an exit. With which code? If the job began again, did it use the newest "
        "whole checkpoint?",
        "Worker {said} is not the worker that was killed. Which exit came first? The launcher ended the others.",
        "Step {said} is not the last step that the worker did before it was killed: {fact}.",
    ),
    STRAGGLER: (
        "nobody exits, and steps go on. Compare the workers' computing and waiting in the last steps.",
        "Worker {said} is not the straggler. Who is slow in every step at the end, not in one step only?",
        "Step {said} is not the first step from which on the straggler is always slow: {fact}.",
    ),
    NEVER_COMES: (
        "nobody does a step here. Is everybody where the launcher's list says?",
        "Worker {said} is where it should be. Whose line `listens` differs from its place in the list?",
        "Step {said}, although no step was done: the step is 0.",
    ),
    HALF_WRITTEN: (
        "the exit was harmless: the job began again. From which step, and which checkpoints were there?",
        "Worker {said} did not write the checkpoints. Who writes them?",
        "Step {said} is not the newest checkpoint that lacks its seal before the job began again.",
    ),
    COME_AND_GO: (
        "steps go on after the exit, without a new start of the job. What has changed since?",
        "Worker {said} is still there after the change. Who is missing in the steps after it?",
        "Step {said} is not the last step that the lost rank did: {fact}. The others did some steps again.",
    ),
    NOTICE: (
        "what did the first worker that exited receive before, and what did it do alone?",
        "Worker {said} got no notice. Which worker received a signal, before anyone exited?",
        "Step {said} is not the step that was done last when the signal came: {fact}.",
    ),
}
"""By illness, what is said of another illness, of another worker, and of another step."""


def hint_on(place: int) -> Callable[[OfPart, Any], str]:
    """What is said of another illness, worker or step, by the place among these."""

    def hint(case: OfPart, said: Any) -> str:
        if place == 0 and not (isinstance(said, str) and said in jobs.ILLNESSES):
            return f"{said!r} is none of the six names in `lab.given.ILLNESSES`."
        text = HINTS[diagnose(case[0])[ILLNESS]][place]
        return text.format(said=said, fact=fact(case[0], said) if "{fact}" in text else "")

    return hint


WRONG = {part: hint_on(place) for names in JOBS.values() for place, part in enumerate(names.values())}
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


KILLS = (NOTICE, HALF_WRITTEN, COME_AND_GO, NEVER_COMES)
NOT_FOUND = {
    JOBS["job B"][ILLNESS]: (
        "`diagnose` finds no illness: nobody exits, and steps go on. How many times as long as the others must a "
        "worker compute, in how many steps, and is it one of those with which you compare it?"
    )
}
TOO_FEW = {
    JOBS["job B"][WORKER]: "this worker is slow in the last steps only. In how many steps must a straggler be slow?"
}
NO_NUMBER = {
    names[key]: lambda case, said, key=key: f'"{key}" is a whole number, like event["{key}"], not {said!r}.'
    for names in JOBS.values()
    for key in (WORKER, STEP)
}
STRAGGLER_RULES = [
    *(Mistake(TOO_FEW, if_ill(STRAGGLER, slow(2.0, least, np.median))) for least in (1, 2)),
    *(Mistake(TOO_FEW, if_ill(STRAGGLER, slow(2.0, least, np.median, backwards=True))) for least in (1, 2)),
    Mistake(NOT_FOUND, if_ill(STRAGGLER, slow(3.0, 3, np.median))),
    Mistake(NOT_FOUND, if_ill(STRAGGLER, slow(2.0, 4, np.median))),
    Mistake(NOT_FOUND, if_ill(STRAGGLER, slow(2.0, 3, np.mean, own=True))),
    *(
        Mistake(WRONG, if_ill(STRAGGLER, change))
        for change in (
            lambda log: {STEP: min(own_steps(log, is_slow=True))},
            lambda log: {STEP: max(own_steps(log, is_slow=True))},
            lambda log: {WORKER: max(of(log, "step"), key=lambda event: event["computing"])[WORKER]},
        )
    ),
]
OTHER_VALUES: list[tuple[str, str, Callable[[Log], Any]]] = [
    *((illness, ILLNESS, lambda log: KILLED) for illness in (*KILLS, STRAGGLER)),
    (KILLED, ILLNESS, lambda log: NOTICE if len(of(log, "signal")) == 1 else KILLED),
    (KILLED, ILLNESS, lambda log: HALF_WRITTEN if of(log, "restored") else KILLED),
    (KILLED, WORKER, lambda log: of(before_the_second_start(log), "exit")[-1][WORKER]),
    (KILLED, STEP, lambda log: max(event[STEP] for event in of(log, "step"))),
    (HALF_WRITTEN, WORKER, lambda log: of(log, "exit")[0][WORKER]),
    (HALF_WRITTEN, STEP, lambda log: [event[STEP] for event in of(log, "saved") if not event["sealed"]][-1]),
    (HALF_WRITTEN, STEP, lambda log: whole(before_the_second_start(log))[-1][STEP]),
    (COME_AND_GO, WORKER, lambda log: len(log[0]["addresses"]) - 1),
    (COME_AND_GO, STEP, lambda log: max(event[STEP] for event in of(log, "step"))),
    (NOTICE, WORKER, lambda log: of(log, "exit")[1][WORKER]),
    (NOTICE, STEP, lambda log: of(log, "saved")[-2][STEP]),
    (NEVER_COMES, WORKER, lambda log: 0),
    (NEVER_COMES, STEP, lambda log: 1),
]
DIAGNOSES = [
    *(
        Mistake(WRONG, if_ill(illness, lambda log, key=key, value=value: {key: value(log)}))
        for illness, key, value in OTHER_VALUES
    ),
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
    return {part: None if said is None else said[key] for key, part in JOBS[case.part].items()}


DIAGNOSE = ByPrograms(
    diagnose,
    lambda generator: [OfPart(case.part, case[0].log) for case in logs(generator, range(7))],
    said=in_words,
    parts=[part for names in JOBS.values() for part in names.values()],
    together=JOBS,
    split=of_diagnosis,
    form=lambda case, said: None if said is None else problem_of_names("diagnose", KEYS, said),
    below=shown,
    otherwise=WRONG,
    mistakes=[*STRAGGLER_RULES, *DIAGNOSES],
)

"""The exercise of lab 14 in which students find out from logs how a program uses its sampler wrongly."""

from typing import Any

import numpy as np
from lab_14 import sampler_logs
from lab_14.given import FAULTS, IMAGES, LOGS
from lab_14.hints import Lab14Hint
from lab_14.sampler_logs import (
    NO_SAMPLER,
    NO_SET_EPOCH,
    NO_SHUFFLING,
    NOTHING,
    SEED_PER_RANK,
    TOO_LATE,
    VARIANTS,
    LoggedJob,
)

from distlab.labs.answer import Answer
from distlab.labs.answer_errors import AnswerError, Changed, Gone, TookTooLong
from distlab.labs.part_cases import error_verdict
from distlab.labs.verdict import AnyHint, Hint, Verdict, parts, right, wrong

Missed = dict[str, tuple[str, LoggedJob]]
"""By fault: what is said of a job that has it, and the first such job."""

_MISSED: dict[str, Hint] = {
    NOTHING: Lab14Hint.MISSED_NOTHING,
    NO_SAMPLER: Lab14Hint.MISSED_NO_SAMPLER,
    SEED_PER_RANK: Lab14Hint.MISSED_SEED_PER_RANK,
    NO_SHUFFLING: Lab14Hint.MISSED_NO_SHUFFLING,
    NO_SET_EPOCH: Lab14Hint.MISSED_NO_SET_EPOCH,
    TOO_LATE: Lab14Hint.MISSED_TOO_LATE,
}


def judge_diagnose(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A sixth of the points for each fault, if it is said of all jobs that have it and of no other."""
    given_jobs, drawn = _given_jobs(), _drawn(generator)
    said = [_said(answer, job) for job in given_jobs + drawn]
    errors = [error for error in said if isinstance(error, AnswerError)]
    if len(errors) == len(said) and len({str(error) for error in errors}) == 1:
        raise errors[0]
    if len({repr(text) for text in said}) == 1 and (problem := _problem(said[0], "")):
        return problem
    is_table = all(text == job.fault for text, job in zip(said, given_jobs, strict=False))
    is_constant = len({repr(text) for text in said[len(given_jobs) :]}) == 1 and not _problem(said[-1], "")
    if is_table and is_constant:
        return wrong(Lab14Hint.ONLY_SHOWN.says(said=said[-1]))
    missed: Missed = {}
    problems: dict[str, Verdict] = {}
    for text, job in zip(said, given_jobs + drawn, strict=True):
        if problem := _problem(text, f"for {job}: "):
            problems.setdefault(job.fault, problem)
        elif text != job.fault:
            missed.setdefault(job.fault, (text, job))
    return parts(_by_fault(missed) | problems)


def _given_jobs() -> list[LoggedJob]:
    logs = [[[list(epoch) for epoch in epochs] for epochs in log] for log in LOGS.values()]
    return [LoggedJob(sampler_logs.true_fault(log, IMAGES), log, IMAGES) for log in logs]


def _drawn(generator: np.random.Generator) -> list[LoggedJob]:
    jobs = []
    for fault in FAULTS:
        counts = generator.permutation([2, 3, 4]).tolist()  # else a rule for two ranks might do for a fault
        pairs = zip(VARIANTS, counts, strict=True)
        jobs += [sampler_logs.drawn_job(fault, *pair, generator) for pair in pairs]
    return [
        *jobs,
        sampler_logs.with_two_disjoint_ranks(generator),
        *(sampler_logs.with_one_image_too_few(drop_last, generator) for drop_last in (False, True)),
        sampler_logs.beginning_in_order(generator),
    ]


def _said(answer: Answer, job: LoggedJob) -> Any:
    """What the function says of a job, or the error that it ends in."""
    try:
        return answer.call("diagnose", job.log, job.images)
    except (Changed, Gone, TookTooLong):
        raise
    except AnswerError as error:
        return error


def _problem(said: Any, context: str) -> Verdict | None:
    """What is wrong if this is not one of the texts."""
    if isinstance(said, AnswerError):
        return error_verdict(said, context)
    is_fault = isinstance(said, str) and said in FAULTS
    return None if is_fault else wrong(Lab14Hint.UNKNOWN_FAULT.says(said=said), context=context)


def _by_fault(missed: Missed) -> dict[str, Verdict]:
    """The verdicts, if of these faults another one is said; one text where one fault is said of several."""
    verdicts = {fault: wrong(_missed_hint(*said_of, fault)) for fault, said_of in missed.items()}
    for said in {said for said, _ in missed.values()}:
        faults = [fault for fault in FAULTS if fault in missed and missed[fault][0] == said]
        listed = ", ".join("no fault" if fault == NOTHING else repr(fault) for fault in faults)
        if len(faults) == 1 or said == NOTHING:  # which is usually what remains
            verdicts.setdefault(said, wrong(Lab14Hint.SAID_OF_ANOTHER.says(faults=listed)))
            continue
        verdict = wrong(Lab14Hint.SAID_TOO_OFTEN.says(said=said, faults=listed))
        verdicts |= dict.fromkeys(faults, verdict)
        if said not in missed:
            verdicts[said] = verdict
    return {fault: verdicts.get(fault, right()) for fault in FAULTS}


def _missed_hint(said: str, job: LoggedJob, fault: str) -> AnyHint:
    order = job.together(0)
    different = len(set(order))
    if fault == SEED_PER_RANK and different == min(job.images, len(order)) - 1:
        return Lab14Hint.MISSED_BY_ONE_IMAGE.says(said=said, seen=len(order), different=different, images=job.images)
    if fault == NO_SET_EPOCH and said == NO_SHUFFLING and order[:3] == [0, 1, 2]:
        return Lab14Hint.BEGINS_IN_ORDER.says(said=said)
    return _MISSED[fault].says(said=said)

"""Logs of jobs whose programs use the sampler wrongly, and the exercise of lab 14 that finds out in which way."""

from itertools import pairwise

import numpy as np

from distlab.labs.answer import Answer
from distlab.labs.lab_14.given import FAULTS, IMAGES, LOGS
from distlab.labs.lab_14.hints import Lab14Hint
from distlab.labs.lab_14.sampling import samples, shares
from distlab.labs.verdict import Hint, Verdict, parts, right, wrong

NOTHING, NO_SAMPLER, SEED_PER_RANK, NO_SHUFFLING, NO_SET_EPOCH, TOO_LATE = FAULTS
EVEN, REPEATED, DROPPED = VARIANTS = ("even", "repeated", "dropped")
"""Whether the images divide evenly among the ranks, and what the sampler does if not."""

RankLog = list[list[int]]

_MISSED: dict[str, Hint] = {
    NOTHING: Lab14Hint.MISSED_NOTHING,
    NO_SAMPLER: Lab14Hint.MISSED_NO_SAMPLER,
    SEED_PER_RANK: Lab14Hint.MISSED_SEED_PER_RANK,
    NO_SHUFFLING: Lab14Hint.MISSED_NO_SHUFFLING,
    NO_SET_EPOCH: Lab14Hint.MISSED_NO_SET_EPOCH,
    TOO_LATE: Lab14Hint.MISSED_TOO_LATE,
}


def drawn_log(fault: str, variant: str, ranks: int, generator: np.random.Generator) -> tuple[list[RankLog], int]:
    """A log, log[rank][epoch], and how many images there are."""
    per_rank, epochs = (int(generator.integers(low, high)) for low, high in ((6, 9), (3, 5)))
    # With one image left over, all ranks but the first get a repeated one.
    images = ranks * per_rank + {EVEN: 0, REPEATED: 1, DROPPED: ranks - 1}[variant]
    return job_log(fault, images, ranks, epochs, variant == DROPPED, generator), images


def job_log(
    fault: str, images: int, ranks: int, epochs: int, drop_last: bool, generator: np.random.Generator
) -> list[RankLog]:
    """What the ranks of a job see; drawn again until its fault shows."""
    while True:
        seed = int(generator.integers(10_000))
        log = [
            [_epoch(fault, images, ranks, rank, epoch, seed, drop_last) for epoch in range(epochs)]
            for rank in range(ranks)
        ]
        if true_fault(log, images) == fault:
            return log


def _epoch(fault: str, images: int, ranks: int, rank: int, epoch: int, seed: int, drop_last: bool) -> list[int]:
    match fault:
        case "no sampler":
            return np.random.default_rng([seed, rank, epoch]).permutation(images).tolist()  # type: ignore[no-any-return]
        case "no shuffling":
            return shares(np.arange(images), ranks, drop_last)[rank]
        case "a seed per rank":
            seed += 1000 * rank
        case "no set_epoch":
            epoch = 0
        case "set_epoch too late":
            epoch = max(0, epoch - 1)
    return samples(images, ranks, rank, epoch, seed, drop_last)


def true_fault(log: list[RankLog], images: int) -> str:
    """The fault by its signs in every epoch and on every rank."""
    if all(sorted(epoch) == list(range(images)) for epochs in log for epoch in epochs):
        return NO_SAMPLER
    together = [[image for epochs in log for image in epochs[epoch]] for epoch in range(len(log[0]))]
    if all(len(set(seen)) < min(images, len(seen)) for seen in together):
        return SEED_PER_RANK
    orders = log[0]
    is_new = [later != earlier for earlier, later in pairwise(orders)]
    if not any(is_new):
        return NO_SHUFFLING if orders[0] == sorted(orders[0]) else NO_SET_EPOCH
    return NOTHING if all(is_new) else TOO_LATE


def judge_diagnose(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A sixth of the points for each fault, if it is said of all jobs that have it and of no other."""
    jobs = [(true_fault(_lists(log), IMAGES), _lists(log), IMAGES) for log in LOGS.values()]
    for fault in FAULTS:
        counts = generator.permutation([2, 3, 4]).tolist()  # else a rule for two ranks might do for a fault
        jobs += [(fault, *drawn_log(fault, *pair, generator)) for pair in zip(VARIANTS, counts, strict=True)]
    jobs.append((SEED_PER_RANK, *_log_with_two_disjoint_ranks(generator)))
    missed: dict[str, str] = {}
    said_of_others: set[str] = set()
    is_table = True
    for place, (fault, log, images) in enumerate(jobs):
        said = answer.call("diagnose", log, images)
        if not isinstance(said, str) or said not in FAULTS:
            return wrong(Lab14Hint.UNKNOWN_FAULT.says(said=said))
        if said != fault:
            missed.setdefault(fault, said)
        if place < len(LOGS):
            is_table = not missed
        else:
            said_of_others.add(said)
    if is_table and len(said_of_others) == 1:
        return wrong(Lab14Hint.ONLY_SHOWN.says(said=said_of_others.pop()))
    return parts(_by_fault(missed))


def _by_fault(missed: dict[str, str]) -> dict[str, Verdict]:
    """The verdicts, if of these faults another one is said; one text where one fault is said of several."""
    verdicts = {fault: wrong(_MISSED[fault].says(said=said)) for fault, said in missed.items()}
    for said in set(missed.values()):
        faults = [fault for fault in FAULTS if missed.get(fault) == said]
        if len(faults) == 1 or said == NOTHING:  # which is usually what remains
            verdicts.setdefault(said, wrong(Lab14Hint.SAID_OF_ANOTHER))
            continue
        listed = ", ".join(repr(fault) for fault in faults)
        verdict = wrong(Lab14Hint.SAID_TOO_OFTEN.says(said=said, faults=listed))
        verdicts |= dict.fromkeys(faults, verdict)
        if said not in missed:
            verdicts[said] = verdict
    return {fault: verdicts.get(fault, right()) for fault in FAULTS}


def _log_with_two_disjoint_ranks(generator: np.random.Generator) -> tuple[list[RankLog], int]:
    """Each rank has another seed, and still ranks 0 and 1 see no image both: others do."""
    ranks, per_rank = 6, 6
    while True:
        log = job_log(SEED_PER_RANK, ranks * per_rank, ranks, 3, False, generator)
        if not any(set(first) & set(second) for first, second in zip(log[0], log[1], strict=True)):
            return log, ranks * per_rank


def _lists(log: object) -> list[RankLog]:
    return [[list(epoch) for epoch in epochs] for epochs in log]  # type: ignore[attr-defined]

"""The time of a step on more ranks than were measured: an exercise of lab 11 and its judge."""

from typing import NamedTuple

import numpy as np

from distlab import costs
from distlab.labs.answer import Answer
from distlab.labs.comparisons import hint_of, is_near, number
from distlab.labs.lab_11.fits import CLEARLY_OFF, EXACT, NOISE, NOISY, amdahl_columns, drawn_network, factors
from distlab.labs.verdict import Verdict, right, wrong

MOST_JOBS = 300


class Job(NamedTuple):
    """What is measured, and what is asked: the step's seconds on `ranks` ranks, `nbytes` of gradient."""

    ranks: int
    computing_ranks: np.ndarray
    computing_seconds: np.ndarray
    reducing_ranks: int
    sizes: np.ndarray
    reducing_seconds: np.ndarray
    nbytes: int


def predicted(
    ranks: int,
    computing_ranks: np.ndarray,
    computing_seconds: np.ndarray,
    reducing_ranks: int,
    sizes: np.ndarray,
    reducing_seconds: np.ndarray,
    nbytes: int,
) -> float:
    """Seconds of a step on `ranks` ranks: computing by Amdahl's law, then a ring all-reduce of the gradient."""
    law = costs.fit_amdahl(computing_ranks, computing_seconds)
    network = costs.fit(sizes, reducing_seconds, lambda n: costs.all_reduce("ring", reducing_ranks, n))
    return float(law.seconds(ranks) + network.seconds(costs.all_reduce("ring", ranks, nbytes)))


def drawn_job(generator: np.random.Generator, ranks: int, reducing_ranks: int) -> Job:
    """A job all of whose parts count on `ranks` ranks, measured without noise."""
    computing_ranks, sizes = np.array([1, 2, 4, 8]), 4 * 10 ** np.arange(2, 8)
    while True:
        parallel = float(generator.uniform(2, 6))
        serial = parallel * float(generator.uniform(0.02, 0.06))
        network, nbytes = drawn_network(generator), int(generator.integers(10, 200)) * 10**6
        latencies = 2 * (ranks - 1) * network.latency
        of_bytes = network.ring(ranks, nbytes) - latencies
        pieces = np.array([serial, parallel / ranks, of_bytes])
        if pieces.min() > 0.15 * pieces.sum() and latencies > 0.01 * pieces.sum():
            break
    computing = costs.Amdahl(serial, parallel).seconds(computing_ranks)
    return Job(ranks, computing_ranks, computing, reducing_ranks, sizes, network.ring(reducing_ranks, sizes), nbytes)


def _noisy_job(generator: np.random.Generator, exact: Job) -> Job:
    """The job with noise in its times, with which a fit of the computing by absolute errors predicts clearly wrong."""
    columns, found = amdahl_columns(exact.computing_ranks), []
    reducing = exact.reducing_seconds * (1 + NOISE * generator.uniform(-1, 1, len(exact.sizes)))
    for _ in range(MOST_JOBS):
        computing = exact.computing_seconds * (1 + NOISE * generator.uniform(-1, 1, len(exact.computing_ranks)))
        job = exact._replace(computing_seconds=computing, reducing_seconds=reducing)
        at_ranks = np.array([1, 1 / job.ranks])
        best, other = factors(columns, computing, 1 / computing), factors(columns, computing, 1.0)
        off = abs((other - best) @ at_ranks) / predicted(*job) if best.min() > 0 else 0.0
        found.append((off, job))
        if off > CLEARLY_OFF:
            break
    return max(found, key=lambda one: one[0])[1]


def judge_predicted(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Half of the points for exact measurements, half for noisy ones."""
    for ranks, reducing_ranks in ((64, 8), (64, 4), (48, 8)):
        job = drawn_job(generator, ranks, reducing_ranks)
        found = number(answer.call("predicted", *job))
        if found is None:
            return wrong("`predicted` gives one number, the seconds of a step.")
        true = predicted(*job)
        if not is_near(found, true, EXACT):
            hint = hint_of(found, _mistaken_prediction(job), EXACT) or (
                "not right. Print what computing takes on so many ranks, and what the all-reduce takes."
            )
            return wrong(f"{found:.4g} s on {ranks} ranks, the all-reduce measured on {reducing_ranks}: {hint}")
    job = _noisy_job(generator, drawn_job(generator, 64, 8))
    found, true = number(answer.call("predicted", *job)), predicted(*job)
    if found is None or not is_near(found, true, NOISY):
        return wrong(f"Right for exact times; {NOISE:.0%} of noise in them moves the prediction far: see 3 and 4.", 0.5)
    speedup = job.computing_seconds[0] / found
    return right(
        f"A step of {job.computing_seconds[0]:.2f} s takes {found:.3f} s on 64 ranks: efficiency {speedup / 64:.0%}."
    )


def _mistaken_prediction(job: Job) -> list[tuple[float, str]]:
    law = costs.fit_amdahl(job.computing_ranks, job.computing_seconds)
    network = costs.fit(job.sizes, job.reducing_seconds, lambda n: costs.all_reduce("ring", job.reducing_ranks, n))
    p, old, n = job.ranks, job.reducing_ranks, job.nbytes

    def ring(ranks: int) -> float:
        return float(network.seconds(costs.all_reduce("ring", ranks, n)))

    computing, reducing = float(law.seconds(p)), ring(p)
    total = computing + reducing
    still = "the all-reduce is still that of the ranks it was measured on. What grows with the ranks?"
    return [
        (computing, "that is the computing alone: when do the gradients meet?"),
        (reducing, "that is the all-reduce alone."),
        (law.parallel_seconds / p + reducing, "the serial part is missing: more ranks do not shorten it."),
        (float(law.seconds(1)) / p + reducing, "the serial part is divided too, and more ranks do not shorten it."),
        (float(law.seconds(1)) + reducing, "the computing is still that of one rank."),
        (computing + ring(old), still),
        (
            (computing + ring(old) * p / old),
            "so many times the ranks do not make an all-reduce so many times as long.",
        ),
        (
            (computing + ring(old) * old / p),
            "more ranks do not shorten an all-reduce: how many bytes does each send?",
        ),
        (total / p, "all ranks work on the step at the same time; it is not divided again."),
        (
            (computing + reducing / p),
            "each rank sends nearly twice the gradient, and that is not divided.",
        ),
        (computing + network.latency + n * network.seconds_per_byte, "an all-reduce is more than one message."),
        (max(computing, reducing), "the task says that nothing overlaps: what follows what?"),
        (1e3 * total, "seconds are asked for, not another unit."),
    ]

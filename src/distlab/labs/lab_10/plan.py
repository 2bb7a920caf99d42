"""Batch and learning rate for a number of ranks: an exercise of lab 10 and its judge."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from distlab.labs.answer import Answer
from distlab.labs.comparisons import Mistakes, hint_of, is_near, number
from distlab.labs.verdict import Verdict, not_done, parts, right, wrong
from distlab.large_batch.four_numbers import FourNumbers

NUMBERS = ("per-replica batch", "global batch", "steps per epoch", "learning rate")


class Job(NamedTuple):
    """What is known before a training begins.

    known_batch, known_rate: a global batch and the learning rate that is right for it.  fits: the largest batch for the
    memory of one device.  worthwhile: the global batch beyond which larger ones are not wanted.
    """

    images: int
    hosts: int
    ranks_per_host: int
    known_batch: int
    known_rate: float
    fits: int
    worthwhile: int

    @property
    def ranks(self) -> int:
        """On all hosts together."""
        return self.hosts * self.ranks_per_host


EXAMPLE = Job(60_000, 2, 4, known_batch=100, known_rate=0.01, fits=256, worthwhile=1500)


def plan(
    images: int, hosts: int, ranks_per_host: int, known_batch: int, known_rate: float, fits: int, worthwhile: int
) -> dict[str, int | float]:
    """The four numbers of the largest batch that fits and is worthwhile, by the linear rule."""
    ranks = hosts * ranks_per_host
    four = FourNumbers(images, ranks, min(fits, worthwhile // ranks), known_rate, known_batch)
    values = four.per_replica_batch, four.global_batch, four.steps_per_epoch, four.learning_rate
    return dict(zip(NUMBERS, values, strict=True))


def _drawn_jobs(generator: np.random.Generator) -> list[Job]:
    """Worthwhile is the limit, then memory, then worthwhile on one host; nothing divides evenly."""
    jobs = []
    for hosts, is_memory in ((2, False), (3, True), (1, False)):
        local = int(generator.integers(3, 6)) * 2
        ranks, per_replica = hosts * local, int(generator.integers(70, 140))
        rest = int(generator.integers(1, ranks))
        fits = per_replica if is_memory else per_replica + int(generator.integers(20, 60))
        worthwhile = ranks * (per_replica + 7 * is_memory) + rest
        images = ranks * per_replica * int(generator.integers(15, 30)) + int(generator.integers(70, 600))
        jobs.append(Job(images, hosts, local, int(generator.integers(20, 60)), 0.02, fits, worthwhile))
    return jobs


def judge_plan(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points for each number that is right in every case."""
    hints: dict[str, Verdict] = {}
    for job in [EXAMPLE, *_drawn_jobs(generator)]:
        given = answer.call("plan", *job)
        if not isinstance(given, dict) or not set(NUMBERS) <= set(given):
            return wrong(f"`plan` gives a dictionary with the names {', '.join(NUMBERS)}.")
        for name, true in plan(*job).items():
            found = number(given[name])
            if name in hints or is_near(found, true):
                continue
            if given[name] is None or given[name] is ...:
                hints[name] = not_done("`plan` gives None")
            elif found is None:
                hints[name] = wrong("a number is wanted.")
            else:
                hint = hint_of(found, _mistaken(job)[name]) or (
                    "not right. Write the four numbers of the example one below the other; each follows from the last."
                )
                hints[name] = wrong(f"{found:.6g} for {_described(job)}: {hint}")
    return parts({name: hints.get(name, right()) for name in NUMBERS})


def _described(job: Job) -> str:
    return (
        f"{job.images:,} images, {job.hosts} hosts with {job.ranks_per_host} ranks, {job.known_rate:g} for a batch of "
        f"{job.known_batch}, {job.fits} fit, {job.worthwhile} worthwhile"
    )


def _mistaken(job: Job) -> Mapping[str, Mistakes]:
    per_replica, whole, steps, rate = plan(*job).values()
    ranks, local, per_host = job.ranks, job.ranks_per_host, per_replica * job.ranks_per_host
    fraction = "images cannot be cut: which whole number is not above the limit?"
    return {
        "per-replica batch": [
            (job.fits, f"it fits, but the global batch would be {job.fits * ranks}. Is that worthwhile?"),
            (job.worthwhile, "that is the limit of the global batch, for all ranks together."),
            (job.worthwhile // local, "that is divided among the ranks of one host alone."),
            (job.worthwhile // ranks, "that is worthwhile, but does it fit into the memory of one device?"),
            (job.worthwhile / ranks, fraction),
            (-(-job.worthwhile // ranks), "rounded up, all ranks together are above the limit."),
            (job.fits // ranks, "the memory is that of one device, and nobody shares it."),
            (job.known_batch, "the batch of one device is kept. How large may it be?"),
            (job.known_batch // ranks, "that divides the old batch: a larger one is wanted."),
        ],
        "global batch": [
            (per_replica, "that is what one rank gets. How many images does one update see?"),
            (per_host, "that is what one host gets, the local size instead of the world size."),
            (job.worthwhile, "so many cannot be divided evenly among the ranks."),
            (job.fits * ranks, "that is larger than what is worthwhile."),
            (per_replica * job.hosts, "each host has several ranks."),
        ],
        "steps per epoch": [
            (steps + 1, "what does not fill a global batch is dropped here."),
            (job.images / whole, "there are no parts of a step."),
            (job.images // per_replica, "so every rank would see every image: an epoch under one name, many in truth."),
            (job.images // per_host, "the images are divided among all ranks, not among those of one host."),
            (job.images // job.known_batch, "these are the steps of the training on one device."),
            (steps // ranks, "every rank takes part in every step; steps are not shared out."),
        ],
        "learning rate": [
            (
                job.known_rate * ranks,
                "times the ranks: right only if each rank has the known batch. What does it have?",
            ),
            (job.known_rate * local, "times the local size: what do the other hosts do to the batch?"),
            (job.known_rate, "the rate of the small batch: fewer steps are made now, and each is the mean of more."),
            (job.known_rate * math.sqrt(whole / job.known_batch), "that is the square-root rule."),
            (job.known_rate * per_replica / job.known_batch, "the ratio of the global batches is asked for."),
            (job.known_rate * per_host / job.known_batch, "the global batch is that of all hosts, not of one."),
            (job.known_rate * job.known_batch / whole, "turned round: with fewer steps, is each longer or shorter?"),
            (job.known_rate * whole, "divide by the batch that the known rate is for."),
            (rate / ranks, "the all-reduce gives a mean already; nothing is divided again."),
        ],
    }

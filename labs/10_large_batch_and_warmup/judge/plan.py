"""Batch and learning rate for a number of ranks: an exercise of lab 10 and its judge."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from lab_10.hints import Lab10Hint

from distlab.labs.answer import Answer
from distlab.labs.number_judge import Expected, Mistakes, NumberJudge, is_near, number
from distlab.labs.plain_data import Plain
from distlab.labs.verdict import Verdict, wrong
from distlab.large_batch.four_numbers import FourNumbers

NUMBERS = ("per-replica batch", "global batch", "steps per epoch", "learning rate")


class TrainingJob(NamedTuple):
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


EXAMPLE = TrainingJob(60_000, 2, 4, known_batch=100, known_rate=0.01, fits=256, worthwhile=1500)


def plan(
    images: int, hosts: int, ranks_per_host: int, known_batch: int, known_rate: float, fits: int, worthwhile: int
) -> dict[str, int | float]:
    """The four numbers of the largest batch that fits and is worthwhile, by the linear rule."""
    ranks = hosts * ranks_per_host
    four = FourNumbers(images, ranks, min(fits, worthwhile // ranks), known_rate, known_batch)
    values = four.per_replica_batch, four.global_batch, four.steps_per_epoch, four.learning_rate
    return dict(zip(NUMBERS, values, strict=True))


def _drawn_jobs(generator: np.random.Generator) -> list[TrainingJob]:
    """Worthwhile is the limit, then memory, then worthwhile on one host; nothing divides evenly."""
    jobs = []
    for hosts, is_memory in ((2, False), (3, True), (1, False)):
        local = int(generator.integers(3, 6)) * 2
        ranks, per_replica = hosts * local, int(generator.integers(70, 140))
        rest = int(generator.integers(1, ranks))
        fits = per_replica if is_memory else per_replica + int(generator.integers(20, 60))
        worthwhile = ranks * (per_replica + 7 * is_memory) + rest
        images = ranks * per_replica * int(generator.integers(15, 30)) + int(generator.integers(70, 600))
        jobs.append(TrainingJob(images, hosts, local, int(generator.integers(20, 60)), 0.02, fits, worthwhile))
    return jobs


def judge_plan(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points for each number that is right in every case."""
    judge = NumberJudge("plan", NUMBERS)
    for job in [EXAMPLE, *_drawn_jobs(generator)]:
        numbers = answer.call("plan", *job)
        if _are_of_one_host(numbers, job):
            return wrong(Lab10Hint.FORGOTTEN_HOSTS, context=f"{_described(job)}: ")
        if problem := judge.compare(numbers, _expected(job), _described(job)):
            return problem
        judge.follow(numbers, _following(numbers, job))
    return judge.verdict()


def _are_of_one_host(numbers: Plain, job: TrainingJob) -> bool:
    """Whether the whole plan is right for a single host, and there are several."""
    of_one = plan(*job._replace(hosts=1))
    return (
        job.hosts > 1
        and isinstance(numbers, dict)
        and all(is_near(number(numbers.get(name)), value) for name, value in of_one.items())
    )


def _following(numbers: Plain, job: TrainingJob) -> dict[str, tuple[str, float | None]]:
    """For each number but the first: that from which it follows, and what follows from the answer's own."""
    assert isinstance(numbers, dict)
    per_replica, global_batch = (number(numbers[name]) for name in NUMBERS[:2])
    per, whole, steps, rate = NUMBERS
    return {
        whole: (per, None if per_replica is None else per_replica * job.ranks),
        steps: (whole, job.images // global_batch if global_batch else None),
        rate: (whole, None if global_batch is None else job.known_rate * global_batch / job.known_batch),
    }


def _expected(job: TrainingJob) -> dict[str, Expected]:
    mistakes = _mistakes(job)
    return {name: Expected(value, mistakes[name], Lab10Hint.PLAN_OTHERWISE) for name, value in plan(*job).items()}


def _described(job: TrainingJob) -> str:
    return (
        f"{job.images:,} images, {job.hosts} hosts with {job.ranks_per_host} ranks, {job.known_rate:g} for a batch of "
        f"{job.known_batch}, {job.fits} fit, {job.worthwhile} worthwhile"
    )


def _mistakes(job: TrainingJob) -> Mapping[str, Mistakes]:
    per_replica, global_batch, steps, rate = plan(*job).values()
    ranks, local, per_host = job.ranks, job.ranks_per_host, per_replica * job.ranks_per_host
    return {
        "per-replica batch": [
            (job.fits, Lab10Hint.ALL_THAT_FITS.says(global_batch=job.fits * ranks)),
            (job.worthwhile, Lab10Hint.LIMIT_OF_ALL),
            (job.worthwhile // local, Lab10Hint.DIVIDED_BY_LOCAL_SIZE),
            (job.worthwhile // ranks, Lab10Hint.TOO_LARGE_FOR_MEMORY),
            (job.worthwhile / ranks, Lab10Hint.PARTS_OF_IMAGES),
            (-(-job.worthwhile // ranks), Lab10Hint.BATCH_ROUNDED_UP),
            (job.fits // ranks, Lab10Hint.MEMORY_DIVIDED),
            (job.known_batch, Lab10Hint.KNOWN_BATCH_KEPT),
            (job.known_batch // ranks, Lab10Hint.KNOWN_BATCH_DIVIDED),
        ],
        "global batch": [
            (per_replica, Lab10Hint.BATCH_OF_ONE_RANK),
            (per_host, Lab10Hint.BATCH_OF_ONE_HOST),
            (job.worthwhile, Lab10Hint.LIMIT_ITSELF),
            (job.fits * ranks, Lab10Hint.BEYOND_LIMIT),
            (per_replica * job.hosts, Lab10Hint.ONE_RANK_PER_HOST),
        ],
        "steps per epoch": [
            (steps + 1, Lab10Hint.STEPS_ROUNDED_UP),
            (job.images / global_batch, Lab10Hint.PARTS_OF_STEPS),
            (job.images // per_replica, Lab10Hint.EACH_RANK_SEES_ALL),
            (job.images // per_host, Lab10Hint.STEPS_OF_ONE_HOST),
            (job.images // job.known_batch, Lab10Hint.STEPS_ON_ONE_DEVICE),
            (steps // ranks, Lab10Hint.STEPS_DIVIDED),
        ],
        "learning rate": [
            (job.known_rate * ranks, Lab10Hint.TIMES_RANKS),
            (job.known_rate * local, Lab10Hint.TIMES_LOCAL_SIZE),
            (job.known_rate, Lab10Hint.KNOWN_RATE_KEPT),
            (job.known_rate * math.sqrt(global_batch / job.known_batch), Lab10Hint.SQUARE_ROOT_RULE),
            (job.known_rate * per_replica / job.known_batch, Lab10Hint.RATIO_OF_ONE_RANK),
            (job.known_rate * per_host / job.known_batch, Lab10Hint.RATIO_OF_ONE_HOST),
            (job.known_rate * job.known_batch / global_batch, Lab10Hint.RATE_INVERTED),
            (job.known_rate * global_batch, Lab10Hint.NOT_DIVIDED_BY_KNOWN_BATCH),
            (rate / ranks, Lab10Hint.RATE_DIVIDED_BY_RANKS),
        ],
    }

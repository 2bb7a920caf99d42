"""What a rank of lab 15 can do: train a step, look for a notice, add up a number over all ranks, save.

`job` is a dictionary: `steps`, how many there are in all; `saved`, the step in the newest checkpoint, 0 without one;
`notice`, `step_seconds`, `save_seconds` and `done` are for the functions here.
"""

from typing import TypedDict

import numpy as np

from distlab import collectives
from distlab.simulate import Rank

GRADIENTS = 12
NO_STEP = "there is no step {}"
STEP_AGAIN = "step {} is done again and again"
MOST_TIMES = 5
"""So often one step may be done in an attempt; a program that does it more often does not end."""


class QueuedJob(TypedDict):
    """One attempt of a job, as one rank sees it.

    steps, saved: see above.  notice: when this rank receives its signal, in virtual seconds.  step_seconds,
    save_seconds: how long it computes in each step, and writes after each.  done: the steps that it has begun.
    """

    steps: int
    saved: int
    notice: float
    step_seconds: list[float]
    save_seconds: list[float]
    done: list[int]


async def train_step(rank: Rank, job: QueuedJob, step: int) -> None:
    """Do step number `step`, from 1 on: compute, then add up the gradients of all ranks."""
    if not 0 <= step < len(job["step_seconds"]):
        raise ValueError(NO_STEP.format(step) + f": the job has {job['steps']} steps")
    job["done"].append(step)
    if job["done"].count(step) > MOST_TIMES:
        raise ValueError(STEP_AGAIN.format(step))
    await rank.compute(job["step_seconds"][step])
    await collectives.ring_all_reduce(rank, np.ones(GRADIENTS))


def has_notice(rank: Rank, job: QueuedJob) -> bool:
    """Whether this rank has received the signal by now."""
    return rank.now >= job["notice"]


async def add_up(rank: Rank, number: float) -> float:
    """The sum of the numbers of all ranks. All ranks must call it; none goes on before all have called it."""
    total = await collectives.ring_all_reduce(rank, np.array([float(number)]))
    return float(total[0])


async def save(rank: Rank, job: QueuedJob, step: int) -> None:
    """Write a checkpoint of the state after step number `step`, which takes a while."""
    await rank.compute(job["save_seconds"][step])

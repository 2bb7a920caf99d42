"""What the virtual cluster answers for questions on collectives; each run once for the same numbers."""

from functools import cache

import numpy as np

from distlab import collectives
from distlab.simulate import DeadlockError, Network, Rank, World


@cache
def left_on(rank: int, collective: str, rows: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """What a rank has after the collective, on the virtual cluster."""
    program = getattr(collectives, "ring_all_reduce" if collective == "all_reduce" else collective)
    return tuple(World(len(rows)).run(program, [np.array(row) for row in rows]).results[rank].tolist())


@cache
def ring_seconds(ranks: int, factor: int) -> float:
    """The virtual time of a ring all-reduce without latency, with one link `factor` times slower."""
    network = Network(latency=0.0, seconds_per_byte=1e-9).with_slow_link(1, 2, factor=factor)
    return World(ranks, network).run(collectives.ring_all_reduce, [np.ones(2 * ranks, np.float32)] * ranks).elapsed


@cache
def step_seconds(ranks: int, milliseconds: int, percent: int) -> float:
    """The virtual time of a step in which rank 1 computes at so many per cent of the others' speed."""

    async def step(rank: Rank, array: np.ndarray) -> None:
        await rank.compute(1e-3 * milliseconds)
        await collectives.ring_all_reduce(rank, array)

    arrays = [np.ones(ranks, np.float32)] * ranks
    return World(ranks, Network(1e-6, 1e-9), {1: percent / 100}).run(step, arrays).elapsed


@cache
def whom_it_waits_for(ranks: int, index: int) -> object:
    """The rank for which rank `index` waits when all send to the right first and wait until they are confirmed."""

    async def blocking_step(rank: Rank, array: np.ndarray) -> None:
        right, left = (rank.index + 1) % rank.size, (rank.index - 1) % rank.size
        await rank.send(right, array)
        await rank.receive(right)
        await rank.receive(left)
        await rank.send(left, np.empty(0))

    try:
        World(ranks).run(blocking_step, [np.ones(1)] * ranks)
    except DeadlockError as error:
        return error.waiting[index].source
    raise RuntimeError("the program has no deadlock")


@cache
def sums_in_order(workers: int, chief: tuple[float, float], others: tuple[float, float]) -> list[float]:
    """What the chief gets from two all-reduces if it contributes `chief`, and each other worker `others`."""

    async def two_sums(rank: Rank, numbers_of_rank: list[np.ndarray]) -> list[float]:
        return [float((await collectives.ring_all_reduce(rank, each))[0]) for each in numbers_of_rank]

    calls = [chief] + [others] * (workers - 1)
    sums: list[float] = World(workers).run(two_sums, [[np.array([each]) for each in both] for both in calls]).results[0]
    return sums


@cache
def all_reduced(contributions: tuple[float, ...]) -> float:
    """What the first rank has after an all-reduce of one number per rank."""
    inputs = [np.array([each]) for each in contributions]
    return float(World(len(inputs)).run(collectives.ring_all_reduce, inputs).results[0][0])


@cache
def waiting_times(ranks: int, slow: int, times: int) -> tuple[float, ...]:
    """Milliseconds that each rank waits for the sum in a step of 10 ms, in which one rank computes longer."""

    async def step(rank: Rank, array: np.ndarray) -> float:
        await rank.compute(10e-3)
        computed = rank.now
        await collectives.ring_all_reduce(rank, array)
        return 1e3 * (rank.now - computed)

    arrays = [np.ones(1_000, np.float32)] * ranks
    return tuple(World(ranks, Network(), {slow: 1 / times}).run(step, arrays).results)


@cache
def staleness(workers: int) -> float:
    """How stale the gradients of equal workers are, once all of them have sent one."""
    steps = 10

    async def server_or_worker(rank: Rank, weights: np.ndarray) -> collectives.Training | None:
        return await collectives.parameter_server(rank, weights, lambda values, worker, step: values, steps)

    training = World(workers + 1).run(server_or_worker, [np.ones(1)] * (workers + 1)).results[0]
    settled = training.staleness[workers : -2 * workers]
    return float(np.mean(settled))

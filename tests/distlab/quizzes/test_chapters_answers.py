"""The right answers against another way to find them: by counting, drawing, searching or running.

Questions whose answer is a text, or arithmetic that a formula here would only repeat, have none.
"""

import heapq
import json
import subprocess
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from distlab import cluster_spec, collectives
from distlab.cluster_spec import slurm
from distlab.model_parallel import pipelines
from distlab.quizzes.item import Item, Kind
from distlab.quizzes.quiz import draw_item, templates
from distlab.simulate import DeadlockError, Network, Rank, World

SEEDS = range(8)


def question(chapter: str, name: str, seed: int) -> Item:
    return draw_item(chapter, next(each for each in templates(chapter) if each.__name__ == name), seed)


def total(contributions: list[float]) -> float:
    """What the first rank has after an all-reduce on the virtual cluster."""
    arrays = [np.array([each]) for each in contributions]
    return float(World(len(arrays)).run(collectives.ring_all_reduce, arrays).results[0][0])


def updates(v: Any) -> float:
    """Count the updates of 60 seconds, one after another."""
    seconds = [1] * (v.workers - 1) + [v.slow]
    if v.method == "synchronous":
        return len(range(v.slow, 61, v.slow))
    ready, count = [(each, each) for each in seconds], 0
    heapq.heapify(ready)
    while ready[0][0] <= 60:
        moment, each = heapq.heappop(ready)
        count += 1
        heapq.heappush(ready, (moment + each, each))
    return count


def batches(v: Any) -> float:
    """Fill the batches number by number."""
    count, filled = 0, 0
    for epoch in range(2):
        for place in range(v.images):
            filled += 1
            is_last = place == v.images - 1 and (v.order == "batch, repeat" or epoch == 1)
            if filled == v.batch or is_last:
                count, filled = count + 1, 0
    return count


def after_the_collective(v: Any) -> str:
    program = getattr(collectives, v.collective.replace("all_reduce", "ring_all_reduce"))
    rows = [np.array(row) for row in (v.ones, v.tens, v.hundreds)]
    return str(World(3).run(program, rows).results[v.rank].tolist())


def slow_link(v: Any) -> float:
    network = Network(latency=0.0, seconds_per_byte=1e-9)
    arrays = [np.ones(2 * v.ranks, np.float32)] * v.ranks
    usual, hampered = (
        World(v.ranks, each).run(collectives.ring_all_reduce, arrays).elapsed
        for each in (network, network.with_slow_link(1, 2, factor=v.factor))
    )
    return hampered / usual


def straggler(v: Any) -> float:
    async def step(rank: Rank, array: np.ndarray) -> None:
        await rank.compute(v.milliseconds)
        await collectives.ring_all_reduce(rank, array)

    arrays = [np.ones(v.ranks, np.float32)] * v.ranks
    even, uneven = (World(v.ranks, Network(), {1: speed}).run(step, arrays).elapsed for speed in (1, v.percent / 100))
    return uneven - even


def waits_for(v: Any) -> str:
    async def blocking_step(rank: Rank, array: np.ndarray) -> None:
        right, left = (rank.index + 1) % rank.size, (rank.index - 1) % rank.size
        await rank.send(right, array)
        await rank.receive(right)  # until the message is confirmed
        await rank.receive(left)
        await rank.send(left, np.empty(0))

    with pytest.raises(DeadlockError) as found:
        World(v.ranks).run(blocking_step, [np.ones(1)] * v.ranks)
    return f"For rank {found.value.waiting[v.rank].source}"


def metric_of_the_chief(v: Any) -> float:
    """The chief's two all-reduces meet the others' next two."""

    async def two_sums(rank: Rank, numbers: list[np.ndarray]) -> list[float]:
        return [float((await collectives.ring_all_reduce(rank, each))[0]) for each in numbers]

    calls = [[np.array([each]) for each in both] for both in [(v.mean, 1.0)] + [v.sums] * (v.workers - 1)]
    sums = World(v.workers).run(two_sums, calls).results[0]
    return sums[0] / sums[1]


def staleness(v: Any) -> float:
    """Of equal workers, once all of them have sent a gradient."""

    async def server_or_worker(rank: Rank, weights: np.ndarray) -> collectives.Training | None:
        return await collectives.parameter_server(rank, weights, lambda values, worker, step: values, 10)

    training = World(v.workers + 1).run(server_or_worker, [np.ones(1)] * (v.workers + 1)).results[0]
    return float(np.mean(training.staleness[v.workers : -2 * v.workers]))


def buffers(v: Any) -> float:
    """Pack gradient by gradient."""
    count, used = 1, 0
    for _ in range(v.count):
        if used and used + v.kilobytes > v.threshold:
            count, used = count + 1, 0
        used += v.kilobytes
    return count


def in_16_bits(v: Any) -> str:
    with np.errstate(over="ignore"):
        sums = np.cumsum(np.full(v.ranks, v.value, np.float16), dtype=np.float16)
    return "Infinity" if np.isinf(sums[-1]) else f"{v.value:,}, up to rounding"


def noise_scale(v: Any) -> float:
    """Solve |G|² + tr Σ / B for the two batch sizes."""
    sizes = np.array([v.batch, v.batch * v.ranks])
    squares = v.signal + v.variance / sizes
    signal, variance = np.linalg.solve(np.stack([np.ones(2), 1 / sizes], axis=1), squares)
    return float(variance / signal)


def whole_batches(images: int, batch: int) -> int:
    """The images of all batches that are full, counted one after another."""
    return sum(batch for start in range(0, images, batch) if start + batch <= images)


def waiting_share(stages: int, micro_batches: int, chunks: int = 1) -> float:
    """Of the simulated pipeline, not of the formula."""
    schedule = "gpipe" if chunks == 1 else "interleaved"
    return float(100 * pipelines.simulate(schedule, stages, micro_batches, chunks).bubble_fraction)


def activations(v: Any) -> float:
    """Count the forward passes that have no backward pass yet, along the order of the stage."""
    order = pipelines.orders(v.schedule.lower(), v.stages, v.micro_batches)[v.stage]
    return float(np.cumsum([1 if each.kind == pipelines.FORWARD else -1 for each in order]).max())


def seam(v: Any) -> float:
    """Convolve a line of random numbers whole and in two halves, and count where the outputs differ."""
    kernel, line = np.ones(v.kernel), np.random.default_rng(1).random(101)

    def convolved(part: np.ndarray) -> np.ndarray:
        for _ in range(v.layers):
            part = np.convolve(part, kernel, "same")
        return part

    halves = np.concatenate([convolved(line[:50]), convolved(line[50:])])
    return float(np.sum(np.abs(halves - convolved(line)) > 1e-9))


def host(v: Any) -> str:
    variables = {
        "SLURM_STEP_NODELIST": v.names,
        "SLURM_STEP_TASKS_PER_NODE": f"{v.per_node}(x3)",
        "SLURM_PROCID": str(v.rank),
        "SLURM_JOB_ID": "1",
        "SLURM_STEP_ID": "0",
    }
    cluster, _ = slurm.slurm_task(variables)
    return cluster["worker"][v.rank].partition(":")[0]


EXPECTED: dict[str, Callable[[Any], float | str]] = {
    "00 sum_of_processes": lambda v: total([v.times * (place + 1) for place in range(v.processes)]),
    "01 updates_with_a_straggler": updates,
    "02 batches_of_two_epochs": batches,
    "03 odd_hierarchy": lambda v: total([v.times * place for place in range(1, v.devices)]),
    "04 reduced_loss": lambda v: total(v.parts),
    "06 what_a_rank_has": after_the_collective,
    "06 blocking_ring": waits_for,
    "06 slow_link": slow_link,
    "06 straggler": straggler,
    "07 metric_of_the_chief": metric_of_the_chief,
    "08 mean_staleness": staleness,
    "09 average_over_ranks": lambda v: total([v.start + rank for rank in range(v.ranks)]) / v.ranks,
    "09 fused_all_reduces": buffers,
    "09 overflow_in_fp16": in_16_bits,
    "10 noise_scale_of_ranks": noise_scale,
    "11 images_processed": lambda v: whole_batches(v.images, v.batch * v.gpus),
    "12 bubble": lambda v: waiting_share(v.stages, v.micro_batches),
    "12 interleaved_bubble": lambda v: waiting_share(v.stages, v.stages * v.times, v.chunks),
    "12 activations_of_a_stage": activations,
    "12 width_of_the_seam": seam,
    "15 host_of_a_rank": host,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_answer_is_the_independent_one(name: str) -> None:
    for seed in SEEDS:
        item = question(*name.split(), seed)
        expected = EXPECTED[name](SimpleNamespace(**item.values))
        if isinstance(expected, str):
            assert expected in [option.text for option in item.right_options], item
        else:
            assert item.right_options[0].value == pytest.approx(expected, rel=1e-4), item


@pytest.mark.parametrize("staleness", [1, 3, 5])
def test_old_gradients_converge_just_below_the_limit_and_not_just_above(staleness: int) -> None:
    items = (question("01", "largest_rate_with_staleness", seed) for seed in range(100))
    limit = next(item.right_options[0].value for item in items if item.values["staleness"] == staleness)
    assert limit is not None
    for factor, converges in ((0.95, True), (1.05, False)):
        weights = [1.0] * (staleness + 1)
        for _ in range(3_000):
            weights.append(max(-1e6, min(1e6, weights[-1] - factor * limit * weights[-1 - staleness])))
        assert (abs(weights[-1]) < 1e-3) == converges


def test_no_other_interval_between_saves_loses_less() -> None:
    item = question("13", "save_interval", 1)
    v = SimpleNamespace(**item.values)
    minutes = np.arange(0.01, 400, 0.001)
    lost = v.seconds / 60 / minutes + minutes / 2 / (60 * v.hours)
    assert item.right_options[0].value == pytest.approx(minutes[np.argmin(lost)], rel=1e-2)


def test_the_broken_config_is_broken_in_the_named_way() -> None:
    for seed in SEEDS:
        item = question("07", "broken_config", seed)
        with pytest.raises(cluster_spec.ClusterSpecError):
            cluster_spec.check(item.block)
        if item.values["mistake"] == "It has Python's quotes":
            with pytest.raises(json.JSONDecodeError):
                json.loads(item.block)


def test_bash_ends_with_the_status_that_the_answer_names() -> None:
    for seed in SEEDS:
        item = question("15", "state_of_a_job", seed)
        script = item.block.replace("srun python train.py", "false")
        status = subprocess.run(["bash", "-c", script], capture_output=True, check=False).returncode
        assert item.right_options[0].text == ("FAILED" if status else "COMPLETED")


def test_the_straggler_waits_least() -> None:
    for seed in SEEDS:
        item = question("13", "find_the_straggler", seed)
        waiting = [float(line.split()[-2]) for line in item.block.splitlines()]
        assert item.kind is Kind.ONE and item.right_options[0].text == f"Rank {np.argmin(waiting)}"

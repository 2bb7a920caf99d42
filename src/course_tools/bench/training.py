"""Images per second of every way of training, in turns: against the lecture's program, and core for core."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_tools.bench.measures import Measure, skipped
from distlab import launch

PART = "training"
PROGRAM = Path("notebooks") / "programs" / "11_scaling_and_profiling" / "measure_throughput.py"
SECONDS_PER_LAUNCH = 240
ROUNDS = 3
ARGUMENTS: tuple[object, ...] = ()


@dataclass(frozen=True)
class Way:
    """One run of the program: its name for people, its `--way`, devices, workers or ranks, and what it adds."""

    name: str
    way: str
    count: int
    options: tuple[object, ...] = ()


A_CORE = ("--model", "cnn", "--cores", 1)
CORE_FOR_CORE = (*A_CORE, "--batch", 1024)
SMALL_BATCH = (*A_CORE, "--batch", 256)
OURS, LECTURE = Way("ours, 1 device", "ours", 1), Way("the lecture's, 1 device", "lecture", 1)
RANK = Way("1 rank of Horovod, a core", "horovod", 1, CORE_FOR_CORE)
RANKS_APART = Way("2 ranks without all-reduce, a core each", "horovod", 2, (*CORE_FOR_CORE, "--apart"))
RANKS = Way("2 ranks of Horovod, a core each", "horovod", 2, CORE_FOR_CORE)
WORKER = Way("1 worker, a core", "multi_worker", 1, CORE_FOR_CORE)
WORKERS_APART = Way("2 workers without all-reduce, a core each", "multi_worker", 2, (*CORE_FOR_CORE, "--apart"))
WORKERS = Way("2 workers, a core each", "multi_worker", 2, CORE_FOR_CORE)
RANKS_SMALL = Way("2 ranks of Horovod, a core each, a quarter of the batch", "horovod", 2, SMALL_BATCH)
WORKERS_SMALL = Way("2 workers, a core each, a quarter of the batch", "multi_worker", 2, SMALL_BATCH)
MIRRORED = tuple(Way(f"mirrored, {count} of one process", "mirrored", count) for count in (1, 2))
WAYS = (LECTURE, OURS, *MIRRORED, RANK, RANKS_APART, RANKS, WORKER, WORKERS_APART, WORKERS, RANKS_SMALL, WORKERS_SMALL)

RATIOS: tuple[tuple[Way, Way, float | None], ...] = (
    (OURS, LECTURE, 4.0),
    (MIRRORED[0], OURS, None),
    (MIRRORED[1], OURS, None),
    (RANKS_APART, RANK, None),
    (RANKS, RANKS_APART, None),
    (RANKS, RANK, 1.7),
    (WORKERS_APART, WORKER, None),
    (WORKERS, WORKERS_APART, None),
    (WORKERS, WORKER, 1.5),
    (RANKS_SMALL, RANKS, None),
    (WORKERS_SMALL, WORKERS, None),
)
"""What is divided by what in the same round, and the least that the median should be.

Two that train apart lose only what two processes on this machine take from each other; what two that train together
lose against those is the all-reduce's. It is the same for any batch, so a smaller batch loses a larger part to it.
"""

Rates = dict[str, float | str]
"""Images per second by name of the way, or the reason why there are none."""


def measure_training(say: Callable[[str], None] = print) -> list[Measure]:
    """Every way in processes of its own, all ways in turn, ROUNDS times; a line for each ratio."""
    rounds: list[Rates] = []
    for number in range(1, ROUNDS + 1):
        rounds.append({way.name: images_per_second(way) for way in WAYS})
        rates = [f"{name} {rate:,.0f}" for name, rate in rounds[-1].items() if isinstance(rate, float)]
        say(f"training, round {number} of {ROUNDS}, images/s: {'; '.join(rates)}")
    return [_rates(way, rounds) for way in (OURS, RANK, WORKER)] + [ratio(*pair, rounds) for pair in RATIOS]


def ratio(way: Way, reference: Way, goal: float | None, rounds: Sequence[Rates]) -> Measure:
    """The ratio of two ways in each round; skipped with the reason when one of them has no rate."""
    name = f"{way.name}, to {reference.name}"
    rates = [(of_round[way.name], of_round[reference.name]) for of_round in rounds]
    if reason := next((rate for pair in rates for rate in pair if isinstance(rate, str)), None):
        return skipped(PART, name, reason)
    ratios = [float(rate) / float(divisor) for rate, divisor in rates]
    return Measure(PART, name, "", ratios, ratios, less_is_better=False, goal=goal)


def _rates(way: Way, rounds: Sequence[Rates]) -> Measure:
    rates = [of_round[way.name] for of_round in rounds]
    if reason := next((rate for rate in rates if isinstance(rate, str)), None):
        return skipped(PART, way.name, reason)
    values = [float(rate) for rate in rates]
    middle = statistics.median(values)
    return Measure(PART, way.name, "images/s", values, [value / middle for value in values], "their median")


def images_per_second(way: Way) -> float | str:
    """Images per second, or the reason why there are none."""
    if way.way == "horovod" and (problem := launch.horovod_problem()):
        return problem
    arguments = [
        "--way",
        way.way,
        *(("--devices", way.count) if way.way == "mirrored" else ()),
        *way.options,
        *ARGUMENTS,
    ]
    options: dict[str, Any] = {
        "echo": False,
        "result": True,
        "seconds": SECONDS_PER_LAUNCH,
        "start_seconds": SECONDS_PER_LAUNCH,
    }
    try:
        if way.way == "horovod":
            run = launch.horovodrun(PROGRAM, *arguments, ranks=way.count, **options)
        else:
            workers = way.count if way.way == "multi_worker" else 1
            run = launch.tensorflow(PROGRAM, *arguments, workers=workers, **options)
    except launch.LaunchError as error:
        return str(error).splitlines()[0]
    result: Any = run.result
    return float(result["images_per_second"])

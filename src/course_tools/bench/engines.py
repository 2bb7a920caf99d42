"""The engines: the virtual ring, the start of ranks, and every way of training that has a goal, in turns."""

import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_tools.bench.measures import Measure, import_seconds, plain, skipped, timed
from distlab import launch
from distlab.runtime import processes

VIRTUAL, START, TRAINING = "virtual cluster", "start of a rank", "training"
SECONDS_PER_LAUNCH, ROUNDS = 600, 3
PROGRAM = Path("notebooks") / "programs" / "11_scaling_and_profiling" / "measure_throughput.py"
ARGUMENTS: tuple[object, ...] = ()

SIZES = ((64, True, 3, None, None), (1024, True, 3, 3.0, 300.0), (4096, False, 1, 30.0, None))
"""Ranks, whether the events are kept, rounds, and the goals: seconds, and MiB."""

# In a process of its own, so that its peak is that of this run alone; NumPy is imported before the clock starts.
_RING = """
import json, re, resource, sys, time
from pathlib import Path
import numpy as np
from distlab.collectives import ring_all_reduce
from distlab.simulate import World
size, keep = int(sys.argv[1]), sys.argv[2] == "True"
inputs = [np.full(size, rank, np.float64) for rank in range(size)]
start = time.process_time()
run = World(size).run(ring_all_reduce, inputs, keep_events=keep)
seconds = time.process_time() - start
if sys.platform == "linux":  # ru_maxrss begins with what the process that started this one had
    peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 2**10
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps([seconds, peak, run.messages]))
"""


def measure_virtual_cluster() -> list[Measure]:
    """The ring all-reduce by number of ranks: processor seconds, and the process's peak of resident memory."""
    measures = []
    for size, keep, rounds, seconds_goal, memory_goal in SIZES:
        name = f"ring of {size:,} ranks, events {'kept' if keep else 'counted'}"
        seconds, memory, reference = [], [], []
        for _ in range(rounds):
            reference.append(import_seconds())
            finished = processes.run([sys.executable, "-c", _RING, str(size), str(keep)], SECONDS_PER_LAUNCH)
            if finished.status != 0:
                measures.append(skipped(VIRTUAL, name, f"it was not over after {SECONDS_PER_LAUNCH} s"))
                break
            used = json.loads(finished.output)
            seconds.append(used[0])
            memory.append(used[1])
        else:
            measures.append(timed(VIRTUAL, name, seconds, reference, seconds_goal))
            measures.append(plain(VIRTUAL, f"{name}: memory", "MiB", memory, memory_goal))
    return measures


ONE_STEP = """
import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
optimizer = tf.keras.optimizers.SGD(0.1)

@tf.function
def step(images):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(images) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

step(tf.ones((32, 64)))
"""


def measure_start(ranks: int = 2) -> list[Measure]:
    """Elapsed seconds of a job whose ranks take one step: with interpreters of their own, and forked, in turns.

    The forked ones' ratio is to the others of the same round; the fork server is running when they are timed.
    """
    with tempfile.TemporaryDirectory(prefix="distlab-") as folder:
        program = Path(folder) / "one_step.py"
        program.write_text(ONE_STEP)

        def seconds(prepared: bool) -> float:
            return launch.mpirun(program, ranks=ranks, echo=False, prepared=prepared).seconds

        seconds(prepared=True)
        rounds = [(seconds(prepared=False), seconds(prepared=True)) for _ in range(ROUNDS)]
    own, forked = map(list, zip(*rounds, strict=True))
    ratios = [fast / slow for slow, fast in rounds]
    reference = "those with interpreters of their own"
    return [
        Measure(START, f"{ranks} ranks, interpreters of their own", "s", own, [1.0] * ROUNDS, reference),
        Measure(START, f"{ranks} ranks, forked", "s", forked, ratios, reference),
    ]


@dataclass(frozen=True)
class Way:
    """One run of the program: its name for people, its `--way`, devices, workers or ranks, and what it adds."""

    name: str
    way: str
    count: int
    options: tuple[object, ...] = ()


CORE_FOR_CORE = ("--model", "cnn", "--cores", 1, "--batch", 1024)
OURS, LECTURE = Way("ours, 1 device", "ours", 1), Way("the lecture's, 1 device", "lecture", 1)
RANK = Way("1 rank of Horovod, a core", "horovod", 1, CORE_FOR_CORE)
RANKS = Way("2 ranks of Horovod, a core each", "horovod", 2, CORE_FOR_CORE)
WORKER = Way("1 worker, a core", "multi_worker", 1, CORE_FOR_CORE)
WORKERS = Way("2 workers, a core each", "multi_worker", 2, CORE_FOR_CORE)
RATIOS = ((OURS, LECTURE, 4.0), (RANKS, RANK, 1.7), (WORKERS, WORKER, 1.5))
"""What is divided by what in the same round, and the least that the median should be."""
WAYS = tuple(way for *pair, _ in RATIOS for way in pair)

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
        return skipped(TRAINING, name, reason)
    ratios = [float(rate) / float(divisor) for rate, divisor in rates]
    return Measure(TRAINING, name, "", ratios, ratios, less_is_better=False, goal=goal)


def _rates(way: Way, rounds: Sequence[Rates]) -> Measure:
    rates = [of_round[way.name] for of_round in rounds]
    if reason := next((rate for rate in rates if isinstance(rate, str)), None):
        return skipped(TRAINING, way.name, reason)
    values = [float(rate) for rate in rates]
    middle = statistics.median(values)
    return Measure(TRAINING, way.name, "images/s", values, [value / middle for value in values], "their median")


def images_per_second(way: Way) -> float | str:
    """Images per second, or the reason why there are none."""
    if way.way == "horovod" and (problem := launch.horovod_problem()):
        return problem
    arguments = ["--way", way.way, *way.options, *ARGUMENTS]
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

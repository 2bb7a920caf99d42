"""The engines: the virtual ring, and every way of training that has a goal."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from course_tools.bench.measures import Measure
from distlab import launch

VIRTUAL, TRAINING = "virtual cluster", "training"
SECONDS_PER_LAUNCH, ROUNDS = 600, 3
PROGRAM = Path("notebooks") / "programs" / "11_scaling_and_profiling" / "measure_throughput.py"
RINGS = (1024, True, 3.0, 300.0), (4096, False, 30.0, 0.0)
"""Ranks, whether the events are kept, and the goals: processor seconds, and MiB unless it is 0."""

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
World(size).run(ring_all_reduce, inputs, keep_events=keep)
seconds = time.process_time() - start
if sys.platform == "linux":  # ru_maxrss begins with what the process that started this one had
    peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 2**10
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps([seconds, peak]))
"""


def measure_virtual_cluster() -> list[Measure]:
    """The ring all-reduce by number of ranks: processor seconds, and the process's peak of resident memory."""
    measures = []
    for size, keep, most_seconds, most_memory in RINGS:
        name = f"ring of {size:,} ranks, events {'kept' if keep else 'counted'}"
        command = [sys.executable, "-c", _RING, str(size), str(keep)]
        output = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=SECONDS_PER_LAUNCH).stdout
        seconds, memory = json.loads(output)
        measures.append(Measure(VIRTUAL, name, "s", [seconds], most_seconds))
        if most_memory:
            measures.append(Measure(VIRTUAL, f"{name}: memory", "MiB", [memory], most_memory))
    return measures


CORE_FOR_CORE = ("--model", "cnn", "--cores", 1, "--batch", 1024)
Way = tuple[Any, ...]
"""One run of the program: its `--way`, workers or ranks, and further options."""

OURS, LECTURE = ("ours", 1), ("lecture", 1)
RANK, RANKS = (("horovod", count, *CORE_FOR_CORE) for count in (1, 2))
WORKER, WORKERS = (("multi_worker", count, *CORE_FOR_CORE) for count in (1, 2))
RATIOS = (
    ("ours, 1 device, to the lecture's, 1 device", OURS, LECTURE, 4.0),
    ("2 ranks of Horovod, a core each, to 1 rank of Horovod, a core", RANKS, RANK, 1.7),
    ("2 workers, a core each, to 1 worker, a core", WORKERS, WORKER, 1.5),
)
"""What is divided by what in the same round, and the least that the median should be."""


def measure_training() -> list[Measure]:
    """For each pair of ways the ratios of their rates."""
    return [ratio(*row) for row in RATIOS]


def ratio(name: str, way: Way, reference: Way, goal: float) -> Measure:
    """Two ways in processes of their own, in turns, ROUNDS times; skipped with the reason where one of them fails."""
    values, reason = [], None
    try:
        for _ in range(ROUNDS):
            values.append(trained(*way)["images_per_second"] / trained(*reference)["images_per_second"])
    except (launch.HorovodMissing, launch.LaunchError) as error:
        reason = str(error).splitlines()[0]
    return Measure(TRAINING, name, "", values, goal, at_least=True, skipped=reason)


def trained(way: str, count: int, *more: object) -> Any:
    """The result of the program's run with these options. Raises HorovodMissing and LaunchError."""
    limits = {"seconds": SECONDS_PER_LAUNCH, "start_seconds": SECONDS_PER_LAUNCH}
    options: dict[str, Any] = {"echo": False, "result": True, **limits}
    if way == "horovod":
        launch.require_horovod()
        return launch.horovodrun(PROGRAM, "--way", way, *more, ranks=count, **options).result
    return launch.tensorflow(PROGRAM, "--way", way, *more, workers=count, **options).result

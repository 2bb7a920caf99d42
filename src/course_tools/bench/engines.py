"""The virtual cluster's speed and memory, and real all-reduces by message size."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from course_tools.bench.measures import Measure, import_seconds, plain, skipped, timed
from distlab import launch
from distlab.runtime import processes

VIRTUAL, ALL_REDUCE = "virtual cluster", "all-reduce"
SECONDS_PER_LAUNCH = 600

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


ALL_REDUCE_PROGRAM = Path("notebooks") / "programs" / "06_collectives_and_ring_all_reduce" / "measure_all_reduce.py"
RANKS = 2


def measure_all_reduces() -> list[Measure]:
    """Two processes, the largest array: MPI, the course's ring over MPI, Horovod over both; ratios are to MPI."""
    launchers = {
        "mpi": (["mpirun", "-np", str(RANKS)], ["mpi", "ring"]),
        "horovod over gloo": (["horovodrun", "-np", str(RANKS), "--gloo"], ["horovod"]),
        "horovod over mpi": (["mpirun", "-np", str(RANKS)], ["horovod"]),
    }
    measures, of_mpi = [], 0.0
    for name, (launcher, modes) in launchers.items():
        measured = _all_reduce(launcher, modes)
        if isinstance(measured, str):
            measures.append(skipped(ALL_REDUCE, name, measured))
            continue
        for mode, rows in measured["modes"].items():
            seconds = rows["seconds"][-1]
            of_mpi = of_mpi or seconds
            label = name if mode == "horovod" else {"mpi": "MPI", "ring": "the course's ring over MPI"}[mode]
            size = f"{measured['array_bytes'][-1] / 2**20:.0f} MiB"
            ratio = [seconds / of_mpi]
            measures.append(Measure(ALL_REDUCE, f"{label}, {size}", "ms", [1e3 * seconds], ratio, "MPI's"))
    return measures


def _all_reduce(launcher: list[str], modes: list[str]) -> dict[str, Any] | str:
    """What the program in labs/ wrote, or the reason why there is nothing."""
    if "horovod" in modes and (problem := launch.horovod_problem()):
        return problem
    with tempfile.TemporaryDirectory(prefix="distlab-") as folder:
        result = Path(folder) / "result.json"
        program = [sys.executable, str(ALL_REDUCE_PROGRAM.resolve()), "--modes", *modes, "--result", str(result)]
        finished = processes.run([*launcher, *program], SECONDS_PER_LAUNCH)
        if finished.status != 0:
            last = finished.output.strip().splitlines()[-1:] or ["no answer in time"]
            return f"{' '.join(launcher)} ended with status {finished.status}: {last[0]}"
        measured: dict[str, Any] = json.loads(result.read_text())
        return measured

"""`make bench`: the course's measurements in one run, written to one JSON file; no test depends on a figure in it."""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from distlab import launch
from distlab.collectives import ring_all_reduce
from distlab.runtime import processes
from distlab.simulate import World

SECONDS_PER_LAUNCH = 240


def write(file: Path) -> None:
    """Run everything and write the figures to `file`."""
    results = {
        "simulator": measure_simulator(),
        "all_reduce": measure_all_reduces(),
        "training": measure_training(),
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(results, indent=1) + "\n")


# The virtual cluster --------------------------------------------------------------------------------------------------

REPEATS = {64: 20, 1024: 1}


def measure_simulator(say: Callable[[str], None] = print) -> list[dict[str, float]]:
    """The virtual cluster's ring all-reduce, events kept: messages per second of elapsed time, by number of ranks."""
    rows = []
    for size, repeats in REPEATS.items():
        inputs = [np.full(size, rank, np.float64) for rank in range(size)]
        if repeats > 1:
            World(size).run(ring_all_reduce, inputs)  # a warm-up
        seconds = []
        for _ in range(repeats):
            start = time.perf_counter()
            run = World(size).run(ring_all_reduce, inputs)
            seconds.append(time.perf_counter() - start)
        median = statistics.median(seconds)
        rows.append(
            {
                "ranks": size,
                "messages": run.messages,
                "repeats": repeats,
                "seconds": median,
                "messages_per_second": run.messages / median,
            }
        )
        say(f"simulator, {size} ranks: {median:.3f} s, {run.messages / median:,.0f} messages/s")
    return rows


# Real all-reduces by message size -------------------------------------------------------------------------------------

ALL_REDUCE_PROGRAM = Path("labs") / "06_collectives_and_ring_all_reduce" / "measure_all_reduce.py"
RANKS = 2


def measure_all_reduces(say: Callable[[str], None] = print) -> dict[str, dict]:
    """The measured all-reduce of two processes by message size: MPI, the course's ring over MPI, Horovod over both.

    By name of the measurement: what the program in labs/ wrote, or {"skipped": the reason}.
    """
    launchers = {
        "mpi and ring": (["mpirun", "-np", str(RANKS)], ["mpi", "ring"]),
        "horovod over gloo": (["horovodrun", "-np", str(RANKS), "--gloo"], ["horovod"]),
        "horovod over mpi": (["mpirun", "-np", str(RANKS)], ["horovod"]),
    }
    measured = {}
    for name, (launcher, modes) in launchers.items():
        measured[name] = _all_reduce(launcher, modes)
        say(_all_reduce_line(name, measured[name]))
    return measured


def _all_reduce(launcher: list[str], modes: list[str]) -> dict:
    if "horovod" in modes and (problem := launch.horovod_problem()):
        return {"skipped": problem}
    with tempfile.TemporaryDirectory(prefix="distlab-") as folder:
        result = Path(folder) / "result.json"
        command = [
            *launcher,
            sys.executable,
            str(ALL_REDUCE_PROGRAM.resolve()),
            "--modes",
            *modes,
            "--result",
            str(result),
        ]
        finished = processes.run(command, SECONDS_PER_LAUNCH)
        if finished.status != 0:
            last = finished.output.strip().splitlines()[-1:] or ["no answer in time"]
            return {"skipped": f"{' '.join(launcher)} ended with status {finished.status}: {last[0]}"}
        return json.loads(result.read_text())


def _all_reduce_line(name: str, measured: dict) -> str:
    if "skipped" in measured:
        return f"all-reduce, {name}: skipped, {measured['skipped']}"
    largest = f"{measured['array_bytes'][-1] / 2**20:.0f} MiB"
    medians = [f"{mode} {1e3 * rows['seconds'][-1]:.2f} ms" for mode, rows in measured["modes"].items()]
    return f"all-reduce of {largest}, {name}: {', '.join(medians)}"


# Training -------------------------------------------------------------------------------------------------------------

TRAINING_PROGRAM = Path("labs") / "11_scaling_and_profiling" / "measure_throughput.py"
WAYS = (
    ("lecture", 1),
    ("ours", 1),
    ("mirrored", 1),
    ("mirrored", 2),
    ("multi_worker", 1),
    ("multi_worker", 2),
    ("horovod", 1),
    ("horovod", 2),
)
"""The ways of the program in labs/, each with the devices, workers or ranks."""
REFERENCE = ("ours", 1)
ROUNDS = 3
ARGUMENTS: tuple[object, ...] = ()


def measure_training(say: Callable[[str], None] = print) -> dict[str, dict]:
    """Each way in a process of its own (or two), all ways in turn, ROUNDS times; by name of the way.

    images_per_second: of each round. ratios: each round's to that of our program on one device in the same round.
    median, least, most: of the ratios. Or {"skipped": the reason}.
    """
    rounds = []
    for number in range(1, ROUNDS + 1):
        rounds.append({way: _images_per_second(*way) for way in WAYS})
        rates = [f"{_way_name(*way)} {rate:,.0f}" for way, rate in rounds[-1].items() if isinstance(rate, float)]
        say(f"training, round {number} of {ROUNDS}, images/s: {', '.join(rates)}")
    report = {_way_name(*way): _ratios([rates[way] for rates in rounds], rounds) for way in WAYS}
    for name, ratios in report.items():
        if "skipped" in ratios:
            say(f"training, {name}: skipped, {ratios['skipped']}")
        else:
            say(f"training, {name}: {ratios['median']:.2f} times ours ({ratios['least']:.2f} to {ratios['most']:.2f})")
    return report


def _ratios(rates: Sequence[float | str], rounds: Sequence[Mapping[tuple[str, int], float | str]]) -> dict:
    references = [rates[REFERENCE] for rates in rounds]
    reasons = [rate for rate in (*rates, *references) if isinstance(rate, str)]
    if reasons:
        return {"skipped": reasons[0]}
    pairs = zip(rates, references, strict=True)
    ratios = [float(rate) / float(reference) for rate, reference in pairs]
    spread = {"median": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}
    return {"images_per_second": list(rates), "ratios": ratios, **spread}


def _images_per_second(way: str, devices: int) -> float | str:
    """Images per second, or the reason why there are none."""
    if way == "horovod" and (problem := launch.horovod_problem()):
        return problem
    arguments = ["--way", way, "--devices", devices, *ARGUMENTS]
    options: dict[str, Any] = {
        "echo": False,
        "result": True,
        "seconds": SECONDS_PER_LAUNCH,
        "start_seconds": SECONDS_PER_LAUNCH,
    }
    try:
        if way == "horovod":
            run = launch.horovodrun(TRAINING_PROGRAM, *arguments, ranks=devices, **options)
        else:
            workers = devices if way == "multi_worker" else 1
            run = launch.tensorflow(TRAINING_PROGRAM, *arguments, workers=workers, **options)
    except launch.LaunchError as error:
        return str(error).splitlines()[0]
    result: Any = run.result
    return float(result["images_per_second"])


def _way_name(way: str, devices: int) -> str:
    units = {"multi_worker": "worker", "horovod": "rank"}
    return f"{way.replace('_', ' ')}, {devices} {units.get(way, 'device')}{'s' * (devices > 1)}"

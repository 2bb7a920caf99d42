"""Real all-reduces of two processes by message size."""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from distlab.runtime import processes
from distlab.setup import horovod_wheel

PROGRAM = Path("labs") / "06_collectives_and_ring_all_reduce" / "measure_all_reduce.py"
RANKS = 2
SECONDS_PER_LAUNCH = 240


def measure(say: Callable[[str], None] = print) -> dict[str, dict]:
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
        measured[name] = _launch(launcher, modes)
        say(_line(name, measured[name]))
    return measured


def _launch(launcher: list[str], modes: list[str]) -> dict:
    if "horovod" in modes and (problem := horovod_wheel.problem()):
        return {"skipped": problem}
    with tempfile.TemporaryDirectory(prefix="distlab-") as folder:
        result = Path(folder) / "result.json"
        command = [*launcher, sys.executable, str(PROGRAM.resolve()), "--modes", *modes, "--result", str(result)]
        finished = processes.run(command, SECONDS_PER_LAUNCH)
        if finished.status != 0:
            last = finished.output.strip().splitlines()[-1:] or ["no answer in time"]
            return {"skipped": f"{' '.join(launcher)} ended with status {finished.status}: {last[0]}"}
        return json.loads(result.read_text())


def _line(name: str, measured: dict) -> str:
    if "skipped" in measured:
        return f"all-reduce, {name}: skipped, {measured['skipped']}"
    largest = f"{measured['array_bytes'][-1] / 2**20:.0f} MiB"
    medians = [f"{mode} {1e3 * rows['seconds'][-1]:.2f} ms" for mode, rows in measured["modes"].items()]
    return f"all-reduce of {largest}, {name}: {', '.join(medians)}"

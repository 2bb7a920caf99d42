"""What notebook 14 does with each framework: run its program or read its record, compare the weights, keep a table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from distlab import checks, recorded_results

import record

SHARES = ("horovod", "ddp", "fsdp", "deepspeed")
"""Programs whose ranks are told their own batch and learning rate."""

GLOBAL_BATCH, RATE = 48, 0.02


class Comparison:
    """Runs from one start, whose weights are compared with those of the serial run."""

    def __init__(self, first: Path, serial: Sequence, ranks: int) -> None:
        """`first`: the file that start.py wrote; `serial`: the weights that one device trained from it."""
        self.first, self.serial, self.ranks = first, serial, ranks
        self._runs: dict[str, dict[str, Any]] = {}
        self._records: dict[str, recorded_results.Recorded] = {}

    def run(self, name: str) -> Any:
        """Train with this framework, or take what was recorded; the result that the program wrote."""
        if record.problem(name):
            return self.recorded(name)
        batch = ["--batch", GLOBAL_BATCH // self.ranks, "--learning-rate", RATE / self.ranks] if name in SHARES else []
        ranks = 2 if name == "ray_horovod" else self.ranks
        self._runs[name] = record.measure(name, self.first, self.serial, ranks, batch)
        return self._runs[name]["result"]

    def recorded(self, name: str) -> Any:
        """The recorded result, whatever is installed here."""
        self._records[name] = recorded_results.read(name)
        self._runs[name] = self._records[name].result
        print(f"recorded: {self._runs[name]['printed']}")
        return self._runs[name]["result"]

    def difference(self, name: str) -> float:
        """How far the weights of a run are from the serial run's; of several files of weights, the farthest."""
        return max(self._runs[name]["differences"].values())

    def judge(self, *names: str) -> None:
        """Print how far the runs' weights are from the serial run's; AssertionError if they are not equal."""
        for name in names:
            print(name, end=": ")
            checks.assert_equal([self.difference(name)], [0.0], "weights")

    def table(self) -> str:
        """A line for each run: whether it was recorded, how far its weights are from the serial ones, its last loss."""
        lines = [f"{'run':18}{'measured':>9}{'differs':>9}{'last loss':>11}"]
        for name, run in self._runs.items():
            source = "recorded" if name in self._records else "here"
            lines.append(f"{name:18}{source:>9}{self.difference(name):>9.0e}{run['printed'].split()[-1]:>11}")
        return "\n".join(lines)

    def provenance(self) -> str:
        """Of what was recorded: when, on which machine, by which command, with which versions."""
        lines: dict[str, list[str]] = {}
        for name, found in self._records.items():
            where = f"recorded on {found.date} ({found.machine}) by `make record-frameworks ONLY=NAME`:"
            versions = ", ".join(f"{package} {version}" for package, version in found.versions.items())
            lines.setdefault(where, []).append(f"  {name:18}{versions}")
        return "\n".join(line for where, runs in lines.items() for line in [where, *runs])

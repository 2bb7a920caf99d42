"""What notebook 14 does with each framework: run its program or read its record; compare."""

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
        """`first`: what start.py wrote; `serial`: what one device trained from it."""
        self.first, self.serial, self.ranks = first, serial, ranks
        self._runs: dict[str, dict[str, Any]] = {}
        self._records: dict[str, recorded_results.Recorded] = {}

    def run(self, name: str) -> Any:
        """The result of training with this framework, or the recorded one if it is missing."""
        if record.problem(name):
            return self.recorded(name)
        ranks, arguments = 2 if name == "ray_horovod" else self.ranks, []
        if name in SHARES:
            arguments = ["--batch", GLOBAL_BATCH // ranks, "--learning-rate", RATE / ranks]
        self._runs[name] = record.measure(name, self.first, self.serial, ranks, arguments)
        return self._runs[name]["result"]

    def recorded(self, name: str) -> Any:
        """The recorded result, whatever is installed here."""
        self._records[name] = recorded_results.read(name)
        self._runs[name] = self._records[name].result
        print(f"recorded: {self._runs[name]['printed']}")
        return self._runs[name]["result"]

    def difference(self, name: str) -> float:
        """How far the weights of a run (of several: the farthest) are from the serial ones."""
        return max(self._runs[name]["differences"].values())

    def judge(self, *names: str) -> None:
        """Print the runs' differences; AssertionError if the weights are not equal."""
        for name in names:
            print(name, end=": ")
            checks.assert_equal([self.difference(name)], [0.0], "weights")

    def table(self) -> str:
        """For each run: where it was, how far its weights are off, and its last loss."""
        lines = [f"{'run':18}{'measured':>9}{'differs':>9}{'last loss':>11}"]
        for name, run in self._runs.items():
            where = "recorded" if name in self._records else "here"
            loss = run["printed"].split()[-1]
            lines.append(f"{name:18}{where:>9}{self.difference(name):>9.0e}{loss:>11}")
        return "\n".join(lines)

    def provenance(self) -> str:
        """Of what was recorded: when, on which machine, by which command, with what."""
        lines: dict[str, list[str]] = {}
        for name, found in self._records.items():
            where = f"recorded on {found.date} ({found.machine}) by "
            where += "`make record-frameworks ONLY=NAME`:"
            versions = (f"{package} {version}" for package, version in found.versions.items())
            lines.setdefault(where, []).append(f"  {name:18}{', '.join(versions)}")
        return "\n".join(line for where, runs in lines.items() for line in [where, *runs])

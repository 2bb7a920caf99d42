"""What notebook 14 does with each framework: run its program or read its record, compare the weights, keep a table."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import record

from distlab import checks, recorded_results

SHARES = ("horovod", "ddp", "fsdp", "deepspeed")
"""Programs whose ranks are told their own batch and learning rate."""

GLOBAL_BATCH, RATE = 48, 0.02


class Comparison:
    """Runs from one start, whose weights are compared with those of the serial run."""

    def __init__(self, first: Path, serial: Sequence, ranks: int) -> None:
        """`first`: the file that start.py wrote; `serial`: the weights that one device trained from it."""
        self.first, self.serial, self.ranks = first, serial, ranks
        self._runs: dict[str, tuple[str, dict[str, Any]]] = {}

    def run(self, name: str) -> Any:
        """Train with this framework, or take what was recorded; the result that the program wrote."""
        batch = ["--batch", GLOBAL_BATCH // self.ranks, "--learning-rate", RATE / self.ranks] if name in SHARES else []
        ranks = 2 if name == "ray_horovod" else self.ranks
        measure = partial(record.measure, name, self.first, self.serial, ranks, batch)
        run, source = recorded_results.measured_or_recorded(name, record.problem(name), measure)
        print(source)
        self._runs[name] = ("here" if source == "measured here" else "recorded", run)
        return run["result"]

    def recorded(self, name: str) -> Any:
        """The recorded result, whatever is installed here."""
        recorded = recorded_results.read(name)
        print(recorded.source())
        self._runs[name] = ("recorded", recorded.result)
        return recorded.result["result"]

    def difference(self, name: str) -> float:
        """How far the weights of a run are from the serial run's; of several files of weights, the farthest."""
        return max(self._runs[name][1]["differences"].values())

    def judge(self, title: str, name: str) -> None:
        """Print how far a run's weights are from the serial run's; AssertionError if they are not equal."""
        print(f"{title}:", end=" ")
        checks.assert_equal([self.difference(name)], [0.0], "weights")

    def table(self) -> str:
        """A line for each run: how far its weights are from the serial run's, seconds of its job, memory, its output.

        The seconds are from start to end; the memory is that of its largest rank.
        """
        lines = [f"{'run':18}{'measured':>9}{'differs':>9}{'seconds':>9}{'MiB':>7}  printed"]
        for name, (source, run) in self._runs.items():
            # On Ray the programs do not say how much memory they use.
            memory = f"{run['peak_bytes'] / 2**20:,.0f}" if run.get("peak_bytes") else "?"
            seconds = f"{run['seconds']:.1f}" if "seconds" in run else "?"
            lines.append(
                f"{name:18}{source:>9}{self.difference(name):>9.0e}{seconds:>9}{memory:>7}  {run.get('printed', '?')}"
            )
        return "\n".join(lines)

"""A measurement: its values, and ratios that can be compared with those of another machine or another hour."""

import resource
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

IMPORT_TENSORFLOW = "processor seconds of `import tensorflow`"
ITSELF = "itself"


@dataclass(frozen=True)
class Measure:
    """One line of the benchmark.

    values: in `unit`, one for each round.  ratios: what releases are compared by, one for each round, to `reference`;
    for what does not depend on the machine's speed, such as memory, the values themselves.  goal: what the median of
    `values` or, for a ratio, of `ratios` should reach; None for a line without one.  skipped: why there are no values.
    """

    part: str
    name: str
    unit: str
    values: list[float]
    ratios: list[float]
    reference: str = ITSELF
    less_is_better: bool = True
    goal: float | None = None
    skipped: str | None = None

    @property
    def median(self) -> float:
        """The middle one of the ratios."""
        return statistics.median(self.ratios)

    @property
    def spread(self) -> float:
        """The distance between the least and the greatest ratio."""
        return max(self.ratios) - min(self.ratios)

    def line(self) -> str:
        """The measurement for people to read, in one line."""
        if self.skipped:
            return f"{self.part}, {self.name}: skipped, {self.skipped}"
        value = f"{number(statistics.median(self.values))} {self.unit}"
        between = "" if len(self.values) < 2 else f" ({number(min(self.values))} to {number(max(self.values))})"
        ratio = "" if self.reference == ITSELF else f"; {self.median:.3g} times {self.reference}"
        return f"{self.part}, {self.name}: {value}{between}{ratio}"


def number(value: float) -> str:
    """Three figures, and all digits before the point: 0.178, 5.54, 36,400."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def timed(
    part: str, name: str, seconds: Sequence[float], reference_seconds: Sequence[float], goal: float | None = None
) -> Measure:
    """Seconds, each with the processor seconds of the import measured next to it."""
    ratios = [value / reference for value, reference in zip(seconds, reference_seconds, strict=True)]
    return Measure(part, name, "s", list(seconds), ratios, IMPORT_TENSORFLOW, goal=goal)


def plain(part: str, name: str, unit: str, values: Sequence[float], goal: float | None = None) -> Measure:
    """Values that mean the same on every machine."""
    return Measure(part, name, unit, list(values), list(values), goal=goal)


def skipped(part: str, name: str, reason: str) -> Measure:
    """A line for what could not be measured here."""
    return Measure(part, name, "", [], [], skipped=reason)


def processor_seconds(command: Sequence[str], environment: Mapping[str, str] | None = None) -> float:
    """User and system seconds of a program and of what it waited for. Raises CalledProcessError if it fails."""
    before = _children()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    return _children() - before


def import_seconds() -> float:
    """Processor seconds of a fresh interpreter that imports TensorFlow: how fast this machine is now."""
    return processor_seconds([sys.executable, "-c", "import tensorflow"])


def as_rows(measures: Sequence[Measure]) -> list[dict[str, Any]]:
    """For JSON."""
    return [asdict(measure) for measure in measures]


def from_rows(rows: Sequence[Mapping[str, Any]]) -> list[Measure]:
    """The measures that `as_rows` gave."""
    return [Measure(**row) for row in rows]


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

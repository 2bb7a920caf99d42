"""A measurement: its values, and ratios that can be compared with those of another hour; what became worse since."""

import resource
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

IMPORT_TENSORFLOW = "processor seconds of `import tensorflow`"
ITSELF = "itself"
LEAST_SPREAD = 0.1
"""A line measured once has no spread of its own; and two runs on one machine differ by this share in any case."""


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


def processor_seconds(command: Sequence[str]) -> float:
    """User and system seconds of a program and of what it waited for. Raises CalledProcessError if it fails."""
    before = _children()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return _children() - before


def import_seconds() -> float:
    """Processor seconds of a fresh interpreter that imports TensorFlow: how fast this machine is now."""
    return processor_seconds([sys.executable, "-c", "import tensorflow"])


def became_worse(now: Measure, before: Measure) -> bool:
    """Whether the median ratio moved in the bad direction by more than the greater of the two spreads."""
    if not (now.ratios and before.ratios):
        return False
    change = now.median - before.median if now.less_is_better else before.median - now.median
    return change > max(now.spread, before.spread, LEAST_SPREAD * abs(before.median))


def worse(now: Sequence[Measure], before: Sequence[Measure]) -> list[str]:
    """One sentence for each line that became worse, and for each that is gone; empty when all is well."""
    earlier = {(measure.part, measure.name): measure for measure in before}
    lines = []
    for measure in now:
        last = earlier.pop((measure.part, measure.name), None)
        unit = measure.unit if measure.ratios == measure.values else f"times {measure.reference}"
        if last and became_worse(measure, last):
            lines.append(
                f"{measure.part}, {measure.name} became worse: {measure.median:.3g} instead of {last.median:.3g} "
                f"({unit})."
            )
        elif last and measure.skipped and not last.skipped:
            lines.append(f"{measure.part}, {measure.name} is no longer measured: {measure.skipped}")
    parts = {measure.part for measure in now}
    lines += [f"{part}, {name} is no longer measured." for part, name in earlier if part in parts]
    return lines


def missed_goals(measures: Sequence[Measure]) -> list[str]:
    """One sentence for each line that does not reach its goal on this machine."""
    lines = []
    for measure in measures:
        if measure.goal is None or not measure.values:
            continue
        reached = statistics.median(measure.values)
        if reached > measure.goal if measure.less_is_better else reached < measure.goal:
            unit = f" {measure.unit}" if measure.unit else ""
            bound = "at most" if measure.less_is_better else "at least"
            lines.append(f"{measure.part}, {measure.name}: {number(reached)}{unit}, goal {bound} {measure.goal:g}.")
    return lines


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

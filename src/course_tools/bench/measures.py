"""A measurement: its values, and the goal that their median should reach."""

import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """One line of the benchmark.

    values: in `unit`, one for each round.  goal: the most that their median should be; the least, with `at_least`.
    skipped: why the values do not count.
    """

    part: str
    name: str
    unit: str
    values: list[float]
    goal: float
    at_least: bool = False
    skipped: str | None = None

    def row(self) -> tuple[str, str, str, str, str, str]:
        """Part, what, median, spread, goal and whether it is reached, in words."""
        sign = "≥" if self.at_least else "≤"
        goal = f"{sign} {self.goal:,g}"
        if self.skipped:
            return self.part, self.name, f"skipped: {self.skipped}", "", goal, ""
        median = statistics.median(self.values)
        between = f"{number(min(self.values))} to {number(max(self.values))}" if len(self.values) > 1 else ""
        reached = median >= self.goal if self.at_least else median <= self.goal
        value = f"{number(median)} {self.unit}".strip()
        return self.part, self.name, value, between, goal, "yes" if reached else "no"


def number(value: float) -> str:
    """Three figures, and all digits before the point: 0.178, 5.54, 36,400."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"

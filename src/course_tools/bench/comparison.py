"""What became worse since the last release, by more than the measurements scatter."""

from collections.abc import Sequence

from course_tools.bench.measures import Measure, number

LEAST_SPREAD = 0.1
"""A line measured once has no spread of its own; and two runs on one machine differ by this share in any case."""


def became_worse(now: Measure, before: Measure) -> bool:
    """Whether the median ratio moved in the bad direction by more than the greater of the two spreads."""
    if not (now.ratios and before.ratios):
        return False
    change = now.median - before.median if now.less_is_better else before.median - now.median
    return change > max(now.spread, before.spread, LEAST_SPREAD * abs(before.median))


def sentences(now: Sequence[Measure], before: Sequence[Measure]) -> list[str]:
    """One sentence for each line that became worse, and for each that is gone; empty when all is well."""
    earlier = {(measure.part, measure.name): measure for measure in before}
    lines = []
    for measure in now:
        last = earlier.pop((measure.part, measure.name), None)
        if last and became_worse(measure, last):
            lines.append(
                f"{measure.part}, {measure.name} became worse: {measure.median:.3g} instead of {last.median:.3g} "
                f"({_what(measure)})."
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
        reached = sorted(measure.values)[len(measure.values) // 2]
        if reached > measure.goal if measure.less_is_better else reached < measure.goal:
            unit = f" {measure.unit}" if measure.unit else ""
            bound = "at most" if measure.less_is_better else "at least"
            lines.append(f"{measure.part}, {measure.name}: {number(reached)}{unit}, goal {bound} {measure.goal:g}.")
    return lines


def _what(measure: Measure) -> str:
    return measure.unit if measure.ratios == measure.values else f"times {measure.reference}"

"""A measurement's line for people and its ratios; what counts as worse: more than the spread of both releases."""

import sys

import pytest

from course_tools.bench.measures import (
    Measure,
    became_worse,
    missed_goals,
    plain,
    processor_seconds,
    skipped,
    timed,
    worse,
)


def test_seconds_are_compared_as_ratios_to_the_import_next_to_them() -> None:
    measure = timed("part", "name", [10.0, 30.0, 20.0], [5.0, 10.0, 4.0], goal=12.0)
    assert measure.ratios == [2.0, 3.0, 5.0]
    assert (measure.median, measure.spread) == (3.0, 3.0)
    assert measure.line() == "part, name: 20 s (10 to 30); 3 times processor seconds of `import tensorflow`"


def test_plain_values_are_their_own_ratios_and_a_skipped_line_says_why() -> None:
    assert plain("part", "memory", "MiB", [1234.0]).line() == "part, memory: 1,234 MiB"
    assert skipped("part", "name", "no Horovod").line() == "part, name: skipped, no Horovod"


@pytest.mark.slow
def test_processor_seconds_are_those_of_the_program_and_its_children() -> None:
    busy = "import time\nwhile time.process_time() < 0.5: pass"
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    assert processor_seconds([sys.executable, "-c", nested]) >= 0.5


def test_a_program_that_fails_is_no_measurement() -> None:
    with pytest.raises(Exception, match="exit status 3"):
        processor_seconds([sys.executable, "-c", "raise SystemExit(3)"])


def measure(*ratios: float, less_is_better: bool = True, name: str = "name") -> Measure:
    return Measure("part", name, "s", list(ratios), list(ratios), less_is_better=less_is_better)


@pytest.mark.parametrize(
    ("now", "before", "is_worse"),
    [
        ([12.0], [10.0], True),
        ([10.9], [10.0], False),  # within a tenth, the least spread
        ([8.0], [10.0], False),
        ([12.0, 12.1, 12.2], [10.0, 10.1, 10.2], True),
        ([12.0, 12.1, 15.0], [10.0, 10.1, 10.2], False),  # it scatters more than it moved
        ([12.0, 12.1, 12.2], [8.0, 10.1, 10.9], False),
    ],
)
def test_a_time_is_worse_when_it_grew_by_more_than_the_spread(
    now: list[float], before: list[float], is_worse: bool
) -> None:
    assert became_worse(measure(*now), measure(*before)) is is_worse


def test_a_rate_is_worse_when_it_fell() -> None:
    before = measure(1.8, 1.81, 1.79, less_is_better=False)
    assert became_worse(measure(1.5, 1.5, 1.5, less_is_better=False), before)
    assert not became_worse(measure(2.5, 2.5, 2.5, less_is_better=False), before)


def test_sentences_name_what_became_worse_and_what_is_gone() -> None:
    before = [measure(10.0), measure(5.0, name="gone"), measure(3.0, name="skipped now")]
    now = [measure(20.0), skipped("part", "skipped now", "no Horovod"), plain("part", "new", "MiB", [1.0])]
    assert worse(now, before) == [
        "part, name became worse: 20 instead of 10 (s).",
        "part, skipped now is no longer measured: no Horovod",
        "part, gone is no longer measured.",
    ]


def test_a_part_that_was_not_asked_for_is_not_missed() -> None:
    assert worse([plain("other part", "new", "MiB", [1.0])], [measure(10.0)]) == []


def test_goals_are_upper_bounds_for_times_and_lower_bounds_for_rates() -> None:
    late = Measure("part", "late", "s", [70.0], [7.0], goal=60.0)
    fast = Measure("part", "fast", "s", [50.0], [5.0], goal=60.0)
    slow = Measure("part", "slow", "", [1.5, 1.6, 1.4], [1.5, 1.6, 1.4], less_is_better=False, goal=1.7)
    assert missed_goals([late, fast, slow]) == [
        "part, late: 70 s, goal at most 60.",
        "part, slow: 1.5, goal at least 1.7.",
    ]

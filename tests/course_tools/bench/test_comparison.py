"""What counts as worse: more than the spread of both releases, in the direction that is bad."""

import pytest

from course_tools.bench import comparison
from course_tools.bench.measures import Measure, plain, skipped


def measure(*ratios: float, less_is_better: bool = True, name: str = "name") -> Measure:
    return Measure("part", name, "s", list(ratios), list(ratios), less_is_better=less_is_better)


@pytest.mark.parametrize(
    ("now", "before", "worse"),
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
    now: list[float], before: list[float], worse: bool
) -> None:
    assert comparison.became_worse(measure(*now), measure(*before)) is worse


def test_a_rate_is_worse_when_it_fell() -> None:
    before = measure(1.8, 1.81, 1.79, less_is_better=False)
    assert comparison.became_worse(measure(1.5, 1.5, 1.5, less_is_better=False), before)
    assert not comparison.became_worse(measure(2.5, 2.5, 2.5, less_is_better=False), before)


def test_sentences_name_what_became_worse_and_what_is_gone() -> None:
    before = [measure(10.0), measure(5.0, name="gone"), measure(3.0, name="skipped now")]
    now = [measure(20.0), skipped("part", "skipped now", "no Horovod"), plain("part", "new", "MiB", [1.0])]
    assert comparison.sentences(now, before) == [
        "part, name became worse: 20 instead of 10 (s).",
        "part, skipped now is no longer measured: no Horovod",
        "part, gone is no longer measured.",
    ]


def test_a_part_that_was_not_asked_for_is_not_missed() -> None:
    assert comparison.sentences([plain("other part", "new", "MiB", [1.0])], [measure(10.0)]) == []


def test_goals_are_upper_bounds_for_times_and_lower_bounds_for_rates() -> None:
    late = Measure("part", "late", "s", [70.0], [7.0], goal=60.0)
    fast = Measure("part", "fast", "s", [50.0], [5.0], goal=60.0)
    slow = Measure("part", "slow", "", [1.5, 1.6, 1.4], [1.5, 1.6, 1.4], less_is_better=False, goal=1.7)
    assert comparison.missed_goals([late, fast, slow]) == [
        "part, late: 70 s, goal at most 60.",
        "part, slow: 1.5, goal at least 1.7.",
    ]

"""Paths with relative points: the same points, in fewer characters."""

import random
import re
from decimal import Decimal

import pytest

from course_tools.site import paths


@pytest.mark.parametrize(
    ("path", "shorter"),
    [
        ("M 10 10 L 10.5 9.25 L 11 9 z", "m10 10l.5-.75 .5-.25z"),
        ("M10 10L20 10zL10 15zM0 0L1 1", "m10 10l10 0zl0 5zm-10-10l1 1"),
        ("M0 0Q1 2 3 4Q-1 -2 3.50 0.25C1 1 2 2 3 3", "m0 0q1 2 3 4-4-6 .5-3.75c-2.5 .75-1.5 1.75-.5 2.75"),
        ("M0 0M5 5", "m0 0m5 5"),
        ("M0 0A1 1", "M0 0A1 1"),
        ("M0 0L1 1 2 2", "M0 0L1 1 2 2"),
        ("", ""),
    ],
)
def test_a_path_is_written_with_relative_points(path: str, shorter: str) -> None:
    assert paths.relative(path) == shorter


def test_the_points_of_a_long_path_stay_exactly_where_they_were() -> None:
    numbers = random.Random(1)
    points = [[f"{numbers.uniform(-600, 600):.2f}" for _ in range(2)] for _ in range(500)]
    shorter = paths.relative("".join(f"{'L' if number else 'M'}{x} {y}" for number, (x, y) in enumerate(points)))
    steps = [Decimal(number) for number in re.findall(r"-?\d*\.?\d+", shorter)]
    for axis in (0, 1):
        places = [sum(steps[axis : 2 * number + 2 : 2]) for number in range(len(points))]
        assert places == [Decimal(point[axis]) for point in points]

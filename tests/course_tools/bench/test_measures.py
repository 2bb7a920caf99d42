"""A measurement's line for people, its ratios, and its way to JSON and back."""

import sys

import pytest

from course_tools.bench.measures import Measure, as_rows, from_rows, plain, processor_seconds, skipped, timed


def test_seconds_are_compared_as_ratios_to_the_import_next_to_them() -> None:
    measure = timed("part", "name", [10.0, 30.0, 20.0], [5.0, 10.0, 4.0], goal=12.0)
    assert measure.ratios == [2.0, 3.0, 5.0]
    assert (measure.median, measure.spread) == (3.0, 3.0)
    assert measure.line() == "part, name: 20 s (10 to 30); 3 times processor seconds of `import tensorflow`"


def test_plain_values_are_their_own_ratios_and_a_skipped_line_says_why() -> None:
    assert plain("part", "memory", "MiB", [1234.0]).line() == "part, memory: 1,234 MiB"
    assert skipped("part", "name", "no Horovod").line() == "part, name: skipped, no Horovod"


def test_measures_survive_json() -> None:
    measures = [
        timed("part", "name", [1.0], [2.0]),
        skipped("part", "other", "why"),
        plain("a", "b", "MiB", [3.0], 4.0),
    ]
    assert from_rows(as_rows(measures)) == measures
    assert all(isinstance(measure, Measure) for measure in from_rows(as_rows(measures)))


@pytest.mark.slow
def test_processor_seconds_are_those_of_the_program_and_its_children() -> None:
    busy = "import time\nwhile time.process_time() < 0.5: pass"
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    assert processor_seconds([sys.executable, "-c", nested]) >= 0.5


def test_a_program_that_fails_is_no_measurement() -> None:
    with pytest.raises(Exception, match="exit status 3"):
        processor_seconds([sys.executable, "-c", "raise SystemExit(3)"])

"""Lab 05: the runs of broken checkpoints show what they lack; resumed programs in a process of their own."""

import json

import numpy as np
import pytest

from distlab.labs import registry
from distlab.labs.lab_05 import broken_runs, given, lab
from tests.labs.judged_apart import assert_told_apart, judged_apart
from tests.labs.known_wrong import LABS
from tests.labs.lab_05.answers_05 import true_lacks

LAB = lab.LAB


@pytest.mark.parametrize("saved_after", [broken_runs.EARLY, broken_runs.LATE], ids=str)
@pytest.mark.parametrize("part", given.PARTS)
def test_the_first_step_shows_what_is_lacking(part: str, saved_after: range) -> None:
    for seed in range(30):
        runs = broken_runs.drawn_runs(np.random.default_rng(seed), part, saved_after)
        assert true_lacks(**runs) == part


def test_a_lost_step_count_changes_all_weights_by_the_factor_of_adam() -> None:
    runs = broken_runs.drawn_runs(np.random.default_rng(3), "step count")
    before, after = runs["straight"][0], runs["resumed"][0]
    steps = before["step"] + 1
    factor = (1 - 0.9**steps) / np.sqrt(1 - 0.999**steps) * np.sqrt(1 - 0.999) / (1 - 0.9)
    np.testing.assert_allclose(np.array(after["changes"]) / before["changes"], factor, rtol=1e-4)


def test_with_averages_of_zero_each_weight_changes_by_the_same_amount_or_not_at_all() -> None:
    runs = broken_runs.drawn_runs(np.random.default_rng(3), "averages")
    sizes = np.abs(runs["resumed"][0]["changes"])
    np.testing.assert_allclose(sizes[sizes > 0], sizes.max(), rtol=1e-4)
    assert sizes.max() > 0


def test_lost_averages_may_only_shorten_the_changes() -> None:
    runs = broken_runs.averages_lost_from_smooth_gradients()
    factors = np.array(runs["resumed"][0]["changes"]) / runs["straight"][0]["changes"]
    assert set(np.floor(factors)) == {0} and np.ptp(factors) > 0.5
    assert true_lacks(**runs) == "averages"


def test_the_lab_s_file_has_the_runs_of_four_checkpoints() -> None:
    written = json.loads((LABS / LAB.name / "broken_runs.json").read_text())
    for letter, runs in broken_runs.lettered_runs().items():
        for name, records in runs.items():
            for record, expected in zip(written[letter][name], records, strict=True):
                assert set(record) == set(expected)
                for key, value in expected.items():
                    np.testing.assert_allclose(record[key], value, rtol=1e-9)
    assert set(written) == set(broken_runs.LETTERS)


def test_what_students_read_does_not_say_what_is_lacking() -> None:
    text = (LABS / LAB.name / "broken_runs.json").read_text()
    assert not any(f'"{part}"' in text for part in given.PARTS)
    assert "broken_runs" not in registry.NEXT_TO_STUDENTS


def test_two_runs_are_described_step_by_step() -> None:
    text = given.described(broken_runs.lettered_runs()["A"])
    assert len(text.splitlines()) == 2 * broken_runs.RECORDS
    assert text.splitlines()[0].split()[0] == "straight" and text.splitlines()[1].split()[0] == "resumed"


@pytest.mark.slow
def test_resumed_programs_are_told_apart() -> None:
    assert_told_apart(judged_apart("05", "tests.labs.lab_05.answers_05_run"))

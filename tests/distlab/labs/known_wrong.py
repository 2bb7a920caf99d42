"""Known answers to exercises: right ones, and wrong ones with words of their hints."""

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from syrupy.extensions.json import JSONSnapshotExtension
from syrupy.location import PyTestLocation
from syrupy.types import SnapshotIndex

from distlab.labs import NOT_DONE, RIGHT, WRONG, Lab, OwnAnswer, Verdict, registry

SEEDS = (0, 12345, *(range(1, 12) if os.environ.get("ALL_SEEDS") else (7,)))
"""0 is the check's seed; the others are as secret as those of grading. ALL_SEEDS=1 in the environment adds more."""

_MEASURED = re.compile(r"step \d+ is [\d.e-]+|\d+\.\d+(e-?\d+)?|\d+e-?\d+|\{\{.*?\}\}")


def verdict_on(lab: Lab, exercise: str, namespace: Mapping[str, Any], seed: int = 0) -> Verdict:
    """What the judge says of names and values."""
    seconds = 1000.0 if lab.tensorflow else 60.0  # no answer is judged by the time that it takes
    return lab[exercise].verdict(OwnAnswer(namespace, seconds), seed)


def in_words(verdict: Verdict) -> str:
    """The share of the points, and what is said."""
    return f"{verdict.share:.3g}: {verdict.text}"


def without_measured(said: str) -> str:
    """What `in_words` gives, without numbers that are measured or computed in float32, and TensorFlow's names."""
    share, _, text = said.partition(": ")
    return f"{share}: {_MEASURED.sub('…', text)}"


def of_lab(number: str, name: str) -> type[JSONSnapshotExtension]:
    """The snapshot `name`.json in a lab's folder."""

    class OfLab(JSONSnapshotExtension):
        @classmethod
        def dirname(cls, *, test_location: PyTestLocation) -> str:
            return str(registry.JUDGES[number])

        @classmethod
        def get_snapshot_name(cls, *, test_location: PyTestLocation, index: SnapshotIndex = 0) -> str:
            return name

    return OfLab


def assert_wrong(verdict: Verdict, share: float, title: str, *words: str) -> None:
    """The answer is rejected with its share of the points and a hint with these words."""
    assert_wrong_state(verdict)
    assert abs(verdict.share - share) < 1e-9, (title, verdict)
    assert all(each in verdict.text for each in words), (title, verdict)


def assert_wrong_state(verdict: Verdict) -> None:
    """The answer is rejected, and the judge could cope with it."""
    assert (verdict.state, verdict.fault) == (WRONG, None), verdict


def assert_right(verdict: Verdict) -> None:
    """The answer gets all points."""
    assert (verdict.state, verdict.share) == (RIGHT, 1), verdict


def right_answers(lab: Lab, *answers: tuple[str, object]) -> Callable[..., None]:
    """A test: each of these answers, after the name of its exercise, gets all points with every seed."""

    @pytest.mark.parametrize(("name", "answer"), answers)
    def test(name: str, answer: object) -> None:
        for seed in SEEDS:
            assert_right(verdict_on(lab, name, {name: answer}, seed))

    return test


def wrong_answers(lab: Lab, *answers: tuple[str, object, float, str]) -> Callable[..., None]:
    """A test: each of these answers, after the name of its exercise, earns this share, and its hint has these words."""

    @pytest.mark.parametrize(("name", "answer", "share", "words"), answers, ids=[words for *_, words in answers])
    def test(name: str, answer: object, share: float, words: str) -> None:
        for seed in SEEDS:
            assert_wrong(verdict_on(lab, name, {name: answer}, seed), share, name, words)

    return test


def assert_not_done(lab: Lab, exercise: str, namespace: Mapping[str, Any]) -> None:
    """Nothing has been done yet, and it earns nothing."""
    verdict = verdict_on(lab, exercise, namespace)
    assert (verdict.state, verdict.share) == (NOT_DONE, 0), verdict

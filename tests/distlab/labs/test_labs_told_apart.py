"""Known answers that start TensorFlow: every one gets its verdict, and no two wrong ones of an exercise one text."""

import importlib
from collections import defaultdict

import pytest

from distlab.labs import registry
from tests.distlab.labs.judged_apart import WITH_TENSORFLOW, apart
from tests.distlab.labs.known_wrong import SEEDS, assert_not_done, assert_right, assert_wrong, verdict_on


def texts(number: str) -> dict[str, dict[str, str]]:
    """What is said of every wrong answer that makes a mistake of its own, by exercise and title."""
    known, lab = importlib.import_module(f"lab_{number}.known_answers"), registry.lab(number)
    texts = defaultdict(dict)
    for answer in known.ANSWERS.all_wrong:
        verdict = verdict_on(lab, answer.exercise, known.GIVEN | answer.namespace)
        assert_wrong(verdict, answer.share, answer.title, *answer.words)
        if answer.title not in getattr(known, "SAME_MISTAKES", ()):  # as another answer, by other means
            texts[answer.exercise][answer.title] = verdict.text
    for exercise, names in known.SOLUTIONS.items():
        for right in (names, *known.ANSWERS.all_right[exercise]):
            for seed in SEEDS[:2]:
                assert_right(verdict_on(lab, exercise, known.GIVEN | right, seed))
        assert_not_done(lab, exercise, known.GIVEN | {exercise: lambda *arguments: None})
        assert_not_done(lab, exercise, known.GIVEN)
    return texts


@pytest.mark.slow
@pytest.mark.parametrize("number", sorted({number for number, _ in WITH_TENSORFLOW}))
def test_known_answers_are_told_apart(number: str) -> None:
    for by_title in apart(texts, number).values():
        assert len(by_title) == len(set(by_title.values())) >= 5, by_title

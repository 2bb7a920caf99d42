"""Known answers that start TensorFlow: what is said to every wrong one, and its share, are those of the snapshot.

`pytest --snapshot-update` writes `known_answers.json` in the lab's folder.
"""

import importlib
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from distlab.labs import Verdict, registry
from tests.distlab.labs.judged_apart import WITH_TENSORFLOW, apart
from tests.distlab.labs.known_wrong import (
    SEEDS,
    assert_not_done,
    assert_right,
    assert_wrong_state,
    in_words,
    of_lab,
    verdict_on,
    without_measured,
)
from tests.distlab.labs.solutions import solution_with


def texts(number: str) -> dict[str, dict[str, str]]:
    """What is said of every known wrong answer, by exercise and title; the right ones get full marks.

    `known_answers` has WRONG, by exercise and title, and RIGHT, by exercise. An answer is a function, the names of a
    notebook, or a change or several of the lab's own solution, which knows the names in KNOWN.
    """
    known, lab = importlib.import_module(f"lab_{number}.known_answers"), registry.lab(number)

    def judged(exercise: str, answer: Any, seed: int = 0) -> Verdict:
        if isinstance(answer, (tuple, list)):
            changes = [answer] if isinstance(answer, tuple) else answer
            answer = solution_with(number, exercise, *changes, **known.KNOWN)
        names = answer if isinstance(answer, dict) else {exercise: answer}
        return verdict_on(lab, exercise, known.GIVEN | names, seed)

    texts: dict[str, dict[str, str]] = {}
    for exercise, wrong in known.WRONG.items():
        verdicts = {title: judged(exercise, answer) for title, answer in wrong.items()}
        for verdict in verdicts.values():
            assert_wrong_state(verdict)
        texts[exercise] = {title: in_words(verdict) for title, verdict in verdicts.items()}
        same = getattr(known, "SAME_MISTAKES", ())
        different = [text for title, text in texts[exercise].items() if title not in same]
        assert len(different) == len(set(different)) >= 5, texts[exercise]
        for right in known.RIGHT[exercise]:
            for seed in SEEDS[:2]:
                assert_right(judged(exercise, right, seed))
        assert_not_done(lab, exercise, known.GIVEN | {exercise: lambda *arguments: None})
        assert_not_done(lab, exercise, known.GIVEN)
    return texts


@pytest.mark.slow
@pytest.mark.parametrize("number", sorted({number for number, _ in WITH_TENSORFLOW}))
def test_known_answers_are_told_apart(number: str, snapshot: SnapshotAssertion) -> None:
    said = {
        exercise: {title: without_measured(text) for title, text in by_title.items()}
        for exercise, by_title in apart(texts, number).items()
    }
    assert said == snapshot(extension_class=of_lab(number, "known_answers"))

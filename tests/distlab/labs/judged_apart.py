"""Judge the answers to a lab that needs TensorFlow, wrong ones and right ones, in a process of their own.

As a program, `python -m tests.distlab.labs.judged_apart 03 MODULE_OF_ANSWERS`, it prints JSON: one list of `Judged`'s
fields per answer.
"""

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from distlab.labs import NOT_DONE, RIGHT, WRONG, Hint, Verdict, registry
from tests.distlab.labs.known_wrong import verdict_on

SECRET_SEED = 12345
DEADLINE = 900


class Judged(NamedTuple):
    """An answer, what its verdict must be, and what it is; hints are their ids' names."""

    exercise: str
    title: str
    expected_state: str
    expected_hints: list[str]
    expected_words: list[str]
    expected_share: float
    state: str
    hints: list[str]
    text: str
    share: float


def judged_apart(number: str, module: str) -> list[Judged]:
    """Every answer in `module`, judged by the lab of that number in another process."""
    command = [sys.executable, "-m", "tests.distlab.labs.judged_apart", number, module]
    folder = Path(__file__).parents[3]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    return [Judged(*fields) for fields in json.loads(run.stdout.splitlines()[-1])]


def assert_told_apart(answers: list[Judged], same_mistakes: tuple[str, ...] = ()) -> None:
    """Every verdict is as expected, and no two of an exercise's wrong answers, at least five, get one text.

    same_mistakes: titles of answers that make a mistake of another one by other means.
    """
    for answer in answers:
        assert answer.state == answer.expected_state, answer
        assert abs(answer.share - answer.expected_share) < 1e-9, answer
        if answer.expected_hints:
            assert answer.hints == answer.expected_hints, answer
        for words in answer.expected_words:
            assert words in answer.text, answer
    for exercise in {answer.exercise for answer in answers}:
        group = [answer for answer in answers if answer.exercise == exercise]
        wrong = [answer for answer in group if answer.expected_state == WRONG]
        texts = [answer.text for answer in wrong if answer.title not in same_mistakes]
        assert len(texts) == len(set(texts)) >= 5, texts
        assert any(answer.title != "solution" and answer.expected_state == RIGHT for answer in group)


def _judged(number: str, module: str) -> Iterator[Judged]:
    known, lab = importlib.import_module(module), registry.lab(number)

    def judged(
        exercise: str, title: str, names: dict, expected: Verdict, words: tuple[str, ...] = (), seed: int = 0
    ) -> Judged:
        verdict = verdict_on(lab, exercise, known.GIVEN | names, seed)
        return Judged(
            exercise,
            title,
            expected.state,
            _names(expected.hints),
            list(words),
            expected.share,
            verdict.state,
            _names(verdict.hints),
            verdict.text,
            verdict.share,
        )

    for exercise, answer in known.ANSWERS.all_wrong():
        expected = Verdict(WRONG, share=answer.share, hints=answer.hints)
        yield judged(exercise, answer.title, answer.namespace, expected, answer.words)
    for exercise, names in known.SOLUTIONS.items():
        for title, right in [("solution", names), *known.ANSWERS.right_answers[exercise]]:
            for seed in (0, SECRET_SEED):
                yield judged(exercise, title, right, Verdict(RIGHT, share=1.0), seed=seed)
        for title, names in (("untouched", {exercise: _untouched}), ("missing", {})):
            yield judged(exercise, title, names, Verdict(NOT_DONE))


def _names(hints: tuple[Hint, ...]) -> list[str]:
    return [hint.name for hint in hints]


def _untouched(*arguments: object) -> object: ...


if __name__ == "__main__":
    print(json.dumps(list(_judged(*sys.argv[1:]))))

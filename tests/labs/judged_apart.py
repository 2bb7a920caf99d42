"""Judge the answers to a lab that needs TensorFlow, planted ones and the solutions, in one process of their own.

As a program, `python judged_apart.py 03 answers_03_mirrored`, it prints what it found as JSON, one list an answer.
"""

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from distlab.labs import NOT_DONE, RIGHT, WRONG, Verdict, registry
from tests.labs.known_wrong import verdict_on

SECRET_SEED = 12345
DEADLINE = 400


class Judged(NamedTuple):
    """An answer, what its verdict must be, and what it is."""

    exercise: str
    title: str
    wanted_state: str
    wanted_hint: list[str]
    wanted_share: float
    state: str
    text: str
    share: float


def judged_apart(number: str, module: str) -> list[Judged]:
    """Every answer in `module` that a process of its own has judged by the lab of that number."""
    command = [sys.executable, "-m", "tests.labs.judged_apart", number, module]
    folder = Path(__file__).parents[2]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    return [Judged(*fields) for fields in json.loads(run.stdout.splitlines()[-1])]


def assert_told_apart(found: list[Judged]) -> None:
    """Every verdict is as wanted, and no two of an exercise's wrong answers, at least five, get one hint."""
    for one in found:
        assert one.state == one.wanted_state and one.share == one.wanted_share, one
        for words in one.wanted_hint:
            assert words in one.text, one
    for exercise in {one.exercise for one in found}:
        hints = [one.text for one in found if one.exercise == exercise and one.wanted_state == WRONG]
        assert len(hints) == len(set(hints)) >= 5, hints
        assert any(one.exercise == exercise and one.title != "solution" and one.wanted_state == RIGHT for one in found)


def _judged(number: str, module: str) -> Iterator[Judged]:
    answers, lab = importlib.import_module(module), registry.lab(number)

    def judged(exercise: str, title: str, names: dict, wanted: Verdict, hint: tuple = (), seed: int = 0) -> Judged:
        verdict = verdict_on(lab, exercise, answers.GIVEN | names, seed)
        return Judged(
            exercise, title, wanted.state, list(hint), wanted.share, verdict.state, verdict.text, verdict.share
        )

    for exercise, group in answers.PLANTED.wrong_answers.items():
        for one in group:
            yield judged(exercise, one.title, one.namespace, Verdict(WRONG, share=one.share), one.hint)
    for exercise, names in answers.SOLUTIONS.items():
        for title, right in [("solution", names), *answers.PLANTED.right_answers[exercise]]:
            for seed in (0, SECRET_SEED):
                yield judged(exercise, title, right, Verdict(RIGHT, share=1.0), seed=seed)
        for title, names in (("untouched", {exercise: _untouched}), ("missing", {})):
            yield judged(exercise, title, names, Verdict(NOT_DONE))


def _untouched(*arguments: object) -> object: ...


if __name__ == "__main__":
    print(json.dumps(list(_judged(*sys.argv[1:]))))

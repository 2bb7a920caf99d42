"""Judge the answers to a lab that needs TensorFlow, wrong ones and right ones, in a process of their own."""

import importlib
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from distlab.labs import registry
from tests.distlab.labs.known_wrong import assert_not_done, assert_right, assert_wrong, verdict_on

SECRET_SEED = 12345
DEADLINE = 1500


def printed_apart(module: str, *arguments: str) -> Any:
    """What `python -m MODULE ARGUMENTS` prints in its last line, as JSON."""
    command = [sys.executable, "-m", module, *arguments]
    folder = Path(__file__).parents[3]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout.splitlines()[-1])


def assert_told_apart(number: str, same_mistakes: tuple[str, ...] = ()) -> None:
    """Every known answer to a lab gets the verdict that it should, and no two of an exercise's wrong ones one text.

    same_mistakes: titles of answers that make a mistake of another one by other means.
    """
    for by_title in printed_apart("tests.distlab.labs.judged_apart", number).values():
        own = [text for title, text in by_title.items() if title not in same_mistakes]
        assert len(own) == len(set(own)) >= 5, own


def _texts(number: str) -> dict[str, dict[str, str]]:
    """What is said of every wrong answer, by exercise and title."""
    known, lab = importlib.import_module(f"lab_{number}.known_answers"), registry.lab(number)
    texts = defaultdict(dict)
    for answer in known.ANSWERS.all_wrong:
        verdict = verdict_on(lab, answer.exercise, known.GIVEN | answer.namespace)
        assert_wrong(verdict, answer)
        texts[answer.exercise][answer.title] = verdict.text
    for exercise, names in known.SOLUTIONS.items():
        for right in (names, *known.ANSWERS.all_right[exercise]):
            for seed in (0, SECRET_SEED):
                assert_right(verdict_on(lab, exercise, known.GIVEN | right, seed))
        assert_not_done(lab, exercise, known.GIVEN | {exercise: _untouched})
        assert_not_done(lab, exercise, known.GIVEN)
    return texts


def _untouched(*arguments: object) -> object: ...


if __name__ == "__main__":
    print(json.dumps(_texts(sys.argv[1])))

"""Judge the answers to a lab that needs TensorFlow, wrong ones and right ones, in a process of their own."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from distlab.labs import Verdict, registry
from tests.distlab.labs.known_wrong import (
    SEEDS,
    assert_not_done,
    assert_right,
    assert_wrong_state,
    in_words,
    verdict_on,
)
from tests.distlab.labs.solutions import solution_with

START_TENSORFLOW = [
    *(("03", "mirrored"), ("04", "distributed"), ("05", "run"), ("16", "train")),
    *(("09", "start"), ("09", "feeding"), ("09", "training")),
]
WITH_TENSORFLOW = [("02", "mixed_batches"), ("02", "repeats"), ("02", "train"), *START_TENSORFLOW]


def printed_json(command: list[str], **options: Any) -> Any:
    """What a program prints in its last line, as JSON."""
    run = subprocess.run(command, capture_output=True, text=True, timeout=1500, check=False, **options)
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout.splitlines()[-1])


def printed_apart(module: str, *arguments: str) -> Any:
    """What `python -m MODULE ARGUMENTS` prints in its last line, as JSON."""
    return printed_json([sys.executable, "-m", module, *arguments], cwd=Path(__file__).parents[3])


def _texts(number: str) -> dict[str, dict[str, str]]:
    """What is said of every known wrong answer, by exercise and title; the right ones get full marks.

    `known_answers` has WRONG, by exercise and title, and RIGHT, by exercise. An answer is a function, the names of a
    notebook, or a change or several of the lab's own solution, which knows the names in KNOWN.
    """
    known, lab = importlib.import_module(f"lab_{number}.known_answers"), registry.lab(number)

    def judged(exercise: str, answer: Any, seed: int = 0) -> Verdict:
        if isinstance(answer, (tuple, list)):
            answer = solution_with(
                number, exercise, *([answer] if isinstance(answer, tuple) else answer), **known.KNOWN
            )
        names = answer if isinstance(answer, dict) else {exercise: answer}
        return verdict_on(lab, exercise, known.GIVEN | names, seed)

    texts: dict[str, dict[str, str]] = {}
    for exercise, wrong in known.WRONG.items():
        verdicts = {title: judged(exercise, answer) for title, answer in wrong.items()}
        for verdict in verdicts.values():
            assert_wrong_state(verdict)
        texts[exercise] = {title: in_words(verdict) for title, verdict in verdicts.items()}
        apart = [text for title, text in texts[exercise].items() if title not in getattr(known, "SAME_MISTAKES", ())]
        assert len(apart) == len(set(apart)) >= 5, texts[exercise]
        for right in known.RIGHT[exercise]:
            for seed in SEEDS[:2]:
                assert_right(judged(exercise, right, seed))
        assert_not_done(lab, exercise, known.GIVEN | {exercise: lambda *arguments: None})
        assert_not_done(lab, exercise, known.GIVEN)
    return texts


if __name__ == "__main__":
    print(json.dumps(_texts(sys.argv[1])))

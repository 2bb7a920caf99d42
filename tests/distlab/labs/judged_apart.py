"""Judge the answers to a lab that needs TensorFlow, wrong ones and right ones, in a process of their own."""

import importlib
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from distlab.labs import registry
from tests.distlab.labs.known_wrong import SEEDS, assert_not_done, assert_right, assert_wrong, verdict_on

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


if __name__ == "__main__":
    print(json.dumps(_texts(sys.argv[1])))

"""What a broken checkpoint lacks, by the runs before and after it: an exercise of lab 05 and its judge."""

from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np
from lab_05 import broken_runs
from lab_05.given import PARTS
from lab_05.hints import Lab05Hint

from distlab.labs.answer import Answer
from distlab.labs.part_cases import PartCase, judge_cases
from distlab.labs.verdict import Hint, Verdict, right, wrong

ROUNDS = (broken_runs.EARLY, broken_runs.EARLY, broken_runs.LATE, broken_runs.SMALL)
SMOOTH_ROUNDS = 2
ADAM = ("averages", "step count")
WEIGHTS_LEFT_OUT = ((0, 1), (2, 3), (4, 5))

_HINTS: Mapping[str, Hint] = {
    "weights": Lab05Hint.NOT_WEIGHTS,
    "averages": Lab05Hint.NOT_AVERAGES,
    "step count": Lab05Hint.NOT_STEP_COUNT,
    "learning rate": Lab05Hint.NOT_LEARNING_RATE,
    "data position": Lab05Hint.NOT_POSITION,
    "random state": Lab05Hint.NOT_RANDOM,
}


def judge_lacks(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A sixth of the points for each part: in the lab's own runs, if it has some, and in hidden ones."""
    by_part = _hidden_runs(int(generator.integers(2**63)))
    letters = {part: letter for letter, part in broken_runs.LETTERS.items()}
    names = {part: f"checkpoint {letters[part]}" for part in letters} | {
        "weights": "hidden runs 1",
        "learning rate": "hidden runs 2",
    }
    own = broken_runs.lettered_runs()

    def cases() -> Iterator[PartCase]:
        for part in sorted(PARTS, key=lambda part: names[part]):
            if part in letters:
                yield _case(answer, own[letters[part]], part, names[part], "")
            for runs in by_part[part]:
                yield _case(answer, runs, part, names[part], "in other runs like these, " if part in letters else "")

    return judge_cases(cases())


@lru_cache(maxsize=4)  # one check after another, and the grader for each student, ask for the same
def _hidden_runs(seed: int) -> dict[str, list[broken_runs.Runs]]:
    """For each part runs that lack it; rules that hold for many runs only fail in one of them, whatever is drawn."""
    generator = np.random.default_rng(seed)
    by_part = {part: [broken_runs.drawn_runs(generator, part, kind) for kind in ROUNDS] for part in PARTS}
    for part in ADAM * SMOOTH_ROUNDS:
        by_part[part].append(broken_runs.drawn_runs(generator, part, broken_runs.SMOOTH))
    for pair in WEIGHTS_LEFT_OUT:
        by_part["averages"].append(broken_runs.averages_lost_with_equal_factors(generator, *pair))
    by_part["averages"].append(broken_runs.averages_lost_from_smooth_gradients())
    return by_part


def _case(answer: Answer, runs: broken_runs.Runs, part: str, name: str, where: str) -> PartCase:
    return PartCase(name, lambda: _verdict(answer, runs, part, where), where)


def _verdict(answer: Answer, runs: broken_runs.Runs, part: str, where: str) -> Verdict:
    said = answer.call("lacks", runs["straight"], runs["resumed"])
    if not isinstance(said, str) or said not in PARTS:
        return wrong(Lab05Hint.UNKNOWN_PART.says(said=said))
    if said == part:
        return right()
    hint = _HINTS[part]
    is_near = np.isclose(runs["resumed"][0]["loss"], runs["straight"][0]["loss"], rtol=1e-5, atol=0)
    if is_near and answer.call("lacks", runs["straight"], _with_equal_loss(runs)) == part:
        hint = Lab05Hint.COMPARED_EXACTLY
    return wrong(hint, context=f"{where}it is not the {said}. ")


def _with_equal_loss(runs: broken_runs.Runs) -> list[broken_runs.Record]:
    """The resumed run, whose first loss is that of the undisturbed run to the last digit."""
    first, *others = runs["resumed"]
    return [first | {"loss": runs["straight"][0]["loss"]}, *others]

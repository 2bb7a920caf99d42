"""What a broken checkpoint lacks, by the runs before and after it: an exercise of lab 05 and its judge."""

from collections.abc import Mapping

import numpy as np

from distlab.labs.answer import Answer
from distlab.labs.lab_05 import broken_runs
from distlab.labs.lab_05.given import PARTS
from distlab.labs.lab_05.hints import Lab05Hint
from distlab.labs.verdict import Hint, Verdict, not_done, parts, right, wrong

ROUNDS = (broken_runs.EARLY, broken_runs.EARLY, broken_runs.LATE)

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
    verdicts: dict[str, Verdict] = {}
    letters = {part: letter for letter, part in broken_runs.LETTERS.items()}
    own = broken_runs.lettered_runs()
    rounds = [{part: broken_runs.drawn_runs(generator, part, after) for part in PARTS} for after in ROUNDS]
    rounds.append({"averages": broken_runs.averages_lost_from_smooth_gradients()})
    for part in PARTS:
        letter = letters.get(part)
        cases = [(f"checkpoint {letter}", own[letter])] if letter else []
        cases += [("in other runs", by_part[part]) for by_part in rounds if part in by_part]
        name = f"checkpoint {letter}" if letter else {"weights": "hidden runs 1"}.get(part, "hidden runs 2")
        verdicts[name] = next(
            (verdict for where, runs in cases if not (verdict := _verdict(answer, runs, part, where, name)).is_right),
            right(),
        )
    return parts(dict(sorted(verdicts.items())))


def _verdict(answer: Answer, runs: broken_runs.Runs, part: str, where: str, name: str) -> Verdict:
    said = answer.call("lacks", runs["straight"], runs["resumed"])
    if said is None:
        return not_done("`lacks` gives None")
    if not isinstance(said, str) or said not in PARTS:
        return wrong(Lab05Hint.UNKNOWN_PART.says(said=said))
    if said == part:
        return right()
    hint = _HINTS[part]
    is_near = np.isclose(runs["resumed"][0]["loss"], runs["straight"][0]["loss"])
    if is_near and answer.call("lacks", runs["straight"], _with_equal_loss(runs)) == part:
        hint = Lab05Hint.COMPARED_EXACTLY
    elsewhere = where != name and not name.startswith("hidden")
    return wrong(hint, context=f"{where} like these, not the {said}: " if elsewhere else f"not the {said}: ")


def _with_equal_loss(runs: broken_runs.Runs) -> list[broken_runs.Record]:
    """The resumed run, whose first loss is that of the undisturbed run to the last digit."""
    first, *others = runs["resumed"]
    return [first | {"loss": runs["straight"][0]["loss"]}, *others]

"""A run that resumes as if it had never stopped: an exercise of lab 05 and its judge."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from lab_05 import observe
from lab_05.hints import Lab05Hint
from lab_05.observe import ProcessRecord, TrainingState

from distlab.labs.answer import Answer
from distlab.labs.answer_errors import NotPlain, Raised
from distlab.labs.plain_data import Plain, as_record
from distlab.labs.verdict import Advice, AnyHint, Verdict, not_done, parts, right, wrong

TOLERANCE = 1e-5
CHECKPOINTS, WEIGHTS, OPTIMIZER, POSITION = "checkpoints", "weights", "optimizer", "position"
RANDOM, LOWEST = "random state", "lowest loss"
NAMES = (CHECKPOINTS, WEIGHTS, OPTIMIZER, POSITION, RANDOM, LOWEST)

Hints = dict[str, AnyHint]


def judge_run(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A sixth of the points for the checkpoints, and for each part of the state that is there after a restart."""
    every = int(generator.integers(3, 5))
    last_step = 3 * every + int(generator.integers(1, every))
    middle = every + int(generator.integers(1, every))
    # Killed before the first save, then twice between two saves.
    killed = [int(generator.integers(low + 1, low + every)) for low in (0, every, every)]
    plans: list[list[tuple[int, int | None]]] = [
        [(middle, None), (last_step, None), (last_step, None)],
        [*((last_step, after) for after in killed), (last_step, None)],
        [(2 * every, None)],  # the last step is one to save anyway
    ]
    images = generator.normal(size=(20, 4)).astype(np.float32)
    rows = generator.permuted(np.tile(np.arange(20), (observe.MOST_CALLS + 5, 1)), axis=1)[:, :4].tolist()
    data = {
        "images": images,
        "labels": generator.integers(0, 3, 20),
        "rows": rows,
        "weights": generator.normal(size=(4, 3)).astype(np.float32),
    }
    try:
        observed = answer.inside(observe.runs, data, every, last_step, plans)
    except Raised as error:
        if hint := _hint_of_error(error):
            return wrong(hint, context="" if error.line is None else f"Line {error.line} of its cell: ")
        raise
    if observed is None:
        return not_done("`run` is still empty.")
    states, by_plan = _records(observed)
    hints: Hints = {}
    for plan, processes in zip(plans, by_plan, strict=False):  # after one that does not end there are no more
        if not set(hints) - {CHECKPOINTS}:
            _compare(hints, plan, processes, states, rows, every)
    if hints.get(CHECKPOINTS) is Lab05Hint.NO_CHECKPOINT:
        hints = dict.fromkeys(NAMES, hints[CHECKPOINTS])
    return parts({name: wrong(hints[name]) if name in hints else right() for name in NAMES})


_ERRORS: tuple[tuple[str, str, Lab05Hint], ...] = (
    ("DataLossError", "Unable to open table file", Lab05Hint.RESTORES_FOLDER),
    ("InvalidArgumentError", "ndims", Lab05Hint.STEP_AS_IMAGES),
    ("TypeError", "list indices must be integers or slices, not .*Variable", Lab05Hint.STEP_NOT_A_NUMBER),
)
"""Class and text of errors that common mistakes lead to inside TensorFlow or the training."""


def _hint_of_error(error: Raised) -> AnyHint | None:
    if match := re.match(r"`Checkpoint` was expecting (\w+) to be a trackable object", error.message):
        return Lab05Hint.NOT_TRACKABLE.says(name=match[1])
    return next((hint for kind, text, hint in _ERRORS if error.kind == kind and re.search(text, error.message)), None)


def _records(observed: Plain) -> tuple[list[TrainingState], list[list[ProcessRecord]]]:
    if not isinstance(observed, dict) or set(observed) != {"undisturbed", "processes"}:
        raise NotPlain("the observation is not what the check has made")
    states, by_plan = observed["undisturbed"], observed["processes"]
    if not isinstance(states, list) or not isinstance(by_plan, list):
        raise NotPlain("the observation is not what the check has made")
    processes = [
        [as_record(process, ProcessRecord) for process in group] for group in by_plan if isinstance(group, list)
    ]
    return [as_record(state, TrainingState) for state in states], processes


def _compare(
    hints: Hints,
    plan: Sequence[tuple[int, int | None]],
    processes: Sequence[ProcessRecord],
    states: Sequence[TrainingState],
    rows: Sequence[Sequence[int]],
    every: int,
) -> None:
    """Note what is wrong in the first process of a plan that is not as it should be."""
    newest, saved = 0, [0]
    for (last_step, killed_after), process in zip(plan, processes, strict=False):
        if back := [later for step, later in pairwise(process.steps) if later <= step]:
            hints.update(dict.fromkeys(NAMES, Lab05Hint.RESTORED_AGAIN.says(step=back[0])))
            return
        if process.too_many_steps:
            hint = Lab05Hint.TOO_MANY_STEPS.says(count=len(process.numbers), last_step=last_step)
            hints.update(dict.fromkeys(NAMES, hint))
            return
        _compare_state(hints, process, states, newest, saved[-2:])
        if set(NAMES[1:]) <= set(hints):  # it restores nothing, or another checkpoint
            return
        end = last_step if killed_after is None else newest + killed_after
        _compare_steps(hints, process, rows, newest, end)
        if POSITION not in hints:
            _compare_saves(hints, process, newest, end, last_step, every)
        if hints.get(CHECKPOINTS) is Lab05Hint.NO_CHECKPOINT:
            return
        if not set(hints) - {CHECKPOINTS} and killed_after is None:
            last = as_record(process.last, TrainingState)
            if not _near(last.weights, states[end].weights):
                hints[WEIGHTS] = Lab05Hint.ENDS_ELSEWHERE
        if states_and_steps := [hint for name, hint in hints.items() if name != CHECKPOINTS]:
            if not newest:  # nothing can be said of a restart
                hint = Advice.of(states_and_steps[0])
                text = f"{hint} (This is before the first restart, so no other part can be compared.)"
                hints.update(dict.fromkeys(NAMES, Advice(text, hint.hints)))
            return
        saved += [newest + after for after in process.saves]
        newest = saved[-1]


def _near(array: Any, expected: Any) -> bool:
    """Whether two arrays, numbers or lists of arrays are equal up to rounding."""
    if isinstance(array, list) and isinstance(expected, list):
        return len(array) == len(expected) and all(map(_near, array, expected))
    return np.shape(array) == np.shape(expected) and np.allclose(array, expected, rtol=TOLERANCE, atol=TOLERANCE)


def _same(get: Callable[[TrainingState], object], state: TrainingState, expected: TrainingState) -> bool:
    return _near(get(state), get(expected))


def _compare_state(
    hints: Hints, process: ProcessRecord, states: Sequence[TrainingState], newest: int, saved: Sequence[int]
) -> None:
    """The state at a process's first step; `saved` are the steps of the checkpoints in the folder."""
    state, expected, new = as_record(process.first, TrainingState), states[newest], states[0]
    fields: tuple[Callable[[TrainingState], object], ...] = (
        lambda state: state.weights,
        lambda state: state.averages,
        lambda state: state.generator,
        lambda state: state.step,
    )
    if newest and all(_same(get, state, new) for get in fields):
        hints.update(dict.fromkeys(NAMES[1:], Lab05Hint.NOTHING_RESTORED))
        return
    older = [step for step in saved if step != newest and _same(lambda state: state.weights, state, states[step])]
    if older and older[-1] and _same(lambda state: state.step, state, states[older[-1]]):
        hint = Lab05Hint.OLDER_RESTORED.says(said=older[-1], expected=newest)
        hints.update(dict.fromkeys(NAMES[1:], hint))
        return
    if not _near(state.weights, expected.weights):
        hints[WEIGHTS] = Lab05Hint.WEIGHTS_LOST
    if not _near(state.averages, expected.averages) or state.step_count != expected.step_count:
        hints[OPTIMIZER] = Lab05Hint.AVERAGES_LOST.says(count=state.step_count)
    elif not _near(state.learning_rate, expected.learning_rate):
        hints[OPTIMIZER] = Lab05Hint.RATE_LOST.says(said=state.learning_rate, expected=expected.learning_rate)
    if not np.array_equal(state.generator, expected.generator):
        hints[RANDOM] = Lab05Hint.GENERATOR_LOST
    if state.lowest_loss != expected.lowest_loss and not _near(state.lowest_loss, expected.lowest_loss):
        hints[LOWEST] = Lab05Hint.LOWEST_LOST


def _compare_steps(hints: Hints, process: ProcessRecord, rows: Sequence[Sequence[int]], newest: int, end: int) -> None:
    """Which images the steps had, and how many steps there were."""
    expected = [list(row) for row in rows[newest:end]]
    if process.numbers == expected:
        return
    if not expected:
        hints[POSITION] = Lab05Hint.TRAINED_WHEN_DONE
    elif process.numbers[: len(expected)] == expected or process.numbers == expected[: len(process.numbers)]:
        hints[POSITION] = Lab05Hint.STEPS_WRONG.says(said=newest + len(process.numbers), expected=end)
    elif newest and process.numbers[0] in rows and rows.index(process.numbers[0]) < newest:
        said = rows.index(process.numbers[0])
        hints[POSITION] = Lab05Hint.POSITION_LOST.says(expected=newest, said=said)
    else:
        place = next(place for place, numbers in enumerate(process.numbers) if [numbers] != expected[place : place + 1])
        numbers = process.numbers[place]
        if numbers in rows:
            hints[POSITION] = Lab05Hint.WRONG_IMAGES.says(step=newest + place, said=rows.index(numbers))
        else:
            hints[POSITION] = Lab05Hint.IMAGES_OF_NO_STEP.says(step=newest + place)


def _compare_saves(hints: Hints, process: ProcessRecord, newest: int, end: int, last_step: int, every: int) -> None:
    """After which steps there were checkpoints, and how many were kept."""
    saves = [newest + after for after in process.saves]
    expected = [step for step in range(newest + 1, end + 1) if step % every == 0 or step == last_step]
    hint: AnyHint | None = None
    twice = [step for step, count in Counter(saves).items() if count > 1]
    if process.saved_when_killed:
        hint = Lab05Hint.SAVED_WHEN_KILLED
    elif saves == expected:
        most = max(process.checkpoints, default=2)
        if most > 2:
            hint = Lab05Hint.KEEPS_MORE.says(count=most)
        elif len(saves) > 1 and process.checkpoints[-1] < 2:
            hint = Lab05Hint.KEEPS_FEWER
    elif not saves:
        hint = Lab05Hint.NO_CHECKPOINT
    elif not expected and newest == last_step:
        hint = Lab05Hint.SAVED_WHEN_DONE
    elif twice and list(dict.fromkeys(saves)) == expected:
        hint = Lab05Hint.SAVED_TWICE.says(step=twice[0])
    elif saves == list(range(newest + 1, end + 1)):
        hint = Lab05Hint.SAVED_EVERY_STEP.says(every=every)
    elif saves == expected[-1:] == [last_step]:
        hint = Lab05Hint.SAVED_AT_END_ONLY
    elif saves == expected[:-1] and expected[-1] == last_step:
        hint = Lab05Hint.LAST_NOT_SAVED.says(last_step=last_step, every=every)
    else:
        hint = Lab05Hint.OTHER_SAVES.says(said=saves, expected=expected)
    if hint:
        hints.setdefault(CHECKPOINTS, hint)

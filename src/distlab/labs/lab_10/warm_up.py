"""Gradual warm-up, step by step: an exercise of lab 10 and its judge."""

from typing import NamedTuple

import numpy as np

from distlab.labs.answer import Answer
from distlab.labs.answer_errors import Raised
from distlab.labs.comparisons import Mistakes, hint_of, is_near, number
from distlab.labs.verdict import Verdict, parts, right, wrong
from distlab.large_batch.schedules import gradual_warm_up

EXACT = 1e-9
FIRST, RISING, RISING_ON, FULL = "step 0", "the rest of epoch 0", "the epochs after it", "the full rate"


class Schedule(NamedTuple):
    """Steps per epoch, epochs of warm-up, the rate of step 0, the rate from the end of the warm-up on."""

    steps_per_epoch: int
    epochs: int
    first_rate: float
    full_rate: float

    @property
    def steps(self) -> int:
        """Of the warm-up; step number `steps` is the first with the full rate."""
        return self.steps_per_epoch * self.epochs


EXAMPLE = Schedule(4, 3, 0.01, 0.08)


def warm_up(step: int, steps_per_epoch: int, warm_up_epochs: int, first_rate: float, full_rate: float) -> float:
    """The learning rate of a step, counted from 0 (Goyal et al., arXiv:1706.02677, section 2.2)."""
    return gradual_warm_up(first_rate, full_rate, warm_up_epochs)(step / steps_per_epoch)


def judge_warm_up(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points each for step 0, the rest of its epoch, the epochs after it, the full rate."""
    first = float(generator.uniform(0.005, 0.03))
    drawn = Schedule(int(generator.integers(5, 12)), int(generator.integers(2, 5)), first, 8 * first)
    hints: dict[str, Verdict] = {}
    for schedule in (EXAMPLE, drawn):
        end = schedule.steps
        rates = {step: _asked(answer, step, schedule) for step in [*range(end + 3), 3 * end]}
        strange = [step for step, rate in rates.items() if rate is None]
        if strange:
            return wrong(f"`warm_up` gives one number for a step, and not for step {strange[0]}.")
        parts_of = {
            FIRST: [0],
            RISING: range(1, schedule.steps_per_epoch),
            RISING_ON: range(schedule.steps_per_epoch, end),
            FULL: [end, end + 1, end + 2, 3 * end],
        }
        for name, steps in parts_of.items():
            off = [step for step in steps if not is_near(rates[step], warm_up(step, *schedule), EXACT)]
            if off and name not in hints:
                hint = _hint(name, off[0], rates[off[0]], schedule)
                hints[name] = wrong(f"{rates[off[0]]:.6g} in step {off[0]} of {_described(schedule)}: {hint}")
    if hint := _hint_without(answer, drawn._replace(epochs=0)):
        hints.setdefault(FULL, wrong(hint))
    return parts({name: hints.get(name, right()) for name in (FIRST, RISING, RISING_ON, FULL)})


def _asked(answer: Answer, step: int, schedule: Schedule) -> float | None:
    return number(answer.call("warm_up", step, *schedule))


def _described(schedule: Schedule) -> str:
    return (
        f"{schedule.epochs} epochs with {schedule.steps_per_epoch} steps, from {schedule.first_rate:.4g} to "
        f"{schedule.full_rate:.4g}"
    )


def _hint(name: str, step: int, rate: float, schedule: Schedule) -> str:
    mistakes = {FIRST: _at_first, FULL: _at_last}.get(name, _between)(step, schedule)
    if name == FULL and rate > schedule.full_rate and not is_near(rate, schedule.first_rate + schedule.full_rate):
        return "it goes on rising above the full rate."
    generic = "not on the line. Draw the rate over the steps: where does the line begin, where does it end?"
    return hint_of(rate, mistakes, EXACT) or generic


def _at_first(step: int, schedule: Schedule) -> Mistakes:
    _, epochs, first, full = schedule
    return [
        (0.0, "nothing would be learnt in this step. From which rate does the warm-up start?"),
        (full, "that is the full rate at once."),
        (first + (full - first) / schedule.steps, "one increment too early: how many were made before step 0?"),
        (full / schedule.steps, "one increment from 0. From which rate does the warm-up start?"),
        (first + (full - first) / epochs, "a whole epoch's increment at once."),
    ]


def _between(step: int, schedule: Schedule) -> Mistakes:
    count, epochs, first, full = schedule
    end, rise = schedule.steps, full - first
    flat = "constant warm-up: the small rate, until it jumps."
    step_of_epoch = "the rate changes once an epoch, in jumps. It is to rise in every step."
    return [
        (first, "in this epoch the rate does not rise. It is to rise in every step." if step < count else flat),
        (full, "it has the full rate already."),
        (first + rise * (step // count) / epochs, step_of_epoch),
        (first + rise * min(step / epochs, 1), "the warm-up lasts epochs, and the step is not counted in epochs."),
        (first + rise * (step // count + 1) / epochs, step_of_epoch),
        (full * step / end, "this line begins at 0."),
        (full * (step + 1) / end, "this line begins at 0."),
        (first + rise * (step + 1) / end, "one increment ahead in every step."),
        (first + rise * step / (end - 1), "these increments are too large: how many lie between step 0 and the end?"),
        (first * (full / first) ** (step / end), "equal factors, and equal amounts are asked for."),
        (first + full * step / end, "it rises by the full rate, and it has the first one already."),
        (first + rise * step / count, "the warm-up takes one epoch here, not all of its epochs."),
    ]


def _at_last(step: int, schedule: Schedule) -> Mistakes:
    _, _, first, full = schedule
    return [
        (first, "the warm-up is over, and the rate falls back."),
        (full - (full - first) / schedule.steps, "one increment is missing still."),
        (first + full, "the first rate is added to the full one."),
    ]


def _hint_without(answer: Answer, schedule: Schedule) -> str | None:
    for step in (0, 1, 40):
        try:
            rate = _asked(answer, step, schedule)
        except Raised as error:
            return f"with 0 epochs of warm-up `warm_up` raises {error.kind}."
        if rate is None or not is_near(rate, schedule.full_rate, EXACT):
            shown = "no number" if rate is None else f"{rate:.6g}"
            return f"{shown} in step {step} with 0 epochs of warm-up: the full rate is due from step 0 on."
    return None

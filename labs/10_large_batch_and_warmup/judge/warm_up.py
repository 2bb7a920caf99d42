"""Gradual warm-up, step by step: an exercise of lab 10 and its judge."""

from typing import NamedTuple

import numpy as np
from lab_10.hints import Lab10Hint

from distlab.labs.answer import Answer
from distlab.labs.answer_errors import Raised
from distlab.labs.number_judge import Expected, Mistakes, NumberJudge, is_near, number
from distlab.labs.verdict import Advice, Verdict, wrong
from distlab.large_batch.schedules import gradual_warm_up

EXACT = 1e-9
FIRST, RISING, RISING_ON, FULL = "step 0", "the rest of epoch 0", "the epochs after it", "the full rate"


class WarmUp(NamedTuple):
    """Steps per epoch, epochs of warm-up, the rate of step 0, the rate from the end of the warm-up on."""

    steps_per_epoch: int
    epochs: int
    first_rate: float
    full_rate: float

    @property
    def steps(self) -> int:
        """Of the warm-up; step number `steps` is the first with the full rate."""
        return self.steps_per_epoch * self.epochs


EXAMPLE = WarmUp(4, 3, 0.01, 0.08)


def warm_up(step: int, steps_per_epoch: int, warm_up_epochs: int, first_rate: float, full_rate: float) -> float:
    """The learning rate of a step, counted from 0 (Goyal et al., arXiv:1706.02677, section 2.2)."""
    return gradual_warm_up(first_rate, full_rate, warm_up_epochs)(step / steps_per_epoch)


def judge_warm_up(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points each for step 0, the rest of its epoch, the epochs after it, the full rate."""
    first = float(generator.uniform(0.005, 0.03))
    drawn = WarmUp(int(generator.integers(5, 12)), int(generator.integers(2, 5)), first, 8 * first)
    judge = NumberJudge("warm_up", (FIRST, RISING, RISING_ON, FULL))
    for schedule in (EXAMPLE, drawn):
        for step in [*range(schedule.steps + 3), 3 * schedule.steps]:
            rate = number(answer.call("warm_up", step, *schedule))
            if rate is None:
                return wrong(Lab10Hint.NO_NUMBER.says(step=step))
            if hint := _expected(step, schedule, rate).hint_for(rate):
                case = f"{rate:.6g} in step {step} of {_described(schedule)}: "
                judge.note(_part(step, schedule), wrong(hint, context=case))
    if hint := _hint_without_warm_up(answer, drawn._replace(epochs=0)):
        judge.note(FULL, wrong(hint))
    return judge.verdict()


def _part(step: int, schedule: WarmUp) -> str:
    if step == 0:
        return FIRST
    if step < schedule.steps_per_epoch:
        return RISING
    return RISING_ON if step < schedule.steps else FULL


def _expected(step: int, schedule: WarmUp, rate: float) -> Expected:
    mistakes = {FIRST: _at_first, FULL: _at_last}.get(_part(step, schedule), _between)(step, schedule)
    is_above = step >= schedule.steps and rate > schedule.full_rate
    otherwise = Lab10Hint.ABOVE_FULL_RATE if is_above else Lab10Hint.NOT_ON_THE_LINE
    return Expected(warm_up(step, *schedule), mistakes, otherwise, EXACT)


def _described(schedule: WarmUp) -> str:
    return (
        f"{schedule.epochs} epochs with {schedule.steps_per_epoch} steps, from {schedule.first_rate:.4g} to "
        f"{schedule.full_rate:.4g}"
    )


def _at_first(step: int, schedule: WarmUp) -> Mistakes:
    _, epochs, first, full = schedule
    return [
        (0.0, Lab10Hint.STARTS_AT_ZERO),
        (full, Lab10Hint.FULL_AT_ONCE),
        (first + (full - first) / schedule.steps, Lab10Hint.INCREMENT_TOO_EARLY),
        (full / schedule.steps, Lab10Hint.INCREMENT_FROM_ZERO),
        (first + (full - first) / epochs, Lab10Hint.EPOCH_AT_ONCE),
    ]


def _between(step: int, schedule: WarmUp) -> Mistakes:
    count, epochs, first, full = schedule
    end, rise = schedule.steps, full - first
    return [
        (first, Lab10Hint.FLAT_EPOCH if step < count else Lab10Hint.CONSTANT),
        (full, Lab10Hint.FULL_ALREADY),
        (first + rise * (step // count) / epochs, Lab10Hint.BY_EPOCH),
        (first + rise * min(step / epochs, 1), Lab10Hint.STEPS_FOR_EPOCHS),
        (first + rise * (step // count + 1) / epochs, Lab10Hint.BY_EPOCH),
        (full * step / end, Lab10Hint.LINE_FROM_ZERO),
        (full * (step + 1) / end, Lab10Hint.LINE_FROM_ZERO),
        (first + rise * (step + 1) / end, Lab10Hint.INCREMENT_AHEAD),
        (first + rise * step / (end - 1), Lab10Hint.INCREMENTS_TOO_LARGE),
        (first * (full / first) ** (step / end), Lab10Hint.EQUAL_FACTORS),
        (first + full * step / end, Lab10Hint.RISES_BY_FULL_RATE),
        (first + rise * step / count, Lab10Hint.ONE_EPOCH),
    ]


def _at_last(step: int, schedule: WarmUp) -> Mistakes:
    _, _, first, full = schedule
    return [
        (first, Lab10Hint.FALLS_BACK),
        (full - (full - first) / schedule.steps, Lab10Hint.INCREMENT_MISSING),
        (first + full, Lab10Hint.FIRST_PLUS_FULL),
    ]


def _hint_without_warm_up(answer: Answer, schedule: WarmUp) -> Advice | None:
    for step in (0, 1, 40):
        try:
            rate = number(answer.call("warm_up", step, *schedule))
        except Raised as error:
            return Lab10Hint.RAISES_WITHOUT_WARM_UP.says(kind=error.kind)
        if not is_near(rate, schedule.full_rate, EXACT):
            text = "no number" if rate is None else f"{rate:.6g}"
            return Lab10Hint.WRONG_WITHOUT_WARM_UP.says(rate=text, step=step)
    return None

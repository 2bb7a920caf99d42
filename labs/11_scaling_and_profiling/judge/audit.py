"""What a scaling table claims, and what its runs processed: two exercises of lab 11 and their judges."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from lab_11.given import PRINTED_SECONDS, PUBLISHED, published_table
from lab_11.hints import Lab11Hint

from distlab.labs.answer import Answer
from distlab.labs.answer_errors import Raised
from distlab.labs.number_judge import Expected, Mistakes, NumberJudge, number
from distlab.labs.plain_data import Plain
from distlab.labs.verdict import AnyHint, Verdict, right, wrong

AUDITED = ("steps", "images", "images per second", "efficiency")


class TimedEpoch(NamedTuple):
    """Images of the data set, batch of each GPU, GPUs, seconds of the epoch, seconds of an epoch on one GPU."""

    images: int
    batch: int
    gpus: int
    seconds: float
    seconds_on_one: float


PUBLISHED_EPOCH = TimedEpoch(60_000, 2048, 8, PRINTED_SECONDS, 8 * PUBLISHED[2].efficiency * PRINTED_SECONDS)
"""The one published line whose time is known; that of one GPU follows from what is claimed."""


def steps_of(images: int, batch: int, gpus: int) -> int:
    """The full global batches in an epoch."""
    return images // (batch * gpus)


def processed(images: int, batch: int, gpus: int) -> int:
    """Images that an epoch of full global batches works on."""
    return steps_of(images, batch, gpus) * batch * gpus


class Audit(NamedTuple):
    """What a timed epoch comes to; no efficiency without a step."""

    steps: int
    images: int
    images_per_second: float
    efficiency: float | None


def audit_of(epoch: TimedEpoch) -> Audit:
    """Steps, images truly processed, images per second and efficiency."""
    images, batch, gpus, seconds, seconds_on_one = epoch
    done = processed(images, batch, gpus)
    rate, rate_of_one = done / seconds, processed(images, batch, 1) / seconds_on_one
    return Audit(steps_of(images, batch, gpus), done, rate, rate / rate_of_one / gpus if done else None)


def audited(images: int, batch: int, gpus: int, seconds: float, seconds_on_one: float) -> dict[str, float | None]:
    """The same as the answer that is asked for."""
    return dict(zip(AUDITED, audit_of(TimedEpoch(images, batch, gpus, seconds, seconds_on_one)), strict=True))


def corrected(claimed: float, images: int, batch: int, gpus: int) -> float | None:
    """The true efficiency behind one that took every epoch for the whole data set; None without a step."""
    done = processed(images, batch, gpus)
    return claimed * done / processed(images, batch, 1) if done else None


def true_efficiencies() -> list[float | None]:
    """Of the published lines."""
    return [corrected(claim.efficiency, claim.images, claim.batch, claim.gpus) for claim in PUBLISHED]


def _drawn_epoch(generator: np.random.Generator, gpus: int) -> TimedEpoch:
    """A run that drops a part of the data set, another one than a GPU alone drops."""
    while True:
        batch = int(generator.integers(100, 900))
        images = int(generator.integers(3, 9)) * gpus * batch + int(generator.integers(1, gpus * batch))
        rest, of_one = images % (gpus * batch), images % batch
        if rest > max(0.05 * images, 1.2 * of_one) and of_one > 0.005 * images:
            break
    seconds_on_one = float(generator.uniform(1, 9))
    efficiency = float(generator.uniform(0.6, 0.95))
    share = processed(images, batch, gpus) / processed(images, batch, 1)
    return TimedEpoch(images, batch, gpus, seconds_on_one * share / gpus / efficiency, seconds_on_one)


def _drawn_epochs(generator: np.random.Generator) -> list[TimedEpoch]:
    """Three that drop something, one that drops nothing, one without a step."""
    runs = [_drawn_epoch(generator, gpus) for gpus in (4, 8, int(generator.integers(3, 13)))]
    batch, gpus = int(generator.integers(100, 900)), int(generator.integers(2, 9))
    divided = TimedEpoch(
        batch * gpus * 5, batch, gpus, float(generator.uniform(0.4, 0.9)), float(generator.uniform(1, 3))
    )
    empty = TimedEpoch(batch * 9 // 2, batch, 8, float(generator.uniform(0.01, 0.09)), float(generator.uniform(1, 3)))
    return [*runs, divided, empty]


def judge_audit(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points for each number that is right for every run."""
    judge = NumberJudge("audit", AUDITED)
    for epoch in [PUBLISHED_EPOCH, *_drawn_epochs(generator)]:
        audit = audit_of(epoch)
        try:
            numbers = answer.call("audit", *epoch)
        except Raised as error:
            if audit.steps:
                raise
            judge.note("efficiency", wrong(Lab11Hint.AUDIT_RAISES.says(kind=error.kind, message=error.message)))
            continue
        mistakes = _mistakes(epoch, audit)
        expected = {
            name: Expected(value, mistakes[name], Lab11Hint.AUDIT_OTHERWISE)
            for name, value in zip(AUDITED, audit, strict=True)
        }
        if not audit.steps and isinstance(numbers, dict) and any(numbers.get(name) == 0 for name in AUDITED[:3]):
            for name in AUDITED[:3]:  # whoever writes 0 for one of them has begun
                if name in numbers and numbers[name] is None:
                    judge.note(name, wrong(Lab11Hint.NONE_FOR_ZERO))
        if problem := judge.compare(numbers, expected, _described(epoch)):
            return problem
    return judge.verdict()


def _mistakes(epoch: TimedEpoch, audit: Audit) -> Mapping[str, Mistakes]:
    images, batch, gpus, seconds, _ = epoch
    steps, done, rate, _ = audit
    alone = images // batch
    return {
        "steps": [
            (steps + 1, Lab11Hint.STEPS_ROUNDED_UP),
            (images / (batch * gpus), Lab11Hint.PARTS_OF_STEPS),
            (alone * gpus, Lab11Hint.BRACKETS),
            (alone, Lab11Hint.STEPS_OF_ONE_GPU),
            (alone / gpus, Lab11Hint.PARTS_OF_STEPS),
        ],
        "images": [
            (images, Lab11Hint.WHOLE_DATA_SET),
            (steps * batch, Lab11Hint.EACH_GPU_HAS_A_BATCH),
            (processed(images, batch, 1), Lab11Hint.IMAGES_OF_ONE_GPU),
            (images - done, Lab11Hint.DROPPED_IMAGES),
            ((steps + 1) * batch * gpus, Lab11Hint.MORE_THAN_THE_DATA_SET),
        ],
        "images per second": [
            (images / seconds, Lab11Hint.RATE_OF_THE_TABLE),
            (rate / gpus, Lab11Hint.RATE_OF_ONE_GPU),
            (rate * gpus, Lab11Hint.RATE_TIMES_GPUS),
            (steps * batch / seconds, Lab11Hint.EACH_GPU_HAS_A_BATCH),
            (seconds / done if done else None, Lab11Hint.SECONDS_PER_IMAGE),
        ],
        "efficiency": _mistaken_efficiencies(epoch, audit),
    }


def _mistaken_efficiencies(epoch: TimedEpoch, audit: Audit) -> Mistakes:
    images, batch, gpus, seconds, seconds_on_one = epoch
    times_faster, of_one = seconds_on_one / seconds, processed(images, batch, 1)
    if audit.efficiency is None:
        return [(value, Lab11Hint.EMPTY_LOOP) for value in (0.0, times_faster / gpus, times_faster)]
    return [
        (times_faster / gpus, Lab11Hint.EFFICIENCY_OF_THE_TABLE),
        (audit.efficiency * gpus, Lab11Hint.SPEED_UP),
        (audit.images_per_second / (images / seconds_on_one) / gpus, Lab11Hint.ONE_GPU_DROPPED_TOO),
        (images / seconds * seconds_on_one / of_one / gpus, Lab11Hint.MANY_GPUS_DROPPED_TOO),
        (100 * audit.efficiency, Lab11Hint.PER_CENT),
        (times_faster, Lab11Hint.RATIO_OF_EPOCHS),
        (1 / audit.efficiency, Lab11Hint.EFFICIENCY_INVERTED),
    ]


def _described(epoch: TimedEpoch) -> str:
    return (
        f"{epoch.images:,} images, batch {epoch.batch}, {epoch.gpus} GPUs in {epoch.seconds:.4g} s, "
        f"one in {epoch.seconds_on_one:.4g} s"
    )


def judge_corrected(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Half of the points for runs that made steps, half for knowing when there is nothing to correct."""
    claims = [(claim.efficiency, claim.images, claim.batch, claim.gpus) for claim in PUBLISHED]
    epochs = _drawn_epochs(generator)
    claims += [(float(generator.uniform(0.5, 0.95)), *epoch[:3]) for epoch in epochs]
    claims.sort(key=lambda claim: corrected(*claim) is None)  # those without a step come last
    for claim in claims:
        claimed, images, batch, gpus = claim
        true = corrected(*claim)
        case = f"{claimed:.1%} claimed for {images:,} images, batch {batch}, {gpus} GPUs"
        try:
            efficiency = answer.call("corrected", *claim, none_is_an_answer=True)
        except Raised as error:
            if true is not None:
                raise
            return wrong(Lab11Hint.RAISES_WITHOUT_STEP.says(kind=error.kind), 0.5, context=f"{case}: ")
        if hint := _hint_of_correction(efficiency, true, *claim):
            return wrong(hint, 0.5 if true is None else 0.0, context=f"{_written(efficiency)} for {case}: ")
    return right("The published claims and what is left of them:\n" + published_table(true_efficiencies()))


def _written(efficiency: Plain) -> str:
    value = number(efficiency)
    if value is None:
        return "None" if efficiency is None else f"an answer of type {type(efficiency).__name__}"
    return f"{value:.6g}"


def _hint_of_correction(
    efficiency: Plain, true: float | None, claimed: float, images: int, batch: int, gpus: int
) -> AnyHint | None:
    if true is None:
        return None if efficiency is None else Lab11Hint.EFFICIENCY_WITHOUT_STEP
    if efficiency is None:
        return Lab11Hint.NONE_WITH_STEPS
    done, of_one = processed(images, batch, gpus), processed(images, batch, 1)
    rounded_up = -(-images // (batch * gpus)) * batch * gpus
    mistakes: Mistakes = [
        (claimed, Lab11Hint.CLAIM_ITSELF),
        (claimed * done / images, Lab11Hint.COMPARED_RUN_DROPPED_TOO),
        (claimed * images / done, Lab11Hint.CLAIM_INVERTED),
        (claimed * of_one / done, Lab11Hint.BOTH_INVERTED),
        (claimed * of_one / images, Lab11Hint.ONLY_ONE_GPU_CORRECTED),
        (true / gpus, Lab11Hint.DIVIDED_BY_GPUS),
        (true * gpus, Lab11Hint.TIMES_GPUS),
        (100 * true, Lab11Hint.PER_CENT),
        (claimed * rounded_up / of_one, Lab11Hint.STEPS_ROUNDED_UP),
        (claimed * steps_of(images, batch, gpus) * batch / of_one, Lab11Hint.EACH_GPU_HAS_A_BATCH),
    ]
    value = number(efficiency)
    if value in {round(true, digits) for digits in (2, 3, 4)}:
        return None
    return Expected(true, mistakes, Lab11Hint.AUDIT_OTHERWISE).hint_for(efficiency)

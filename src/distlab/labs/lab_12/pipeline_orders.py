"""One forward, one backward, for any number of stages and micro-batches: an exercise of lab 12 and its judge."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from distlab.labs.answer import Answer
from distlab.labs.lab_12 import pipeline_runs
from distlab.labs.verdict import Picture, Verdict, right, wrong
from distlab.model_parallel import pipelines
from distlab.model_parallel.pipelines import BACKWARD, FORWARD, Pass, Timing

NAME = "one_forward_one_backward"
FORWARD_SECONDS, BACKWARD_SECONDS = 1.0, 2.0
EXAMPLE = (4, 8)
CASES = (EXAMPLE, (2, 3), (1, 3), (5, 2), (3, 1))


@dataclass(frozen=True)
class Scheduled:
    """What the student's orders came to on so many stages."""

    stages: int
    micro_batches: int
    orders: list[list[Pass]]
    timing: Timing

    @property
    def circumstances(self) -> str:
        """Such as "4 stages, 8 micro-batches"."""
        return _circumstances(self.stages, self.micro_batches)

    @property
    def fewest_seconds(self) -> float:
        """By formula."""
        return float(pipelines.seconds(self.stages, self.micro_batches, FORWARD_SECONDS, BACKWARD_SECONDS))

    def held(self) -> list[int]:
        """By stage, the most micro-batches that waited for their backward pass."""
        return [round(self.timing.activations_held(stage)) for stage in range(self.stages)]

    def may_hold(self) -> list[int]:
        """By stage, by formula."""
        return [
            round(pipelines.activations_held("1f1b", self.stages, self.micro_batches, stage))
            for stage in range(self.stages)
        ]

    def before_backward(self) -> list[int]:
        """By stage, the forward passes before its first backward pass."""
        return [next(at for at, each in enumerate(order) if each.kind == BACKWARD) for order in self.orders]

    def picture(self) -> Picture:
        """The time line."""
        return pipeline_runs.picture(self.timing, f"your schedule, {self.circumstances}", "seconds")


def judge_order(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points each for orders that run on 4 stages, and on any; for the time; for the memory."""
    drawn = [(int(generator.integers(2, 8)), int(generator.integers(1, 13))) for _ in range(2)]
    done: list[Scheduled] = []
    for stages, micro_batches in (*CASES, *drawn):
        found = _scheduled(answer, stages, micro_batches)
        if isinstance(found, Verdict):
            hint = f"{_circumstances(stages, micro_batches)}: {found.text}"
            return wrong(f"{_so_far(done)}{hint}", 0.25 if done else 0.0, found.picture)
        done.append(found)
    slow = next((one for one in done if one.timing.seconds > one.fewest_seconds + 1e-9), None)
    full = next((one for one in done if np.any(np.array(one.held()) > one.may_hold())), None)
    if slow or full:
        hints = ([_hint_of_time(slow)] if slow else []) + ([_hint_of_memory(full)] if full else [])
        return wrong(f"The orders can be carried out. {' '.join(hints)}", 1 - 0.25 * len(hints), (slow or full).picture)
    first = done[0]
    return right(
        f"{first.circumstances}: {first.timing.seconds:g} seconds, bubble {first.timing.bubble_fraction:.0%} as under "
        f"GPipe, and stage 0 holds {first.held()[0]} micro-batches instead of {first.micro_batches}.",
        first.picture,
    )


def _scheduled(answer: Answer, stages: int, micro_batches: int) -> Scheduled | Verdict:
    orders = []
    for stage in range(stages):
        given = answer.call(NAME, stage, stages, micro_batches)
        if isinstance(given, np.ndarray):
            given = given.tolist()
        passes = [pipeline_runs.pass_of(text) for text in given] if isinstance(given, (list, tuple)) else [None]
        if None in passes:
            return wrong('the order of one stage is wanted, a list of texts such as ["F0", "F1", "B0", "B1"].')
        if hint := pipeline_runs.hint_of_passes(passes, stage, micro_batches):
            return wrong(hint)
        orders.append(passes)
    done = pipeline_runs.run(orders, FORWARD_SECONDS, BACKWARD_SECONDS)
    one = Scheduled(stages, micro_batches, orders, done.timing)
    if done.waiting:
        return wrong(done.hint_of_deadlock(), picture=one.picture if done.timing.seconds else None)
    return one


def _circumstances(stages: int, micro_batches: int) -> str:
    return (
        f"{stages} stage{'' if stages == 1 else 's'}, {micro_batches} micro-batch{'' if micro_batches == 1 else 'es'}"
    )


def _so_far(done: Sequence[Scheduled]) -> str:
    return f"The orders can be carried out on {done[-1].circumstances}, but not on " if done else ""


def _hint_of_time(one: Scheduled) -> str:
    text = f"But {one.circumstances} take {one.timing.seconds:g} seconds, and {one.fewest_seconds:g} are enough. "
    counts, needed = one.before_backward(), one.may_hold()
    early = [stage for stage in range(one.stages) if counts[stage] < needed[stage]]
    if early and all(count == 1 for count in counts):
        return (
            f"{text}Every stage finishes a micro-batch before it takes the next one. What could stage 0 do while the "
            "others work on micro-batch 0?"
        )
    if early:
        stage = early[0]
        return (
            f"{text}Stage {stage} does {counts[stage]} forward pass{'' if counts[stage] == 1 else 'es'} and then waits "
            "for its first gradient. How long is the way of a micro-batch to the loss and back, and what can be done "
            "meanwhile?"
        )
    stage, start = _first_wait(one)
    return (
        f"{text}Stage {stage} waits at second {start:g}, in the middle of its work. Compare what its neighbours do "
        "there: who could have sent it something earlier?"
    )


def _first_wait(one: Scheduled) -> tuple[int, float]:
    """The stage and the time of the first wait after a stage's first backward pass."""
    waits = []
    for stage, works in enumerate(one.timing.works):
        going_back = one.before_backward()[stage]
        for work, following in zip(works[going_back:], works[going_back + 1 :], strict=False):
            if following.start > work.end:
                waits.append((work.end, stage))
    start, stage = min(waits, default=(0.0, 0))
    return stage, start


def _hint_of_memory(one: Scheduled) -> str:
    held, allowed = one.held(), one.may_hold()
    stage = next(stage for stage in range(one.stages) if held[stage] > allowed[stage])
    text = (
        f"On {one.circumstances} stage {stage} holds {held[stage]} micro-batch{'' if held[stage] == 1 else 'es'} "
        f"at once, and {allowed[stage]} {'is' if allowed[stage] == 1 else 'are'} enough. "
    )
    if all(each.kind == FORWARD for each in one.orders[stage][: one.micro_batches]):
        return f"{text}All forward passes come first: that is GPipe. When could micro-batch 0 leave the memory?"
    if len(set(held)) == 1:
        return f"{text}It is the same number on every stage. How many stages does a micro-batch still have before it?"
    if held[stage] == allowed[stage] + 1:
        return f"{text}One forward pass too many is done before a backward pass whose gradient is there already."
    return f"{text}It does forward passes although a gradient is waiting for it. When can it first go backward?"

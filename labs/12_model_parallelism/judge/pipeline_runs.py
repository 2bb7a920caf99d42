"""A student's schedule of a pipeline: passes as "F0" and "B0", their run on the virtual cluster, its picture."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from lab_12.hints import Lab12Hint

from distlab.labs.verdict import Advice, Picture
from distlab.model_parallel.pipelines import BACKWARD, FORWARD, Pass, Timed, Timing, Work, pipeline
from distlab.simulate import DeadlockError, Network, Rank, World

_KINDS = {"F": FORWARD, "B": BACKWARD}
_WITHOUT_COST = Network(latency=0.0, seconds_per_byte=0.0)

Orders = Sequence[Sequence[Pass]]
"""By stage, its passes in order."""


@dataclass(frozen=True)
class PipelineRun:
    """What happened to the orders of all stages.

    timing: the time line, up to a deadlock if there is one.  waiting: the pass that a stage never begins, by stage.
    """

    timing: Timing
    waiting: dict[int, Pass]

    def hint_of_deadlock(self) -> Advice:
        """Who waits for whom, of the first stages that wait."""
        sentences = [
            f"stage {stage} wants to do {text_of(next_pass)} and waits for stage {source_of(next_pass, stage)}"
            for stage, next_pass in sorted(self.waiting.items())[:3]
        ]
        return Lab12Hint.DEADLOCK.says(waiting=", ".join(sentences))


def text_of(each: Pass) -> str:
    """Such as "F0"."""
    return f"{each.kind[0].upper()}{each.micro_batch}"


def source_of(each: Pass, stage: int) -> int:
    """The stage that has to do a pass before this one can; −1 or the number of stages where there is none."""
    return stage + (1 if each.kind == BACKWARD else -1)


def is_below_zero(text: object) -> bool:
    """Whether it names a pass of a micro-batch below 0, such as "B-1"."""
    return isinstance(text, str) and re.fullmatch(r"\s*[FB]\s*-\d{1,6}\s*", text, re.IGNORECASE) is not None


def pass_of(text: object) -> Pass | None:
    """What "F0" or "B12" means; None for all else."""
    match = re.fullmatch(r"\s*([FB])\s*(\d{1,6})\s*", text, re.IGNORECASE) if isinstance(text, str) else None
    return Pass(_KINDS[match[1].upper()], int(match[2])) if match else None


def hint_of_passes(order: Sequence[Pass], stage: int, micro_batches: int) -> Advice | None:
    """What a stage does too often, not at all, or backward before forward; None if nothing is wrong."""
    for each, count in Counter(order).items():
        if each.micro_batch >= micro_batches:
            counts_from_one = all(order_pass.micro_batch > 0 for order_pass in order)
            hint = Lab12Hint.COUNTED_FROM_ONE if counts_from_one else Lab12Hint.NO_SUCH_MICRO_BATCH
            return hint.says(stage=stage, name=text_of(each), last=micro_batches - 1)
        if count > 1:
            return Lab12Hint.DONE_AGAIN.says(stage=stage, name=text_of(each), count=count)
    for number in range(micro_batches):
        forward, backward = Pass(FORWARD, number), Pass(BACKWARD, number)
        for each in (forward, backward):
            if each not in order:
                return Lab12Hint.NEVER_DONE.says(stage=stage, name=text_of(each))
        if order.index(backward) < order.index(forward):
            return Lab12Hint.BACKWARD_BEFORE_FORWARD.says(
                stage=stage, backward=text_of(backward), forward=text_of(forward)
            )
    return None


def run(orders: Orders, forward_seconds: float = 1.0, backward_seconds: float = 2.0) -> PipelineRun:
    """Let every stage do its passes in its order; messages take no time.

    Every stage must have each pass once (see `hint_of_passes`); orders that block each other end in a deadlock.
    """
    chunks: dict[int, _Recorded] = {}

    async def program(rank: Rank) -> None:
        chunks[rank.index] = _Recorded(rank, forward_seconds, backward_seconds)
        await pipeline(rank, orders, [chunks[rank.index]])

    try:
        World(len(orders), _WITHOUT_COST).run(program)
    except DeadlockError as error:
        stuck = sorted(error.waiting)
    else:
        stuck = []
    works = [chunks[stage].works for stage in range(len(orders))]
    waiting = {stage: orders[stage][len(works[stage])] for stage in stuck}
    return PipelineRun(timing_of(works), waiting)


def timing_of(works: list[list[Work]]) -> Timing:
    """What stages did, as a time line; it ends with the last pass."""
    return Timing(works, 1, max((work.end for of_stage in works for work in of_stage), default=0.0))


def picture(timing: Timing, title: str, unit: str) -> Picture:
    """The time line as a drawing."""
    import matplotlib.pyplot as plt  # here, since it takes a second and is seldom needed

    from distlab import draw
    from distlab.draw.style import STYLE, svg

    rows = [
        f"stage {stage}: {' '.join(text_of(Pass(work.kind, work.micro_batch)) for work in of_stage) or 'nothing'}"
        for stage, of_stage in enumerate(timing.works)
    ]
    description = f"Time line of {len(rows)} stages, {timing.seconds:g} {unit}. {'; '.join(rows)}."
    with plt.rc_context(STYLE):  # a lab's notebook need not ask for the course's style
        figure = draw.pipeline_schedules({title: timing}, unit)
        made = Picture(svg(figure, description), description)
    plt.close(figure)  # or a notebook shows it once more
    return made


class _Recorded(Timed):
    """A chunk that only takes time, and notes what was done also when the run does not come to its end."""

    def __init__(self, rank: Rank, forward_seconds: float, backward_seconds: float) -> None:
        super().__init__(forward_seconds, backward_seconds)
        self.works: list[Work] = []
        self._rank = rank

    def forward(self, micro_batch: int, activation: np.ndarray | None) -> np.ndarray:
        self._note(FORWARD, micro_batch, self.forward_seconds)
        return super().forward(micro_batch, activation)

    def backward(self, micro_batch: int, gradient: np.ndarray | None) -> np.ndarray:
        self._note(BACKWARD, micro_batch, self.backward_seconds)
        return super().backward(micro_batch, gradient)

    def _note(self, kind: str, micro_batch: int, seconds: float) -> None:
        now = self._rank.now
        self.works.append(Work(self._rank.index, 0, micro_batch, kind, now - seconds, now))

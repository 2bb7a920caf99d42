"""How many micro-batches, when memory is short and each has a fixed price: an exercise of lab 12 and its judge."""

from typing import NamedTuple

import numpy as np
from lab_12.hints import Lab12Hint

from distlab.labs.answer import Answer
from distlab.labs.answer_errors import Raised
from distlab.labs.number_judge import Expected, Mistakes, NumberJudge, number
from distlab.labs.verdict import AnyHint, Picture, Verdict, not_done, wrong
from distlab.model_parallel import pipelines

EXACT = 1e-9
COUNT, SECONDS, BUBBLE = "micro-batches", "seconds", "bubble"
NAMES = (COUNT, SECONDS, BUBBLE)


class Pipeline(NamedTuple):
    """Stages, examples of a batch, examples whose activations fit on a stage, seconds of a micro-batch and an example.

    A stage needs `fixed + examples * each` seconds for a micro-batch, forward and backward together.
    """

    stages: int
    batch: int
    fits: int
    fixed: float
    each: float

    def seconds_per_micro_batch(self, count: int) -> float:
        """Of a stage, when there are `count` of them."""
        return self.fixed + self.batch / count * self.each

    def seconds(self, count: int) -> float:
        """Of the batch, by formula."""
        return float(pipelines.seconds(self.stages, count, self.seconds_per_micro_batch(count), 0.0))

    def examples_held(self, count: int, schedule: str = "1f1b") -> float:
        """The examples whose activations stage 0 holds at once."""
        return pipelines.activations_held(schedule, self.stages, count, 0) * self.batch / count

    def counts(self) -> list[int]:
        """The numbers of micro-batches that divide the batch."""
        return [count for count in range(1, self.batch + 1) if self.batch % count == 0]

    def possible(self) -> list[int]:
        """Those of them that fit into the memory under 1F1B."""
        return [count for count in self.counts() if self.examples_held(count) <= self.fits]

    def best(self) -> int:
        """The possible number with the shortest time."""
        return min(self.possible(), key=self.seconds)


EXAMPLE = Pipeline(4, 48, 36, 2e-3, 1e-3)


FIXED = (
    Pipeline(3, 32, 32, 2.1e-3, 1e-3),  # 6 micro-batches would be faster, and do not divide the batch
    Pipeline(8, 24, 36, 7.2e-3, 1e-3),  # the best are fewer micro-batches than stages: stage 0 holds only those
    Pipeline(4, 48, 24, 3e-3, 1e-3),  # memory is full exactly
    Pipeline(2, 12, 12, 1.0, 1e-3),  # one micro-batch is best
    Pipeline(2, 12, 4, 1e-4, 1e-3),  # micro-batches of one example are best
)
"""Pipelines that tell apart what the drawn ones may not."""


def planned(stages: int, batch: int, fits: int, fixed: float, each: float) -> dict[str, float]:
    """The best number of micro-batches, the batch's seconds, and the bubble's share of them."""
    job = Pipeline(stages, batch, fits, fixed, each)
    best = job.best()
    return {COUNT: best, SECONDS: job.seconds(best), BUBBLE: float(pipelines.bubble_fraction(stages, best))}


def drawn_pipeline(generator: np.random.Generator, memory_decides: bool) -> Pipeline:
    """A pipeline whose best number of micro-batches is none of the obvious ones."""
    while True:
        stages, batch = int(generator.integers(3, 9)), int(generator.choice([48, 72, 96, 120, 144, 240]))
        fixed, each = float(generator.uniform(2e-3, 6e-3)), float(generator.uniform(2e-4, 2e-3))
        free = Pipeline(stages, batch, batch, fixed, each)
        fits = int(generator.integers(batch // 8, batch))
        job = free._replace(fits=fits)
        if not job.possible() or job.best() in (1, stages, batch):
            continue
        times = sorted(map(job.seconds, job.possible()))
        if len(times) > 1 and times[1] > 1.002 * times[0] and (job.best() != free.best()) == memory_decides:
            return job


def judge_plan(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Half of the points for the number of micro-batches, a quarter each for its time and its bubble."""
    jobs = [EXAMPLE, drawn_pipeline(generator, False), drawn_pipeline(generator, True)]
    jobs += FIXED
    jobs.append(Pipeline(1, 64, 20, float(generator.uniform(1e-3, 5e-3)), 1e-3))
    judge = NumberJudge("plan", NAMES)
    for job in jobs:
        try:
            numbers = answer.call("plan", *job)
        except Raised as error:
            if "empty" not in error.message:
                raise
            return wrong(Lab12Hint.NOTHING_FITS, context=f"{_described(job)}: ")
        if problem := judge.problem_of_form(numbers):
            return problem
        assert isinstance(numbers, dict)
        if all(numbers[name] is None for name in NAMES):
            return not_done("`plan` gives names without numbers")
        count = number(numbers[COUNT])
        if hint := _hint_of_count(job, count):
            judge.note(COUNT, wrong(hint, context=f"{_described(job)}: "))
        # Time and bubble are judged for the student's own number, so that one mistake is not counted three times.
        own = int(count) if count and count > 0 and count.is_integer() and count <= job.batch else job.best()
        judge.compare(numbers, _expected(job, own), f"{own} micro-batches in {_described(job)}")
    return judge.verdict(_insight(EXAMPLE), _drawn, weights={COUNT: 2, SECONDS: 1, BUBBLE: 1})


def _hint_of_count(job: Pipeline, count: float | None) -> AnyHint | None:
    if count is None or count < 1 or not count.is_integer():
        return Lab12Hint.NO_COUNT
    whole = int(count)
    if whole > job.batch or job.batch % whole:
        return Lab12Hint.DOES_NOT_DIVIDE.says(count=whole, batch=job.batch)
    if job.examples_held(whole) > job.fits:
        return Lab12Hint.DOES_NOT_FIT.says(count=whole, examples=job.examples_held(whole), fits=job.fits)
    if job.seconds(whole) <= job.seconds(job.best()) * (1 + EXACT):
        return None
    if whole == max(job.possible()):
        return Lab12Hint.SMALLEST_BUBBLE
    if whole == min(job.possible()):
        return Lab12Hint.FEWEST_THAT_FIT
    return Lab12Hint.OTHERS_ARE_FASTER.says(count=whole, seconds=job.seconds(whole))


def _expected(job: Pipeline, count: int) -> dict[str, Expected]:
    p, each = job.stages, job.seconds_per_micro_batch(count)
    passes, bubble = count + p - 1, float(pipelines.bubble_fraction(p, count))
    without_fixed = passes * job.batch / count * job.each
    seconds: Mistakes = [
        (count * each, Lab12Hint.NO_BUBBLE),
        ((count + p) * each, Lab12Hint.ONE_TOO_LONG),
        (p * count * each, Lab12Hint.STAGES_IN_A_ROW),
        (without_fixed, Lab12Hint.FIXED_MISSING),
        (without_fixed + job.fixed, Lab12Hint.FIXED_ONCE),
        (passes * (job.fixed + job.batch * job.each), Lab12Hint.WHOLE_BATCH_EACH_TIME),
    ]
    bubbles: Mistakes = [
        ((p - 1) / count, Lab12Hint.SHARE_OF_IDEAL),
        (1 - bubble, Lab12Hint.SHARE_OF_WORK),
        (p / (count + p), Lab12Hint.STAGES_WAITED_FOR),
        ((p - 1) / (count + p), Lab12Hint.LENGTH_OF_THE_WHOLE),
        (100 * bubble, Lab12Hint.PER_CENT),
        ((p - 1) * each, Lab12Hint.BUBBLE_IN_SECONDS),
    ]
    return {
        SECONDS: Expected(job.seconds(count), seconds, Lab12Hint.PLAN_OTHERWISE, EXACT, absolute=1e-12),
        BUBBLE: Expected(bubble, bubbles, Lab12Hint.PLAN_OTHERWISE, EXACT, absolute=1e-12),
    }


def _described(job: Pipeline) -> str:
    return f"plan({job.stages}, {job.batch}, {job.fits}, {job.fixed:.4g}, {job.each:.4g})"


def _insight(job: Pipeline) -> str:
    best, most = job.best(), job.batch
    bubbles = [float(pipelines.bubble_fraction(job.stages, count)) for count in (best, most)]
    return (
        f"In the example {best} micro-batches take {1e3 * job.seconds(best):.0f} ms with a bubble of {bubbles[0]:.0%}; "
        f"{most} would have one of {bubbles[1]:.0%} and take {1e3 * job.seconds(most):.0f} ms. Under GPipe no number "
        f"fits: stage 0 would hold all {job.examples_held(best, 'gpipe'):g} examples."
    )


def _drawn() -> Picture:
    """The example's time over the number of micro-batches, with the part of it that is a bubble."""
    import matplotlib.pyplot as plt  # here, since it takes a second and is seldom needed

    from distlab.draw.style import HATCHES, RANK_COLOURS, STYLE, svg

    counts, fits = EXAMPLE.counts(), EXAMPLE.possible()
    milliseconds = np.array([1e3 * EXAMPLE.seconds(count) for count in counts])
    waiting = milliseconds * pipelines.bubble_fraction(EXAMPLE.stages, counts)
    at = np.arange(len(counts))
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(7.2, 2.6))
        axes.bar(at, milliseconds - waiting, color=RANK_COLOURS[0], label="a stage works")
        bubbles = axes.bar(at, waiting, bottom=milliseconds - waiting, label="it waits: bubble", color="white")
        for bubble in bubbles:
            bubble.set(edgecolor=RANK_COLOURS[0], hatch=HATCHES[1])
        for place, count, time in zip(at, counts, milliseconds, strict=True):
            note = "" if count in fits else "does\nnot fit"
            axes.annotate(note or f"{time:.0f}", (place, time), (0, 2), textcoords="offset points", ha="center", size=8)
        axes.set_xticks(at, [str(count) for count in counts])
        axes.set(xlabel="micro-batches", ylabel="milliseconds of a batch", ylim=(0, 1.2 * milliseconds.max()))
        axes.legend()
        times = ", ".join(f"{count}: {time:.0f}" for count, time in zip(counts, milliseconds, strict=True))
        description = f"Bars: milliseconds of the example's batch by number of micro-batches, and its bubble. {times}."
        made = Picture(svg(figure, description), description)
    plt.close(figure)
    return made

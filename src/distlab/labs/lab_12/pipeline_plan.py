"""How many micro-batches, when memory is short and each has a fixed price: an exercise of lab 12 and its judge."""

from typing import NamedTuple

import numpy as np

from distlab.labs.answer import Answer
from distlab.labs.comparisons import Mistakes, hint_of, is_near, number
from distlab.labs.verdict import Picture, Verdict, not_done, parts, right, wrong
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

    def held(self, count: int, schedule: str = "1f1b") -> float:
        """The examples whose activations stage 0 holds at once."""
        return pipelines.activations_held(schedule, self.stages, count, 0) * self.batch / count

    def counts(self) -> list[int]:
        """The numbers of micro-batches that divide the batch."""
        return [count for count in range(1, self.batch + 1) if self.batch % count == 0]

    def possible(self) -> list[int]:
        """Those of them that fit into the memory under 1F1B."""
        return [count for count in self.counts() if self.held(count) <= self.fits]

    def best(self) -> int:
        """The possible number with the shortest time."""
        return min(self.possible(), key=self.seconds)


EXAMPLE = Pipeline(4, 48, 36, 2e-3, 1e-3)


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
    """Half of the points for the number of micro-batches, a quarter each for time and bubble of the number given."""
    jobs = [EXAMPLE, drawn_pipeline(generator, False), drawn_pipeline(generator, True)]
    jobs.append(Pipeline(1, 64, 20, float(generator.uniform(1e-3, 5e-3)), 1e-3))
    hints: dict[str, Verdict] = {}
    for job in jobs:
        given = answer.call("plan", *job)
        if not isinstance(given, dict) or not all(name in given for name in NAMES):
            return wrong(f"`plan` gives a dictionary with the names {', '.join(NAMES)}.")
        if all(given[name] is None for name in NAMES):
            return not_done("`plan` gives names without numbers")
        for name, hint in _hints(job, given).items():
            hints.setdefault(name, wrong(f"{_described(job)}: {hint}"))
    found = parts({name: hints.get(name, right()) for name in NAMES})
    if found.is_right:
        return right(_insight(EXAMPLE), _drawn)
    share = sum(part for name, part in zip(NAMES, (0.5, 0.25, 0.25), strict=True) if name not in hints)
    return Verdict(found.state, found.text, share)


def _hints(job: Pipeline, given: dict) -> dict[str, str]:
    hints = {}
    count = number(given[COUNT])
    if hint := _hint_of_count(job, count):
        hints[COUNT] = hint
    # Time and bubble are judged for the student's own number, so that one mistake is not counted three times.
    own = int(count) if count and count > 0 and count.is_integer() and count <= job.batch else job.best()
    for name, true, mistakes in (
        (SECONDS, job.seconds(own), _mistaken_seconds(job, own)),
        (BUBBLE, float(pipelines.bubble_fraction(job.stages, own)), _mistaken_bubbles(job, own)),
    ):
        value = number(given[name])
        if value is None:
            hints[name] = "a number is wanted."
        elif not is_near(value, true, EXACT) and not abs(value - true) < 1e-12:
            generic = "Draw the time line of a few micro-batches and count."
            hints[name] = f"{value:.4g} for {own} micro-batches. {hint_of(value, mistakes, EXACT) or generic}"
    return hints


def _hint_of_count(job: Pipeline, count: float | None) -> str | None:
    if count is None or count < 1 or not count.is_integer():
        return "a whole number of at least 1 is wanted."
    whole = int(count)
    if whole > job.batch or job.batch % whole:
        return f"{whole} micro-batches do not divide a batch of {job.batch} equally."
    if job.held(whole) > job.fits:
        return (
            f"with {whole} micro-batches stage 0 holds {job.held(whole):g} examples at once, and {job.fits} fit. How "
            "many micro-batches does it hold under 1F1B, and how large are they?"
        )
    if job.seconds(whole) <= job.seconds(job.best()) * (1 + EXACT):
        return None
    if whole == max(job.possible()):
        return (
            "the bubble is as small as it can be, and the time is not: what does every further micro-batch cost each "
            "stage?"
        )
    if whole == min(job.possible()):
        return "it fits, but a larger number is faster: the whole pipeline waits for the first, large micro-batch."
    return (
        f"{whole} micro-batches take {job.seconds(whole):.4g} s, and others that divide the batch and fit take less. "
        "Which did you compare?"
    )


def _mistaken_seconds(job: Pipeline, count: int) -> Mistakes:
    p, one = job.stages, job.seconds_per_micro_batch(count)
    return [
        (count * one, "That is the time without a bubble: when does the last stage begin?"),
        ((count + p) * one, "One micro-batch too long: how many stages stand before the last one?"),
        (p * count * one, "Stages work at the same time, not one after the other."),
        ((count + p - 1) * job.batch / count * job.each, "The fixed seconds of each micro-batch are missing."),
        (
            (count + p - 1) * job.batch / count * job.each + job.fixed,
            "The fixed seconds are due for every micro-batch, not once.",
        ),
        (
            (count + p - 1) * (job.fixed + job.batch * job.each),
            "These seconds are of the whole batch; how many examples has a micro-batch?",
        ),
    ]


def _mistaken_bubbles(job: Pipeline, count: int) -> Mistakes:
    p = job.stages
    bubble = float(pipelines.bubble_fraction(p, count))
    return [
        ((p - 1) / count, "That is the bubble as a part of the time *without* it; a share of the whole time is asked."),
        (1 - bubble, "That is the share in which a stage works."),
        (p / (count + p), "How many of the stages does the last one wait for before it can begin?"),
        ((p - 1) / (count + p), "Add up again how long the whole takes, in micro-batches."),
        (100 * bubble, "A share is asked, from 0 to 1, not per cent."),
        ((p - 1) * job.seconds_per_micro_batch(count), "These are seconds; a share of the whole time is asked."),
    ]


def _described(job: Pipeline) -> str:
    return f"plan({job.stages}, {job.batch}, {job.fits}, {job.fixed:.4g}, {job.each:.4g})"


def _insight(job: Pipeline) -> str:
    best, most = job.best(), job.batch
    bubbles = [float(pipelines.bubble_fraction(job.stages, count)) for count in (best, most)]
    return (
        f"In the example {best} micro-batches take {1e3 * job.seconds(best):.0f} ms with a bubble of {bubbles[0]:.0%}; "
        f"{most} would have one of {bubbles[1]:.0%} and take {1e3 * job.seconds(most):.0f} ms. Under GPipe no number "
        f"fits: stage 0 would hold all {job.held(best, 'gpipe'):g} examples."
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
        look = {"color": "white", "edgecolor": RANK_COLOURS[0], "hatch": HATCHES[1]}
        axes.bar(at, waiting, bottom=milliseconds - waiting, label="it waits: bubble", **look)
        for place, count, time in zip(at, counts, milliseconds, strict=True):
            note = "" if count in fits else "does\nnot fit"
            axes.annotate(note or f"{time:.0f}", (place, time), (0, 2), textcoords="offset points", ha="center", size=8)
        axes.set_xticks(at, counts)
        axes.set(xlabel="micro-batches", ylabel="milliseconds of a batch", ylim=(0, 1.2 * milliseconds.max()))
        axes.legend()
        times = ", ".join(f"{count}: {time:.0f}" for count, time in zip(counts, milliseconds, strict=True))
        description = f"Bars: milliseconds of the example's batch by number of micro-batches, and its bubble. {times}."
        made = Picture(svg(figure, description), description)
    plt.close(figure)
    return made

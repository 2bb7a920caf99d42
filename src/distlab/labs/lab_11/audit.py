"""What a scaling table claims, and what its runs processed: two exercises of lab 11 and their judges."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from distlab import metrics
from distlab.labs.answer import Answer
from distlab.labs.answer_errors import Raised
from distlab.labs.comparisons import Mistakes, hint_of, is_near, number
from distlab.labs.verdict import Verdict, not_done, parts, right, wrong

AUDITED = ("steps", "images", "images per second", "efficiency")


class Claim(NamedTuple):
    """One line of a published table: the efficiency of an epoch on so many GPUs, the batch being that of each."""

    gpu: str
    images: int
    batch: int
    gpus: int
    efficiency: float


PUBLISHED = tuple(
    Claim(gpu, 60_000, batch, gpus, efficiency)
    for gpu, batch, claims in (("V100", 2048, (0.88, 0.88, 0.86)), ("A100", 8192, (0.77, 0.60, 0.86)))
    for gpus, efficiency in zip((2, 4, 8), claims, strict=True)
)
"""openhackathons-org/gpubootcamp, Distributed Deep Learning, notebook 3; its scripts drop what fills no batch."""
PRINTED_SECONDS = 0.12322497367858887  # for the 8 V100, in the same notebook


class Run(NamedTuple):
    """A measured epoch: images of the data set, batch of each GPU, GPUs, seconds, seconds of an epoch on one GPU."""

    images: int
    batch: int
    gpus: int
    seconds: float
    seconds_on_one: float


PUBLISHED_RUN = Run(60_000, 2048, 8, PRINTED_SECONDS, 8 * PUBLISHED[2].efficiency * PRINTED_SECONDS)
"""The one published line whose time is known; that of one GPU follows from what is claimed."""


def steps_of(images: int, batch: int, gpus: int) -> int:
    """The full global batches in an epoch."""
    return images // (batch * gpus)


def processed(images: int, batch: int, gpus: int) -> int:
    """Images that an epoch of full global batches works on."""
    return steps_of(images, batch, gpus) * batch * gpus


def audited(images: int, batch: int, gpus: int, seconds: float, seconds_on_one: float) -> dict[str, float | None]:
    """Steps, images truly processed, images per second and efficiency of a run; no efficiency without a step."""
    done = processed(images, batch, gpus)
    rate = metrics.throughput(done, seconds)
    of_one = metrics.throughput(processed(images, batch, 1), seconds_on_one)
    return dict(
        zip(AUDITED, (steps_of(images, batch, gpus), done, rate, rate / of_one / gpus if done else None), strict=True)
    )


def corrected(claimed: float, images: int, batch: int, gpus: int) -> float | None:
    """The true efficiency behind one that took every epoch for the whole data set; None without a step."""
    done = processed(images, batch, gpus)
    return claimed * done / processed(images, batch, 1) if done else None


def _drawn_run(generator: np.random.Generator, gpus: int) -> Run:
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
    return Run(images, batch, gpus, seconds_on_one * share / gpus / efficiency, seconds_on_one)


def _drawn_runs(generator: np.random.Generator) -> list[Run]:
    """Three that drop something, one that drops nothing, one without a step."""
    runs = [_drawn_run(generator, gpus) for gpus in (4, 8, int(generator.integers(3, 13)))]
    batch, gpus = int(generator.integers(100, 900)), int(generator.integers(2, 9))
    divided = Run(batch * gpus * 5, batch, gpus, float(generator.uniform(0.4, 0.9)), float(generator.uniform(1, 3)))
    empty = Run(batch * 9 // 2, batch, 8, float(generator.uniform(0.01, 0.09)), float(generator.uniform(1, 3)))
    return [*runs, divided, empty]


def judge_audit(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points for each number that is right for every run."""
    hints: dict[str, Verdict] = {}
    for run in [PUBLISHED_RUN, *_drawn_runs(generator)]:
        try:
            given = answer.call("audit", *run)
        except Raised as error:
            if steps_of(*run[:3]):
                raise
            hints.setdefault("efficiency", wrong(f"with no step at all `audit` raises {error.kind}: {error.message}."))
            continue
        if not isinstance(given, dict) or not set(AUDITED) <= set(given):
            return wrong(f"`audit` gives a dictionary with the names {', '.join(AUDITED)}.")
        for name, true in audited(*run).items():
            hint = _hint_of_number(given[name], true, _mistaken(run)[name])
            if hint and (given[name] is None or given[name] is ...):
                hints.setdefault(name, not_done("`audit` gives None"))
            elif hint:
                hints.setdefault(name, wrong(f"{_shown(given[name])} for {_described(run)}: {hint}"))
    return parts({name: hints.get(name, right()) for name in AUDITED})


def _hint_of_number(given: object, true: float | None, mistakes: Mistakes) -> str | None:
    """None when it is right."""
    if given is None and true is None:
        return None
    found = number(given)
    if found is None:
        return "a number is wanted."
    if is_near(found, true):
        return None
    return hint_of(found, mistakes) or "not right. Write down what one step takes in, and count the steps."


def _mistaken(run: Run) -> Mapping[str, Mistakes]:
    images, batch, gpus, seconds, seconds_on_one = run
    true = audited(*run)
    steps, done, rate, efficiency = (true[name] for name in AUDITED)
    of_one = processed(images, batch, 1)
    alone = images // batch
    without = "no step was made, so what was timed is an empty loop. How efficient is that?"
    if efficiency is None:
        efficiencies = [(0.0, without), (seconds_on_one / seconds / gpus, without), (seconds_on_one / seconds, without)]
    else:
        efficiencies = [
            (
                seconds_on_one / seconds / gpus,
                "that is what the table claims: it takes both epochs for equally many images.",
            ),
            (efficiency * gpus, "that is the speed-up. What share of the ideal one is it?"),
            (rate / (images / seconds_on_one) / gpus, "the run on one GPU dropped something too."),
            (images / seconds * seconds_on_one / of_one / gpus, "the run on many GPUs dropped something too."),
            (100 * efficiency, "a fraction is asked for, not per cent."),
            (seconds_on_one / seconds, "that is how many times shorter the epoch is, whatever was done in it."),
            (1 / efficiency, "turned round: how much of the ideal is reached?"),
        ]
    return {
        "steps": [
            (steps + 1, "a batch that is not full is dropped, not made."),
            (images / (batch * gpus), "there are no parts of a step."),
            (alone, "these are the steps of one GPU. What does a step of all GPUs take in?"),
            (alone / gpus, "there are no parts of a step."),
        ],
        "images": [
            (images, "that is the data set. Which part of it fills whole steps?"),
            (steps * batch, "in a step each GPU takes a batch of its own."),
            (of_one, "that is what one GPU alone would work on."),
            (images - done, "these are the dropped ones."),
            ((steps + 1) * batch * gpus, "the data set does not hold so many."),
        ],
        "images per second": [
            (images / seconds, "the table's mistake: it divides the whole data set by the time of a part."),
            (rate / gpus, "that is one GPU's share; all of them together are asked for."),
            (rate * gpus, "the images of a step hold those of all GPUs already."),
            (steps * batch / seconds, "in a step each GPU takes a batch of its own."),
            (seconds / done if done else None, "these are seconds for an image."),
        ],
        "efficiency": efficiencies,
    }


def _described(run: Run) -> str:
    return (
        f"{run.images:,} images, batch {run.batch}, {run.gpus} GPUs in {run.seconds:.4g} s, "
        f"one in {run.seconds_on_one:.4g} s"
    )


def _shown(given: object) -> str:
    found = number(given)
    if found is None:
        return "None" if given is None else f"an answer of type {type(given).__name__}"
    return f"{found:.6g}"


def judge_corrected(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Half of the points for runs that made steps, half for knowing when there is nothing to correct."""
    claims = [(claim.efficiency, claim.images, claim.batch, claim.gpus) for claim in PUBLISHED]
    drawn = _drawn_runs(generator)
    claims += [(float(generator.uniform(0.5, 0.95)), *run[:3]) for run in drawn]
    claims.sort(key=lambda claim: corrected(*claim) is None)  # those without a step come last
    for claim in claims:
        claimed, images, batch, gpus = claim
        true = corrected(*claim)
        where = f"{claimed:.1%} claimed for {images:,} images, batch {batch}, {gpus} GPUs"
        try:
            given = answer.call("corrected", *claim, none_is_an_answer=True)
        except Raised as error:
            if true is not None:
                raise
            return wrong(f"{where}: no step is made, and `corrected` raises {error.kind}.", 0.5)
        hint = _hint_of_correction(given, *claim)
        if hint:
            return wrong(f"{_shown(given)} for {where}: {hint}", 0.5 if true is None else 0.0)
    return right("The published claims and what is left of them:\n" + published_table(with_truth=True))


def _hint_of_correction(given: object, claimed: float, images: int, batch: int, gpus: int) -> str | None:
    true = corrected(claimed, images, batch, gpus)
    if given is None and true is not None:
        return "it made steps, so there is an efficiency."
    if true is None:
        return None if given is None else "how many steps did this run make, and what was timed?"
    done, of_one = processed(images, batch, gpus), processed(images, batch, 1)
    more = -(-images // (batch * gpus)) * batch * gpus
    mistakes = [
        (claimed, "that is the claim. By how much was the numerator too large?"),
        (claimed * done / images, "the run on one GPU, which it is compared with, dropped something too."),
        (claimed * images / done, "turned round: were fewer images processed than was said, or more?"),
        (claimed * of_one / done, "turned round: which of the two runs dropped more?"),
        (claimed * of_one / images, "this corrects the run on one GPU; what about the others?"),
        (true / gpus, "an efficiency is divided by the GPUs already."),
        (true * gpus, "an efficiency is wanted, not a speed-up."),
        (100 * true, "a fraction is asked for, not per cent."),
        (claimed * more / of_one, "a batch that is not full is dropped, not made."),
        (claimed * (images // (batch * gpus)) * batch / of_one, "in a step each GPU takes a batch of its own."),
    ]
    return _hint_of_number(given, true, mistakes)


def published_table(with_truth: bool = False) -> str:
    """The published lines as text, with the corrected efficiency if wanted."""
    lines = ["GPUs       batch   claimed" + ("      true" if with_truth else "")]
    for claim in PUBLISHED:
        line = f"{claim.gpus} {claim.gpu}{claim.batch:>10}{claim.efficiency:>10.0%}"
        if with_truth:
            true = corrected(claim.efficiency, claim.images, claim.batch, claim.gpus)
            line += f"{'undefined' if true is None else format(true, '.0%'):>10}"
        lines.append(line)
    return "\n".join(lines)

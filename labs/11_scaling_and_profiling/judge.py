"""The judge of lab 11: a scaling table audited, Amdahl's law and α–β fitted, the time on 64 ranks predicted."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from lab_11 import given
from numpy.random import Generator
from numpy.typing import NDArray

from distlab.labs import Exercise, Lab
from distlab.labs.by_programs import ByPrograms, Hint, Mistake, OfPart, drawn_until, formulas
from distlab.labs.number_judge import are_two_numbers, is_near, number
from distlab.labs.verdict import Picture, picture

Array = NDArray[np.float64]
Pair = tuple[float, float]
Fit = Callable[[Array, Array], Array]

# What a run processed ------------------------------------------------------------------------------------------------

STEPS, IMAGES, RATE, EFFICIENCY = AUDITED = ("steps", "images", "images per second", "efficiency")


class Epoch(NamedTuple):
    """A timed epoch on several GPUs, and the time of one on a single GPU; `batch` is that of each GPU."""

    images: int
    batch: int
    gpus: int
    seconds: float
    seconds_on_one: float


PUBLISHED = Epoch(60_000, 2048, 8, *(round(60_000 / given.IMAGES_PER_SECOND[gpus], 4) for gpus in (8, 1)))
"""The published run on 8 V100; the times follow from its images/s, which take every epoch for all images."""


def processed(images: int, batch: int, gpus: int) -> int:
    """Images in the full steps of an epoch."""
    return images // (batch * gpus) * batch * gpus


def audit(images: int, batch: int, gpus: int, seconds: float, seconds_on_one: float) -> dict[str, float | None]:
    """Steps, images truly processed, images per second, and the efficiency, which no run without a step has."""
    done = processed(images, batch, gpus)
    ideal = gpus * processed(images, batch, 1) / seconds_on_one
    return {
        STEPS: images // (batch * gpus),
        IMAGES: done,
        RATE: done / seconds,
        EFFICIENCY: done / seconds / ideal if done else None,
    }


def epochs(generator: Generator) -> list[Epoch]:
    """Three that drop something, another part than one GPU; one without a rest, with one step, with none."""
    drawn = []
    for gpus in (4, 8, int(generator.integers(3, 13))):
        rest = of_one = images = batch = 0
        while rest <= max(0.05 * images, 1.2 * of_one) or of_one <= 0.005 * images:
            batch = int(generator.integers(100, 900))
            images = int(generator.integers(3, 9)) * gpus * batch + int(generator.integers(1, gpus * batch))
            rest, of_one = images % (gpus * batch), images % batch
        seconds_on_one, efficiency = float(generator.uniform(1, 9)), float(generator.uniform(0.6, 0.95))
        share = processed(images, batch, gpus) / processed(images, batch, 1)
        drawn.append(Epoch(images, batch, gpus, seconds_on_one * share / gpus / efficiency, seconds_on_one))
    batch, few = int(generator.integers(100, 900)), int(generator.integers(2, 9))
    for images, gpus in ((batch * few * 5, few), (batch * few, few), (batch * 9 // 2, 8)):
        seconds = float(generator.uniform(0.02, 0.9))
        drawn.append(Epoch(images, batch, gpus, seconds, float(generator.uniform(1, 3))))
    return [PUBLISHED, *drawn]


def known_of_epoch(images: int, batch: int, gpus: int, *seconds: float) -> dict[str, int]:
    """What formulas may use."""
    return {"done": processed(images, batch, gpus), "of_one": processed(images, batch, 1)}


ROUNDED_UP = "a batch that is not full is dropped."
ZERO = "no step was taken, so this is 0; only the efficiency has no value."
EMPTY_LOOP = "no step was taken, so no image was processed. How efficient is that?"
PER_CENT = "a fraction is asked for, not per cent."
ONE_STEP = "this run takes one step, and a single step has an efficiency."

AUDIT_FORMULAS: dict[str, dict[str, Hint]] = {
    STEPS: {
        "-(-images // (batch * gpus))": ROUNDED_UP,
        "images / (batch * gpus)": "no step is taken in part. Which whole number is it?",
        "images // batch * gpus": "`a // b * c` is `(a // b) * c`: a step takes `batch * gpus` images.",
        "images // batch": "these are the steps of one GPU. What does a step of all GPUs take in?",
        "steps or None": ZERO,
    },
    IMAGES: {
        "images": "that is the data set. Which part of it fills whole steps?",
        "steps * batch": "in a step each GPU takes a batch of its own.",
        "of_one": "that is what one GPU alone would work on.",
        "images - done": "these are the dropped images.",
        "-(-images // (batch * gpus)) * batch * gpus": "the data set does not have that many images.",
        "done or None": ZERO,
    },
    RATE: {
        "images / seconds": "that is the table's mistake: it divides the whole data set by the time of a part.",
        "images_per_second / gpus": "that is the rate of one GPU; the rate of all GPUs together is asked for.",
        "images_per_second * gpus": "the images of a step already include those of all GPUs.",
        "seconds / done if done else 0.0": "these are seconds per image.",
    },
    EFFICIENCY: {
        "seconds_on_one / seconds / gpus": (
            "that is what the table claims: it takes both epochs for equally many images."
        ),
        "efficiency and efficiency * gpus": "that is the speed-up. What share of the ideal one is it?",
        "done / seconds / images * seconds_on_one / gpus or None": "the run on one GPU dropped something too.",
        "efficiency and images / seconds * seconds_on_one / of_one / gpus": (
            "the run on many GPUs dropped something too."
        ),
        "efficiency and 100 * efficiency": PER_CENT,
        "seconds_on_one / seconds": "that is how many times shorter the epoch is, whatever was done in it.",
        "efficiency and 1 / efficiency": "the ratio is inverted: how much of the ideal is reached?",
        "efficiency or 0.0": EMPTY_LOOP,
        "efficiency or seconds_on_one / seconds / gpus": EMPTY_LOOP,
        "efficiency if steps > 1 else None": ONE_STEP,
        "efficiency if images > batch * gpus else None": ONE_STEP,
        "1 / steps": {EFFICIENCY: "with no step at all `audit` raises ZeroDivisionError."},
    },
}
AUDIT = ByPrograms(
    audit,
    epochs,
    said=lambda epoch: (
        f"for {epoch.images:,} images, batch {epoch.batch}, {epoch.gpus} GPUs in {epoch.seconds:.4g} s, one in "
        f"{epoch.seconds_on_one:.4g} s"
    ),
    parts=AUDITED,
    otherwise="that is not right. Write down what one step takes in, and count the steps.",
    mistakes=formulas(audit, AUDIT_FORMULAS, known_of_epoch),
)

# The published table -------------------------------------------------------------------------------------------------

WITH_STEPS, WITHOUT = "runs with steps", "runs without a step"


class Claim(NamedTuple):
    """A line of a table that takes every epoch for all images."""

    claimed: float
    images: int
    batch: int
    gpus: int


def corrected(claimed: float, images: int, batch: int, gpus: int) -> float | None:
    """The true efficiency behind the claimed one; None without a step."""
    done = processed(images, batch, gpus)
    return claimed * done / processed(images, batch, 1) if done else None


def claims(generator: Generator) -> list[Claim]:
    """The published ones and others."""
    published = [Claim(claim.efficiency, claim.images, claim.batch, claim.gpus) for claim in given.PUBLISHED]
    return published + [Claim(float(generator.uniform(0.5, 0.95)), *epoch[:3]) for epoch in epochs(generator)[1:]]


def by_steps(claim: Claim, efficiency: Any) -> dict[str, Any]:
    """The part to which a claim belongs, with the true efficiency where one is given that is rounded or cut off."""
    true, value = corrected(*claim), number(efficiency)
    if true is None:
        return {WITHOUT: efficiency}
    as_claims = [round(true, places) for places in (2, 3, 4)] + [math.floor(true * 10**n) / 10**n for n in (2, 3, 4)]
    return {WITH_STEPS: true if value is not None and any(is_near(value, near) for near in as_claims) else efficiency}


CORRECTED_FORMULAS = {
    "claimed": "that is the claim. By how much was the numerator too large?",
    "right and claimed * done / images": "the run on one GPU, which it is compared with, dropped something too.",
    "right and claimed * images / done": "the ratio is inverted: were fewer images processed than claimed, or more?",
    "right and claimed * of_one / done": "the ratio is inverted: which of the two runs dropped more?",
    "right and claimed * of_one / images": "this corrects the run on one GPU; what about the other run?",
    "right and right / gpus": "an efficiency is already divided by the number of GPUs.",
    "right and right * gpus": "an efficiency is asked for, not a speed-up.",
    "right and 100 * right": PER_CENT,
    "right and claimed * -(-images // (batch * gpus)) * batch * gpus / of_one": ROUNDED_UP,
    "right if images > batch * gpus else None": ONE_STEP,
    "right if images >= 2 * batch * gpus else None": ONE_STEP,
    "claimed / (of_one / done)": {WITHOUT: "no step is taken, and `corrected` raises ZeroDivisionError."},
}
CORRECTED = ByPrograms(
    corrected,
    claims,
    said=lambda claim: (
        f"for {claim.claimed:.1%} claimed for {claim.images:,} images, batch {claim.batch}, {claim.gpus} GPUs"
    ),
    parts=(WITH_STEPS, WITHOUT),
    split=by_steps,
    after={WITHOUT: [WITH_STEPS]},
    otherwise={
        WITH_STEPS: "that is not right. Write down what one step takes in, and count the steps.",
        WITHOUT: "how many steps did this run make, and what did it process?",
    },
    praise=lambda cases: (
        "The published claims and what is left of them:\n"
        + given.published_table([corrected(*case) for case in cases[: len(given.PUBLISHED)]])
    ),
    mistakes=formulas(corrected, {"": CORRECTED_FORMULAS}, lambda claimed, *run: known_of_epoch(*run)),
)

# Two fits of measured times ------------------------------------------------------------------------------------------

EXACT, NOISY = "exact times", "noisy times"
NOISE, CLEARLY_OFF = 0.08, 0.08
PER_TIME = (
    "the squared errors are weighted, but by {} instead of by 1/T². Which factor turns an error in seconds into a "
    "relative one?"
)


def fit(columns: Array, seconds: Array, weights: Array) -> Array:
    """The two factors of the columns with the least sum of squares of (predicted − measured) · weights."""
    scale = columns.max(axis=0)  # α and β differ by many powers of ten
    return np.linalg.lstsq(columns / scale * weights[:, None], seconds * weights)[0] / scale


def relative(columns: Array, seconds: Array) -> Array:
    """The right fit."""
    return fit(columns, seconds, 1 / seconds)


def absolute(columns: Array, seconds: Array) -> Array:
    """By errors in seconds."""
    return fit(columns, seconds, np.ones(len(seconds)))


def by_logarithms(columns: Array, seconds: Array) -> Array:
    """Another right way: the least sum of squares of ln(predicted / measured), by Gauss and Newton."""
    solution = relative(columns, seconds)
    for _ in range(6):
        predicted = np.maximum(columns @ solution, 1e-3 * seconds)
        solution = fit(columns, predicted - predicted * np.log(predicted / seconds), 1 / predicted)
    return solution


WRONG_FITS: dict[str, Fit] = {
    "two of the times decide, with all their noise, and the others are not used.": (
        lambda columns, seconds: absolute(columns[[0, -1]], seconds[[0, -1]])
    ),
    "the longest times decide alone, since their errors are the largest in seconds. Which errors should count?": (
        absolute
    ),
    PER_TIME.format("1/T"): lambda columns, seconds: fit(columns, seconds, seconds**-0.5),
    PER_TIME.format("1/T⁴"): lambda columns, seconds: fit(columns, seconds, seconds**-2.0),
    PER_TIME.format("the ranks or sizes"): lambda columns, seconds: fit(columns, seconds, columns[:, 1] ** -0.5),
}


def noisy_times(generator: Generator, columns: Array, law: Callable[[], Any]) -> list[Array]:
    """Three measurements with noise; in one of them at least each wrong fit is clearly off, and no right one ever."""

    def draw() -> tuple[Array, Array]:
        true = np.array(law())
        noise = NOISE * np.clip(generator.normal(size=(3, len(columns))), -2.5, 2.5)
        return columns @ true * (1 + noise), true

    def is_clear(drawn: tuple[Array, Array]) -> bool:
        measured, true = drawn
        pairs = [(seconds, relative(columns, seconds)) for seconds in measured]
        return (
            max(np.abs(best / true - 1).max() for _, best in pairs) < 0.5
            and all(off_by(wrong, columns, pairs) > CLEARLY_OFF for wrong in WRONG_FITS.values())
            and off_by(by_logarithms, columns, pairs) < 0.025
        )

    return list(drawn_until(is_clear, draw)[0])


def off_by(program: Fit, columns: Array, pairs: list[tuple[Array, Array]]) -> float:
    """How far a fit is from the best ones, where it is farthest."""
    return max(np.abs(program(columns, seconds) / best - 1).max() for seconds, best in pairs)


def law_columns(ranks: Any) -> Array:
    """What the serial and the parallel seconds are multiplied with."""
    return np.stack([np.ones(len(ranks)), 1 / np.asarray(ranks)], axis=1)


def ring_columns(ranks: int, sizes: Any) -> Array:
    """Messages that follow one another, and the bytes that a rank sends."""
    steps = 2 * (ranks - 1)
    return np.stack([np.full(len(sizes), float(steps)), steps / ranks * np.asarray(sizes)], axis=1)


class Timed(OfPart):
    """Ranks and seconds of a program; ranks, sizes and seconds of all-reduces."""

    @property
    def columns(self) -> Array:
        """What the two numbers of the law are multiplied with."""
        return law_columns(self[0]) if len(self) == 2 else ring_columns(*self[:2])

    def misses(self, pair: Any = None) -> Array:
        """The relative errors of the law with these two numbers, or with the best ones."""
        numbers = relative(self.columns, self[-1]) if pair is None else np.array(pair, float)
        return np.asarray(self.columns @ numbers / self[-1] - 1)


def errors_too_large(case: Timed, pair: Any) -> str:
    """For every other fit of noisy times."""
    own, least = np.sum(case.misses(pair) ** 2), np.sum(case.misses() ** 2)
    reached = f"the sum of squared relative errors is {own:.3g}, and {least:.3g} can be reached."
    return f"{reached} What does your fit make as small as it can?"


def drawn_law(case: Timed, pair: Any, names: Sequence[str]) -> Callable[[], Picture] | None:
    """What the law makes of each measured time, the worst highlighted; nothing where no law comes nearer."""
    own = case.misses(pair)
    worst = int(np.argmax(np.abs(own)))

    def drawn() -> Picture:
        from distlab import draw  # here, since it needs matplotlib

        bars = dict(zip(names, (own + 1).tolist(), strict=True))
        label = "time by your law ÷ measured time (1 is right)"
        said = f"Time by your law ÷ measured time; farthest from 1 for {names[worst]}: {own[worst] + 1:.3g}."
        return picture(lambda: draw.bars(bars, label, "{:.3g}", names[worst]), said)

    return None if np.allclose(own, case.misses(), atol=0.01) else drawn


def fit_mistakes(program: Callable[..., Pair], letters: str, table: Mapping[str, Hint]) -> list[Mistake]:
    """Formulas, in which the right numbers have these letters; in noisy times also other fits."""

    def known(*case: Any) -> dict[str, Any]:
        return {"columns": Timed(EXACT, *case).columns} | dict(zip(letters, program(*case), strict=True))

    def fitted(wrong: Fit) -> Callable[..., Array]:
        return lambda *case: wrong(Timed(NOISY, *case).columns, case[-1])

    fits = [Mistake({NOISY: hint}, fitted(wrong)) for hint, wrong in WRONG_FITS.items()]
    return [*formulas(program, {"": table}, known), *fits]


# Amdahl's law --------------------------------------------------------------------------------------------------------


def amdahl(ranks: Array, seconds: Array) -> Pair:
    """The serial and the parallel seconds with the least relative errors."""
    serial, parallel = relative(law_columns(ranks), seconds)
    return float(serial), float(parallel)


def times(generator: Generator) -> list[Timed]:
    """Exact ones from one rank on and from two on, and noisy ones."""

    def law() -> Pair:
        parallel = float(generator.uniform(4, 30))
        return parallel * float(generator.uniform(0.08, 0.2)), parallel

    exact = [np.array([1, 2, 4, 8]), np.array([2, 3, 6, 12, 24])]
    cases = [Timed(EXACT, ranks, law_columns(ranks) @ np.array(law())) for ranks in exact]
    ranks = np.array([1, 2, 4, 8, 16])
    return cases + [Timed(NOISY, ranks, seconds) for seconds in noisy_times(generator, law_columns(ranks), law)]


def no_such_law(case: Timed, pair: Any) -> str:
    """For every other pair of exact times."""
    ranks, seconds, serial, parallel = *case, *pair
    first = "" if ranks[0] == 1 else "Right where the first time is that of one rank, and here it is not. "
    if min(pair) < 0:
        return f"{first}A part of {min(pair):.3g} s is not possible: no work takes less than 0 seconds."
    return (
        f"{first}With s = {serial:.4g} and w = {parallel:.4g} the law gives {serial + parallel / ranks[-1]:.4g} s on "
        f"{ranks[-1]} ranks, where {seconds[-1]:.4g} s were measured."
    )


LINE = "That is a line over the number of ranks p. In which function of p is the law a line?"
AMDAHL_FORMULAS = {
    "(w, s)": "The two numbers are right, in the other order.",
    "np.linalg.lstsq(columns / seconds[:, None], seconds)[0]": (
        "The rows of A are divided by the times, and b is not. Each equation has two sides: what is its right side "
        "then?"
    ),
    "(s / (s + w), w / (s + w))": "These are shares of one rank's time; seconds are asked for.",
    "(s / (s + w), s + w)": "The first is a share of one rank's time; seconds are asked for.",
    "np.polyfit(ranks, seconds, 1)": LINE,
    "np.polyfit(ranks, seconds, 1)[::-1]": LINE,
    "(np.mean(seconds - seconds[0] / ranks), seconds[0])": (
        "The parallel part is the whole time on the fewest ranks: the serial part is in that too."
    ),
    "(seconds[-1], seconds[0] - seconds[-1])": (
        "The serial part is the time on the most ranks: some of the divided work is left in that."
    ),
}


def law_in_words(serial: float, parallel: float) -> str:
    """What follows from the last measurements."""
    one = serial + parallel
    return (
        f"The last measurements, with {NOISE:.0%} of noise: serial share {serial / one:.0%}, so a speed-up of "
        f"{one / (serial + parallel / 64):.1f} on 64 ranks, and never more than {one / serial:.1f}."
    )


AMDAHL = ByPrograms(
    amdahl,
    times,
    said=lambda case: f"on {', '.join(map(str, case[0]))} ranks",
    parts=(EXACT, NOISY),
    split=lambda case, pair: {case.part: tuple(map(float, pair))},
    after={NOISY: [EXACT]},
    tolerance={EXACT: 1e-3, NOISY: 0.05},
    form=lambda case, pair: (
        None if are_two_numbers(pair) else "`amdahl` gives two numbers, the serial and the parallel seconds."
    ),
    otherwise={EXACT: no_such_law, NOISY: errors_too_large},
    praise=lambda cases: law_in_words(*amdahl(*cases[-1])),
    draw=lambda case, pair, every: drawn_law(
        case, pair, [f"{count} rank{'s' if count > 1 else ''}" for count in case[0]]
    ),
    mistakes=fit_mistakes(amdahl, "sw", AMDAHL_FORMULAS),
)

# α and β -------------------------------------------------------------------------------------------------------------

LATENCY, PER_BYTE = "latency", "seconds per byte"


def alpha_beta(ranks: int, sizes: Array, seconds: Array) -> Pair:
    """Seconds per message, and seconds per byte that a rank sends."""
    latency, seconds_per_byte = relative(ring_columns(ranks, sizes), seconds)
    return float(latency), float(seconds_per_byte)


def network(generator: Generator) -> Array:
    """α from 5 to 50 microseconds, β of 0.5 to 5 GB/s."""
    return 10.0 ** np.array([generator.uniform(-5.3, -4.3), generator.uniform(-9.7, -8.7)])


def reduced(generator: Generator) -> list[Timed]:
    """Exact on 8, on 2, and on 6 ranks that are connected by a telephone line; noisy on 8."""
    sizes, cases = 4 * 10 ** np.arange(2, 8), []
    for ranks, slow in ((8, 1), (2, 1), (6, 1e3)):
        cases.append(Timed(EXACT, ranks, sizes, ring_columns(ranks, sizes) @ (slow * network(generator))))
    noisy = noisy_times(generator, ring_columns(8, sizes), lambda: network(generator))
    return cases + [Timed(NOISY, 8, sizes, seconds) for seconds in noisy]


UNIT = "seconds are asked for, not another unit."
NETWORK_FORMULAS = {
    "(b, a)": "The two numbers are right, in the other order.",
    "(2 * (ranks - 1) * a, b)": "that is the time of a whole all-reduce of an empty array, which has many messages.",
    "(2 * a, 2 * b)": "the data goes round the ring twice: once to add, once to gather.",
    "(2 * (ranks - 1) * a / ranks, b)": "the number of steps is not the number of ranks.",
    "(1e3 * a, b)": UNIT,
    "(1e6 * a, 1e6 * b)": UNIT,
    "(a, 1e9 * b)": UNIT,
    "(a, 2 * (ranks - 1) / ranks * b)": (
        "that is per byte of the array; per byte that a rank sends is asked for, and it sends more."
    ),
    "(a, (ranks - 1) / ranks * b)": "a rank sends chunks, never the whole array.",
    "(a, b / ranks)": "in each step a rank sends one chunk, not the whole array.",
    "(a, 1 / b)": "that is the bandwidth, bytes per second.",
    "(a, b / 8)": "that is per bit. A byte has 8 of them.",
}

OF_MESSAGES = "that is not right. How many messages follow one another, and of what size is each?"
ALPHA_BETA = ByPrograms(
    alpha_beta,
    reduced,
    said=lambda case: f"on {case[0]} ranks",
    parts=(LATENCY, PER_BYTE, NOISY),
    split=lambda case, pair: (
        {NOISY: tuple(map(float, pair))} if case.part == NOISY else dict(zip((LATENCY, PER_BYTE), pair, strict=True))
    ),
    after={NOISY: [LATENCY, PER_BYTE]},
    weights={LATENCY: 1, PER_BYTE: 1, NOISY: 2},
    tolerance={LATENCY: 1e-3, PER_BYTE: 1e-3, NOISY: 0.05},
    form=lambda case, pair: (
        None if are_two_numbers(pair) else "`alpha_beta` gives two numbers, the latency and the seconds per byte."
    ),
    otherwise={LATENCY: OF_MESSAGES, PER_BYTE: OF_MESSAGES, NOISY: errors_too_large},
    draw=lambda case, pair, every: drawn_law(case, pair, [f"{size:,} bytes" for size in case[1]]),
    praise=lambda cases: f"The last measurements have a latency of {1e6 * alpha_beta(*cases[-1])[0]:.1f} µs.",
    mistakes=fit_mistakes(alpha_beta, "ab", NETWORK_FORMULAS),
)

# 64 ranks ------------------------------------------------------------------------------------------------------------

STRONG, WEAK = "strong scaling", "weak scaling"


class Measured(NamedTuple):
    """What is measured, and what is asked: the step's seconds on `ranks` ranks, `nbytes` of gradient.

    is_weak: every rank has the batch that was measured on one; else they divide it.
    """

    ranks: int
    is_weak: bool
    computing_ranks: Array
    computing_seconds: Array
    reducing_ranks: int
    sizes: Array
    reducing_seconds: Array
    nbytes: int


def predicted(*job: Any) -> float:
    """Seconds of a step that is `Measured`: computing by Amdahl's law, then a ring all-reduce of the gradient."""
    return float(known_of_step(*job)["step"])


def known_of_step(*case: Any, computing: Fit = relative, reducing: Fit = relative) -> dict[str, Any]:
    """What formulas may use, by these fits: p ranks, measured on q; s, w, a and b; `ring(ranks, bytes)`."""
    job = Measured(*case)
    serial, parallel = computing(law_columns(job.computing_ranks), job.computing_seconds)
    latency, seconds_per_byte = reducing(ring_columns(job.reducing_ranks, job.sizes), job.reducing_seconds)
    taken = serial + (parallel if job.is_weak else parallel / job.ranks)

    def all_reduce(ranks: int, nbytes: float, a: float = latency, b: float = seconds_per_byte) -> float:
        return ring(ranks, nbytes, a, b)

    names = {"s": serial, "w": parallel, "a": latency, "b": seconds_per_byte, "p": job.ranks, "q": job.reducing_ranks}
    step = taken + all_reduce(job.ranks, job.nbytes)
    return job._asdict() | names | {"computing": taken, "ring": all_reduce, "step": step}


def ring(ranks: int, nbytes: float, latency: float, seconds_per_byte: float) -> float:
    """Seconds of an all-reduce."""
    return 2 * (ranks - 1) * (latency + nbytes / ranks * seconds_per_byte)


def drawn_step(generator: Generator, ranks: int, reducing_ranks: int, scale: float = 1.0) -> Measured:
    """Without noise; all parts of the step count on `ranks` ranks. With a small `scale` the latencies count too."""
    computing_ranks, sizes = np.array([1, 2, 4, 8]), 4 * 10 ** np.arange(2, 8)
    while True:
        parallel = scale * float(generator.uniform(2, 6))
        serial = parallel * float(generator.uniform(0.02, 0.06))
        net, nbytes = network(generator), int(scale * generator.integers(10, 200) * 10**6)
        latencies = ring(ranks, 0, *net)
        parts = np.array([serial, parallel / ranks, ring(ranks, nbytes, *net) - latencies])
        if parts.min() > 0.15 * parts.sum() and latencies > 0.01 * parts.sum():
            break
    computing = law_columns(computing_ranks) @ np.array([serial, parallel])
    reducing = ring_columns(reducing_ranks, sizes) @ net
    return Measured(ranks, False, computing_ranks, computing, reducing_ranks, sizes, reducing, nbytes)


def with_fits(computing: Fit, reducing: Fit) -> Callable[..., float]:
    """The prediction by other fits."""
    return lambda *job: float(known_of_step(*job, computing=computing, reducing=reducing)["step"])


WRONG_PREDICTIONS = {
    f"{NOISE:.0%} of noise moves the computing's part far: see exercise 3.": with_fits(absolute, relative),
    f"{NOISE:.0%} of noise moves the all-reduce's part far: see exercise 4.": with_fits(relative, absolute),
    f"{NOISE:.0%} of noise in them moves the prediction far: see exercises 3 and 4.": with_fits(absolute, absolute),
}


def steps(generator: Generator) -> list[OfPart]:
    """Exact ones, with more computing and with more all-reduce; noisy ones, in one of which each wrong fit is off.

    Each exact one is asked for both kinds of scaling.
    """
    pairs = ((64, 8), (64, 4), (48, 8))

    def noisy(seconds: Array) -> Array:
        return seconds * (1 + NOISE * generator.uniform(-1, 1, len(seconds)))

    def draw() -> list[Measured]:
        small = drawn_step(generator, 64, 8, 0.01)
        computing, reducing = small.computing_seconds, small.reducing_seconds
        both = [(noisy(computing), noisy(reducing)) for _ in range(3)]
        return [small._replace(computing_seconds=first, reducing_seconds=second) for first, second in both]

    exact = drawn_until(
        lambda jobs: len({known_of_step(*job)["computing"] > predicted(*job) / 2 for job in jobs}) == 2,
        lambda: [drawn_step(generator, *ranks) for ranks in pairs],
    )
    noisy_ones = drawn_until(
        lambda jobs: all(
            max(abs(wrong(*job) / predicted(*job) - 1) for job in jobs) > CLEARLY_OFF
            for wrong in WRONG_PREDICTIONS.values()
        ),
        draw,
    )
    both = [OfPart(part, *job._replace(is_weak=part == WEAK)) for job in exact for part in (STRONG, WEAK)]
    return [*both, *(OfPart(NOISY, *job) for job in noisy_ones)]


STEP_FORMULAS = {
    "s + w / p + ring(p, nbytes)": {
        WEAK: "that is strong scaling. How many images does each rank have in weak scaling, and how long do they take?"
    },
    "s + (p * w if is_weak else w / p) + ring(p, nbytes)": {
        WEAK: "there is more work, and there are more ranks to do it: how much of it does each have?"
    },
    "computing if is_weak else right": {
        WEAK: "that is the ideal of weak scaling. What do the ranks do after computing, that one rank need not?"
    },
    "computing": "that is the computing alone: when are the gradients added up?",
    "ring(p, nbytes)": "that is the all-reduce alone.",
    "right - s": "the serial part is missing: more ranks do not shorten it.",
    "(s + w) / p + ring(p, nbytes)": {
        STRONG: "the serial part is divided too, and more ranks do not shorten it.",
        WEAK: "that divides all the computing. Which part of it does each rank have in weak scaling?",
    },
    "s + w + ring(p, nbytes)": {STRONG: "the computing is still that of one rank."},
    "right if is_weak else w + s / p + ring(p, nbytes)": {
        STRONG: "serial and parallel seconds are swapped. Which of them do more ranks shorten?"
    },
    "computing + ring(q, nbytes)": (
        "the all-reduce is still that of the ranks it was measured on. What grows with the number of ranks?"
    ),
    "computing + ring(q, nbytes) * p / q": "N times the ranks do not make an all-reduce N times as long.",
    "computing + ring(q, nbytes) * q / p": "more ranks do not shorten an all-reduce: how many bytes does each send?",
    "right / p": "all ranks work on the step at the same time; it is not divided again.",
    "computing + ring(p, nbytes) / p": "each rank sends nearly twice the gradient, and that is not divided.",
    "computing + ring(p, nbytes) / 2": "the gradient goes round the ring twice: once to add, once to gather.",
    "computing + ring(p, p * nbytes)": "in each step a rank sends one chunk, not the whole gradient.",
    "computing + ring(p, nbytes, b, a)": "latency and seconds per byte are swapped. Which of them is for each message?",
    "computing + a + nbytes * b": "an all-reduce is more than one message.",
    "max(computing, ring(p, nbytes))": "the task says that nothing overlaps: what follows what?",
    "computing + ring(p, nbytes, 0)": (
        "the bytes are counted, and no message has a latency. How many messages follow one another?"
    ),
    "computing + ring(p, 0)": "the messages have their latency, and no time for their bytes.",
    "1e3 * right": UNIT,
}


def on_64_ranks(before: float, after: float) -> str:
    """What the last case comes to."""
    efficiency = before / after / 64
    return f"A step of {1e3 * before:.1f} ms takes {1e3 * after:.1f} ms on 64 ranks: efficiency {efficiency:.0%}."


PREDICTED = ByPrograms(
    predicted,
    steps,
    said=lambda job: f"s on {job[0]} ranks, the all-reduce measured on {job[4]}",
    parts=(STRONG, WEAK, NOISY),
    split=lambda job, seconds: {job.part: number(seconds)},
    after={NOISY: [STRONG]},
    weights={STRONG: 1, WEAK: 1, NOISY: 2},
    tolerance={STRONG: 1e-3, WEAK: 1e-3, NOISY: 0.05},
    form=lambda job, seconds: (
        "`predicted` gives one number, the seconds of a step." if number(seconds) is None else None
    ),
    otherwise={
        **dict.fromkeys((STRONG, WEAK), "that is not right. Print what the computing and the all-reduce take."),
        NOISY: f"{NOISE:.0%} of noise in them moves the prediction far: see exercises 3 and 4.",
    },
    praise=lambda cases: on_64_ranks(cases[-1][3][0], predicted(*cases[-1])),
    mistakes=[
        *formulas(predicted, {"": STEP_FORMULAS}, known_of_step),
        *(Mistake({NOISY: hint}, program) for hint, program in WRONG_PREDICTIONS.items()),
    ],
)


def target(name: str) -> str:
    """One call of an exercise's function and what it must give."""
    if name == "audit":
        images, batch, gpus, seconds, seconds_on_one = PUBLISHED
        call = f"audit({images}, {batch}, {gpus}, {seconds:.4f}, {seconds_on_one:.4f})"
        return "\n".join([call, *(f"    {name:18}{value:>12,.6g}" for name, value in audit(*PUBLISHED).items())])
    if name == "amdahl":
        seconds = ", ".join(f"{value:g}" for value in law_columns([1, 2, 4, 8]) @ np.array([2.0, 12.0]))
        return f"amdahl([1, 2, 4, 8], [{seconds}]) = (2, 12)"
    if name == "alpha_beta":
        sizes = [400, 4_000_000]
        seconds = ", ".join(f"{value:.6g}" for value in ring_columns(8, sizes) @ np.array([2e-5, 1e-9]))
        return f"alpha_beta(8, {sizes}, [{seconds}]) = (2e-05, 1e-09)"
    job = drawn_step(np.random.default_rng(64), 64, 8)
    rows = [f"{name:20}{np.array2string(np.asarray(value), precision=5)}" for name, value in job._asdict().items()]
    weak = predicted(*job._replace(is_weak=True))
    return "\n".join([*rows, f"{'predicted(…)':20}{predicted(*job):.4f} seconds; with is_weak=True {weak:.4f}"])


LAB = Lab(
    "11_scaling_and_profiling",
    [
        Exercise("audit", 4, AUDIT),
        Exercise("corrected", 3, CORRECTED),
        Exercise("amdahl", 4, AMDAHL),
        Exercise("alpha_beta", 4, ALPHA_BETA),
        Exercise("predicted", 4, PREDICTED),
    ],
    solved_in=["distlab.costs"],
    target=target,
)

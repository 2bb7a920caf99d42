"""The judge of lab 10: a plan for more ranks, the warm-up step by step, the gradient noise scale.

Each exercise is its right program, the cases in which an answer is called, and the mistakes that are recognised.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from distlab.labs import Exercise, Lab
from distlab.labs.by_programs import ByPrograms, Follows, Hint, formulas
from distlab.labs.number_judge import is_near, number
from distlab.labs.verdict import Picture, picture

Array = NDArray[np.float64]
Numbers = dict[str, float]

# Batch and learning rate ---------------------------------------------------------------------------------------------

PER, WHOLE, STEPS, RATE = NUMBERS = ("per-replica batch", "global batch", "steps per epoch", "learning rate")


class Job(NamedTuple):
    """A training before it begins; `fits` is for the memory of one device, `worthwhile` for all ranks together."""

    images: int
    hosts: int
    ranks_per_host: int
    known_batch: int
    known_rate: float
    fits: int
    worthwhile: int

    @property
    def ranks(self) -> int:
        """On all hosts together."""
        return self.hosts * self.ranks_per_host


JOB = Job(60_000, 2, 4, known_batch=100, known_rate=0.01, fits=256, worthwhile=1500)


def plan(
    images: int, hosts: int, ranks_per_host: int, known_batch: int, known_rate: float, fits: int, worthwhile: int
) -> Numbers:
    """The four numbers of the largest batch that fits and is worthwhile, by the linear rule."""
    ranks = hosts * ranks_per_host
    per_replica = min(fits, worthwhile // ranks)
    whole = ranks * per_replica
    return {PER: per_replica, WHOLE: whole, STEPS: images // whole, RATE: known_rate * whole / known_batch}


def jobs(generator: Generator) -> list[Job]:
    """Worthwhile is the limit, then memory, then worthwhile on one host; nothing divides evenly."""
    drawn = [JOB]
    for hosts, is_memory in ((2, False), (3, True), (1, False)):
        local = int(generator.integers(3, 6)) * 2
        ranks, per_replica = hosts * local, int(generator.integers(70, 140))
        rest = int(generator.integers(1, ranks))
        fits = per_replica if is_memory else per_replica + int(generator.integers(20, 60))
        worthwhile = ranks * (per_replica + 7 * is_memory) + rest
        images = ranks * per_replica * int(generator.integers(15, 30)) + int(generator.integers(70, 600))
        drawn.append(Job(images, hosts, local, int(generator.integers(20, 60)), 0.02, fits, worthwhile))
    return drawn


def known_of_plan(*case: Any) -> dict[str, Any]:
    """What formulas may use; `with_ranks(n)` is the plan of whoever counts n ranks."""
    job = Job(*case)
    return {"ranks": job.ranks, "with_ranks": lambda ranks: plan(*job._replace(hosts=ranks, ranks_per_host=1))}


PLAN_FORMULAS = {
    PER: {
        "fits": "it fits, but the global batch would be {fits * ranks}. Is that worthwhile?",
        "worthwhile": "that is the limit of the global batch, for all ranks together.",
        "worthwhile // ranks_per_host": "that is divided only among the ranks of one host.",
        "worthwhile // ranks": "that is worthwhile, but does it fit into the memory of one device?",
        "worthwhile / ranks": "images cannot be cut: which whole number is not above the limit?",
        "min(fits, worthwhile / ranks)": "images cannot be cut: which whole number is not above the limit?",
        "-(-worthwhile // ranks)": "that is rounded up, so that all ranks together are above the limit.",
        "fits // ranks": "the memory is that of one device, and nobody shares it.",
        "min(fits // ranks_per_host, worthwhile // ranks)": "the memory is that of one device, and nobody shares it.",
        "2 ** int(math.log2(per_replica_batch))": "the largest batch is asked for, and it need not be a power of two.",
        "known_batch": "the batch of one device is kept. How large may it be?",
        "known_batch // ranks": "that divides the old batch: a larger batch is asked for.",
    },
    WHOLE: {
        "per_replica_batch": "that is what one rank gets. How many images does one update see?",
        "per_replica_batch * ranks_per_host": "that is what one host gets, the local size instead of the world size.",
        "worthwhile": "the ranks cannot share this number evenly.",
        "fits * ranks": "that is larger than what is worthwhile.",
        "per_replica_batch * hosts": "each host has several ranks.",
    },
    STEPS: {
        "-(-images // global_batch)": "what does not fill a global batch is dropped here.",
        "steps_per_epoch - 1": "that is one step too few. What is dropped is less than a global batch.",
        "images / global_batch": "a step cannot be made in part. Which whole number is it?",
        "images // per_replica_batch": "every rank would see every image, so this epoch is really several epochs.",
        "images // (per_replica_batch * ranks_per_host)": (
            "the images are divided among all ranks, not among those of one host."
        ),
        "images // known_batch": "these are the steps of the training on one device.",
        "steps_per_epoch // ranks": "every rank takes part in every step; the ranks do not divide the steps.",
    },
    RATE: {
        "known_rate * ranks": (
            "that is the known rate times the ranks: right only if each rank has the known batch. What does it have?"
        ),
        "known_rate * ranks_per_host": (
            "that is the known rate times the local size. What do the other hosts do to the batch?"
        ),
        "known_rate": "that is the rate of the small batch. There are fewer steps now, each the mean of more images.",
        "known_rate * math.sqrt(global_batch / known_batch)": "that is the square-root rule.",
        "known_rate * (global_batch // known_batch)": "the ratio of the two batches need not be a whole number.",
        "known_rate * worthwhile / known_batch": "that is for the limit. How large is the global batch that you use?",
        "known_rate * per_replica_batch / known_batch": "the ratio of the global batches is asked for.",
        "known_rate * per_replica_batch * ranks_per_host / known_batch": (
            "the global batch is that of all hosts, not of one."
        ),
        "known_rate * known_batch / global_batch": (
            "the ratio is inverted: with fewer steps, is each longer or shorter?"
        ),
        "known_rate * global_batch": "divide by the batch that the known rate is for.",
    },
    "": {
        "with_ranks(ranks_per_host)": "all numbers are those of one host alone. How many ranks are there on all hosts?",
        "with_ranks(hosts)": "all numbers are for one rank on each host. How many ranks does a host have?",
        "with_ranks(hosts + ranks_per_host)": (
            "hosts and ranks per host are added. How many ranks do 2 hosts with 4 ranks each have?"
        ),
    },
}
PLAN = ByPrograms(
    plan,
    jobs,
    said=lambda job: (
        f"for {job.images:,} images, {job.hosts} hosts with {job.ranks_per_host} ranks, {job.known_rate:g} for a "
        f"batch of {job.known_batch}, {job.fits} fit, {job.worthwhile} worthwhile"
    ),
    parts=NUMBERS,
    otherwise="that is not right. Write the four numbers of the example in order; each follows from the one before it.",
    follows=[
        Follows(WHOLE, PER, lambda job, own: own[PER] * job.ranks),
        Follows(STEPS, WHOLE, lambda job, own: job.images // own[WHOLE]),
        Follows(RATE, WHOLE, lambda job, own: job.known_rate * own[WHOLE] / job.known_batch),
    ],
    mistakes=formulas(plan, PLAN_FORMULAS, known_of_plan),
)

# Gradual warm-up -----------------------------------------------------------------------------------------------------

FIRST, RISING, RISING_ON, FULL = "step 0", "the rest of epoch 0", "the epochs after it", "the full rate"


class WarmUp(NamedTuple):
    """One call: the step comes first."""

    step: int
    steps_per_epoch: int
    epochs: int
    first: float
    full: float


SCHEDULE = WarmUp(0, 4, 3, 0.01, 0.08)


def warm_up(step: int, steps_per_epoch: int, warm_up_epochs: int, first_rate: float, full_rate: float) -> float:
    """The learning rate of a step, counted from 0 (Goyal et al., arXiv:1706.02677, section 2.2)."""
    steps = warm_up_epochs * steps_per_epoch
    if step >= steps:
        return full_rate
    return first_rate + (full_rate - first_rate) * step / steps


def all_steps(generator: Generator) -> list[WarmUp]:
    """Every step of two schedules, and of one without warm-up."""
    first = float(generator.uniform(0.005, 0.03))
    drawn = WarmUp(0, int(generator.integers(5, 12)), int(generator.integers(2, 5)), first, 8 * first)
    cases = []
    for schedule in (SCHEDULE, drawn):
        end = schedule.steps_per_epoch * schedule.epochs
        cases += [schedule._replace(step=step) for step in (*range(end + 3), 3 * end)]
    return cases + [drawn._replace(step=step, epochs=0) for step in (0, 1, 40)]


def part_of_step(case: WarmUp) -> str:
    """What the step is for."""
    if case.step >= case.steps_per_epoch * case.epochs:
        return FULL
    if case.step >= case.steps_per_epoch:
        return RISING_ON
    return RISING if case.step else FIRST


def step_in_words(case: WarmUp) -> str:
    """Where the rate is asked for."""
    step, count, epochs, first, full = case
    return f"in step {step} of {epochs} epochs with {count} steps, from {first:.4g} to {full:.4g}"


def known_of_step(k: int, n: int, epochs: int, first: float, full: float) -> dict[str, Any]:
    """What formulas may use: step `k`, `n` in an epoch, `e` epochs; `way` is the part of it that is done.

    Without a warm-up `up_to(rate)` and `rising(part of the way)` are the full rate.
    """
    e = max(epochs, 1)
    way = min(k / (n * e), 1)

    def up_to(rate: float) -> float:
        return rate if epochs else full

    def rising(part: float) -> float:
        return up_to(first + (full - first) * min(part, 1))

    return {**locals(), "warm_up": warm_up}


def not_on_the_line(case: WarmUp, rate: Any) -> str:
    """For every other rate."""
    if part_of_step(case) == FULL and rate > case.full:
        return "the rate continues to rise above the full rate."
    return "that is not on the line. Draw the rate over the steps: where does the line begin, where does it end?"


def drawn_rates(case: WarmUp, rate: float, every: Sequence[tuple[WarmUp, float]]) -> Picture:
    """The rates of a whole schedule, beside the line, with a mark at the first wrong one."""
    import matplotlib.pyplot as plt  # here, since it takes a second

    rates = {at.step: (own, warm_up(*at)) for at, own in every if at[1:] == case[1:]}

    def draw() -> Any:
        figure, axes = plt.subplots()
        axes.plot(list(rates), list(rates.values()), label=("yours", "asked for"))
        axes.set(xlabel="step", ylabel="learning rate")
        axes.legend()
        return figure

    wrong = None if is_near(rate, warm_up(*case)) else (case.step, rate)
    where = f"wrong first in step {case.step}" if wrong else "on the line"
    return picture(draw, f"The learning rate in {len(rates)} steps by your function: {where}.", wrong)


RISES = (RISING, RISING_ON)
ALREADY = dict.fromkeys(RISES, "that is the full rate already.")
BY_FULL = dict.fromkeys(RISES, "it rises by the full rate, and it has the first one already.")
FLAT = "in this epoch the rate does not rise. It must rise in every step."
BY_EPOCH = "the rate changes once per epoch, in jumps. It must rise in every step."
AGAIN = "the rate begins again at the first one in each epoch. Steps are counted over all epochs."
FROM_ZERO = dict.fromkeys(RISES, "this line begins at 0. From which rate does the warm-up start?")
AHEAD = dict.fromkeys(RISES, "the rate is one increment ahead in every step.")

WARM_UP_FORMULAS: dict[str, Hint] = {
    "warm_up(k, n, epochs, full, first)": "it falls. Which of the two rates comes first?",
    "full": {FIRST: "that is the full rate at once."} | ALREADY,
    "rising(k // (n * e))": {RISING: FLAT, RISING_ON: "that is a constant warm-up: the small rate, until it jumps."},
    "rising(k // n / e)": {RISING: FLAT, RISING_ON: BY_EPOCH},
    "rising((k // n + 1) / e)": BY_EPOCH,
    "first + (full - first) * min(k / (n * epochs), 1)": {
        FULL: "with 0 epochs of warm-up `warm_up` raises ZeroDivisionError."
    },
    "first if 0 < n * epochs <= k else right": {FULL: "the warm-up is over, and the rate falls back."},
    "rising(k % n / n)": AGAIN,
    "rising(k % n / (n * e))": AGAIN,
    "rising(k / e)": "the warm-up is given in epochs, but the step is not.",
    "rising(k / n)": "the warm-up takes one epoch here, not all of its epochs.",
    "up_to(full * way)": {FIRST: "nothing would be learned in this step. From which rate does the warm-up start?"}
    | FROM_ZERO,
    "up_to(full * min((k + 1) / (n * e), 1))": {
        FIRST: "that is one increment from 0. From which rate does the warm-up start?"
    }
    | FROM_ZERO,
    "rising((k + 1) / (n * e))": {FIRST: "that is one increment too early. How many increments come before step 0?"}
    | AHEAD,
    "rising(k / (n * e - 1))": "these increments are too large: how many lie between step 0 and the end?",
    "up_to(first * (full / first) ** way)": "the rate grows by equal factors; equal amounts are asked for.",
    "up_to(first + full * way)": {FULL: "the first rate is added to the full one."} | BY_FULL,
    "warm_up(k - (0 < k == n * epochs), n, epochs, first, full)": {FULL: "one increment is still missing."},
}
WARM_UP = ByPrograms(
    warm_up,
    all_steps,
    said=step_in_words,
    parts=(FIRST, RISING, RISING_ON, FULL),
    split=lambda case, rate: {part_of_step(case): rate},
    tolerance=1e-9,
    form=lambda case, rate: (
        None
        if number(rate) is not None
        else f"`warm_up` must return one number for each step, and does not for step {case.step}."
    ),
    otherwise=not_on_the_line,
    draw=lambda case, rate, every: partial(drawn_rates, case, rate, every),
    mistakes=formulas(warm_up, {"": WARM_UP_FORMULAS}, known_of_step),
)

# The gradient noise scale --------------------------------------------------------------------------------------------

SQUARED, VARIANCE, SCALE = ESTIMATES = ("squared gradient", "variance", "noise scale")


class Gradients(NamedTuple):
    """Shape (steps, ranks, parameters), and the images behind each."""

    gradients: Array
    batch: int


GRADIENTS = Gradients(np.array([[[4.0, 1.0, 1.0], [2.0, -1.0, 1.0]], [[0.0, 3.0, 3.0], [2.0, 1.0, 3.0]]]), 8)
"""Two steps, two ranks, three parameters; a batch of 8 on each rank."""


def squares(gradients: Array) -> tuple[float, float]:
    """The mean of |g|² over ranks and steps, and that of the mean over the ranks."""
    return float(np.mean(np.sum(gradients**2, axis=2))), float(np.mean(np.sum(gradients.mean(axis=1) ** 2, axis=1)))


def estimates(small: float, large: float, batch: float, whole: float) -> Numbers:
    """|G|², tr Σ and their ratio from the mean squares of gradients over `batch` and over `whole` images."""
    squared = (whole * large - batch * small) / (whole - batch)
    variance = (small - large) / (1 / batch - 1 / whole)
    return {SQUARED: squared, VARIANCE: variance, SCALE: variance / squared if squared > 0 else math.inf}


def noise_scale(gradients: Array, batch: int) -> Numbers:
    """The estimates of McCandlish et al. (2018), appendix A.1."""
    return estimates(*squares(gradients), batch, batch * gradients.shape[1])


def drawn_gradients(generator: Generator) -> tuple[Array, int]:
    """Gradients and the batch of a rank; the true gradient turns from step to step."""
    steps, ranks, parameters = (int(generator.integers(*range_)) for range_ in ((5, 8), (3, 7), (40, 80)))
    batch = int(generator.integers(10, 40))
    true = generator.normal(size=(steps, 1, parameters))
    true *= generator.uniform(1, 2) / np.linalg.norm(true, axis=2, keepdims=True)
    scale = float(generator.uniform(0.4, 0.8)) * ranks * batch
    noise = generator.normal(size=(steps, ranks, parameters))
    return true + noise * np.sqrt(scale * float(np.sum(true[0] ** 2)) / parameters / batch), batch


def all_gradients(generator: Generator) -> list[Gradients]:
    """By hand, drawn, and two whose estimates are just above and just below 0."""
    first, (more, batch) = drawn_gradients(generator), drawn_gradients(generator)
    noise_alone = more - more.mean(axis=1, keepdims=True)
    return [GRADIENTS, Gradients(*first), Gradients(0.05 * more, batch), Gradients(0.05 * noise_alone, batch)]


def gradients_in_words(case: Gradients) -> str:
    """Their shape."""
    steps, ranks, parameters = case.gradients.shape
    return f"for {steps} steps, {ranks} ranks, {parameters} parameters, batches of {case.batch}"


def steps_first(gradients: Array, batch: int) -> Numbers:
    """The estimates of whoever averages the gradients over the steps before anything is squared."""
    return noise_scale(gradients.mean(axis=0, keepdims=True), batch)


def of_sums(gradients: Array, batch: int) -> Numbers:
    """The estimates of whoever adds up the ranks' gradients."""
    small, large = squares(gradients)
    ranks = gradients.shape[1]
    return estimates(small, ranks**2 * large, batch, batch * ranks)


def known_of_gradients(gradients: Array, batch: int) -> dict[str, Any]:
    """What formulas may use."""
    small, large = squares(gradients)
    summed, first = of_sums(gradients, batch), steps_first(gradients, batch)
    ratios = [noise_scale(step[None], batch)[SCALE] for step in gradients]
    ranks, parameters = gradients.shape[1:]
    norms = [np.linalg.norm(each, axis=-1).mean() for each in (gradients, gradients.mean(axis=1))]
    of_first, whole = noise_scale(gradients[:1], batch), batch * ranks
    return {**locals(), "estimates": estimates}


NOISY = "the mean over the ranks is taken for the true gradient, but it is noisy itself."
SUMMED = "the ranks' gradients are added up, and the large batch's gradient is their mean."
STEPS_FIRST = "the gradients of all steps are averaged first, but the true gradient changes from step to step."
FOR_A_RANK = "the global batch is taken for that of a rank."
NORM = "a squared norm is asked for, not a norm."
BEHIND = "how many images are behind the mean of all ranks' gradients?"
ONE_MEAN = "one of the two squares is a mean over the parameters. A squared norm is their sum."

NOISE_FORMULAS = {
    SQUARED: {
        "max(squared_gradient, 0.0)": (
            "the estimate is not cut off at 0: a negative one says that the noise hides the gradient, and the noise "
            "scale looks at it."
        ),
        "large": NOISY,
        "small": "that is what one rank has, noise and all.",
        "summed['squared gradient']": SUMMED,
        "first['squared gradient']": STEPS_FIRST,
        "math.sqrt(max(squared_gradient, 0))": NORM,
        "squared_gradient / parameters": "a squared norm is a sum over the parameters, not a mean.",
        "(ranks * small - large) / (ranks - 1)": "the two squares have changed places: which is of the larger batch?",
    },
    VARIANCE: {
        "small - large": (
            "that is the difference of the two squares. By how much does the variance of a mean differ for the two "
            "batches?"
        ),
        "(small - large) * (ranks - 1) * batch": "the difference of the batches multiplies. What divides a variance?",
        "variance / batch": "that is the variance of a rank's gradient. How does a single image's differ from it?",
        "variance * ranks": FOR_A_RANK,
        "variance * (ranks - 1) / ranks": NOISY,
        "batch * small": "the square of the gradient itself is counted as noise.",
        "variance / parameters": "a trace is a sum over the parameters, not a mean.",
        "-variance": "a variance is not negative: which of the two squares is larger?",
        "first['variance']": STEPS_FIRST,
        "summed['variance']": SUMMED,
    },
    SCALE: {
        "variance / squared_gradient": (
            "the estimate of |G|² is not above 0: the noise hides the gradient. How large a batch would be needed?"
        ),
        "1 / noise_scale": "the ratio is inverted: divide the noise by the gradient.",
        "float(np.mean(ratios))": (
            "that is the mean of the steps' ratios, where one small denominator decides. Average first."
        ),
        "float(np.median(ratios))": "that is the median of the steps' ratios; the ratio of the averages is asked for.",
        "variance / large": NOISY,
        "noise_scale / batch": "that is in batches of a rank; images are asked for.",
        "noise_scale / batch / ranks": "that is in global batches; images are asked for.",
        "noise_scale * ranks": FOR_A_RANK,
        "first['noise scale']": STEPS_FIRST,
        "math.sqrt(noise_scale)": "no root is needed: both numbers are squares.",
    },
    "": {
        "first": STEPS_FIRST,
        "summed": SUMMED,
        "of_first": "only the first step is used. Average the squares over all steps.",
        "estimates(small, np.mean(np.sum(gradients.mean(axis=0) ** 2, axis=1)), batch, whole)": (
            "that is a mean over the steps. The large batch's gradient is the mean over the ranks."
        ),
        "estimates(small / parameters, large, batch, whole)": ONE_MEAN,
        "estimates(small, large / parameters, batch, whole)": ONE_MEAN,
        "estimates(*norms, batch, whole)": NORM,
        "estimates(small, large, batch, ranks)": BEHIND,
        "estimates(small, large, batch, 2 * batch)": BEHIND,
        "estimates(small, large, batch, len(gradients) * whole)": (
            "the images of all steps are counted. How many are behind the gradient of one step?"
        ),
    },
}
NOISE_SCALE = ByPrograms(
    noise_scale,
    all_gradients,
    said=gradients_in_words,
    parts=ESTIMATES,
    otherwise="that is not right. Try the example by hand.",
    praise=lambda cases: (
        f"In the second case a batch of {noise_scale(*cases[1])[SCALE]:.0f} images has as much noise as gradient."
    ),
    mistakes=formulas(noise_scale, NOISE_FORMULAS, known_of_gradients),
)

# The lab -------------------------------------------------------------------------------------------------------------


def target(name: str) -> str:
    """One call of an exercise's function and what it must give."""
    if name == "warm_up":
        lines = [
            f"{SCHEDULE.epochs} epochs of {SCHEDULE.steps_per_epoch} steps, from {SCHEDULE.first} to {SCHEDULE.full}"
        ]
        steps = [SCHEDULE._replace(step=step) for step in range(14)]
        return "\n".join(lines + [f"    step {case.step}: {warm_up(*case):.5f}" for case in steps])
    if name == "plan":
        call = "plan({}, hosts={}, ranks_per_host={}, known_batch={}, known_rate={}, fits={}, worthwhile={})"
        lines, numbers = [call.format(*JOB)], plan(*JOB)
    else:
        lines = [f"noise_scale(np.array({GRADIENTS.gradients.tolist()}), {GRADIENTS.batch})"]
        numbers = noise_scale(*GRADIENTS)
    width = 8 if name == "plan" else 6
    return "\n".join(lines + [f"    {number:18}{value:>{width}g}" for number, value in numbers.items()])


LAB = Lab(
    "10_large_batch_and_warmup",
    [Exercise("plan", 4, PLAN), Exercise("warm_up", 4, WARM_UP), Exercise("noise_scale", 6, NOISE_SCALE)],
    solved_in=["distlab.large_batch"],
    target=target,
)

"""Answers to lab 10 as students give them."""

import math

import numpy as np
from lab_10 import plan as large_batch_plan
from lab_10.hints import Lab10Hint
from lab_10.noise_scale import noise_scale as true_noise_scale
from lab_10.warm_up import warm_up as true_warm_up

from distlab.labs.number_judge import NumberHint
from tests.distlab.labs.known_wrong import LabAnswers

ANSWERS = LabAnswers()
wrong, right = ANSWERS.wrong, ANSWERS.right
TrainingJob = large_batch_plan.TrainingJob


# Batch and learning rate


def but_for(**formulas):
    """The right numbers but for some, which are computed from the job and the right numbers."""

    def plan(*job):
        numbers = large_batch_plan.plan(*job)
        per, whole, steps, _ = numbers.values()
        changed = {name: formula(TrainingJob(*job), per, whole, steps) for name, formula in formulas.items()}
        names = {"per_replica": "per-replica batch", "whole": "global batch", "steps": "steps per epoch"}
        return numbers | {names.get(name, "learning rate"): value for name, value in changed.items()}

    return plan


for title, plan, hint in (
    ("what_fits", but_for(per_replica=lambda j, b, n, s: j.fits), Lab10Hint.ALL_THAT_FITS),
    ("the_limit_for_each", but_for(per_replica=lambda j, b, n, s: j.worthwhile), Lab10Hint.LIMIT_OF_ALL),
    (
        "divides_by_the_local_size",
        but_for(per_replica=lambda j, b, n, s: j.worthwhile // j.ranks_per_host),
        Lab10Hint.DIVIDED_BY_LOCAL_SIZE,
    ),
    (
        "forgets_the_memory",
        but_for(per_replica=lambda j, b, n, s: j.worthwhile // j.ranks),
        Lab10Hint.TOO_LARGE_FOR_MEMORY,
    ),
    ("parts_of_images", but_for(per_replica=lambda j, b, n, s: j.worthwhile / j.ranks), Lab10Hint.PARTS_OF_IMAGES),
    ("one_ranks_batch", but_for(whole=lambda j, b, n, s: b), Lab10Hint.BATCH_OF_ONE_RANK),
    ("one_hosts_batch", but_for(whole=lambda j, b, n, s: b * j.ranks_per_host), Lab10Hint.BATCH_OF_ONE_HOST),
    ("the_limit_itself", but_for(whole=lambda j, b, n, s: j.worthwhile), Lab10Hint.LIMIT_ITSELF),
    ("rounds_up", but_for(steps=lambda j, b, n, s: -(-j.images // n)), Lab10Hint.STEPS_ROUNDED_UP),
    ("each_rank_sees_all", but_for(steps=lambda j, b, n, s: j.images // b), Lab10Hint.EACH_RANK_SEES_ALL),
    ("steps_shared_out", but_for(steps=lambda j, b, n, s: s // j.ranks), Lab10Hint.STEPS_DIVIDED),
    ("times_the_ranks", but_for(rate=lambda j, b, n, s: j.known_rate * j.ranks), Lab10Hint.TIMES_RANKS),
    (
        "times_the_local_size",
        but_for(rate=lambda j, b, n, s: j.known_rate * j.ranks_per_host),
        Lab10Hint.TIMES_LOCAL_SIZE,
    ),
    ("the_old_rate", but_for(rate=lambda j, b, n, s: j.known_rate), Lab10Hint.KNOWN_RATE_KEPT),
    (
        "square_root",
        but_for(rate=lambda j, b, n, s: j.known_rate * math.sqrt(n / j.known_batch)),
        Lab10Hint.SQUARE_ROOT_RULE,
    ),
    ("turned_round", but_for(rate=lambda j, b, n, s: j.known_rate * j.known_batch / n), Lab10Hint.RATE_INVERTED),
):
    ANSWERS.wrong_value("plan", title, plan, hint, share=0.75)


@wrong("plan", Lab10Hint.FORGOTTEN_HOSTS)
def forgets_the_hosts(images, hosts, ranks_per_host, known_batch, known_rate, fits, worthwhile):
    return large_batch_plan.plan(images, 1, ranks_per_host, known_batch, known_rate, fits, worthwhile)


@wrong(
    "plan",
    Lab10Hint.ALL_THAT_FITS,
    NumberHint.FOLLOWS,
    NumberHint.FOLLOWS,
    NumberHint.FOLLOWS,
    "steps per epoch, learning rate: wrong: it follows from the wrong global batch",
)
def goes_on_from_a_wrong_batch(images, hosts, ranks_per_host, known_batch, known_rate, fits, worthwhile):
    whole = fits * hosts * ranks_per_host
    values = fits, whole, images // whole, known_rate * whole / known_batch
    return dict(zip(large_batch_plan.NUMBERS, values, strict=True))


@wrong("plan", NumberHint.NAMES)
def a_tuple(*job):
    return tuple(large_batch_plan.plan(*job).values())


@right("plan")
def by_trying(images, hosts, ranks_per_host, known_batch, known_rate, fits, worthwhile):
    ranks = len([(host, rank) for host in range(hosts) for rank in range(ranks_per_host)])
    per_replica = max(batch for batch in range(1, fits + 1) if batch * ranks <= worthwhile)
    steps = 0
    while (steps + 1) * ranks * per_replica <= images:
        steps += 1
    values = (ranks * per_replica / known_batch) * known_rate, steps, per_replica * ranks, np.int64(per_replica)
    return dict(zip(large_batch_plan.NUMBERS[::-1], values, strict=True))


# Warm-up


def clipped(rise):
    """A schedule that begins with the first rate; `rise` gives the part of the way."""

    def warm_up(step, count, epochs, first, full):
        if epochs == 0:
            return full
        return first + (full - first) * min(rise(step, count, epochs), 1)

    return warm_up


for title, schedule, hints, share in (
    (
        "by_epoch",
        clipped(lambda k, n, e: k // n / e),
        (Lab10Hint.FLAT_EPOCH, Lab10Hint.BY_EPOCH),
        0.5,
    ),
    (
        "constant",
        clipped(lambda k, n, e: float(k >= n * e)),
        (Lab10Hint.FLAT_EPOCH, Lab10Hint.CONSTANT),
        0.5,
    ),
    (
        "last_step_early",
        clipped(lambda k, n, e: k / (n * e - 1)),
        (Lab10Hint.INCREMENTS_TOO_LARGE, Lab10Hint.INCREMENTS_TOO_LARGE),
        0.5,
    ),
    (
        "one_ahead",
        clipped(lambda k, n, e: (k + 1) / (n * e)),
        (Lab10Hint.INCREMENT_TOO_EARLY, Lab10Hint.INCREMENT_AHEAD, Lab10Hint.INCREMENT_AHEAD),
        0.25,
    ),
    (
        "epochs_for_steps",
        clipped(lambda k, n, e: k / e),
        (Lab10Hint.STEPS_FOR_EPOCHS, Lab10Hint.FULL_ALREADY),
        0.5,
    ),
    (
        "one_epoch",
        clipped(lambda k, n, e: k / n),
        (Lab10Hint.ONE_EPOCH, Lab10Hint.FULL_ALREADY),
        0.5,
    ),
):
    ANSWERS.wrong_value("warm_up", title, schedule, *hints, share=share)


@wrong("warm_up", Lab10Hint.STARTS_AT_ZERO, Lab10Hint.LINE_FROM_ZERO, Lab10Hint.LINE_FROM_ZERO, share=0.25)
def from_nothing(step, count, epochs, first, full):
    return full * min(step / (count * epochs), 1) if epochs else full


@wrong("warm_up", Lab10Hint.ABOVE_FULL_RATE, share=0.75)
def without_end(step, count, epochs, first, full):
    return first + (full - first) * step / (count * epochs) if epochs else full


@wrong("warm_up", Lab10Hint.FALLS_BACK, share=0.75)
def falls_back(step, count, epochs, first, full):
    if not epochs:
        return full
    return true_warm_up(step, count, epochs, first, full) if step < count * epochs else first


@wrong("warm_up", Lab10Hint.RAISES_WITHOUT_WARM_UP, "ZeroDivisionError", share=0.75)
def needs_a_warm_up(step, count, epochs, first, full):
    return first + (full - first) * min(step / (count * epochs), 1)


@wrong("warm_up", Lab10Hint.INCREMENT_MISSING, share=0.75)
def one_step_late(step, count, epochs, first, full):
    if not epochs:
        return full
    end = count * epochs
    return full if step > end else first + (full - first) * min(step, end - 1) / end


@wrong("warm_up", Lab10Hint.EQUAL_FACTORS, Lab10Hint.EQUAL_FACTORS, share=0.5)
def by_factors(step, count, epochs, first, full):
    return first * (full / first) ** min(step / (count * epochs), 1) if epochs else full


@wrong("warm_up", Lab10Hint.FULL_AT_ONCE, Lab10Hint.FULL_ALREADY, Lab10Hint.FULL_ALREADY, share=0.25)
def without_warm_up(step, count, epochs, first, full):
    return full


@right("warm_up")
def by_adding(step, count, epochs, first, full):
    rate = first
    for _ in range(min(step, count * epochs)):
        rate += (full - first) / (count * epochs)
    return rate if epochs else full


@right("warm_up")
def by_interpolation(step, count, epochs, first, full):
    return np.interp(step, [0, count * epochs], [first, full]) if epochs else np.float64(full)


# The noise scale


def noisy_but_for(**formulas):
    """The right estimates but for some, computed from |g|² of ranks, |g|² of the mean, batch and ranks."""

    def noise_scale(gradients, batch):
        numbers = true_noise_scale(gradients, batch)
        small = np.mean(np.sum(gradients**2, axis=2))
        big = np.mean(np.sum(gradients.mean(axis=1) ** 2, axis=1))
        ranks = gradients.shape[1]
        new = {
            name.replace("_", " "): formula(small, big, batch, ranks, gradients) for name, formula in formulas.items()
        }
        return numbers | {name: value for name, value in new.items() if np.isfinite(numbers[name])}

    return noise_scale


def by_steps(gradients, batch, combine):
    return combine([true_noise_scale(of_step[None], batch)["noise scale"] for of_step in gradients])


for title, noise_scale, hint in (
    ("biased", noisy_but_for(squared_gradient=lambda s, g, b, r, x: g), Lab10Hint.GRADIENT_IS_NOISY),
    ("one_ranks_square", noisy_but_for(squared_gradient=lambda s, g, b, r, x: s), Lab10Hint.SQUARE_OF_ONE_RANK),
    (
        "a_sum_of_gradients",
        noisy_but_for(squared_gradient=lambda s, g, b, r, x: (r * r * r * g - s) / (r - 1)),
        Lab10Hint.GRADIENTS_SUMMED,
    ),
    (
        "squares_exchanged",
        noisy_but_for(squared_gradient=lambda s, g, b, r, x: (r * s - g) / (r - 1)),
        Lab10Hint.SQUARES_EXCHANGED,
    ),
    (
        "steps_first",
        noisy_but_for(squared_gradient=lambda s, g, b, r, x: true_noise_scale(x.mean(0)[None], b)["squared gradient"]),
        Lab10Hint.STEPS_AVERAGED_FIRST,
    ),
    (
        "variance_of_a_ranks_gradient",
        noisy_but_for(variance=lambda s, g, b, r, x: (s - g) / (1 - 1 / r)),
        Lab10Hint.VARIANCE_OF_A_RANK,
    ),
    (
        "global_batch_for_the_ranks",
        noisy_but_for(variance=lambda s, g, b, r, x: (s - g) / (1 / (r * b) - 1 / (r * r * b))),
        Lab10Hint.GLOBAL_BATCH_FOR_RANK,
    ),
    (
        "divides_by_all_ranks",
        noisy_but_for(variance=lambda s, g, b, r, x: b * np.var(x, axis=1).sum(1).mean()),
        Lab10Hint.GRADIENT_IS_NOISY,
    ),
    (
        "mean_over_parameters",
        noisy_but_for(variance=lambda s, g, b, r, x: b * np.var(x, axis=1, ddof=1).mean()),
        Lab10Hint.TRACE_AVERAGED,
    ),
    (
        "turned_round",
        noisy_but_for(noise_scale=lambda s, g, b, r, x: 1 / true_noise_scale(x, b)["noise scale"]),
        Lab10Hint.SCALE_INVERTED,
    ),
    (
        "mean_of_ratios",
        noisy_but_for(noise_scale=lambda s, g, b, r, x: by_steps(x, b, np.mean)),
        Lab10Hint.MEAN_OF_RATIOS,
    ),
    (
        "in_batches",
        noisy_but_for(noise_scale=lambda s, g, b, r, x: true_noise_scale(x, b)["noise scale"] / b),
        Lab10Hint.IN_RANK_BATCHES,
    ),
):
    ANSWERS.wrong_value("noise_scale", title, noise_scale, hint, share=2 / 3)


@wrong("noise_scale", Lab10Hint.ESTIMATE_CUT, share=2 / 3)
def estimate_cut_off(gradients, batch):
    numbers = true_noise_scale(gradients, batch)
    return numbers | {"squared gradient": max(numbers["squared gradient"], 0.0)}


@wrong("noise_scale", Lab10Hint.DENOMINATOR_MISSING, share=2 / 3)
def variance_without_its_denominator(gradients, batch):
    numbers = true_noise_scale(gradients, batch)
    return numbers | {"variance": numbers["variance"] * (1 / batch - 1 / (batch * gradients.shape[1]))}


@wrong("noise_scale", Lab10Hint.NOISE_SCALE_OTHERWISE, share=2 / 3)
def sums_instead_of_means(gradients, batch):
    numbers = true_noise_scale(gradients, batch)
    many = len(gradients)
    return numbers | {"squared gradient": many * numbers["squared gradient"]}


@wrong("noise_scale", Lab10Hint.NO_ESTIMATE, share=2 / 3)
def negative_scale(gradients, batch):
    numbers = true_noise_scale(gradients, batch)
    return numbers | {"noise scale": numbers["variance"] / numbers["squared gradient"]}


@wrong("noise_scale", NumberHint.NAMES)
def the_scale_alone(gradients, batch):
    return true_noise_scale(gradients, batch)["noise scale"]


@right("noise_scale")
def by_variances(gradients, batch):
    ranks = gradients.shape[1]
    variance = batch * np.var(gradients, axis=1, ddof=1).sum(axis=1).mean()
    squared = np.linalg.norm(gradients.mean(axis=1), axis=1) @ np.linalg.norm(gradients.mean(axis=1), axis=1)
    squared = squared / len(gradients) - variance / batch / ranks
    return {
        "noise scale": variance / squared if squared > 0 else np.inf,
        "variance": variance,
        "squared gradient": squared,
    }


ANSWERS.solved("plan", large_batch_plan.plan)
ANSWERS.solved("warm_up", true_warm_up)
ANSWERS.solved("noise_scale", true_noise_scale)

"""Answers to lab 10 as students give them."""

import math

import numpy as np

from distlab.labs.lab_10 import plan as large_batch_plan
from distlab.labs.lab_10.noise_scale import noise_scale as true_noise_scale
from distlab.labs.lab_10.warm_up import warm_up as true_warm_up
from tests.labs.known_wrong import Planted

PLANTED = Planted()
wrong, right = PLANTED.wrong, PLANTED.right
Job = large_batch_plan.Job


# Batch and learning rate


def but_for(**formulas):
    """The right numbers but for some, which are computed from the job and the right numbers."""

    def plan(*job):
        found = large_batch_plan.plan(*job)
        per, whole, steps, _ = found.values()
        changed = {name: formula(Job(*job), per, whole, steps) for name, formula in formulas.items()}
        names = {"per_replica": "per-replica batch", "whole": "global batch", "steps": "steps per epoch"}
        return found | {names.get(name, "learning rate"): value for name, value in changed.items()}

    return plan


for title, plan, hint in (
    ("what_fits", but_for(per_replica=lambda j, b, n, s: j.fits), "Is that worthwhile?"),
    ("the_limit_for_each", but_for(per_replica=lambda j, b, n, s: j.worthwhile), "limit of the global batch"),
    (
        "divides_by_the_local_size",
        but_for(per_replica=lambda j, b, n, s: j.worthwhile // j.ranks_per_host),
        "the ranks of one host alone",
    ),
    (
        "forgets_the_memory",
        but_for(per_replica=lambda j, b, n, s: j.worthwhile // j.ranks),
        "does it fit into the memory",
    ),
    ("parts_of_images", but_for(per_replica=lambda j, b, n, s: j.worthwhile / j.ranks), "images cannot be cut"),
    ("one_ranks_batch", but_for(whole=lambda j, b, n, s: b), "that is what one rank gets"),
    ("one_hosts_batch", but_for(whole=lambda j, b, n, s: b * j.ranks_per_host), "the local size instead of the world"),
    ("the_limit_itself", but_for(whole=lambda j, b, n, s: j.worthwhile), "cannot be divided evenly"),
    ("rounds_up", but_for(steps=lambda j, b, n, s: -(-j.images // n)), "does not fill a global batch"),
    ("each_rank_sees_all", but_for(steps=lambda j, b, n, s: j.images // b), "every rank would see every image"),
    ("steps_shared_out", but_for(steps=lambda j, b, n, s: s // j.ranks), "steps are not shared out"),
    ("times_the_ranks", but_for(rate=lambda j, b, n, s: j.known_rate * j.ranks), "times the ranks"),
    ("times_the_local_size", but_for(rate=lambda j, b, n, s: j.known_rate * j.ranks_per_host), "times the local size"),
    ("the_old_rate", but_for(rate=lambda j, b, n, s: j.known_rate), "the rate of the small batch"),
    (
        "square_root",
        but_for(rate=lambda j, b, n, s: j.known_rate * math.sqrt(n / j.known_batch)),
        "the square-root rule",
    ),
    ("turned_round", but_for(rate=lambda j, b, n, s: j.known_rate * j.known_batch / n), "turned round"),
):
    PLANTED.wrong_value("plan", title, plan, hint, share=0.75)


@wrong("plan", "dictionary with the names")
def a_tuple(*job):
    return tuple(large_batch_plan.plan(*job).values())


@right("plan")
def by_trying(images, hosts, ranks_per_host, known_batch, known_rate, fits, worthwhile):
    ranks = len([(host, rank) for host in range(hosts) for rank in range(ranks_per_host)])
    per_replica = max(one for one in range(1, fits + 1) if one * ranks <= worthwhile)
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
        ("in this epoch the rate does not rise", "the rate changes once an epoch"),
        0.5,
    ),
    ("constant", clipped(lambda k, n, e: float(k >= n * e)), ("constant warm-up",), 0.5),
    ("last_step_early", clipped(lambda k, n, e: k / (n * e - 1)), ("these increments are too large",), 0.5),
    ("one_ahead", clipped(lambda k, n, e: (k + 1) / (n * e)), ("one increment too early", "one increment ahead"), 0.25),
    ("epochs_for_steps", clipped(lambda k, n, e: k / e), ("the step is not counted in epochs",), 0.5),
    ("one_epoch", clipped(lambda k, n, e: k / n), ("takes one epoch here",), 0.5),
):
    PLANTED.wrong_value("warm_up", title, schedule, *hints, share=share)


@wrong("warm_up", "From which rate does the warm-up start", "this line begins at 0", share=0.25)
def from_nothing(step, count, epochs, first, full):
    return full * min(step / (count * epochs), 1) if epochs else full


@wrong("warm_up", "goes on rising", share=0.75)
def without_end(step, count, epochs, first, full):
    return first + (full - first) * step / (count * epochs) if epochs else full


@wrong("warm_up", "falls back", share=0.75)
def falls_back(step, count, epochs, first, full):
    if not epochs:
        return full
    return true_warm_up(step, count, epochs, first, full) if step < count * epochs else first


@wrong("warm_up", "with 0 epochs", "ZeroDivisionError", share=0.75)
def needs_a_warm_up(step, count, epochs, first, full):
    return first + (full - first) * min(step / (count * epochs), 1)


@wrong("warm_up", "one increment is missing still", share=0.75)
def one_step_late(step, count, epochs, first, full):
    if not epochs:
        return full
    end = count * epochs
    return full if step > end else first + (full - first) * min(step, end - 1) / end


@wrong("warm_up", "equal factors", share=0.5)
def by_factors(step, count, epochs, first, full):
    return first * (full / first) ** min(step / (count * epochs), 1) if epochs else full


@wrong("warm_up", "the full rate at once", "has the full rate already", share=0.25)
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
        found = true_noise_scale(gradients, batch)
        small = np.mean(np.sum(gradients**2, axis=2))
        big = np.mean(np.sum(gradients.mean(axis=1) ** 2, axis=1))
        ranks = gradients.shape[1]
        new = {
            name.replace("_", " "): formula(small, big, batch, ranks, gradients) for name, formula in formulas.items()
        }
        return found | {name: value for name, value in new.items() if np.isfinite(found[name])}

    return noise_scale


def by_steps(gradients, batch, combine):
    return combine([true_noise_scale(one[None], batch)["noise scale"] for one in gradients])


for title, noise_scale, hint in (
    ("biased", noisy_but_for(squared_gradient=lambda s, g, b, r, x: g), "it is noisy itself"),
    ("one_ranks_square", noisy_but_for(squared_gradient=lambda s, g, b, r, x: s), "what one rank has, noise and all"),
    (
        "a_sum_of_gradients",
        noisy_but_for(squared_gradient=lambda s, g, b, r, x: (r * r * r * g - s) / (r - 1)),
        "the large batch's gradient is their mean",
    ),
    (
        "squares_exchanged",
        noisy_but_for(squared_gradient=lambda s, g, b, r, x: (r * s - g) / (r - 1)),
        "have changed places",
    ),
    (
        "steps_first",
        noisy_but_for(squared_gradient=lambda s, g, b, r, x: true_noise_scale(x.mean(0)[None], b)["squared gradient"]),
        "averaged first",
    ),
    (
        "variance_of_a_ranks_gradient",
        noisy_but_for(variance=lambda s, g, b, r, x: (s - g) / (1 - 1 / r)),
        "the variance of a rank's gradient",
    ),
    (
        "global_batch_for_the_ranks",
        noisy_but_for(variance=lambda s, g, b, r, x: (s - g) / (1 / (r * b) - 1 / (r * r * b))),
        "the global batch is taken for that of a rank",
    ),
    (
        "divides_by_all_ranks",
        noisy_but_for(variance=lambda s, g, b, r, x: b * np.var(x, axis=1).sum(1).mean()),
        "it is noisy itself",
    ),
    (
        "mean_over_parameters",
        noisy_but_for(variance=lambda s, g, b, r, x: b * np.var(x, axis=1, ddof=1).mean()),
        "a sum over the parameters",
    ),
    (
        "turned_round",
        noisy_but_for(noise_scale=lambda s, g, b, r, x: 1 / true_noise_scale(x, b)["noise scale"]),
        "noise by gradient",
    ),
    ("mean_of_ratios", noisy_but_for(noise_scale=lambda s, g, b, r, x: by_steps(x, b, np.mean)), "Average first"),
    (
        "in_batches",
        noisy_but_for(noise_scale=lambda s, g, b, r, x: true_noise_scale(x, b)["noise scale"] / b),
        "images are asked for",
    ),
):
    PLANTED.wrong_value("noise_scale", title, noise_scale, hint, share=2 / 3)


@wrong("noise_scale", "the noise hides the gradient", share=2 / 3)
def negative_scale(gradients, batch):
    found = true_noise_scale(gradients, batch)
    return found | {"noise scale": found["variance"] / found["squared gradient"]}


@wrong("noise_scale", "dictionary with the names")
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


PLANTED.solved("plan", large_batch_plan.plan)
PLANTED.solved("warm_up", true_warm_up)
PLANTED.solved("noise_scale", true_noise_scale)

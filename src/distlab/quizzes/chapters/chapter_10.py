"""Large batches: four numbers, scaling rules, warm-up, the critical batch size, batch normalisation, noise scale."""

import math

import numpy as np

from distlab.large_batch import noise_scale, schedules
from distlab.quizzes.item import Item, figure, pick


def weak_scaling_rate(
    item: Item,
    replicas: int = pick(4, 8, 16, 32),
    rate: float = pick(0.01, 0.02, 0.05, 0.1),
    batch: int = pick(32, 64, 100, 128),
) -> None:
    item.choose(f"""A rate of {rate} is right for one device with a batch of {batch}. {replicas} replicas each
        keep that batch. What rate does the linear rule give?""")
    item.right(rate * replicas).why(f"""The global batch is {replicas} times as large, {batch * replicas:,} images, so
        the rate is, too.""")
    item.wrong(rate, "The rate stays").why("The global batch grew, and an epoch has fewer steps; they may be longer.")
    item.wrong(rate / replicas, "Divided instead of multiplied").why("Fewer steps must be longer, not shorter.")
    item.wrong(rate * math.sqrt(replicas), "The square root").why("""That is the square-root rule, which keeps a step's
        noise.""")


def steps_per_epoch(
    item: Item,
    replicas: int = pick(2, 4, 8, 16),
    batch: int = pick(25, 50, 100),
    images: int = pick(8_000, 40_000, 60_000),
) -> None:
    alone, together = images // batch, images // (batch * replicas)
    item.enter(f"""{images:,} images, {replicas} replicas, a batch of {batch} for each. How many steps does each replica
        take in an epoch?""")
    item.right(together).why(f"A step uses {batch * replicas:,} images, and each image is used once.")
    item.wrong(alone, "As many as one device").why(f"Then each image would be used {replicas} times.")
    item.wrong(alone * replicas, "More replicas, more steps").why("Each step takes more images, so fewer fit.")
    item.wrong(together // replicas, "Divided twice").why("Every replica takes part in every step.")


def strong_scaling_rate(
    item: Item,
    replicas: int = pick(2, 4, 8),
    rate: float = pick(0.001, 0.01, 0.05, 0.1),
    times: int = pick(4, 8, 16, 32),
) -> None:
    item.enter(f"""A rate of {rate} is right for a global batch of 100. You train with {replicas} replicas and a global
        batch of {100 * times:,}. What rate does the linear rule give?""")
    item.right(rate * times).why("""Only the ratio of the global batches matters, not the number of
        replicas.""")
    item.wrong(rate * replicas, "Times the replicas").why("Replicas count only if each brings its own whole batch.")
    item.wrong(rate, "The rate stays").why(f"The global batch is {times} times the one that the rate is right for.")
    item.wrong(rate * times / replicas, "The per-replica batch").why("The rule compares global batches, not shares.")


def steps_saved(
    item: Item,
    critical: int = pick(50, 100, 200, 400),
    batch: int = pick(25, 50, 100, 200, 400, 800),
    times: int = pick(2, 4, 8),
) -> None:
    tradeoff = noise_scale.Tradeoff(1.0, float(critical))
    before, after = tradeoff.steps(batch), tradeoff.steps(times * batch)
    item.choose(f"""The critical batch size is {critical}. The batch grows from {batch} to {times * batch}, each with
        its best rate. By what factor do the steps to the target decrease?""")
    item.right(before / after).why(f"""The steps are S_min (1 + B_crit / B): {figure(before)} and {figure(after)} times
        S_min.""")
    item.wrong(times, "Perfect scaling").why("That holds only far below the critical batch size.")
    item.wrong(1, "No gain").why("That holds only far above the critical batch size.")
    item.wrong(math.sqrt(times), "The square root").why("That is a rule for rates, not for steps.")


def images_needed(item: Item, critical: int = pick(100, 200, 250, 400), ratio: float = pick(0.25, 0.5, 2, 4)) -> None:
    batch = int(critical * ratio)
    tradeoff = noise_scale.Tradeoff(1.0, float(critical))
    item.enter(f"""The critical batch size is {critical} and the batch {batch}. By what factor does the training need
        more images to reach its target than the least number, E_min?""")
    item.right(batch * tradeoff.steps(batch) / tradeoff.least_samples).why("""E = E_min (1 + B / B_crit); at
        the critical batch size that is twice the least.""")
    item.wrong(tradeoff.steps(batch), "Steps for images").why("S grows with B_crit / B, E with B / B_crit.")
    item.wrong(ratio, "The 1 is missing").why("Even the smallest batches need E_min images.")
    item.wrong(1, "Every image is worth the same").why("In a large batch most images repeat what others already say.")


def two_rules(item: Item, times: int = pick(9, 16, 25, 36, 49)) -> None:
    linear, root = schedules.linear_rule(1.0, times), schedules.square_root_rule(1.0, times)
    item.choose(f"""The global batch grows by a factor of {times}. By what factor is the rate of the linear rule larger
        than that of the square-root rule?""")
    item.right(round(linear / root)).why(f"""The linear rule multiplies by {linear:g}, the square-root rule by
        {root:g}.""")
    item.wrong(linear, "Compared with the old rate").why("""That is the linear rule alone, compared with the rate
        before.""")
    item.wrong(linear - root, "The difference").why("The question asks for a ratio.")
    item.wrong(1, "Both are the same").why(
        "They preserve different things: the distance of k steps, and the noise of a step."
    )


def stuck_at_chance(item: Item, classes: int = pick(5, 10, 20, 100), ranks: int = pick(8, 16, 32)) -> None:
    chance = math.log(classes)
    item.choose(f"""{ranks} ranks train a classifier for {classes} classes with Adam, rate {figure(0.01 * ranks)}, and
        no warm-up. The log is below. What do you try first?""")
    item.block = "\n".join(f"epoch {epoch}: loss {chance:.2f}, accuracy {1 / classes:.2f}" for epoch in (1, 2, 3))
    item.right("Restart from new weights, with warm-up or a smaller rate").why(f"""The loss is ln {classes}: the first
        steps have killed the units, and dead units have no gradient.""")
    item.wrong("Train for more epochs", "Patience").why("Dead units have no gradient; no number of epochs wakes them.")
    item.wrong("Continue, with a warm-up that starts now", "A late warm-up").why("The first steps did the harm.")
    item.wrong("Multiply the rate by the ranks once more", "Too small a rate").why("Too large a rate has caused it.")


def warm_up_rate(
    item: Item,
    rate: float = pick(0.01, 0.02, 0.05),
    times: int = pick(4, 8, 16),
    epochs: int = pick(3, 4, 5),
    share: float = pick(0.25, 0.5, 0.75),
) -> None:
    epoch, scaled = share * epochs, rate * times
    now = schedules.gradual_warm_up(rate, scaled, epochs)(epoch)
    item.choose(f"""Gradual warm-up over {epochs} epochs, from {rate} to {figure(scaled)}. What is the rate
        in the step after {figure(epoch)} epochs?""")
    item.right(now).why(f"The rate has covered {100 * share:.0f} % of the distance from {rate} to {figure(scaled)}.")
    item.wrong(rate, "Constant warm-up").why("Gradual warm-up rises in each step.")
    item.wrong(scaled, "No warm-up").why("It has this rate only when the warm-up ends.")
    item.wrong(share * scaled, "From 0").why("The warm-up starts at the small rate, not at 0.")


def synchronised_variance(
    item: Item,
    first: float = pick(1.0, 2.0, 3.0),
    second: float = pick(5.0, 6.0, 8.0),
    variances: tuple[float, float] = pick((1.0, 2.0), (2.0, 4.0), (1.0, 5.0)),
) -> None:
    means = np.array([first, second])
    squares = np.array(variances) + means**2
    variance = float(np.mean(squares) - np.mean(means) ** 2)
    item.enter("""Two ranks have the same number of images, and the means and variances of x below. What variance
        does synchronised batch normalisation use?""")
    item.block = (
        f"rank 0: mean {first:g}, variance {variances[0]:g}\nrank 1: mean {second:g}, variance {variances[1]:g}"
    )
    item.right(variance).why("""The ranks average the means of x and of x², and compute the variance from them: the mean
        of x² less the square of the mean.""")
    item.wrong(float(np.mean(variances)), "The mean of the variances").why("""It ignores that the ranks' means
        differ.""")
    item.wrong(float(np.sum(variances)), "The sum of the variances").why("""Variances of parts do not add up to that of
        the whole.""")
    item.wrong(float(np.mean(squares)), "The square of the mean is not subtracted").why(
        "That is the mean of x², not the variance."
    )


def noise_scale_of_ranks(
    item: Item,
    ranks: int = pick(4, 8, 16),
    batch: int = pick(4, 8, 16),
    signal: float = pick(1.0, 2.0, 4.0),
    variance: float = pick(64.0, 160.0, 320.0, 640.0),
) -> None:
    small, big = signal + variance / batch, signal + variance / (batch * ranks)
    scale = noise_scale.estimate(batch, batch * ranks, [small], [big])
    item.enter(f"""{ranks} ranks take {batch} images each. The squared norm of a rank's own gradient is {figure(small)}
        on average, that of the mean over the ranks {figure(big)}. Estimate the gradient noise scale.""")
    item.right(scale.batch, "images").why(f"""Two batch sizes give two equations for |G|² and tr Σ:
        {figure(scale.squared_gradient)} and {figure(scale.variance)}. The noise scale is tr Σ / |G|².""")
    item.wrong(scale.variance / big, "The mean gradient as the signal").why("It still has noise; |G|² is smaller.")
    item.wrong(small / big * batch, "A ratio of the norms").why(
        "Neither of them is the noise alone or the signal alone."
    )
    item.wrong(scale.squared_gradient / scale.variance, "Upside down").why("""The noise scale is noise over signal, in
        images.""")

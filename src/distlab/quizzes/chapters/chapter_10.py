"""Large batches: four numbers, scaling rules, warm-up, the critical batch size, batch normalisation, noise scale."""

import math

import numpy as np

from distlab.large_batch import FourNumbers, noise_scale, schedules
from distlab.quizzes.item import Item, Wrong, number, one_number_of, one_of
from distlab.quizzes.numbers import Numbers, figure


def weak_scaling_rate(numbers: Numbers) -> Item:
    """Which rate has weak scaling by the linear rule?"""
    replicas = numbers.pick("replicas", (4, 8, 16, 32))
    rate = numbers.pick("rate", (0.01, 0.02, 0.05, 0.1))
    batch = numbers.pick("batch", (32, 64, 100, 128))
    four = FourNumbers(60_000, replicas, batch, rate, batch)
    return one_number_of(
        f"A rate of {rate} is right for one device with a batch of {batch}. {replicas} replicas keep that batch each. "
        "Which rate does the linear rule give?",
        four.learning_rate,
        "",
        f"The global batch is {replicas} times as large, {four.global_batch:,} images, so the rate is, too.",
        Wrong(rate, "The rate stays", "The global batch grew, and an epoch has fewer steps; they may be longer."),
        Wrong(rate / replicas, "Turned round", "Fewer steps must be longer, not shorter."),
        Wrong(
            rate * math.sqrt(replicas), "The square root", "That is the square-root rule, which keeps a step's noise."
        ),
    )


def strong_scaling_rate(numbers: Numbers) -> Item:
    """Which rate has strong scaling?"""
    replicas = numbers.pick("replicas", (2, 4, 8))
    rate = numbers.pick("rate", (0.001, 0.01, 0.05, 0.1))
    times = numbers.pick("times", (4, 8, 16, 32))
    known = 100
    four = FourNumbers.of_global_batch(60_000, replicas, known * times, rate, known)
    return number(
        f"A rate of {rate} is right for a global batch of {known}. You train with {replicas} replicas and a global "
        "batch "
        f"of {four.global_batch:,}. Which rate does the linear rule give?",
        four.learning_rate,
        "",
        "The rule asks for the ratio of the global batches. The number of replicas does not enter.",
        Wrong(rate * replicas, "Times the replicas", "Replicas count only if each brings its own whole batch."),
        Wrong(rate, "The rate stays", f"The global batch is {times} times the one that the rate is right for."),
        Wrong(
            rate * four.per_replica_batch / known,
            "The per-replica batch",
            "The rule compares global batches, not shares.",
        ),
    )


def steps_per_epoch(numbers: Numbers) -> Item:
    """How many steps has an epoch?"""
    replicas = numbers.pick("replicas", (2, 4, 8, 16))
    batch = numbers.pick("batch", (25, 50, 100))
    images = numbers.pick("images", (8_000, 40_000, 60_000))
    four = FourNumbers(images, replicas, batch, 0.01, batch)
    alone = FourNumbers(images, 1, batch, 0.01, batch)
    return number(
        f"{images:,} images, {replicas} replicas, a batch of {batch} for each. How many steps does each replica make "
        "in "
        "an epoch?",
        four.steps_per_epoch,
        "",
        f"A step uses {four.global_batch:,} images, and each image is used once.",
        Wrong(alone.steps_per_epoch, "As many as one device", f"Then each image is used {replicas} times."),
        Wrong(
            alone.steps_per_epoch * replicas, "More replicas, more steps", "Each step takes more images, so fewer fit."
        ),
        Wrong(four.steps_per_epoch // replicas, "Divided twice", "Every replica takes part in every step."),
        exact=True,
    )


def steps_saved(numbers: Numbers) -> Item:
    """By what are the steps divided when the batch grows?"""
    critical = numbers.pick("critical", (50, 100, 200, 400))
    batch = numbers.pick("batch", (25, 50, 100, 200, 400, 800))
    times = numbers.pick("times", (2, 4, 8))
    tradeoff = noise_scale.Tradeoff(1.0, float(critical))
    saved = tradeoff.steps(batch) / tradeoff.steps(times * batch)
    return one_number_of(
        f"The critical batch size is {critical}. The batch grows from {batch} to {times * batch}, each with its best "
        "rate. By what are the steps to the target divided?",
        saved,
        "",
        f"The steps are S_min (1 + B_crit / B): {figure(tradeoff.steps(batch))} and "
        f"{figure(tradeoff.steps(times * batch))} times S_min.",
        Wrong(times, "Perfect scaling", "That holds only far below the critical batch size."),
        Wrong(1, "No gain", "That holds only far above the critical batch size."),
        Wrong(math.sqrt(times), "The square root", "That is a rule for rates, not for steps."),
    )


def images_needed(numbers: Numbers) -> Item:
    """How many more images does a large batch need?"""
    critical = numbers.pick("critical", (100, 200, 250, 400))
    ratio = numbers.pick("ratio", (0.25, 0.5, 2, 4))
    batch = int(critical * ratio)
    tradeoff = noise_scale.Tradeoff(1.0, float(critical))
    images = batch * tradeoff.steps(batch) / tradeoff.least_samples
    return number(
        f"The critical batch size is {critical} and the batch {batch}. How many times the least number of images E_min "
        "does the training need to reach its target?",
        images,
        "times",
        "E = E_min (1 + B / B_crit); at the critical batch size that is twice the least.",
        Wrong(tradeoff.steps(batch), "Steps for images", "S grows with B_crit / B, E with B / B_crit."),
        Wrong(ratio, "The 1 is missing", "Even the smallest batches need E_min images."),
        Wrong(1, "Each image counts alike", "Above the bend most of a batch repeats what is known."),
    )


def warm_up_rate(numbers: Numbers) -> Item:
    """Which rate has a gradual warm-up half-way?"""
    rate = numbers.pick("rate", (0.01, 0.02, 0.05))
    times = numbers.pick("times", (4, 8, 16))
    epochs = numbers.pick("epochs", (3, 4, 5))
    share = numbers.pick("share", (0.25, 0.5, 0.75))
    epoch, scaled = share * epochs, rate * times
    now = schedules.gradual_warm_up(rate, scaled, epochs)(epoch)
    return one_number_of(
        f"Gradual warm-up over {epochs} epochs, from {rate} to {figure(scaled)}. Which rate has the step after "
        f"{figure(epoch)} epochs?",
        now,
        "",
        f"It has gone {100 * share:.0f} % of the way from {rate} to {figure(scaled)}.",
        Wrong(
            schedules.constant_warm_up(rate, scaled, epochs)(epoch),
            "Constant warm-up",
            "Gradual warm-up rises in each step.",
        ),
        Wrong(scaled, "No warm-up", "It has this rate only when the warm-up ends."),
        Wrong(share * scaled, "From 0", "The way begins at the small rate, not at 0."),
    )


def two_rules(numbers: Numbers) -> Item:
    """How do the linear and the square-root rule differ?"""
    times = numbers.pick("times", (9, 16, 25, 36, 49))
    linear, root = schedules.linear_rule(1.0, times), schedules.square_root_rule(1.0, times)
    return one_number_of(
        f"The global batch grows {times}-fold. How many times as large is the rate of the linear rule as that of the "
        "square-root rule?",
        linear / root,
        "times",
        f"The linear rule multiplies by {linear:g}, the square-root rule by {root:g}.",
        Wrong(linear, "Compared with the old rate", "That is the linear rule alone, compared with the rate before."),
        Wrong(linear - root, "A difference", "The question asks for a quotient."),
        Wrong(1, "Both are the same", "They keep different things: the way of k steps, and the noise of a step."),
        exact=True,
    )


def synchronised_variance(numbers: Numbers) -> Item:
    """Which variance has synchronised batch normalisation?"""
    first = numbers.pick("first", (1.0, 2.0, 3.0))
    second = numbers.pick("second", (5.0, 6.0, 8.0))
    variances = numbers.pick("variances", ((1.0, 2.0), (2.0, 4.0), (1.0, 5.0)))
    means = np.array([first, second])
    squares = np.array(variances) + means**2
    variance = float(np.mean(squares) - np.mean(means) ** 2)
    return number(
        "Two ranks with equally many images have the means and variances of x below. Which variance does synchronised "
        "batch normalisation use?",
        variance,
        "",
        "The ranks average the means of x and of x², and compute the variance from them: the mean of x² less the "
        "square "
        "of the mean.",
        Wrong(float(np.mean(variances)), "The mean of the variances", "It leaves out that the ranks' means differ."),
        Wrong(
            float(np.sum(variances)),
            "The sum of the variances",
            "Variances of parts do not add up to that of the whole.",
        ),
        Wrong(float(np.mean(squares)), "The mean is not subtracted", "That is the mean of x², not the variance."),
        block=f"rank 0: mean {first:g}, variance {variances[0]:g}\nrank 1: mean {second:g}, variance {variances[1]:g}",
    )


def noise_scale_of_ranks(numbers: Numbers) -> Item:
    """Which noise scale follows from the ranks' gradients?"""
    ranks = numbers.pick("ranks", (4, 8, 16))
    batch = numbers.pick("batch", (4, 8, 16))
    signal = numbers.pick("signal", (1.0, 2.0, 4.0))
    variance = numbers.pick("variance", (64.0, 160.0, 320.0, 640.0))
    small, big = signal + variance / batch, signal + variance / (batch * ranks)
    scale = noise_scale.estimate(batch, batch * ranks, [small], [big])
    return number(
        f"{ranks} ranks take {batch} images each. The squared norm of a rank's own gradient is {figure(small)} on "
        "average, "
        f"that of the mean over the ranks {figure(big)}. Estimate the gradient noise scale.",
        scale.batch,
        "images",
        f"Two batch sizes give two equations for |G|² and tr Σ: {figure(scale.squared_gradient)} and "
        f"{figure(scale.variance)}. The noise scale is tr Σ / |G|².",
        Wrong(scale.variance / big, "The mean's square as signal", "It still has noise; |G|² is smaller."),
        Wrong(small / big * batch, "A quotient of norms", "Neither of them is the noise or the signal alone."),
        Wrong(
            scale.squared_gradient / scale.variance, "Upside down", "The noise scale is noise over signal, in images."
        ),
    )


def stuck_at_chance(numbers: Numbers) -> Item:
    """What cures a loss that stays at ln(classes)?"""
    classes = numbers.pick("classes", (5, 10, 20, 100))
    ranks = numbers.pick("ranks", (8, 16, 32))
    chance = math.log(classes)
    rate = FourNumbers(60_000, ranks, 100, 0.01, 100).learning_rate
    return one_of(
        f"{ranks} ranks train a classifier for {classes} classes with Adam, rate {figure(rate)}, and no warm-up. The "
        "log "
        "is below. What do you try first?",
        "Restart from new weights, with warm-up or a smaller rate",
        f"The loss is ln {classes}: the first steps have killed the units, and dead units have no gradient.",
        Wrong("Train for more epochs", "Patience", "Dead units have no gradient; no number of epochs wakes them."),
        Wrong("Continue, with a warm-up that starts now", "A late warm-up", "The first steps did the harm."),
        Wrong("Multiply the rate by the ranks once more", "Too small a rate", "Too large a rate has caused it."),
        block="\n".join(f"epoch {epoch}: loss {chance:.2f}, accuracy {1 / classes:.2f}" for epoch in (1, 2, 3)),
    )


TEMPLATES = (
    weak_scaling_rate,
    steps_per_epoch,
    strong_scaling_rate,
    steps_saved,
    images_needed,
    two_rules,
    stuck_at_chance,
    warm_up_rate,
    synchronised_variance,
    noise_scale_of_ranks,
)

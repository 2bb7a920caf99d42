"""The custom loop: the divisor of the loss, tracing, uneven last batches, scores, logs and restarts."""

import math

import numpy as np

from distlab.quizzes import simulations
from distlab.quizzes.item import Item, Wrong, number, one_number_of, one_of, several_of
from distlab.quizzes.numbers import Numbers, figure


def divisor_and_reduction(numbers: Numbers) -> Item:
    """What do a wrong divisor and a wrong reduction do?"""
    replicas = numbers.pick("replicas", (2, 4, 8))
    batch = numbers.pick("batch", (32, 64, 128))
    # Each replica has losses of 1 on its part; the gradient of the sum behaves as the sum itself.
    share = batch / replicas
    total = simulations.all_reduced((share / share,) * replicas)
    return several_of(
        f"{replicas} replicas share a global batch of {batch}. Each divides its summed loss by {batch // replicas}, "
        "and the log "
        "reduces the replicas' losses with MEAN. What is true?",
        {
            "The printed loss is right.": "The factor in the loss and the division by MEAN cancel.",
            f"The gradient is {total:g} times too large.": "`apply_gradients` adds up the replicas' gradients.",
        },
        Wrong(f"The printed loss is {total:g} times too large.", "SUM expected", "MEAN divides by the replicas again."),
        Wrong("The gradient is right.", "Gradients averaged", "Gradients are summed, whatever the log does."),
        Wrong("With Adam the loss in the log reveals it.", "Adam as a test", "Adam divides by the gradient's size."),
    )


def learning_rate_that_nobody_chose(numbers: Numbers) -> Item:
    """With which rate does a wrong divisor train?"""
    replicas = numbers.pick("replicas", (2, 4, 8))
    rate = numbers.pick("rate", (0.01, 0.05, 0.1))
    return number(
        f"A custom loop uses `reduce_mean` over its own images in each of {replicas} replicas, and SGD with a rate of "
        f"{rate}. "
        "With which rate would one device make the same updates?",
        rate * simulations.all_reduced((1.0,) * replicas),
        "",
        f"The {replicas} gradients are added, and each is already a mean.",
        Wrong(rate, "Means are harmless", "The sum of the means is not the mean of the batch."),
        Wrong(rate / replicas, "Turned round", "The gradient is too large, so the rate is, too."),
        Wrong(rate * math.sqrt(replicas), "The square root", "The sum of equal gradients grows with their number."),
    )


def traces_of_shapes(numbers: Numbers) -> Item:
    """How many traces do these batches cause?"""
    full = numbers.pick("full", (32, 64))
    rest = numbers.pick("rest", (5, 17, 20))
    full_batches = numbers.pick("full_batches", (3, 5, 9))
    epochs = numbers.pick("epochs", (2, 3, 4))
    shapes = ([full] * full_batches + [rest]) * epochs
    return one_number_of(
        f"A `tf.function` trains for {epochs} epochs. Each has {full_batches} batches of {full} and one of {rest}. How "
        "many "
        "traces are made, if the optimizer's variables exist?",
        len(set(shapes)),
        "traces",
        "Each new shape is traced once; a known shape reuses its graph.",
        Wrong(len(shapes), "Each call", "A call with a known shape runs the recorded graph."),
        Wrong(2 * epochs, "Again in each epoch", "Graphs are kept between the epochs."),
        Wrong(1, "One graph for all", "A graph is looked up by the shapes of its arguments."),
        exact=True,
    )


def traces_of_numbers(numbers: Numbers) -> Item:
    """How many traces do changing arguments cause?"""
    epochs = numbers.pick("epochs", (10, 50, 100))
    steps = numbers.pick("steps", (20, 40))
    kind = numbers.pick("kind", ("Python's loop counter", "a tensor"))
    counts = {"Python's loop counter": epochs, "a tensor": 1}
    mistaken = next(counts[each] for each in counts if each != kind)
    return one_number_of(
        f"A `tf.function` gets the number of the epoch as {kind}. All batches have one shape. How many traces are made "
        f"in {epochs} "
        f"epochs of {steps} steps?",
        counts[kind],
        "traces",
        "A Python number becomes a part of the graph, so each value is a new trace; a tensor is looked up by its "
        "shape.",
        Wrong(mistaken, "The other kind of argument", "Ask whether the value is known while tracing."),
        Wrong(epochs * steps, "Each call", "Within an epoch the arguments stay the same kind and value."),
        Wrong(steps, "Once per step", "The number of the step is no argument."),
        exact=True,
    )


def images_of_the_last_replica(numbers: Numbers) -> Item:
    """How many images has each replica in the last batch?"""
    replicas = numbers.pick("replicas", (3, 4, 8))
    rest = numbers.pick("rest", (4, 5, 7, 9, 10))
    each = math.ceil(rest / replicas)
    parts = [max(0, min(each, rest - each * place)) for place in range(replicas)]
    return number(
        f"The last global batch has {rest} images, and there are {replicas} replicas. How many images does the last "
        "replica get?",
        parts[-1],
        "images",
        f"Each gets {each}, rounded up, as long as there are images left: {', '.join(map(str, parts))}.",
        Wrong(each, "All alike", "Together they would have more images than there are."),
        Wrong(rest // replicas, "Rounded down", "Shares are rounded up, so the last one may be smaller."),
        Wrong(rest, "All to the last", "The batch is cut into parts from the first replica on."),
        exact=True,
    )


def mean_of_the_last_batch(numbers: Numbers) -> Item:
    """Which mean does a divisor give in the last batch?"""
    usual = numbers.pick("usual", (8, 16))
    losses = numbers.pick("losses", ((2.0, 4.0, 6.0), (1.0, 5.0, 6.0), (3.0, 3.0, 9.0)))
    divisor = numbers.pick("divisor", ("the all-reduced count of images", "the usual global batch size"))
    by_count, by_usual = float(np.mean(losses)), sum(losses) / usual
    by_own = (float(np.mean(losses[:2])) + losses[2]) / 2
    right, mistaken = (by_count, by_usual) if "count" in divisor else (by_usual, by_count)
    return number(
        f"The usual global batch has {usual} images, the last one three. One replica has losses of {losses[0]:g} and "
        f"{losses[1]:g},"
        f" the other one {losses[2]:g}. Their sums are added and divided by {divisor}. What comes out?",
        right,
        "",
        "The true count gives the mean of this batch; the usual size gives every image of the epoch the same weight.",
        Wrong(mistaken, "The other divisor", "Ask by which number the sum is divided."),
        Wrong(by_own, "The mean of the means", "The replica with one image would count too much."),
        Wrong(sum(losses), "Not divided", "That is the sum."),
    )


def empty_part(numbers: Numbers) -> Item:
    """What does an empty part do to the loss?"""
    replicas = numbers.pick("replicas", (2, 4, 8))
    way = numbers.pick(
        "way", ("reduce_mean of its own losses", "the sum of its losses, divided by the all-reduced count")
    )
    with np.errstate(invalid="ignore"):
        mean = np.float64(0.0) / np.float64(0.0)  # of no losses
    bad, good = "`nan`", "The mean loss of the one image"
    right, mistaken = (bad, good) if "reduce_mean" in way and np.isnan(mean) else (good, bad)
    return one_of(
        f"The last batch has one image, and there are {replicas} replicas. Each returns {way}, and the log adds them "
        "up. What is "
        "printed?",
        right,
        "The mean of no numbers is 0/0, and one `nan` makes the sum `nan`. A sum of no numbers is 0 and does no harm.",
        Wrong(mistaken, "The empty part", "Ask what a replica without images returns."),
        Wrong("0", "Nothing counts", "The one image has a loss."),
        Wrong(f"The loss of the image, times {replicas}", "Each has the image", "Only one replica has it."),
    )


def overlap_of_masks(numbers: Numbers) -> Item:
    """Which intersection over union has this mask?"""
    both = numbers.pick("both", (60, 80, 120))
    only_predicted = numbers.pick("only_predicted", (20, 40))
    only_true = numbers.pick("only_true", (10, 30))
    union = both + only_predicted + only_true
    neither = 784 - union
    return one_number_of(
        f"Of 784 pixels, the predicted and the true mask both call {both} digit. {only_predicted} are digit in the "
        "prediction only, "
        f"{only_true} in the true mask only. What is the IoU?",
        both / union,
        "",
        f"{both} of the {union} pixels that at least one calls digit.",
        Wrong((both + neither) / 784, "Pixel accuracy", "It counts the background that both agree on."),
        Wrong(
            both / (both + only_predicted),
            "The prediction only",
            "Pixels that the prediction misses count in the union, too.",
        ),
        Wrong(both / 784, "The whole image", "The union is only what at least one calls digit."),
    )


def reduced_loss(numbers: Numbers) -> Item:
    """Which loss of the global batch follows from the parts?"""
    parts = numbers.pick("parts", ((0.31, 0.35), (0.12, 0.2), (0.22, 0.17, 0.2), (0.1, 0.12, 0.09, 0.14)))
    total = simulations.all_reduced(parts)
    return number(
        f"Each replica divides its loss by the global batch size. They return {', '.join(map(str, parts))}. What is "
        "the mean loss "
        "of the global batch?",
        total,
        "",
        "Each replica returns its part of the global mean, so the parts are added: the reduction is SUM.",
        Wrong(total / len(parts), "MEAN", "That divides a second time."),
        Wrong(max(parts), "The largest", "No part is the whole loss."),
        Wrong(total * len(parts), "Times the replicas", "The division by the global batch size was right."),
    )


def lines_of_the_log(numbers: Numbers) -> Item:
    """How many lines has the log after a restart?"""
    epochs = numbers.pick("epochs", (5, 8, 12))
    died = numbers.pick("died", (3, 4))
    steps = numbers.pick("steps", (40, 60, 100))
    first = list(range(1, died + 1))
    resumed = list(range(died, epochs + 1))
    return one_number_of(
        f"A run of {epochs} epochs with {steps} steps each saves in the middle and at the end of an epoch, and logs at "
        "its end. It "
        f"dies after the log's line for epoch {died}, before that epoch's last checkpoint, and is resumed. How many "
        "lines has the "
        "log at the end?",
        len(first + resumed),
        "lines",
        f"The run resumes in the middle of epoch {died} and writes its line again. {figure(steps / 2)} steps are done "
        "twice.",
        Wrong(epochs, "Each epoch once", "Restoring a checkpoint does not shorten the log."),
        Wrong(epochs - 1, "One line is lost", "The line was written before the run died."),
        Wrong(epochs + died, "From the start", "Only what came after the checkpoint is repeated."),
        exact=True,
    )


TEMPLATES = (
    overlap_of_masks,
    traces_of_shapes,
    traces_of_numbers,
    reduced_loss,
    divisor_and_reduction,
    learning_rate_that_nobody_chose,
    images_of_the_last_replica,
    mean_of_the_last_batch,
    empty_part,
    lines_of_the_log,
)

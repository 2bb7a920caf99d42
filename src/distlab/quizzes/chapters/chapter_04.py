"""The custom loop: the divisor of the loss, tracing, uneven last batches, scores, penalties."""

import math

import numpy as np

from distlab.quizzes.item import Item, other, pick


def overlap_of_masks(
    item: Item, both: int = pick(60, 80, 120), only_predicted: int = pick(20, 40), only_true: int = pick(10, 30)
) -> None:
    union = both + only_predicted + only_true

    item.choose(f"""Of 784 pixels, the predicted and the true mask both call {both} digit. {only_predicted} are digit in
        the prediction only, {only_true} in the true mask only. What is the IoU?""")
    item.right(both / union).why(f"{both} of the {union} pixels that at least one calls digit.")
    item.wrong((both + 784 - union) / 784, "Pixel accuracy").why("It counts the background that both agree on.")
    item.wrong(both / (both + only_predicted), "The prediction only").why("""Pixels that the prediction misses count in
        the union, too.""")
    item.wrong(both / 784, "The whole image").why("The union is only what at least one calls digit.")


def traces_of_shapes(
    item: Item,
    full: int = pick(32, 64),
    rest: int = pick(5, 17, 20),
    full_batches: int = pick(3, 5, 9),
    epochs: int = pick(2, 3, 4),
) -> None:
    shapes = ([full] * full_batches + [rest]) * epochs
    item.choose(f"""A `tf.function` trains for {epochs} epochs. Each has {full_batches} batches of {full} and one of
        {rest}. How many traces are made, if the optimizer's variables exist?""")
    item.right(len(set(shapes)), "traces").why("Each new shape is traced once; a known shape reuses its graph.")
    item.wrong(len(shapes), "Each call").why("A call with a known shape runs the recorded graph.")
    item.wrong(2 * epochs, "Again in each epoch").why("Graphs are kept between the epochs.")
    item.wrong(1, "One graph for all").why("A graph is looked up by the shapes of its arguments.")


def traces_of_numbers(
    item: Item,
    epochs: int = pick(10, 50, 100),
    steps: int = pick(20, 40),
    kind: str = pick("Python's loop counter", "a tensor"),
) -> None:
    counts = {"Python's loop counter": epochs, "a tensor": 1}
    item.choose(f"""A `tf.function` gets the number of the epoch as {kind}. All batches have one shape. How many traces
        are made in {epochs} epochs of {steps} steps?""")
    item.right(counts[kind], "traces").why("""A Python number becomes a part of the graph, so each value is a new trace;
        a tensor is looked up by its shape.""")
    item.wrong(other(counts, kind), "The other kind of argument").why("Ask whether the value is known while tracing.")
    item.wrong(epochs * steps, "Each call").why("Within an epoch the arguments stay the same kind and value.")
    item.wrong(steps, "Once per step").why("The number of the step is no argument.")


def reduced_loss(
    item: Item, parts: tuple[float, ...] = pick((0.31, 0.35), (0.12, 0.2), (0.22, 0.17, 0.2), (0.1, 0.12, 0.09, 0.14))
) -> None:
    total = sum(parts)
    item.enter(f"""Each replica divides the sum of its losses by the global batch size. They return
        {", ".join(map(str, parts))}. What is the mean loss of the global batch?""")
    item.right(total).why("""Each replica returns its part of the global mean, so the parts are added: the reduction is
        SUM.""")
    item.wrong(total / len(parts), "MEAN").why("That divides a second time.")
    item.wrong(max(parts), "The largest").why("No part is the whole loss.")
    item.wrong(total * len(parts), "Times the replicas").why("The division by the global batch size was right.")


def divisor_and_reduction(item: Item, replicas: int = pick(2, 4, 8), batch: int = pick(32, 64, 128)) -> None:
    item.choose(f"""{replicas} replicas share a global batch of {batch}. Each divides its summed loss by
        {batch // replicas}, and the log reduces the replicas' losses with MEAN. What is true?""")
    item.right("The printed loss is right.").why("The factor in the loss and the division by MEAN cancel.")
    item.right(f"The gradient is {replicas} times too large.").why("`apply_gradients` adds up the replicas' gradients.")
    item.wrong(f"The printed loss is {replicas} times too large.", "SUM expected").why("""MEAN divides by the replicas
        again.""")
    item.wrong("The gradient is right.", "Gradients averaged").why("Gradients are summed, whatever the log does.")
    item.wrong("With Adam the loss in the log reveals it.", "Adam as a test").why("""Adam divides by the gradient's
        size.""")


def learning_rate_that_nobody_chose(
    item: Item, replicas: int = pick(2, 4, 8), rate: float = pick(0.01, 0.05, 0.1)
) -> None:
    item.enter(f"""A custom loop uses `reduce_mean` over its own images in each of {replicas} replicas, and SGD with a
        rate of {rate}. With which rate would one device make the same updates?""")
    item.right(rate * replicas).why(f"The {replicas} gradients are added, and each is already a mean.")
    item.wrong(rate, "Means are harmless").why("The sum of the means is not the mean of the batch.")
    item.wrong(
        rate / replicas, "Inverted"
    ).why("""The gradient is the number of replicas times too large; one device needs that many times the
        rate to match.""")
    item.wrong(rate * math.sqrt(replicas), "The square root").why("The sum of equal gradients grows with their number.")


def images_of_the_last_replica(item: Item, replicas: int = pick(3, 4, 8), rest: int = pick(4, 5, 7, 9, 10)) -> None:
    each = math.ceil(rest / replicas)
    parts = [max(0, min(each, rest - each * place)) for place in range(replicas)]
    item.enter(f"""The last global batch has {rest} images, and there are {replicas} replicas. How many images does the
        last replica get?""")
    item.right(parts[-1], "images").why(f"""Each gets {each}, rounded up, as long as there are images left:
        {", ".join(map(str, parts))}.""")
    item.wrong(each, "All alike").why("Together they would have more images than there are.")
    item.wrong(rest // replicas, "Rounded down").why("Shares are rounded up, so the last one may be smaller.")
    item.wrong(rest, "All to the last").why("The batch is cut into parts from the first replica on.")


def mean_of_the_last_batch(
    item: Item,
    usual: int = pick(8, 16),
    losses: tuple[float, float, float] = pick((2.0, 4.0, 6.0), (1.0, 5.0, 6.0), (3.0, 3.0, 9.0)),
    divisor: str = pick("the all-reduced count of images", "the usual global batch size"),
) -> None:
    by_own = (float(np.mean(losses[:2])) + losses[2]) / 2
    right, wrong = (sum(losses) / each for each in ((3, usual) if "count" in divisor else (usual, 3)))
    item.enter(f"""The usual global batch has {usual} images, the last one three. One replica has losses of
        {losses[0]:g} and {losses[1]:g}, the other one {losses[2]:g}. Their sums are added and divided by {divisor}.
        What comes out?""")
    item.right(right).why("""The true count gives the mean of this batch; the usual size gives every image of the epoch
        the same weight.""")
    item.wrong(wrong, "The other divisor").why("Ask by which number the sum is divided.")
    item.wrong(by_own, "The mean of the means").why("The replica with one image would count too much.")
    item.wrong(sum(losses), "Not divided").why("That is the sum.")


def empty_part(
    item: Item,
    replicas: int = pick(2, 4, 8),
    way: str = pick("`reduce_mean` of its own losses", "the sum of its losses, divided by the all-reduced count"),
) -> None:
    bad, good = "`nan`", "The mean loss of the one image"
    right, wrong = (bad, good) if "reduce_mean" in way else (good, bad)
    item.choose(f"""The last batch has one image, and there are {replicas} replicas. Each returns {way}, and the log
        adds them up. What is printed?""")
    item.right(right).why("""The mean of no numbers is 0/0, and one `nan` makes the sum `nan`. A sum of no numbers is 0
        and does no harm.""")
    item.wrong(wrong, "The empty part").why("Ask what a replica without images returns.")
    item.wrong("0", "Nothing counts").why("The one image has a loss.")
    item.wrong(f"The loss of the image, times {replicas}", "Each has the image").why("Only one replica has it.")


def penalty_in_the_sum(
    item: Item,
    replicas: int = pick(2, 4, 8),
    penalty: float = pick(0.2, 0.5, 0.6),
    way: str = pick("adds `tf.add_n(model.losses)`", "adds it by `tf.nn.scale_regularization_loss`"),
) -> None:
    right, wrong = (replicas * penalty, penalty) if "add_n" in way else (penalty, replicas * penalty)
    item.enter(f"""The losses in `model.losses` add up to {penalty}. Each of {replicas} replicas {way} to its share of
        the loss. How much of the penalty is in the sum of the shares?""")
    item.right(right).why(
        "Every replica adds the same; only `scale_regularization_loss` divides it by the number of replicas."
    )
    item.wrong(wrong, "The other way").why("Ask what one replica adds, and how many of them add it.")
    item.wrong(penalty / replicas, "One share").why("That is what one replica adds if it is scaled.")
    item.wrong(replicas**2 * penalty, "Multiplied twice").why("The sum over the replicas counts once.")

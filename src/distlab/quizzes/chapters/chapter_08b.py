"""Keras 3: who adds up the gradients, what `keras.distribution` divides, and what works."""

import math

from distlab.quizzes.item import Item, other, pick


def added_twice(
    item: Item, workers: int = pick(2, 4, 8), optimizer: str = pick("SGD", "Adam"), rate: float = pick(0.01, 0.05)
) -> None:
    factor = {"SGD": float(workers), "Adam": 1.0}
    item.choose(f"""With Keras 3, {workers} workers add up their gradients with `all_reduce(SUM)` and then call `apply`,
        which adds them up again. The optimizer is {optimizer} with a rate of {rate}. By what factor is the first
        step too large, about?""")
    item.right(factor[optimizer]).why("""The gradient is that many times too large for SGD; Adam divides by the
        gradient's own size, so the factor cancels.""")
    item.wrong(other(factor, optimizer), "The other optimizer").why("Ask whether its step grows with the gradient.")
    item.wrong(workers**2, "Squared").why("The first sum is what it should be; only the second one is too many.")
    item.wrong(math.sqrt(workers), "The square root").why(f"""A sum of {workers} equal gradients is {workers} times one
        of them.""")


def averaged_before(item: Item, workers: int = pick(2, 4, 8, 16), rate: float = pick(0.01, 0.05, 0.1)) -> None:
    item.choose(f"""{workers} workers average their gradients with `all_reduce(MEAN)` before they call `apply`. The loss
        is divided by the global batch size; SGD has a rate of {rate}. By what factor is a step too large?""")
    item.right(1).why("`apply` adds up as many equal means as there are workers: that is the sum. It costs time.")
    item.wrong(workers, "As with SUM").why("A sum before, and again in `apply`, is that many times too large.")
    item.wrong(1 / workers, "Divided once too often").why("The sum in `apply` makes up for the mean.")
    item.wrong(workers**2, "Multiplied twice").why("The mean does not multiply.")


def divisor(item: Item, workers: int = pick(2, 4, 8), batch: int = pick(16, 32, 64)) -> None:
    item.enter(f"""{workers} workers have {batch} images each per step, and `apply` adds up their gradients. By how
        many images must each worker divide the sum of its losses?""")
    item.right(workers * batch, "images").why("By the global batch: then the sum of the gradients is that of the mean.")
    item.wrong(batch, "Its own batch").why(f"The sum of the gradients would be {workers} times too large.")
    item.wrong(workers, "The workers").why("The loss of a batch is a mean over images.")
    item.wrong(workers**2 * batch, "Divided twice").why("The gradients are added up, not averaged.")


def clipped(item: Item, workers: int = pick(2, 4, 8, 16), norm: float = pick(0.5, 1.0, 5.0)) -> None:
    item.enter(f"""{workers} workers add up the whole gradient with `all_reduce(SUM)`, clip its norm to {norm:g}, and
        call `apply` of Keras 3. By what must they divide the clipped gradient?""")
    item.right(workers).why("`apply` adds up as many equal parts as there are workers.")
    item.wrong(1, "Nothing to do").why("Then the step is too large: `apply` adds the same gradient several times.")
    item.wrong(workers**2, "Squared").why("Only the second sum is too many.")
    item.wrong(math.sqrt(workers), "The square root").why("Equal gradients add up in proportion to their number.")


def part_of_a_batch(item: Item, batch: int = pick(64, 128, 256), devices: int = pick(2, 4, 8)) -> None:
    item.enter(f"""On JAX `DataParallel` trains with a global batch of {batch} images on {devices} devices. How many
        images does each device get per step?""")
    item.right(batch // devices, "images").why("The batch is divided; every device has the whole kernel.")
    item.wrong(batch, "All of them").why("That is so under `ModelParallel` without a batch axis.")
    item.wrong(batch * devices, "A batch for each").why("The batch size that `fit` takes is the global one.")
    item.wrong(devices, "The devices").why("That is the number of parts.")


def part_of_a_kernel(item: Item, units: int = pick(16, 64, 128), devices: int = pick(2, 4, 8)) -> None:
    item.enter(f"""On JAX a layout divides the columns of a kernel of 784 × {units} over {devices} devices. How many
        weights of it does each device hold?""")
    item.right(784 * units // devices, "weights").why(f"784 rows and {units // devices} columns.")
    item.wrong(784 * units, "The whole kernel").why("That is so if the LayoutMap's key does not match its path.")
    item.wrong(units // devices, "The columns").why("Each column has 784 numbers.")
    item.wrong(784 * units // devices**2, "Both axes").why("Only the columns are divided.")


def key_of_a_layout(item: Item, layer: str = pick("hidden", "first", "dense_1", "encoder")) -> None:
    item.choose(f"Which key of a LayoutMap divides the kernel with the path `sequential/{layer}/kernel`?")
    item.right(f"`.*{layer}/kernel`").why("The pattern must match the whole path.")
    for key in (f"{layer}/kernel", layer, "/kernel"):
        item.wrong(f"`{key}`", "A part of the path").why("It matches nothing, and Keras gives no warning.")


def one_worker_only(item: Item, workers: int = pick(2, 3, 4, 8)) -> None:
    item.choose(f"""`fit` of Keras 3 under MultiWorkerMirroredStrategy passes a test with one worker and fails with
        {workers}. Why?""")
    item.right("With several, it gets one value per replica, and expects one tensor").why("""Its `fit` was written for
        replicas in one process; a custom loop works.""")
    item.wrong("The global batch is too large", "A matter of size").why("It fails with any batch.")
    item.wrong("TF_CONFIG is wrong", "A matter of the cluster").why("A loop works with the same TF_CONFIG.")
    item.wrong("Adam is not supported", "A matter of the optimizer").why("It fails with SGD, too.")


def devices_that_compute(
    item: Item, devices: int = pick(2, 4, 8), kind: str = pick("DataParallel", "ModelParallel")
) -> None:
    item.choose(f"`keras.distribution.{kind}` is set for {devices} devices; the backend is TensorFlow. What computes?")
    item.right("One device").why("On TensorFlow the layouts are accepted and ignored; the result is right.")
    item.wrong(f"All {devices} devices", "As on JAX").why("TensorFlow's way to several devices is `MirroredStrategy`.")
    item.wrong("None: it fails", "An error").why("It runs, on one device.")
    item.wrong("All, but one after the other", "In turns").why("The others idle.")


def counter_of_the_optimizer(item: Item, workers: int = pick(2, 4), updates: int = pick(200, 400, 1_000)) -> None:
    item.choose(f"""In a loop of Keras 3, {workers} workers make {updates:,} updates under ParameterServerStrategy, and
        `optimizer.iterations` is less in the end. What is safe?""")
    item.right("SGD with a constant rate").why("Every gradient reaches the weights; only the counter loses updates.")
    for what in ("Adam", "A learning rate that decays", "SGD with a warm-up"):
        item.wrong(what, "It reads the counter").why("Its size of a step depends on the number of updates.")

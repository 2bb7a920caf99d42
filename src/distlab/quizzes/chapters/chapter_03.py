"""MirroredStrategy: the global batch, the last batch, reductions, and what a comparison of weights says."""

import math

from distlab import checks, costs
from distlab.large_batch import FourNumbers
from distlab.quizzes import simulations
from distlab.quizzes.item import Item, Wrong, number, one_number_of, one_of, several_of
from distlab.quizzes.numbers import Numbers


def literal_batch(numbers: Numbers) -> Item:
    """How many images does a replica get from a literal batch size?"""
    batch = numbers.pick("batch", (64, 128, 256))
    replicas = numbers.pick("replicas", (4, 8, 16))
    share = FourNumbers.of_global_batch(60_000, replicas, batch, 0.01, batch).per_replica_batch
    return number(
        f"A program was written for two GPUs and contains `batch({batch})`. It runs unchanged under MirroredStrategy "
        "on "
        f"{replicas} GPUs. How many images does each get in a step?",
        share,
        "images",
        "`batch` sets the global batch size, which the strategy divides.",
        Wrong(batch, "A batch for each", "The number is that of the global batch."),
        Wrong(batch // 2, "As on two GPUs", "The strategy divides by the number of replicas that it has."),
        Wrong(batch * replicas, "The batch grows", "A literal number does not grow with the replicas."),
        exact=True,
    )


def intended_steps(numbers: Numbers) -> Item:
    """How many steps has an epoch with a computed batch size?"""
    images = numbers.pick("images", (8_000, 50_000, 60_000))
    replicas = numbers.pick("replicas", (2, 4, 8))
    batch = numbers.pick("batch", (32, 50, 100))
    steps = math.ceil(images / (batch * replicas))
    return one_number_of(
        f"{images:,} images, {replicas} replicas, `batch({batch} * strategy.num_replicas_in_sync)`, no remainder "
        "dropped. How "
        "many steps has an epoch?",
        steps,
        "steps",
        f"The global batch has {batch * replicas} images; the last one may be smaller.",
        Wrong(math.ceil(images / batch), "The per-replica batch", "A step takes the images of all replicas."),
        Wrong(math.ceil(images / replicas), "The batch forgotten", "A step takes a whole batch per replica."),
        Wrong(
            math.ceil(images / (batch * replicas * replicas)), "Divided twice", "All replicas make each step together."
        ),
        exact=True,
    )


def replicas_of_a_list(numbers: Numbers) -> Item:
    """What do devices do that are not in the list?"""
    gpus = numbers.pick("gpus", (4, 8))
    chosen = numbers.pick("chosen", (2, 3))
    batch = numbers.pick("batch", (32, 64))
    return several_of(
        f"A machine has {gpus} GPUs. `MirroredStrategy` gets a list of {chosen} of them, and the program computes its "
        "batch "
        f"size as {batch} times `num_replicas_in_sync`. What is true?",
        {
            f"The global batch has {FourNumbers(60_000, chosen, batch, 0.01, batch).global_batch} images.": (
                "There is one replica per device in the list."
            ),
            f"{gpus - chosen} GPUs stay idle.": "Devices that are not in the list do nothing.",
        },
        Wrong(f"The global batch has {gpus * batch} images.", "All GPUs counted", "The list chooses the devices."),
        Wrong(f"Each weight has {gpus} copies.", "A copy on every GPU", "Only replicas have copies."),
        Wrong(
            "The first GPU computes, the others hold data.", "One computes", "All replicas compute at the same time."
        ),
    )


def weight_of_an_image(numbers: Numbers) -> Item:
    """Which weight has an image of an uneven last batch?"""
    parts = numbers.pick("parts", ((3, 3, 3, 1), (2, 2, 1), (4, 4, 2), (2, 2, 2, 1), (5, 5, 5, 3)))
    place = numbers.pick("place", (0, -1))
    replicas = len(parts)
    return one_number_of(
        f"The last batch is divided among {replicas} replicas: {', '.join(map(str, parts))} images. `fit` averages "
        "over each "
        f"part, then over the replicas. Which weight has an image of a part of {parts[place]} in the gradient?",
        1 / (replicas * parts[place]),
        "",
        f"1 / (R b): the part's mean, divided by the {replicas} replicas.",
        Wrong(1 / sum(parts), "As on one device", "That is its weight if one device has the whole batch."),
        Wrong(1 / parts[place], "The part's mean alone", "The mean over the replicas divides it again."),
        Wrong(1 / (replicas * parts[-1 if place == 0 else 0]), "Another part", "Each part divides by its own images."),
    )


def one_image_left(numbers: Numbers) -> Item:
    """How long is a step with a single image?"""
    replicas = numbers.pick("replicas", (2, 4, 5, 8))
    rate = numbers.pick("rate", (0.1, 0.2, 0.4))
    return number(
        "The last batch of an epoch has one image, whose gradient for a weight is 1. `fit` trains with SGD and a rate "
        f"of {rate}"
        f" on {replicas} replicas. By how much does the weight change?",
        rate * simulations.all_reduced((1.0, *([0.0] * (replicas - 1)))) / replicas,
        "",
        "The empty replicas contribute 0, and the average still divides by all replicas.",
        Wrong(rate, "As on one device", "The mean over the replicas divides by those without an image, too."),
        Wrong(rate * replicas, "Every replica has it", "Only one replica has the image."),
        Wrong(rate / replicas**2, "Divided twice", "One mean is over the one image, the other over the replicas."),
    )


def messages_of_device_0(numbers: Numbers) -> Item:
    """How many messages pass through device 0?"""
    devices = numbers.pick("devices", (3, 4, 6, 8))
    megabytes = numbers.pick("megabytes", (10, 40, 100))
    cost = costs.all_reduce("naive", devices, float(megabytes))
    return one_number_of(
        f"{devices} devices reduce a gradient of {megabytes} MB with `ReductionToOneDevice`. How many MB does device 0 "
        "send and "
        "receive together?",
        float(cost.steps) * megabytes,
        "MB",
        f"It receives {devices - 1} gradients and sends {devices - 1} sums.",
        Wrong((devices - 1) * megabytes, "One direction", "The sum must also go back."),
        Wrong(2 * megabytes, "Like a ring", "Here everything passes through one device."),
        Wrong(2 * devices * megabytes, "A message to itself", "Its own gradient need not travel."),
    )


def odd_hierarchy(numbers: Numbers) -> Item:
    """What does hierarchical copy give on an odd number of devices?"""
    devices = numbers.pick("devices", (3, 5, 7, 9))
    times = numbers.pick("times", (1, 2, 10))
    gradients = tuple(float(times * place) for place in range(1, devices + 1))
    in_groups = gradients[: devices // 2 * 2]
    return one_number_of(
        f"{devices} devices have the gradients {', '.join(f'{each:g}' for each in gradients)}. What does "
        "`HierarchicalCopyAllReduce` leave on them?",
        simulations.all_reduced(in_groups),
        "",
        "It makes two groups of ⌊p/2⌋ devices; the last one is in no group, and its gradient is lost without a "
        "warning.",
        Wrong(
            sum(gradients),
            "A right sum",
            "That would be the sum of all; compare it with the result before you trust it.",
        ),
        Wrong(sum(gradients) / devices, "The mean", "The reduction adds."),
        Wrong(gradients[-1], "The last gradient", "This is the one that is lost."),
        exact=True,
    )


def diagnose_two_programs(numbers: Numbers) -> Item:
    """Why does this distributed program learn little?"""
    classes = numbers.pick("classes", (10, 20))
    fault = numbers.pick("fault", ("loss", "shuffle"))
    chance = math.log(classes)
    first = chance * (2.6 if fault == "loss" else 1.02)
    answers = {"loss": "The loss does not fit the last layer", "shuffle": "The pipeline does not shuffle"}
    mistaken = answers["shuffle" if fault == "loss" else "loss"]
    return one_of(
        f"The images of {classes} classes are stored class by class and fed as a `tf.data` pipeline. Under "
        "MirroredStrategy the "
        "test accuracy stays low. What do you look at first?",
        answers[fault],
        f"ln {classes} is {chance:.2f}. Before training only data, network and loss take part; a right first loss "
        "leaves the "
        "order of the images.",
        Wrong(mistaken, "The first loss misread", "Compare it with the loss of a network that knows nothing."),
        Wrong(
            "The strategy: train on one device",
            "The devices",
            "A strategy changes neither the first loss nor the order.",
        ),
        Wrong(
            "The learning rate is too large for two devices",
            "The rate",
            "Nothing has been trained before the first loss.",
        ),
        block=f"loss before training: {first:.2f}\ntest accuracy after 3 epochs: {2.1 / classes:.2f}",
    )


def as_fast_as_one(numbers: Numbers) -> Item:
    """Why are several GPUs as fast as one?"""
    gpus = numbers.pick("gpus", (4, 8))
    batch = numbers.pick("batch", (32, 64, 128))
    share = FourNumbers.of_global_batch(60_000, gpus, batch, 0.01, batch).per_replica_batch
    return one_of(
        f"Under MirroredStrategy your run on {gpus} GPUs is as fast as on one. The program has `batch({batch})`, as it "
        "had on one "
        "GPU. What do you look at first?",
        f"The global batch size: each GPU gets {share} images",
        "So few images leave a GPU idle, and the number of steps, each with an all-reduce, has stayed the same.",
        Wrong("The reduction: another one is faster", "The all-reduce", "First find out whether it takes the time."),
        Wrong(
            f"`num_replicas_in_sync`: if it says {gpus}, all is well",
            "Replicas counted",
            "It does not say that they are busy.",
        ),
        Wrong("The accuracy", "Quality for speed", "It does not change with speed."),
    )


def dropout_or_mistake(numbers: Numbers) -> Item:
    """What does a difference between the runs say?"""
    dropout = numbers.pick("dropout", (0.0, 0.2))
    difference = numbers.pick("difference", (0.01, 0.03, 0.2))
    replicas = numbers.pick("replicas", (2, 4))
    is_large = difference > checks.TOLERANCE
    answers = {
        True: "Nothing yet: compare again without dropout",
        False: "A mistake, such as a wrong batch size or a lost replica",
    }
    right = answers[bool(dropout) and is_large]
    wrong = answers[not (bool(dropout) and is_large)]
    return one_of(
        f"After 20 steps of SGD with equal batches, {replicas} replicas and one device differ by up to {difference} in "
        "a weight. "
        f"The network has {'a dropout of ' + str(dropout) if dropout else 'no dropout'}. What follows?",
        right,
        "Each replica draws its own dropout mask; without dropout only rounding may differ, far less than this.",
        Wrong(wrong, "Dropout not considered", "Ask whether the two runs draw the same random numbers."),
        Wrong("Rounding: the additions have another order", "Rounding", "Rounding stays below 0.00001 here."),
        Wrong("The strategy does not copy the weights", "Copies", "All copies start equal and stay equal."),
    )


TEMPLATES = (
    replicas_of_a_list,
    literal_batch,
    diagnose_two_programs,
    intended_steps,
    weight_of_an_image,
    one_image_left,
    messages_of_device_0,
    odd_hierarchy,
    dropout_or_mistake,
    as_fast_as_one,
)

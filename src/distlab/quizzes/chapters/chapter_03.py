"""MirroredStrategy: the global batch, the last batch, reductions, and what a comparison of weights says."""

import math

from distlab import checks, costs
from distlab.quizzes.item import Item, other, pick


def replicas_of_a_list(item: Item, gpus: int = pick(4, 8), chosen: int = pick(2, 3), batch: int = pick(32, 64)) -> None:
    item.choose(f"""A machine has {gpus} GPUs. `MirroredStrategy` gets a list of {chosen} of them, and the program
        computes its batch size as {batch} times `num_replicas_in_sync`. What is true?""")
    item.right(f"The global batch has {chosen * batch} images.").why("There is one replica per device in the list.")
    item.right(f"{gpus - chosen} GPUs stay idle.").why("Devices that are not in the list do nothing.")
    item.wrong(f"The global batch has {gpus * batch} images.", "All GPUs counted").why("The list chooses the devices.")
    item.wrong(f"Each weight has {gpus} copies.", "A copy on every GPU").why("Only replicas have copies.")
    item.wrong("The first GPU computes, the others hold data.", "One computes").why("""All replicas compute at the same
        time.""")


def literal_batch(item: Item, batch: int = pick(64, 128, 256), replicas: int = pick(4, 8, 16)) -> None:
    item.enter(f"""A program was written for two GPUs and contains `batch({batch})`. It runs unchanged under
        MirroredStrategy on {replicas} GPUs. How many images does each get in a step?""")
    item.right(batch // replicas, "images").why("`batch` sets the global batch size, which the strategy divides.")
    item.wrong(batch, "A batch for each").why("The number is that of the global batch.")
    item.wrong(batch // 2, "As on two GPUs").why("The strategy divides by the number of replicas that it has.")
    item.wrong(batch * replicas, "The batch grows").why("A literal number does not grow with the replicas.")


def diagnose_two_programs(item: Item, classes: int = pick(10, 20), fault: str = pick("loss", "shuffle")) -> None:
    chance = math.log(classes)
    first = chance * (2.6 if fault == "loss" else 1.02)
    answers = {"loss": "The loss does not fit the last layer", "shuffle": "The pipeline does not shuffle"}
    item.choose(f"""The images of {classes} classes are stored class by class and fed as a `tf.data` pipeline. Under
        MirroredStrategy the test accuracy stays low. What do you look at first?""")
    item.block = f"loss before training: {first:.2f}\ntest accuracy after 3 epochs: {2.1 / classes:.2f}"
    item.right(answers[fault]).why(f"""ln {classes} is {chance:.2f}. Before training only data, network and loss take
        part; a right first loss leaves the order of the images.""")
    item.wrong(other(answers, fault), "The first loss misread").why("""Compare it with the loss of a network that knows
        nothing.""")
    item.wrong("The strategy: train on one device", "The devices").why("""A strategy changes neither the first loss nor
        the order.""")
    item.wrong("The learning rate is too large for two devices", "The rate").why(
        "The first loss is computed before any update."
        if fault == "loss"
        else "The number of devices changes neither the rate nor this program's batches."
    )


def intended_steps(
    item: Item, images: int = pick(8_000, 50_000, 60_000), replicas: int = pick(2, 4, 8), batch: int = pick(32, 50, 100)
) -> None:
    steps = math.ceil(images / (batch * replicas))
    item.choose(f"""{images:,} images, {replicas} replicas, `batch({batch} * strategy.num_replicas_in_sync)`, no
        remainder dropped. How many steps does an epoch have?""")
    item.right(steps, "steps").why(f"The global batch has {batch * replicas} images; the last one may be smaller.")
    item.wrong(math.ceil(images / batch), "The per-replica batch").why("A step takes the images of all replicas.")
    item.wrong(math.ceil(images / replicas), "Batch size forgotten").why("A step takes a whole batch per replica.")
    item.wrong(math.ceil(images / (batch * replicas * replicas)), "Divided twice").why("""All replicas make each step
        together.""")


def weight_of_an_image(
    item: Item,
    parts: tuple[int, ...] = pick((3, 3, 3, 1), (2, 2, 1), (4, 4, 2), (2, 2, 2, 1), (5, 5, 5, 3)),
    place: int = pick(0, -1),
) -> None:
    replicas = len(parts)
    item.choose(f"""The last batch is divided among {replicas} replicas: {", ".join(map(str, parts))} images. `fit`
        averages over each part, then over the replicas. With which weight does an image of a part of {parts[place]}
        count in the gradient?""")
    item.right(1 / (replicas * parts[place])).why(f"1 / (R b): the part's mean, divided by the {replicas} replicas.")
    item.wrong(1 / sum(parts), "As on one device").why("That is its weight if one device has the whole batch.")
    item.wrong(1 / parts[place], "The part's mean alone").why("The mean over the replicas divides it again.")
    item.wrong(1 / (replicas * parts[-1 if place == 0 else 0]), "Another part").why("""Each part divides by its own
        images.""")


def one_image_left(item: Item, replicas: int = pick(2, 4, 5, 8), rate: float = pick(0.1, 0.2, 0.4)) -> None:
    item.enter(f"""The last batch of an epoch has one image, whose gradient for a weight is 1. `fit` trains with SGD and
        a rate of {rate} on {replicas} replicas. By how much does the weight change?""")
    item.right(rate / replicas).why("The empty replicas contribute 0, and the average still divides by all replicas.")
    item.wrong(rate, "As on one device").why("The mean over the replicas divides by those without an image, too.")
    item.wrong(rate * replicas, "Every replica has it").why("Only one replica has the image.")
    item.wrong(rate / replicas**2, "Divided twice").why("One mean is over the one image, the other over the replicas.")


def messages_of_device_0(item: Item, devices: int = pick(3, 4, 6, 8), megabytes: int = pick(10, 40, 100)) -> None:
    cost = costs.all_reduce("naive", devices, float(megabytes))
    item.choose(f"""{devices} devices reduce a gradient of {megabytes} MB with `ReductionToOneDevice`. How many MB does
        device 0 send and receive together?""")
    item.right(float(cost.steps) * megabytes, "MB").why(f"""It receives {devices - 1} gradients and sends {devices - 1}
        sums.""")
    item.wrong((devices - 1) * megabytes, "One direction").why("The sum must also go back.")
    item.wrong(2 * megabytes, "Like a ring").why("Here everything passes through one device.")
    item.wrong(2 * devices * megabytes, "A message to itself").why("Its own gradient need not travel.")


def odd_hierarchy(item: Item, devices: int = pick(3, 5, 7, 9), times: int = pick(1, 2, 10)) -> None:
    gradients = tuple(range(times, times * devices + 1, times))
    item.choose(f"""{devices} devices have the gradients {", ".join(map(str, gradients))}. What does
        `HierarchicalCopyAllReduce` leave on them?""")
    item.right(sum(gradients[:-1])).why("""It makes two groups of ⌊p/2⌋ devices; the last one is in no group, and its
        gradient is lost without a warning.""")
    item.wrong(
        sum(gradients), "The correct sum"
    ).why("""That would be the sum of all; compare it with the result before you
        trust it.""")
    item.wrong(sum(gradients) / devices, "The mean").why("The reduction adds.")
    item.wrong(gradients[-1], "The last gradient").why("This is the one that is lost.")


def dropout_or_mistake(
    item: Item, dropout: float = pick(0.0, 0.2), difference: float = pick(0.01, 0.03, 0.2), replicas: int = pick(2, 4)
) -> None:
    masks, mistake = (
        "Nothing yet: compare again without dropout",
        "A mistake, such as a wrong batch size or a lost replica",
    )
    right, wrong = (masks, mistake) if dropout and difference > checks.TOLERANCE else (mistake, masks)
    item.choose(f"""After 20 steps of SGD with equal batches, {replicas} replicas and one device differ by up to
        {difference} in a weight. The network has {"a dropout of " + str(dropout) if dropout else "no dropout"}. What
        follows?""")
    item.right(right).why("""Each replica draws its own dropout mask; without dropout only rounding may differ, far less
        than this.""")
    why = "Ask whether the two runs draw the same random numbers." if dropout else "The network has no dropout."
    item.wrong(wrong, "Dropout not considered" if dropout else "No dropout here").why(why)
    item.wrong("Rounding: the additions have another order", "Rounding").why("Rounding stays below 0.00001 here.")
    item.wrong("The strategy does not copy the weights", "Copies").why("All copies start equal and stay equal.")


def as_fast_as_one(item: Item, gpus: int = pick(4, 8), batch: int = pick(32, 64, 128)) -> None:
    item.choose(f"""Under MirroredStrategy your run on {gpus} GPUs is as fast as on one. The program has
        `batch({batch})`, as it had on one GPU. What do you look at first?""")
    item.right(f"The global batch size: each GPU gets {batch // gpus} images").why("""So few images leave a GPU idle,
        and the number of steps, each with an all-reduce, has stayed the same.""")
    item.wrong("The reduction: another one is faster", "The all-reduce").why("""First find out whether it takes the
        time.""")
    item.wrong(f"`num_replicas_in_sync`: if it says {gpus}, all is well", "Replicas counted").why("""It does not say
        that they are busy.""")
    item.wrong("The accuracy", "Quality for speed").why("It does not change with speed.")

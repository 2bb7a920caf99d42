"""Start here: links, logical devices, the all-reduce, and the proof by equal weights."""

import numpy as np

from distlab import checks, costs
from distlab.quizzes import simulations
from distlab.quizzes.item import Item, Wrong, number, one_number_of, one_of
from distlab.quizzes.numbers import Numbers, figure


def gradient_over_ethernet(numbers: Numbers) -> Item:
    """How long does a gradient travel?"""
    millions = numbers.pick("millions", (5, 25, 60, 110, 340))
    gigabits = numbers.pick("gigabits", (1, 10, 25, 100))
    seconds = float(costs.message(4e6 * millions).seconds(0.0, 8e-9 / gigabits))
    return number(
        f"A model has {millions} million parameters of 4 bytes. How many ms does its gradient travel over Ethernet "
        "with "
        f"{gigabits} Gbit/s, once in one direction?",
        seconds,
        "ms",
        f"{4 * millions:,} MB at {figure(gigabits / 8)} GB/s: a byte has 8 bits.",
        Wrong(seconds / 8, "Bits taken for bytes", "The link's speed is in bits, the gradient's size in bytes."),
        Wrong(seconds / 4, "One byte per parameter", "A 32-bit number has 4 bytes."),
        Wrong(seconds * 8, "Times 8 twice", "The bits are counted once, in the size or in the speed."),
        scale=1e3,
    )


def two_links(numbers: Numbers) -> Item:
    """How many times faster is one link than another?"""
    gigabytes = numbers.pick("gigabytes", (50, 63, 450))
    gigabits = numbers.pick("gigabits", (1, 10, 25))
    slow, fast = (float(costs.message(1e8).seconds(0.0, each)) for each in (8e-9 / gigabits, 1e-9 / gigabytes))
    return one_number_of(
        f"One link moves {gigabytes} GB/s, another one {gigabits} Gbit/s. How many times faster is the first?",
        slow / fast,
        "times",
        f"{gigabits} Gbit/s are {figure(gigabits / 8)} GB/s.",
        Wrong(gigabytes / gigabits, "Bits taken for bytes", "One speed is in bytes, the other one in bits."),
        Wrong(
            gigabytes / gigabits / 8, "Divided by 8", "The speed in bits is the one that shrinks when it is converted."
        ),
        Wrong(gigabytes - gigabits / 8, "A difference", "How many times asks for a quotient."),
    )


def nearest_gpus(numbers: Numbers) -> Item:
    """Which GPUs exchange data fastest?"""
    entries = numbers.several("entries", ("NV4", "PIX", "PHB", "NODE", "SYS"), 3)
    speeds = ("NV4", "PIX", "PXB", "PHB", "NODE", "SYS")
    pairs = ((0, 1), (0, 2), (1, 2))
    best = min(range(3), key=lambda place: speeds.index(entries[place]))
    names = [f"GPU {first} and GPU {second}" for first, second in pairs]
    wrong = (
        Wrong(
            names[place],
            f"{entries[place]} seems nearer",
            f"`{entries[place]}` is a slower way than `{entries[best]}`.",
        )
        for place in range(3)
        if place != best
    )
    return one_of(
        "Which two GPUs exchange gradients fastest? The matrix is that of `nvidia-smi topo -m`.",
        names[best],
        f"`{entries[best]}` is the fastest of the three ways.",
        *wrong,
        Wrong("All pairs alike", "GPUs of one host", "Within a host links differ, too."),
        block=(
            "       GPU0   GPU1   GPU2\n"
            f"GPU0   X      {entries[0]:<6} {entries[1]}\n"
            f"GPU1   {entries[0]:<6} X      {entries[2]}\n"
            f"GPU2   {entries[1]:<6} {entries[2]:<6} X"
        ),
    )


def changed_parameter(numbers: Numbers) -> Item:
    """How many logical devices are there after a change?"""
    before = numbers.pick("before", (2, 3, 4))
    after = numbers.pick("after", (6, 8))
    return one_number_of(
        f"You have run a notebook with `workers = {before}`. Now you change it to {after} and run all cells again, "
        "without "
        "a restart of the kernel. On how many logical devices can TensorFlow compute?",
        before,
        "devices",
        "TensorFlow fixes its devices when it first uses them. Restart the kernel, then run all cells.",
        Wrong(after, "A variable like others", "The variable changes, but the devices were fixed by their first use."),
        Wrong(before + after, "More are added", "The division cannot be extended after the first operation."),
        Wrong(1, "Back to one", "A failed division leaves the old one as it was."),
        exact=True,
    )


def logical_devices(numbers: Numbers) -> Item:
    """How fast are logical devices?"""
    devices = numbers.pick("devices", (2, 4, 8))
    rate = numbers.pick("rate", (800, 1_200, 4_800))
    return one_number_of(
        f"Training keeps all cores of a laptop busy and processes {rate:,} images per second. You divide the processor "
        f"into {devices} logical devices. How many images per second can you expect at best?",
        rate,
        "images/s",
        "Logical devices are names and places, not hardware: all of them share the same cores.",
        Wrong(rate * devices, "Names counted as hardware", "No core is added."),
        Wrong(rate / devices, "Each has its part only", "All devices together still use all cores."),
        Wrong(rate * (1 + devices) / 2, "Half of the gain", "There is nothing to gain if the cores are busy already."),
        exact=True,
    )


def sum_of_gradients(numbers: Numbers) -> Item:
    """Which gradient updates the weights?"""
    counts = numbers.pick("counts", ((48, 16), (40, 24), (60, 20)))
    means = numbers.pick("means", ((1.0, 3.0), (2.0, -2.0), (0.5, 4.5)))
    right = float(np.average(means, weights=counts))
    sums = [count * mean for count, mean in zip(counts, means, strict=True)]
    return number(
        f"Two devices share a batch. One has {counts[0]} images whose gradients have the mean {means[0]:g}, the other "
        "one "
        f"{counts[1]} with the mean {means[1]:g}. Which gradient must update the weight?",
        right,
        "",
        f"The sums are added, {figure(sums[0])} and {figure(sums[1])}, and divided by the {sum(counts)} images.",
        Wrong(float(np.mean(means)), "The mean of the means", "It gives images of the smaller part more weight."),
        Wrong(sum(means), "Means added", "Each is divided by its own part already, so the sum is too large."),
        Wrong(sum(sums), "Not divided", "The sum over the images must be divided by the batch."),
    )


def divided_by_the_own_part(numbers: Numbers) -> Item:
    """Which learning rate hides a wrong division?"""
    workers = numbers.pick("workers", (2, 4, 8))
    rate = numbers.pick("rate", (0.02, 0.05, 0.1))
    images = np.ones(64)
    wrong_gradient = sum(part.sum() / len(part) for part in np.array_split(images, workers))
    return one_number_of(
        f"Each of {workers} workers divides its summed gradient by the images of its own part, and the results are "
        "added. "
        f"The optimizer is SGD with a rate of {rate}. With which rate does a correct program train alike?",
        rate * wrong_gradient / images.mean(),
        "",
        f"The gradient is {workers} times too large, which SGD cannot distinguish from a larger rate.",
        Wrong(rate, "No difference", "The parts are smaller than the batch, so each quotient is larger."),
        Wrong(rate / workers, "Turned round", "The gradient is too large, not too small."),
        Wrong(rate * np.sqrt(workers), "The square root", "The sum grows with the number of workers itself."),
    )


def what_reveals_it(numbers: Numbers) -> Item:
    """Which comparison reveals a wrong gradient?"""
    workers = numbers.pick("workers", (2, 4, 8))
    batch = numbers.pick("batch", (64, 128))
    return one_of(
        f"{workers} workers share batches of {batch}, and you suspect that their gradient is {workers} times too "
        "large. "
        "What reveals it reliably?",
        "The weights after some steps of SGD, compared with one device",
        "Under SGD a factor in the gradient changes every weight, far more than rounding does.",
        Wrong("The accuracy after an epoch", "Accuracy as a test", "A larger step often works as well, or better."),
        Wrong(
            "The weights after some steps of Adam",
            "Adam as a test",
            "Adam divides by the gradient's size: it hides it.",
        ),
        Wrong("A loss that falls", "Learning as a test", "The loss falls with a gradient that is too large, too."),
    )


def sum_of_processes(numbers: Numbers) -> Item:
    """What has each process after an all-reduce?"""
    processes = numbers.pick("processes", (3, 4, 5, 6))
    times = numbers.pick("times", (1, 10))
    contributions = tuple(float(times * place) for place in range(1, processes + 1))
    total = simulations.all_reduced(contributions)
    return number(
        f"{processes} processes all-reduce one number each: {', '.join(f'{each:g}' for each in contributions)}. What "
        "has "
        "the first process afterwards?",
        total,
        "",
        "Every process contributes its number and gets the sum of all.",
        Wrong(total / processes, "The mean", "The plain all-reduce adds; dividing is another step."),
        Wrong(contributions[0], "Its own number", "After an all-reduce all processes have the same result."),
        Wrong(contributions[-1], "The largest", "It adds, it does not compare."),
        exact=True,
    )


def rounding_or_mistake(numbers: Numbers) -> Item:
    """Is a difference of weights a mistake?"""
    difference = numbers.pick("difference", (3e-8, 4e-7, 2e-6, 2e-3, 0.04, 0.3))
    workers = numbers.pick("workers", (2, 4))
    largest = checks.largest_difference([np.array([0.5])], [np.array([0.5 + difference])])
    rounding = "Nothing is wrong: the additions have another order."
    mistake = "Something is wrong, such as a part that is missing or counted twice."
    right, wrong = (rounding, mistake) if largest <= checks.TOLERANCE else (mistake, rounding)
    return one_of(
        f"Training on {workers} devices equals that on one device, except for weights that differ by up to "
        f"{difference:g}. "
        "Both used SGD and the same batches. What follows?",
        right,
        f"The course's tolerance is {checks.TOLERANCE:.5f}: rounding stays below it, real mistakes are much larger.",
        Wrong(wrong, "The size was not looked at", "Compare the difference with the tolerance."),
        Wrong("The seeds are different.", "Chance", "The same batches and first weights leave nothing to chance."),
        Wrong(
            "Training on several devices is less exact.",
            "Less exact by nature",
            "Apart from the order it is the same sum.",
        ),
    )


TEMPLATES = (
    changed_parameter,
    two_links,
    nearest_gpus,
    gradient_over_ethernet,
    logical_devices,
    sum_of_gradients,
    rounding_or_mistake,
    divided_by_the_own_part,
    what_reveals_it,
    sum_of_processes,
)

"""Start here: links, logical devices, the all-reduce, and the proof by equal weights."""

import numpy as np

from distlab import checks, costs
from distlab.quizzes.item import Item, figure, pick, pick_several


def changed_parameter(item: Item, before: int = pick(2, 3, 4), after: int = pick(6, 8)) -> None:
    item.choose(f"""You have run a notebook with `workers = {before}`. Now you change it to {after} and run all cells
        again, without a restart of the kernel. On how many logical devices can TensorFlow compute?""")
    item.right(before, "devices").why("""TensorFlow fixes its devices when it first uses them. Restart the kernel, then
        run all cells.""")
    item.wrong(after, "A variable like others").why("""The variable changes, but the devices were fixed by their first
        use.""")
    item.wrong(before + after, "More are added").why("The division cannot be extended after the first operation.")
    item.wrong(1, "Back to one").why("A failed division leaves the old one as it was.")


def two_links(item: Item, gigabytes: int = pick(50, 63, 450), gigabits: int = pick(1, 10, 25)) -> None:
    item.choose(f"One link moves {gigabytes} GB/s, another one {gigabits} Gbit/s. How many times faster is the first?")
    item.right(gigabytes / (gigabits / 8), "times").why(f"{gigabits} Gbit/s are {figure(gigabits / 8)} GB/s.")
    item.wrong(gigabytes / gigabits, "Bits taken for bytes").why("One speed is in bytes, the other one in bits.")
    item.wrong(gigabytes / gigabits / 8, "Divided by 8").why("""The speed in bits is the one that shrinks when it is
        converted.""")
    item.wrong(gigabytes - gigabits / 8, "A difference").why("How many times asks for a quotient.")


FASTEST_FIRST = ("NV4", "PIX", "PHB", "NODE", "SYS")


def nearest_gpus(item: Item, entries: tuple[str, ...] = pick_several(3, *FASTEST_FIRST)) -> None:
    best = min(range(3), key=lambda place: FASTEST_FIRST.index(entries[place]))
    names = ["GPU 0 and GPU 1", "GPU 0 and GPU 2", "GPU 1 and GPU 2"]
    item.choose("Which two GPUs exchange gradients fastest? The matrix is that of `nvidia-smi topo -m`.")
    item.block = (
        "       GPU0   GPU1   GPU2\n"
        f"GPU0   X      {entries[0]:<6} {entries[1]}\n"
        f"GPU1   {entries[0]:<6} X      {entries[2]}\n"
        f"GPU2   {entries[1]:<6} {entries[2]:<6} X"
    )
    item.right(names[best]).why(f"`{entries[best]}` is the fastest of the three ways.")
    for place in range(3):
        if place != best:
            item.wrong(names[place], f"{entries[place]} seems nearer").why(f"""`{entries[place]}` is a slower way than
                `{entries[best]}`.""")
    item.wrong("All pairs alike", "GPUs of one host").why("Within a host links differ, too.")


def gradient_over_ethernet(
    item: Item, millions: int = pick(5, 25, 60, 110, 340), gigabits: int = pick(1, 10, 25, 100)
) -> None:
    milliseconds = 1e3 * float(costs.message(4e6 * millions).seconds(0.0, 8e-9 / gigabits))
    item.enter(
        f"""A model has {millions} million parameters of 4 bytes. How many ms does it take to send its gradient
        once over Ethernet with {gigabits} Gbit/s?"""
    )
    item.right(milliseconds, "ms").why(f"{4 * millions:,} MB at {figure(gigabits / 8)} GB/s: a byte has 8 bits.")
    item.wrong(milliseconds / 8, "Bits taken for bytes").why("""The link's speed is in bits, the gradient's size in
        bytes.""")
    item.wrong(milliseconds / 4, "One byte per parameter").why("A 32-bit number has 4 bytes.")
    item.wrong(milliseconds * 8, "Times 8 twice").why("The bits are counted once, in the size or in the speed.")


def logical_devices(item: Item, devices: int = pick(2, 4, 8), rate: int = pick(800, 1_200, 4_800)) -> None:
    item.choose(f"""Training keeps all cores of a laptop busy and processes {rate:,} images per second. You divide the
        processor into {devices} logical devices. How many images per second can you expect at best?""")
    item.right(rate, "images/s").why("""Logical devices are names and places, not hardware: all of them share the same
        cores.""")
    item.wrong(rate * devices, "Names counted as hardware").why("No core is added.")
    item.wrong(rate / devices, "Each has its part only").why("All devices together still use all cores.")
    item.wrong(rate * (1 + devices) / 2, "Half of the gain").why("""There is nothing to gain if the cores are busy
        already.""")


def sum_of_gradients(
    item: Item,
    counts: tuple[int, int] = pick((48, 16), (40, 24), (60, 20)),
    means: tuple[float, float] = pick((1.0, 3.0), (2.0, -2.0), (0.5, 4.5)),
) -> None:
    sums = [count * mean for count, mean in zip(counts, means, strict=True)]
    item.enter(f"""Two devices share a batch. One has {counts[0]} images whose gradients have the mean {means[0]:g}, the
        other one {counts[1]} with the mean {means[1]:g}. Which gradient must update the weight?""")
    item.right(float(np.average(means, weights=counts))).why(f"""The sums are added, {figure(sums[0])} and
        {figure(sums[1])}, and divided by the {sum(counts)} images.""")
    item.wrong(float(np.mean(means)), "The mean of the means").why("It gives images of the smaller part more weight.")
    item.wrong(sum(means), "Means added").why("Each is divided by its own part already, so the sum is too large.")
    item.wrong(sum(sums), "Not divided").why("The sum over the images must be divided by the batch.")


def rounding_or_mistake(
    item: Item, difference: float = pick(3e-8, 4e-7, 2e-6, 2e-3, 0.04, 0.3), workers: int = pick(2, 4)
) -> None:
    largest = checks.largest_difference([np.array([0.5])], [np.array([0.5 + difference])])
    rounding = "Nothing is wrong: the additions have another order."
    mistake = "Something is wrong, such as a part that is missing or counted twice."
    right, wrong = (rounding, mistake) if largest <= checks.TOLERANCE else (mistake, rounding)
    item.choose(
        f"""The weights after training on {workers} devices differ from those after training on one by up to
        {difference:g}. Both used SGD, the same first weights and the same batches. What follows?"""
    )
    item.right(right).why(f"""The course's tolerance is {checks.TOLERANCE:.5f}: rounding stays below it, real mistakes
        are much larger.""")
    item.wrong(wrong, "The size was not looked at").why("Compare the difference with the tolerance.")
    item.wrong("The seeds are different.", "Chance").why("The same batches and first weights leave nothing to chance.")
    item.wrong("Training on several devices is less exact.", "Less exact by nature").why("""Apart from the order it is
        the same sum.""")


def divided_by_the_own_part(item: Item, workers: int = pick(2, 4, 8), rate: float = pick(0.02, 0.05, 0.1)) -> None:
    images = np.ones(64)
    wrong_gradient = sum(part.sum() / len(part) for part in np.array_split(images, workers))
    item.choose(f"""Each of {workers} workers divides its summed gradient by the images of its own part, and the results
        are added. The optimizer is SGD with a rate of {rate}. With which rate does a correct program give the
        same weights?""")
    item.right(rate * wrong_gradient / images.mean()).why(f"""The gradient is {workers} times too large, which SGD
        cannot distinguish from a larger rate.""")
    item.wrong(rate, "No difference").why("The parts are smaller than the batch, so each quotient is larger.")
    item.wrong(rate / workers, "Turned round").why("The gradient is too large, not too small.")
    item.wrong(rate * np.sqrt(workers), "The square root").why("The sum grows with the number of workers itself.")


def what_reveals_it(item: Item, workers: int = pick(2, 4, 8), batch: int = pick(64, 128)) -> None:
    item.choose(f"""{workers} workers share batches of {batch}, and you suspect that their gradient is {workers} times
        too large. What reveals it reliably?""")
    item.right("The weights after some steps of SGD, compared with one device").why("""Under SGD a factor in the
        gradient changes every weight, far more than rounding does.""")
    item.wrong("The accuracy after an epoch", "Accuracy as a test").why("A larger step often works as well, or better.")
    item.wrong("The weights after some steps of Adam", "Adam as a test").why("""Adam divides by the gradient's size: it
        hides it.""")
    item.wrong("A loss that falls", "Learning as a test").why("The loss falls with a gradient that is too large, too.")


def sum_of_processes(item: Item, processes: int = pick(3, 4, 5, 6), times: int = pick(1, 10)) -> None:
    contributions = tuple(range(times, times * processes + 1, times))
    total = sum(contributions)
    item.enter(f"""{processes} processes all-reduce one number each: {", ".join(map(str, contributions))}. What has the
        first process afterwards?""")
    item.right(total).why("Every process contributes its number and gets the sum of all.")
    item.wrong(total / processes, "The mean").why("The plain all-reduce adds; dividing is another step.")
    item.wrong(contributions[0], "Its own number").why("After an all-reduce all processes have the same result.")
    item.wrong(contributions[-1], "The largest").why("It adds, it does not compare.")

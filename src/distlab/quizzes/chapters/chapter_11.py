"""Scaling and profiling: images truly processed, efficiency, Amdahl's law, bus bandwidth, what profiles show."""

import numpy as np

from distlab import costs
from distlab.large_batch import global_batches
from distlab.quizzes.item import Item, Wrong, number, one_number_of, one_of, several_of
from distlab.quizzes.numbers import Numbers, figure


def images_processed(numbers: Numbers) -> Item:
    """How many images does an epoch process?"""
    images = numbers.pick("images", (50_000, 60_000))
    gpus = numbers.pick("gpus", (2, 4, 8))
    batch = numbers.pick("batch", (1024, 2048, 3000))
    steps = global_batches.steps_per_epoch(images, batch * gpus)
    return number(
        f"A program makes `images // (batch * size)` steps in an epoch: {images:,} images, {gpus} GPUs, batches of "
        f"{batch:,} each. How many images does an epoch process?",
        steps * batch * gpus,
        "images",
        f"{steps} steps of {batch * gpus:,} images; the rest is dropped.",
        Wrong(images, "The data set's size", "The last images do not fill a global batch and are dropped."),
        Wrong(steps * batch, "One GPU's images", f"Each of the {gpus} GPUs has a batch of its own."),
        Wrong((steps + 1) * batch * gpus, "Rounded up", "`//` rounds down."),
        exact=True,
    )


def true_efficiency(numbers: Numbers) -> Item:
    """Which efficiency is left after a recount?"""
    gpus = numbers.pick("gpus", (4, 8))
    batch = numbers.pick("batch", (2048, 3000, 4096))
    claimed = numbers.pick("claimed", (0.8, 0.86, 0.9))
    many, single = (global_batches.steps_per_epoch(60_000, batch * count) * batch * count for count in (gpus, 1))
    true = claimed * many / single
    return one_number_of(
        f"A table claims {100 * claimed:.0f} % efficiency on {gpus} GPUs: it divides 60,000 images by the epoch's "
        "time. The "
        "program "
        f"makes `60000 // ({batch} * gpus)` steps in an epoch. Which efficiency is left?",
        true,
        "%",
        f"{gpus} GPUs processed {many:,} images, one GPU {single:,}: the claim is multiplied by their ratio.",
        Wrong(claimed, "The claim as it is", "The numerator is wrong, and more so with more GPUs."),
        Wrong(claimed * single / many, "Turned round", "Fewer images were processed, so the efficiency is lower."),
        Wrong(many / single, "The share of the images", "The claimed efficiency is still a factor."),
        scale=100,
    )


def amdahl_speedup(numbers: Numbers) -> Item:
    """Which speed-up allows Amdahl's law?"""
    percent = numbers.pick("percent", (5, 10, 20, 25))
    ranks = numbers.pick("ranks", (8, 16, 32, 64))
    law = costs.Amdahl(percent / 100, 1 - percent / 100)
    return number(
        f"The serial share of a job is {percent} % of one rank's time. Which speed-up does Amdahl's law give on "
        f"{ranks} "
        "ranks?",
        float(law.speedup(ranks)),
        "",
        f"1 / ({percent / 100:g} + {1 - percent / 100:g}/{ranks}); the limit is {figure(law.largest_speedup)}.",
        Wrong(
            (1 - percent / 100) * ranks,
            "The share as efficiency",
            "The serial part does not get shorter with more ranks.",
        ),
        Wrong(law.largest_speedup, "The limit", "That needs any number of ranks."),
        Wrong(ranks, "Everything is divided", "The serial part is not divided among the ranks."),
    )


def serial_share_of(numbers: Numbers) -> Item:
    """Which serial share follows from one speed-up?"""
    ranks = numbers.pick("ranks", (4, 8, 16))
    share = numbers.pick("share", (0.1, 0.2, 0.3, 0.4))
    seconds = 100 * (share + (1 - share) / ranks)
    speedup = 100 / round(seconds, 1)
    implied = float(costs.serial_share(speedup, ranks))
    return one_number_of(
        f"One process needs 100 s, {ranks} processes need {seconds:.1f} s for the same work. Which serial share does "
        "that "
        "imply?",
        implied,
        "%",
        "T = s + w/p with s + w = 100 s: two equations for the two unknowns.",
        Wrong(speedup / ranks, "The efficiency", "That is speed-up over ranks; the serial share is another number."),
        Wrong(1 / speedup, "All that is left", "The time that is left also has the divided part, w/p."),
        Wrong(1 - 1 / speedup, "The saved time", "That is what was saved, not what cannot be divided."),
        scale=100,
    )


def strong_scaling(numbers: Numbers) -> Item:
    """Which efficiency has strong scaling?"""
    computing = numbers.pick("computing", (40, 60, 80, 120))
    exchange = numbers.pick("exchange", (5, 10, 15))
    ranks = numbers.pick("ranks", (4, 8))
    law = costs.Amdahl(float(exchange), float(computing))
    strong = computing / (ranks * float(law.seconds(ranks)))
    weak = computing / float(law.seconds(1))
    return one_number_of(
        f"A step computes for {computing} ms on one rank. With {ranks} ranks an all-reduce of {exchange} ms comes on "
        "top; "
        "nothing overlaps. Which efficiency has strong scaling?",
        strong,
        "%",
        f"Each rank computes for {figure(computing / ranks)} ms, but the all-reduce is as long as before.",
        Wrong(weak, "Weak scaling", "There the work per rank stays; here it is divided."),
        Wrong(ranks * strong / (ranks + 1), "One rank too many", "Efficiency is the speed-up divided by the ranks."),
        Wrong(1 / ranks, "No gain at all", "The computing is divided; only the all-reduce is not."),
        scale=100,
    )


def more_ranks_than_cores(numbers: Numbers) -> Item:
    """Which efficiency allows sharing of cores?"""
    cores = numbers.pick("cores", (2, 4, 6))
    ranks = cores * numbers.pick("times", (3, 4, 5, 8))
    return one_number_of(
        f"{ranks} ranks with one thread each share {cores} cores of a quiet machine. Which efficiency in weak scaling "
        "can "
        "be reached at most?",
        min(1, cores / ranks),
        "%",
        f"Each core has the work of {ranks // cores} ranks, so a step takes at least {ranks // cores} times as long.",
        Wrong(1, "Weak scaling is free", "That needs a core for each rank."),
        Wrong(1 / ranks, "One core for all", f"{cores} cores work at the same time."),
        Wrong((ranks - cores) / ranks, "The other ranks", "That is the share of the ranks that wait for a core."),
        scale=100,
        exact=True,
    )


def what_is_lost(numbers: Numbers) -> Item:
    """How much of the loss is the all-reduce?"""
    single = numbers.pick("single", (40, 50, 60))
    contention = numbers.pick("contention", (4, 6, 12))
    exchange = numbers.pick("exchange", (8, 15, 20))
    block = (
        f"one rank alone:                       {single:>4} ms\n"
        f"two ranks, without the all-reduce:    {single + contention:>4} ms\n"
        f"two ranks, with the all-reduce:       {single + contention + exchange:>4} ms"
    )
    return number(
        "The medians of a training step are below. How many ms does the all-reduce cost?",
        float(np.diff([single, single + contention, single + contention + exchange])[1]),
        "ms",
        f"The two ranks without an exchange lose {contention} ms by what they share, such as memory and clock rate.",
        Wrong(contention + exchange, "Everything that is lost", "Without the all-reduce two ranks are slower, too."),
        Wrong(contention, "The other suspect", "This is lost without any all-reduce."),
        Wrong(single + contention + exchange, "The whole step", "The step also computes."),
        exact=True,
        block=block,
    )


def bandwidths(numbers: Numbers) -> Item:
    """Which bus bandwidth has an all-reduce?"""
    ranks = numbers.pick("ranks", (4, 8, 16))
    megabytes = numbers.pick("megabytes", (100, 200, 400))
    milliseconds = numbers.pick("milliseconds", (20, 25, 50))
    bus = float(costs.bus_bandwidth("all_reduce", ranks, 1e6 * megabytes, 1e-3 * milliseconds)) / 1e9
    algorithm = float(costs.algorithm_bandwidth(1e6 * megabytes, 1e-3 * milliseconds)) / 1e9
    return one_number_of(
        f"An all-reduce of {megabytes} MB on {ranks} ranks takes {milliseconds} ms. Which bus bandwidth is that?",
        bus,
        "GB/s",
        f"The algorithm bandwidth is {figure(algorithm)} GB/s, and the factor 2(p − 1)/p.",
        Wrong(algorithm, "The algorithm bandwidth", "It falls with more ranks even if the links are as fast."),
        Wrong(
            algorithm * (ranks - 1) / ranks, "Half of the way", "An all-reduce moves each byte in both of its halves."
        ),
        Wrong(algorithm * ranks, "Times the ranks", "Each rank's link carries only its own part."),
    )


def bytes_in_a_profile(numbers: Numbers) -> Item:
    """How many bytes does an MPI profile show?"""
    parameters = numbers.pick("parameters", (100_000, 250_000, 700_000))
    steps = numbers.pick("steps", (9, 20, 50))
    epochs = numbers.pick("epochs", (2, 3, 4))
    ranks = numbers.pick("ranks", (4, 8))
    whole = 4 * parameters * steps * epochs
    travelled = float(costs.all_reduce("ring", ranks, whole).largest_bytes_sent)
    return several_of(
        f"A network of {parameters:,} float32 weights trains on {ranks} ranks for {epochs} epochs of {steps} steps, "
        "with "
        "Horovod over MPI. An MPI profile counts calls and bytes. What is true?",
        {
            f"Each rank passes {whole / 1e6:,.1f} MB of gradient to `MPI_Allreduce`.": "4 bytes per weight and step.",
            "Seconds in `MPI_Allreduce` are partly waiting for other ranks.": "Time in MPI is not time on the network.",
        },
        Wrong(
            f"The profile shows that each rank sends {travelled / 1e6:,.1f} MB.",
            "What travels inside",
            "The profile shows what is passed to the call, not what the algorithm sends.",
        ),
        Wrong(
            f"Each rank passes {whole / steps / 1e6:,.1f} MB of gradient to `MPI_Allreduce`.",
            "Once per epoch",
            "Gradients are all-reduced in every step.",
        ),
        Wrong(
            "If NCCL carries the gradients, the profile shows its calls.",
            "NCCL is not MPI",
            "An MPI profile does not show them.",
        ),
    )


def who_is_late(numbers: Numbers) -> Item:
    """What does this timeline say?"""
    ranks = 4
    late = numbers.pick("late", (0, 1, 2, 3))
    tensors = numbers.pick("tensors", (200, 400, 800))
    counts = [tensors // 100] * ranks
    counts[late] = tensors - sum(counts) + counts[late]
    slowest = int(np.argmax(counts))
    return one_of(
        f"In the timeline of Horovod most of the time is negotiating. For {tensors} all-reduced tensors the table says "
        "how often each rank was the last to be ready. What do you do first?",
        f"Find out why rank {slowest} is slow",
        "Negotiating is waiting, and one rank is nearly always the last: a straggler.",
        Wrong(
            "Buy a faster network", "Waiting taken for sending", "A faster network does not make the late rank earlier."
        ),
        Wrong(
            "Switch the negotiation off", "Negotiation is expensive", "It is long because the others wait for one rank."
        ),
        Wrong(
            f"Find out why rank {(slowest + 1) % ranks} is slow",
            "The table misread",
            "The straggler is the one that is last.",
        ),
        block="\n".join(f"rank {rank}: last {count:>4} times" for rank, count in enumerate(counts)),
    )


TEMPLATES = (
    images_processed,
    true_efficiency,
    amdahl_speedup,
    serial_share_of,
    strong_scaling,
    more_ranks_than_cores,
    what_is_lost,
    bandwidths,
    who_is_late,
    bytes_in_a_profile,
)

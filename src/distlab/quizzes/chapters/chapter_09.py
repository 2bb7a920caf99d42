"""Horovod: ranks and local ranks, the eight steps and their absence, options of the all-reduce."""

import math

import numpy as np

from distlab.cluster_spec import gloo
from distlab.large_batch import FourNumbers
from distlab.quizzes import simulations
from distlab.quizzes.item import Item, Wrong, number, one_number_of, one_of
from distlab.quizzes.numbers import Numbers, figure


def local_rank(numbers: Numbers) -> Item:
    """Which GPU has a rank?"""
    hosts = numbers.pick("hosts", (3, 4))
    gpus = numbers.pick("gpus", (3, 4, 6))
    rank = numbers.pick("rank", (5, 7, 8))
    slot = gloo.rank_slots([f"host{host}" for host in range(hosts) for _ in range(gpus)])[rank]
    host, local = (int(slot[f"HOROVOD_{name}"]) for name in ("CROSS_RANK", "LOCAL_RANK"))
    return one_of(
        f"`horovodrun` starts {hosts * gpus} ranks on {hosts} hosts with {gpus} GPUs each, host by host. Which GPU "
        f"does rank {rank} pick?",
        f"GPU {local} of host {host}",
        f"Its local rank is {local}: ranks and hosts are numbered from 0.",
        Wrong(
            f"GPU {rank} of host {host}", "The rank picks", "A host has no GPU of that number: the local rank picks."
        ),
        Wrong(
            f"GPU {rank % hosts} of host {rank // hosts}",
            "Hosts for GPUs",
            "Divide by the ranks per host, not by the hosts.",
        ),
        Wrong(f"GPU {local + 1} of host {host}", "Counted from 1", "Local ranks are counted from 0."),
    )


def scaled_rate(numbers: Numbers) -> Item:
    """Which learning rate have the ranks?"""
    hosts = numbers.pick("hosts", (2, 4, 8))
    gpus = numbers.pick("gpus", (4, 8))
    rate = numbers.pick("rate", (0.001, 0.01, 0.02))
    four = FourNumbers(60_000, hosts * gpus, 32, rate, 32)
    return one_number_of(
        f"A rate of {rate} is right for one process with a batch of 32. {hosts} hosts with {gpus} ranks each keep this "
        "batch. Which rate "
        "does step 3, scaling by the linear rule, set?",
        four.learning_rate,
        "",
        f"The average is over {four.global_batch:,} samples of all {hosts * gpus} ranks.",
        Wrong(rate * gpus, "The local size", "The average is over the ranks of all hosts."),
        Wrong(rate * hosts, "The hosts", "Each host has several ranks."),
        Wrong(rate, "The rate stays", "The step is an average of more samples, and there are fewer steps."),
    )


def steps_of_a_rank(numbers: Numbers) -> Item:
    """How many steps has an epoch for each rank?"""
    ranks = numbers.pick("ranks", (2, 4, 8))
    samples = numbers.pick("samples", (1_280, 12_800, 25_600))
    steps = FourNumbers(samples, ranks, 32, 0.01, 32).steps_per_epoch
    return number(
        f"{ranks} Horovod ranks with batches of 32 each make one pass through {samples:,} samples. How many steps does "
        "each rank make?",
        steps,
        "steps",
        f"N ranks need 1/N of the steps: together they take {32 * ranks} samples per step.",
        Wrong(steps * ranks, "Step 8 forgotten", "Then the data are used once per rank."),
        Wrong(steps // ranks, "Divided twice", "Every rank takes part in every step."),
        Wrong(steps * ranks * ranks, "More ranks, more steps", "More ranks make fewer steps."),
        exact=True,
    )


def sampled_from_everything(numbers: Numbers) -> Item:
    """Which share of the samples is seen in an epoch?"""
    ranks = numbers.pick("ranks", (2, 3, 4, 8, 16))
    missed = (1 - 1 / ranks) ** ranks
    return one_number_of(
        f"{ranks} ranks draw from all samples, each with its own seed, and each takes 1/{ranks} of them in an epoch. "
        "Which share of the "
        "samples is seen by at least one rank?",
        1 - missed,
        "%",
        f"All ranks miss a sample with probability (1 − 1/{ranks})^{ranks}.",
        Wrong(1, "As with a partition", "Only a partition shows every sample once per epoch."),
        Wrong(missed, "The missed ones", "That is the share that nobody sees."),
        Wrong(1 / ranks, "One rank's share", "The others see further samples."),
        scale=100,
    )


def average_over_ranks(numbers: Numbers) -> Item:
    """What is the average over the ranks?"""
    ranks = numbers.pick("ranks", (3, 4, 5, 8))
    start = numbers.pick("start", (1, 2, 10))
    contributions = tuple(float(start + rank) for rank in range(ranks))
    total = simulations.all_reduced(contributions)
    return number(
        f"{ranks} ranks call `hvd.allreduce(x)` without further arguments, and rank r has x = {start} + r. What does "
        "each rank get?",
        total / ranks,
        "",
        "Horovod's default is the average; `op=hvd.Sum` gives the sum.",
        Wrong(total, "The sum", "That is MPI's default, not Horovod's."),
        Wrong(contributions[-1], "The largest", "That would be `op=hvd.Max`."),
        Wrong(float(start), "That of rank 0", "That would be a broadcast."),
    )


def fused_all_reduces(numbers: Numbers) -> Item:
    """How many all-reduces does tensor fusion leave?"""
    count = numbers.pick("count", (40, 60, 96))
    kilobytes = numbers.pick("kilobytes", (2, 4))
    threshold = numbers.pick("threshold", (0, 16, 32, 64))
    per_buffer = max(1, threshold // kilobytes)
    return number(
        f"A step averages {count} gradients of {kilobytes} kB, which are all ready in the same cycle. "
        "`HOROVOD_FUSION_THRESHOLD` is "
        f"{threshold} kB. How many all-reduces is that?",
        math.ceil(count / per_buffer),
        "",
        "A buffer takes what is ready, up to the threshold; with 0 each gradient goes alone.",
        Wrong(
            math.ceil(count / per_buffer) + 1,
            "One more for the rest",
            "The last buffer may be smaller; none is sent empty.",
        ),
        Wrong(count if threshold else 1, "The other setting", "Fusion packs gradients, unless the threshold is 0."),
        Wrong(count * kilobytes, "Kilobytes counted", "Count the buffers that are needed."),
        exact=True,
    )


def overflow_in_fp16(numbers: Numbers) -> Item:
    """What does fp16 make of large gradients?"""
    value = numbers.pick("value", (1_000, 5_000, 10_000, 20_000, 40_000))
    ranks = numbers.pick("ranks", (2, 4, 8))
    with np.errstate(over="ignore"):
        total = np.float16(0)
        for _ in range(ranks):
            total = np.float16(total + np.float16(value))
    infinite, average = "Infinity", f"{value:,}, up to rounding"
    right, wrong = (infinite, average) if np.isinf(total) else (average, infinite)
    return one_of(
        f"Each of {ranks} ranks has a gradient of {value:,}. They average it with `hvd.Compression.fp16`, without a "
        "predivide factor. What "
        "comes out?",
        right,
        f"Horovod sums and then divides. The sum is {value * ranks:,}, and a 16-bit float ends at 65,504.",
        Wrong(wrong, "The sum forgotten", "Compare the sum, not the average, with 65,504."),
        Wrong("0", "It vanishes", "Only tiny gradients vanish, below 6e-8."),
        Wrong("65,504", "It is clipped", "A 16-bit float that overflows becomes infinity."),
    )


def accumulated_gradients(numbers: Numbers) -> Item:
    """How many bytes does gradient accumulation send?"""
    passes = numbers.pick("passes", (2, 4, 8))
    batches = numbers.pick("batches", (16, 32, 64))
    megabytes = numbers.pick("megabytes", (2, 5, 100))
    return one_number_of(
        f"A gradient has {megabytes} MB, and `backward_passes_per_step={passes}`. How many MB does a rank hand to the "
        "all-reduce for "
        f"{batches} batches?",
        len(range(0, batches, passes)) * megabytes,
        "MB",
        f"It adds up the gradients of {passes} batches, then all-reduces once.",
        Wrong(batches * megabytes, "Each batch", "That is so without accumulation."),
        Wrong(batches * passes * megabytes, "Multiplied", "Accumulation saves all-reduces."),
        Wrong(megabytes, "Once", "There is one all-reduce per update."),
        exact=True,
    )


def length_by_adasum(numbers: Numbers) -> Item:
    """How long is the result of Adasum?"""
    degrees = numbers.pick("degrees", (45, 60, 90, 120))
    length = numbers.pick("length", (1.0, 2.0, 5.0))
    angle = math.radians(degrees)
    first, second = length * np.array([1.0, 0.0]), length * np.array([math.cos(angle), math.sin(angle)])
    common = float(first @ second)
    combined = (1 - common / (2 * first @ first)) * first + (1 - common / (2 * second @ second)) * second
    return number(
        f"Two gradients of length {length:g} have an angle of {degrees}°. How long is their combination by Adasum?",
        float(np.linalg.norm(combined)),
        "",
        "What they have in common is averaged, the rest is added: each is multiplied by "
        f"{figure(1 - common / (2 * length**2))}.",
        Wrong(float(np.linalg.norm(first + second)) / 2, "The average", "That is what `hvd.Average` gives."),
        Wrong(float(np.linalg.norm(first + second)), "The sum", "Only at a right angle nothing is in common."),
        Wrong(2 * length, "Lengths added", "Vectors are added, not their lengths."),
    )


def forgotten_step(numbers: Numbers) -> Item:
    """Which of the eight steps was forgotten?"""
    ranks = numbers.pick("ranks", (2, 4))
    samples = numbers.pick("samples", (1_280, 2_560))
    apart = numbers.pick("apart", (0.31, 0.42))
    signs = {
        "broadcast the variables": (apart, apart, samples, samples // (32 * ranks)),
        "wrap the tape": (0.0, apart, samples, samples // (32 * ranks)),
        "shard the data": (0.0, 0.0, samples // ranks, samples // (32 * ranks)),
        "divide the steps per epoch": (0.0, 0.0, samples, samples // 32),
    }
    step = numbers.pick("step", tuple(signs))
    first, last, seen, steps = signs[step]
    notes = {
        "broadcast the variables": "Then the ranks start apart and stay apart by the same amount.",
        "wrap the tape": "Then the ranks start equal and drift apart.",
        "shard the data": "Then all weights agree, but few different samples are seen.",
        "divide the steps per epoch": "Then each rank makes as many steps as one process.",
    }
    wrong = (Wrong(each.capitalize(), "Another sign", notes[each]) for each in signs if each != step)
    return one_of(
        f"{ranks} ranks with batches of 32 train one epoch on {samples:,} samples, and one of the eight steps was "
        "forgotten. Which?",
        step.capitalize(),
        notes[step],
        *wrong,
        block=(
            f"first weights of the ranks differ by up to {first:.2f}\n"
            f"last weights of the ranks differ by up to  {last:.2f}\n"
            f"different samples seen:                    {seen:,}\n"
            f"steps of each rank:                        {steps}"
        ),
    )


TEMPLATES = (
    local_rank,
    average_over_ranks,
    scaled_rate,
    steps_of_a_rank,
    sampled_from_everything,
    forgotten_step,
    fused_all_reduces,
    overflow_in_fp16,
    accumulated_gradients,
    length_by_adasum,
)

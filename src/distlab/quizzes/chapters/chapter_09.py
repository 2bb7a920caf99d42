"""Horovod: ranks and local ranks, the eight steps and their absence, options of the all-reduce."""

import math

import numpy as np

from distlab.quizzes.item import Item, figure, pick


def local_rank(item: Item, hosts: int = pick(3, 4), gpus: int = pick(3, 4, 6), rank: int = pick(5, 7, 8)) -> None:
    host, local = divmod(rank, gpus)
    item.choose(f"""`horovodrun` starts {hosts * gpus} ranks on {hosts} hosts with {gpus} GPUs each, host by host. Which
        GPU does rank {rank} pick?""")
    item.right(f"GPU {local} of host {host}").why(f"Its local rank is {local}: ranks and hosts are numbered from 0.")
    item.wrong(f"GPU {rank} of host {host}", "The rank picks").why("""A host has no GPU with that number: the local rank
        picks.""")
    item.wrong(f"GPU {rank % hosts} of host {rank // hosts}", "Hosts for GPUs").why("""Divide by the number of ranks per
        host, not by the number of hosts.""")
    item.wrong(f"GPU {local + 1} of host {host}", "Counted from 1").why("Local ranks are counted from 0.")


def average_over_ranks(item: Item, ranks: int = pick(3, 4, 5, 8), start: int = pick(1, 2, 10)) -> None:
    contributions = [start + rank for rank in range(ranks)]
    total = sum(contributions)
    item.enter(f"""{ranks} ranks call `hvd.allreduce(x)` without further arguments. On rank r, x is {start} + r. What
        does each rank get?""")
    item.right(total / ranks).why("Horovod's default is the average; `op=hvd.Sum` gives the sum.")
    item.wrong(total, "The sum").why("That is MPI's default, not Horovod's.")
    item.wrong(contributions[-1], "The largest").why("That would be `op=hvd.Max`.")
    item.wrong(start, "The value of rank 0").why("That would be a broadcast.")


def scaled_rate(
    item: Item, hosts: int = pick(2, 4, 8), gpus: int = pick(4, 8), rate: float = pick(0.001, 0.01, 0.02)
) -> None:
    item.choose(f"""With a batch of 32, one process trains well at a learning rate of {rate}. Now {hosts} hosts run
        {gpus} ranks each, every rank with a batch of 32. Which learning rate does the linear rule of step 3 give?""")
    item.right(rate * hosts * gpus).why(f"""The gradient is an average over {32 * hosts * gpus:,} samples, those of
        all {hosts * gpus} ranks.""")
    item.wrong(rate * gpus, "The local size").why("The average includes the ranks of all hosts.")
    item.wrong(rate * hosts, "The hosts").why("Each host has several ranks.")
    item.wrong(rate, "The rate stays").why("Each step averages over more samples, and there are fewer steps.")


def steps_of_a_rank(item: Item, ranks: int = pick(2, 4, 8), samples: int = pick(1_280, 12_800, 25_600)) -> None:
    steps = samples // (32 * ranks)
    item.enter(f"""{ranks} Horovod ranks go once through {samples:,} samples, each with batches of 32. How many steps
        does each rank take?""")
    item.right(steps, "steps").why(f"N ranks need 1/N of the steps: together they use {32 * ranks} samples per step.")
    item.wrong(steps * ranks, "Step 8 forgotten").why("Then every rank goes through as many samples as there are.")
    item.wrong(steps // ranks, "Divided twice").why("Every rank takes part in every step.")
    item.wrong(steps * ranks * ranks, "More ranks, more steps").why("More ranks take fewer steps.")


def sampled_from_everything(item: Item, ranks: int = pick(2, 3, 4, 8, 16)) -> None:
    missed = (1 - 1 / ranks) ** ranks
    item.choose(f"""{ranks} ranks draw from all samples, each with its own seed, and each takes 1/{ranks} of them in an
        epoch. What share of the samples does at least one rank see?""")
    item.right(1 - missed, "%").why(f"All ranks miss a sample with probability (1 − 1/{ranks})^{ranks}.")
    item.wrong(1, "As with a partition").why("Only a partition shows every sample once per epoch.")
    item.wrong(missed, "The missed ones").why("That is the share that no rank sees.")
    item.wrong(1 / ranks, "One rank's share").why("The other ranks see other samples.")


FORGOTTEN = {
    "broadcast the variables": "Then the ranks start apart and stay apart by the same amount.",
    "wrap the tape": "Then the ranks start with equal weights and drift apart.",
    "shard the data": "Then all weights agree, but few different samples are seen.",
    "divide the steps per epoch": "Then each rank takes as many steps as one process.",
}


def forgotten_step(
    item: Item,
    ranks: int = pick(2, 4),
    samples: int = pick(1_280, 2_560),
    apart: float = pick(0.31, 0.42),
    step: str = pick(*FORGOTTEN),
) -> None:
    first, last, seen, steps = {
        "broadcast the variables": (apart, apart, samples, samples // (32 * ranks)),
        "wrap the tape": (0.0, apart, samples, samples // (32 * ranks)),
        "shard the data": (0.0, 0.0, samples // ranks, samples // (32 * ranks)),
        "divide the steps per epoch": (0.0, 0.0, samples, samples // 32),
    }[step]
    item.choose(f"""{ranks} ranks with batches of 32 train for one epoch on {samples:,} samples. One of the eight steps
        was forgotten. Which one?""")
    item.block = (
        f"first weights of the ranks differ by up to {first:.2f}\n"
        f"last weights of the ranks differ by up to  {last:.2f}\n"
        f"different samples seen:                    {seen:,}\n"
        f"steps of each rank:                        {steps}"
    )
    item.right(step.capitalize()).why(FORGOTTEN[step])
    for each, why in FORGOTTEN.items():
        if each != step:
            item.wrong(each.capitalize(), "Another sign").why(why)


def fused_all_reduces(
    item: Item, count: int = pick(40, 60, 96), kilobytes: int = pick(2, 4), threshold: int = pick(0, 16, 32, 64)
) -> None:
    buffers = math.ceil(count / max(1, threshold // kilobytes))
    item.enter(f"""A step averages {count} gradients of {kilobytes} kB each, which all become ready in the same cycle.
        `HOROVOD_FUSION_THRESHOLD` is {threshold} kB. How many all-reduces does the step need?""")
    item.right(buffers).why("A buffer takes what is ready, up to the threshold; with 0 each gradient is sent alone.")
    item.wrong(buffers + 1, "One more for the rest").why("The last buffer may be smaller; none is sent empty.")
    item.wrong(count if threshold else 1, "The other setting").why("Fusion packs gradients, unless the threshold is 0.")
    item.wrong(count * kilobytes, "Kilobytes counted").why("Count the buffers that are needed.")


def overflow_in_fp16(
    item: Item, value: int = pick(1_000, 5_000, 10_000, 20_000, 40_000), ranks: int = pick(2, 4, 8)
) -> None:
    infinite, average = "Infinity", f"{value:,}, up to rounding"
    right, wrong = (infinite, average) if value * ranks > 65_504 else (average, infinite)
    item.choose(f"""On each of {ranks} ranks a gradient is {value:,}. Horovod averages it with `hvd.Compression.fp16`
        and without a predivide factor. What is the result?""")
    item.right(right).why(f"""Horovod sums and then divides. The sum is {value * ranks:,}, and the largest 16-bit float
        is 65,504.""")
    item.wrong(wrong, "The average compared").why("Compare the sum, not the average, with 65,504.")
    item.wrong("0", "It vanishes").why("Only tiny gradients vanish, below 3e-8.")
    item.wrong("65,504", "It is clipped").why("A 16-bit float that overflows becomes infinity.")


def accumulated_gradients(
    item: Item, passes: int = pick(2, 4, 8), batches: int = pick(16, 32, 64), megabytes: int = pick(2, 5, 100)
) -> None:
    item.choose(f"""The gradients of a model take {megabytes} MB, and `backward_passes_per_step={passes}`. How many MB
        does a rank put into all-reduces while it processes {batches} batches?""")
    item.right(batches // passes * megabytes, "MB").why(f"""Horovod adds up the gradients of {passes} batches,
        then all-reduces once.""")
    item.wrong(batches * megabytes, "Each batch").why("That would be without accumulation.")
    item.wrong(batches * passes * megabytes, "Multiplied").why("Accumulation saves all-reduces.")
    item.wrong(megabytes, "Once").why("There is one all-reduce per update.")


def length_by_adasum(item: Item, degrees: int = pick(45, 60, 90, 120), length: float = pick(1.0, 2.0, 5.0)) -> None:
    angle = math.radians(degrees)
    first, second = length * np.array([1.0, 0.0]), length * np.array([math.cos(angle), math.sin(angle)])
    share = 1 - float(first @ second) / (2 * length**2)
    average = float(np.linalg.norm(first + second)) / 2
    item.enter(f"""Two gradients of length {length:g} form an angle of {degrees}°. How long is the gradient into which
        Adasum combines them?""")
    item.right(2 * share * average).why(f"""Adasum averages what they have in common and adds the rest: it
        multiplies each by {figure(share)}.""")
    item.wrong(average, "The average").why("That is what `hvd.Average` gives.")
    item.wrong(2 * average, "The sum").why("They have nothing in common only at a right angle.")
    item.wrong(2 * length, "Lengths added").why("Adasum adds vectors, not their lengths.")

"""Scaling and profiling: images truly processed, efficiency, Amdahl's law, bus bandwidth, what profiles show."""

from distlab import costs
from distlab.large_batch import global_batches
from distlab.quizzes.item import Item, figure, pick


def images_processed(
    item: Item, images: int = pick(50_000, 60_000), gpus: int = pick(2, 4, 8), batch: int = pick(1024, 2048, 3000)
) -> None:
    steps = global_batches.steps_per_epoch(images, batch * gpus)
    item.enter(f"""A program takes `images // (batch * size)` steps per epoch. There are {images:,} images and {gpus}
        GPUs, and each GPU has batches of {batch:,}, all of them full. How many images does an epoch process?""")
    why = f"{steps} steps of {batch * gpus:,} images; the rest is no part of this epoch."
    item.right(steps * batch * gpus, "images").why(why)
    item.wrong(images, "The data set's size").why("The last images fill no global batch: no step of this epoch.")
    item.wrong(steps * batch, "One GPU's images").why(f"Each of the {gpus} GPUs has a batch of its own.")
    item.wrong((steps + 1) * batch * gpus, "Rounded up").why("`//` rounds down.")


def true_efficiency(
    item: Item, gpus: int = pick(4, 8), batch: int = pick(2048, 3000, 4096), claimed: float = pick(0.8, 0.86, 0.9)
) -> None:
    many, single = (global_batches.steps_per_epoch(60_000, batch * count) * batch * count for count in (gpus, 1))
    true = claimed * many / single
    item.choose(f"""A table claims {100 * claimed:.0f} % efficiency on {gpus} GPUs: it divides 60,000 images by the
        time of an epoch. The program takes `60000 // ({batch} * gpus)` steps per epoch. What is the true
        efficiency?""")
    item.right(true, "%").why(f"""{gpus} GPUs processed {many:,} images, one GPU {single:,}: the claim is multiplied by
        their ratio.""")
    item.wrong(claimed, "The claim as it is").why("The numerator is wrong, and more so with more GPUs.")
    item.wrong(claimed * single / many, "Upside down").why("Fewer images were processed, so the efficiency is lower.")
    item.wrong(many / single, "The share of the images").why("The claimed efficiency is still a factor.")


def amdahl_speedup(item: Item, percent: int = pick(5, 10, 20, 25), ranks: int = pick(8, 16, 32, 64)) -> None:
    law = costs.Amdahl(percent / 100, 1 - percent / 100)
    item.enter(f"""The serial share of a job is {percent} % of one rank's time. What speed-up does Amdahl's law predict
        for {ranks} ranks?""")
    item.right(float(law.speedup(ranks))).why(f"""1 / ({percent / 100:g} + {1 - percent / 100:g}/{ranks}); the limit is
        {figure(law.largest_speedup)}.""")
    item.wrong((1 - percent / 100) * ranks, "The share as efficiency").why("""The serial part does not get shorter with
        more ranks.""")
    item.wrong(law.largest_speedup, "The limit").why("That needs any number of ranks.")
    item.wrong(ranks, "Everything is divided").why("The serial part is not divided among the ranks.")


def serial_share_of(item: Item, ranks: int = pick(4, 8, 16), share: float = pick(0.1, 0.2, 0.3, 0.4)) -> None:
    seconds = 100 * (share + (1 - share) / ranks)
    speedup = 100 / round(seconds, 1)
    implied = float(costs.serial_share(speedup, ranks))
    item.choose(f"""One process needs 100 s, {ranks} processes need {seconds:.1f} s for the same work. What serial
        share does that imply?""")
    item.right(implied, "%").why("T = s + w/p with s + w = 100 s: two equations for the two unknowns.")
    item.wrong(speedup / ranks, "The efficiency").why("""That is speed-up over ranks; the serial share is another
        number.""")
    item.wrong(1 / speedup, "All that is left").why("The time that is left also has the divided part, w/p.")
    item.wrong(1 - 1 / speedup, "The saved time").why("That is what was saved, not what cannot be divided.")


def strong_scaling(
    item: Item, computing: int = pick(40, 60, 80, 120), exchange: int = pick(5, 10, 15), ranks: int = pick(4, 8)
) -> None:
    law = costs.Amdahl(float(exchange), float(computing))
    strong = computing / (ranks * float(law.seconds(ranks)))
    weak = computing / float(law.seconds(1))
    item.choose(f"""A step computes for {computing} ms on one rank. With {ranks} ranks an all-reduce takes
        another {exchange} ms; nothing overlaps. What is the efficiency of strong scaling?""")
    item.right(strong, "%").why(f"""Each rank computes for {figure(computing / ranks)} ms, but the all-reduce is as long
        as before.""")
    item.wrong(weak, "Weak scaling").why("There the work per rank stays; here it is divided.")
    item.wrong(ranks * strong / (ranks + 1), "One rank too many").why("""Efficiency is the speed-up divided by the
        ranks.""")
    item.wrong(1 / ranks, "No gain at all").why("The computing is divided; only the all-reduce is not.")


def more_ranks_than_cores(item: Item, cores: int = pick(2, 4, 6), times: int = pick(3, 4, 5, 8)) -> None:
    ranks = cores * times
    item.choose(f"""{ranks} ranks with one thread each share {cores} cores of a quiet machine. What is the highest
        possible efficiency of weak scaling?""")
    item.right(cores / ranks, "%").why(f"""Each core has the work of {times} ranks, so a step takes at least {times}
        times as long.""")
    item.wrong(1, "Weak scaling is free").why("That needs a core for each rank.")
    item.wrong(1 / ranks, "One core for all").why(f"{cores} cores work at the same time.")
    item.wrong((ranks - cores) / ranks, "The other ranks").why("That is the share of the ranks that wait for a core.")


def what_is_lost(
    item: Item, single: int = pick(40, 50, 60), contention: int = pick(4, 6, 12), exchange: int = pick(8, 15, 20)
) -> None:
    item.enter("The medians of a training step are below. How many milliseconds does the all-reduce cost?")
    item.block = (
        f"one rank alone:                       {single:>4} ms\n"
        f"two ranks, without the all-reduce:    {single + contention:>4} ms\n"
        f"two ranks, with the all-reduce:       {single + contention + exchange:>4} ms"
    )
    item.right(exchange, "ms").why(f"""The two ranks without an exchange lose {contention} ms by what they share, such
        as memory and clock rate.""")
    item.wrong(contention + exchange, "Everything that is lost").why("""Without the all-reduce two ranks are slower,
        too.""")
    item.wrong(contention, "The other suspect").why("This is lost without any all-reduce.")
    item.wrong(single + contention + exchange, "The whole step").why("The step also computes.")


def bandwidths(
    item: Item, ranks: int = pick(4, 8, 16), megabytes: int = pick(100, 200, 400), milliseconds: int = pick(20, 25, 50)
) -> None:
    bus = float(costs.bus_bandwidth("all_reduce", ranks, 1e6 * megabytes, 1e-3 * milliseconds)) / 1e9
    algorithm = float(costs.algorithm_bandwidth(1e6 * megabytes, 1e-3 * milliseconds)) / 1e9
    item.choose(f"""An all-reduce of {megabytes} MB on {ranks} ranks takes {milliseconds} ms. What is the bus
        bandwidth?""")
    item.right(bus, "GB/s").why(f"The algorithm bandwidth is {figure(algorithm)} GB/s, and the factor 2(p − 1)/p.")
    item.wrong(algorithm, "The algorithm bandwidth").why("It falls with more ranks even if the links are as fast.")
    item.wrong(algorithm * (ranks - 1) / ranks, "Half of the way").why("""An all-reduce moves each byte in both of its
        halves.""")
    item.wrong(algorithm * ranks, "Times the ranks").why("Each rank's link carries only its own part.")


def who_is_late(item: Item, late: int = pick(0, 1, 2, 3), tensors: int = pick(200, 400, 800)) -> None:
    counts = [tensors // 100] * 4
    counts[late] = tensors - 3 * counts[late]
    item.choose(f"""Horovod's timeline shows that negotiating takes most of the time. The table says how often each
        rank was the last to be ready, for {tensors} all-reduced tensors. What do you do first?""")
    item.block = "\n".join(f"rank {rank}: last {count:>4} times" for rank, count in enumerate(counts))
    item.right(f"Find out why rank {late} is slow").why("""Negotiating is waiting, and one rank is nearly always the
        last: a straggler.""")
    item.wrong("Buy a faster network", "Waiting taken for sending").why("""A faster network does not make the late rank
        earlier.""")
    item.wrong("Switch the negotiation off", "Negotiation is expensive").why("""It is long because the others wait for
        one rank.""")
    item.wrong(f"Find out why rank {(late + 1) % 4} is slow", "The table misread").why("""The straggler is the one that
        is last.""")


def bytes_in_a_profile(
    item: Item,
    parameters: int = pick(100_000, 250_000, 700_000),
    steps: int = pick(9, 20, 50),
    epochs: int = pick(2, 3, 4),
    ranks: int = pick(4, 8),
) -> None:
    whole = 4 * parameters * steps * epochs
    travelled = float(costs.all_reduce("ring", ranks, whole).largest_bytes_sent)
    passes = "Each rank passes {:,.1f} MB of gradient to `MPI_Allreduce`."
    item.choose(f"""A network of {parameters:,} float32 weights trains on {ranks} ranks for {epochs} epochs of {steps}
        steps, with Horovod over MPI. An MPI profile counts calls and bytes. Which statements are true?""")
    item.right(passes.format(whole / 1e6)).why("4 bytes per weight and step.")
    item.right("Seconds in `MPI_Allreduce` are partly waiting for other ranks.").why("""Time in MPI is not time on the
        network.""")
    item.wrong(f"The profile shows that each rank sends {travelled / 1e6:,.1f} MB.", "What travels inside").why("""The
        profile shows what is passed to the call, not what the algorithm sends.""")
    item.wrong(passes.format(whole / steps / 1e6), "Once per epoch").why("Gradients are all-reduced in every step.")
    item.wrong("If NCCL carries the gradients, the profile shows its calls.", "NCCL is not MPI").why("""An MPI profile
        does not show them.""")

"""Collectives: what they leave where, what rings, trees and messages cost, who waits for whom."""

from distlab import costs
from distlab.quizzes.item import Item, figure, pick

AFTER_A_COLLECTIVE = {
    "reduce_scatter": "A reduce-scatter adds, and leaves each rank one chunk of the sum.",
    "all_reduce": "An all-reduce leaves the whole sum on every rank.",
    "all_to_all": "An all-to-all adds nothing: it hands chunk j to rank j.",
}


def latency_share(
    item: Item,
    microseconds: int = pick(2, 4, 5, 8, 10, 20),
    gigabytes: float = pick(0.5, 1, 2, 5, 10),
    kilobytes: int = pick(2, 5, 10, 20, 50, 100),
) -> None:
    latency, per_byte = microseconds * 1e-6, 1e-9 / gigabytes
    seconds = float(costs.message(1e3 * kilobytes).seconds(latency, per_byte))
    moving = seconds - latency
    item.choose(f"""A message takes α + nβ, with α = {microseconds} µs and a bandwidth 1/β of {figure(gigabytes)} GB/s.
        It has {kilobytes} kB. How much of its time is latency?""")
    item.right(latency / seconds, "%").why(f"""α is {microseconds} µs, and the whole message takes
        {figure(1e6 * seconds)} µs.""")
    item.wrong(moving / seconds, "The other part").why("That is the share of nβ, the time of the bytes.")
    item.wrong(latency / moving, "Divided by the rest").why("""A share is a part of the whole time, not of the other
        part.""")
    item.wrong(2 * latency / (seconds + latency), "Two latencies").why("""A message pays its latency once, not there and
        back.""")


def what_a_rank_has(
    item: Item,
    collective: str = pick(*AFTER_A_COLLECTIVE),
    rank: int = pick(1, 2),
    ones: tuple[int, ...] = pick((1, 2, 3), (3, 4, 5), (6, 7, 8)),
    tens: tuple[int, ...] = pick((10, 20, 30), (30, 40, 50), (60, 70, 80)),
    hundreds: tuple[int, ...] = pick((100, 200, 300), (300, 400, 500), (600, 700, 800)),
) -> None:
    rows = (ones, tens, hundreds)
    total = [sum(column) for column in zip(*rows, strict=True)]
    results = {"reduce_scatter": [total[rank]], "all_reduce": total, "all_to_all": [row[rank] for row in rows]}
    item.choose(f"""Three ranks contribute the arrays below, each of three chunks with one number. What has rank {rank}
        after `{collective}`?""")
    item.block = "\n".join(f"rank {index}: {list(row)}" for index, row in enumerate(rows))
    item.right(str(results[collective])).why(AFTER_A_COLLECTIVE[collective])
    for name, result in results.items():
        if name != collective:
            item.wrong(str(result), f"Taken for {name.replace('_', '-')}").why(AFTER_A_COLLECTIVE[name])
    item.wrong(str(list(rows[rank])), "Taken for no exchange").why("Nothing would have been sent.")


def ring_statements(item: Item, ranks: int = pick(4, 6, 8, 12, 32)) -> None:
    item.choose(f"What is true of a ring all-reduce on {ranks} ranks?")
    item.right(f"It has {2 * ranks - 2} steps.").why("p − 1 steps collect, p − 1 steps hand out.")
    item.right("After half of its steps each rank has one finished chunk.").why("That is what a reduce-scatter leaves.")
    item.wrong(f"It has {ranks} steps.", "One round").why("""A chunk travels p − 1 steps to collect, then p − 1 to be
        handed out.""")
    item.wrong("Rank 0 sends more than the others.", "A hidden root").why("""A ring has no centre; all ranks send
        equally much.""")
    item.wrong("It averages the weights after each epoch.", "Weights, epochs").why("""It adds gradients, and in every
        step.""")


def ring_bytes(
    item: Item, ranks: int = pick(3, 4, 5, 6, 8, 10, 16), megabytes: int = pick(12, 30, 48, 60, 100, 240)
) -> None:
    sent = float(costs.all_reduce("ring", ranks, megabytes).largest_bytes_sent)
    item.enter(f"A ring all-reduce of {megabytes} MB runs on {ranks} ranks. How many MB does each rank send?")
    item.right(sent, "MB").why(f"Each rank sends a chunk of 1/{ranks} of the array in each of {2 * (ranks - 1)} steps.")
    item.wrong(sent / 2, "Half of the way").why("That is the reduce-scatter. The all-gather sends as much again.")
    item.wrong(2 * (ranks - 1) * megabytes, "Whole arrays").why("A step sends one chunk, not the whole array.")
    item.wrong(megabytes, "Once the array").why("Each chunk goes round once to collect, and once to be handed out.")
    item.wrong(2 * megabytes, "The limit").why("2n is what many ranks come close to, but never reach.")


def twice_the_ranks(item: Item, ranks: int = pick(2, 3, 4, 6, 8)) -> None:
    before, after = (costs.all_reduce("ring", count, 1.0) for count in (ranks, 2 * ranks))
    item.choose(f"""A ring all-reduce of a very large array runs on {ranks} ranks, then on {2 * ranks} ranks with the
        same links. How many times as long does it take, if latency does not count?""")
    item.right(float(after.bytes_on_path / before.bytes_on_path), "times").why(f"""It goes from
        {figure(float(before.bytes_on_path))} nβ to {figure(float(after.bytes_on_path))} nβ.""")
    item.wrong(2, "Twice the ranks, twice the time").why("""The chunks are half as long, so more steps move hardly more
        bytes.""")
    item.wrong(0.5, "The work is shared").why("Each rank still has to receive what all others contribute.")
    item.wrong(float(after.steps / before.steps), "Steps counted").why("""The steps grow so, but each has a shorter
        chunk.""")


def blocking_ring(item: Item, ranks: int = pick(4, 5, 6, 8), rank: int = pick(1, 2, 3)) -> None:
    item.choose(f"""Each of {ranks} ranks first sends a long array to its right neighbour with a blocking send, then
        receives from its left one. For whom does rank {rank} wait?""")
    item.right(f"For rank {(rank + 1) % ranks}").why("""Its send does not return before the receiver has taken the
        message, and all ranks wait in a circle: a deadlock.""")
    item.wrong(f"For rank {(rank - 1) % ranks}", "The next line").why("""It never comes to its receive; it is still in
        its send.""")
    item.wrong("For rank 0", "Rank 0 leads").why("A ring has no special rank.")
    item.wrong("For nobody", "A send returns at once").why("""Only short messages are buffered; a long one waits for its
        receiver.""")


def fastest_all_reduce(
    item: Item, ranks: int = pick(8, 12, 16, 24, 48), kilobytes: int = pick(1, 4, 4_000, 40_000, 400_000)
) -> None:
    mistakes = {
        "naive": ("Simple is fast", "Rank 0 takes one whole array after another."),
        "tree": ("Few steps are enough", "Halving-doubling has no more steps than the tree, and sends fewer bytes."),
        "ring": ("A ring is always best", "The ring has 2(p − 1) steps, and for other ways fewer are enough here."),
        "halving_doubling": ("Few steps are always best", "Ranks beyond a power of two cost two more whole arrays."),
    }
    cost = {name: costs.all_reduce(name, ranks, 1e3 * kilobytes) for name in mistakes}
    milliseconds = {name: 1e3 * float(cost[name].seconds(5e-6, 1e-9)) for name in mistakes}
    best = min(milliseconds, key=lambda name: milliseconds[name])
    item.choose(f"""{ranks} ranks all-reduce {figure(kilobytes)} kB; α is 5 µs and 1/β is 1 GB/s, between all ranks
        alike. Which way is the fastest by the formulas?""")
    item.right(best.replace("_", "-")).why(f"""It takes {figure(milliseconds[best])} ms: small arrays want few steps,
        large ones few bytes.""")
    for name, (mistake, why) in mistakes.items():
        if name != best:
            item.wrong(name.replace("_", "-"), mistake).why(f"{why} It takes {figure(milliseconds[name])} ms.")


def slow_link(item: Item, ranks: int = pick(4, 6, 8), factor: int = pick(3, 4, 5, 8, 10)) -> None:
    item.choose(f"""In a ring of {ranks} ranks one link is {factor} times slower than the others. How many times as long
        does a ring all-reduce take, if latency does not count?""")
    item.right(float(factor), "times").why("""The slow link carries a chunk in every step, and all others wait for
        it.""")
    item.wrong((ranks - 1 + factor) / ranks, "The average link").why("""The links work at once: the slowest decides, not
        the mean.""")
    item.wrong((1 + factor) / 2, "In one half only").why("""Chunks pass the slow link in both halves, reduce-scatter and
        all-gather.""")
    item.wrong("as long as before", "There is another way").why("""A ring has one way only; no
        message goes around the slow link.""")


def straggler(
    item: Item, ranks: int = pick(4, 8), milliseconds: int = pick(6, 12, 20, 30), percent: int = pick(40, 50, 60, 75)
) -> None:
    slower = milliseconds * (100 / percent - 1)
    item.choose(f"""Each of {ranks} ranks computes for {milliseconds} ms, then they all-reduce. Now rank 1 computes at
        {percent} % of its speed. By how much is each step longer?""")
    item.right(slower, "ms").why("""All others wait in the all-reduce until rank 1 has computed; the exchange itself
        takes as long as before.""")
    item.wrong(slower / ranks, "The mean of the ranks").why("""The sum needs the last share, so the slowest rank
        decides.""")
    item.wrong(milliseconds * (1 - percent / 100), "Time for speed").why("""Half the speed is twice the time, not half
        more.""")
    item.wrong(2 * slower, "Twice in each step").why("The ranks wait once; after that all are equally late.")


def fused_gradients(
    item: Item, ranks: int = pick(4, 8, 16, 32), count: int = pick(10, 20, 40, 60), microseconds: int = pick(5, 10, 20)
) -> None:
    latency, per_byte = 1e-6 * microseconds, 1e-9
    separate = count * float(costs.all_reduce("ring", ranks, 100e3).seconds(latency, per_byte))
    fused = float(costs.all_reduce("ring", ranks, count * 100e3).seconds(latency, per_byte))
    item.enter(f"""{count} gradients of 100 kB are all-reduced one after the other by a ring on {ranks} ranks; α is
        {microseconds} µs and 1/β is 1 GB/s. Tensor fusion packs them into one array. How many ms does that save?""")
    item.right((separate - fused) * 1e3, "ms").why(f"""Of {count} times {2 * (ranks - 1)} latencies only
        {2 * (ranks - 1)} remain; the same bytes travel.""")
    item.wrong((count - 1) * latency * 1e3, "One message per all-reduce").why("""A ring has 2(p − 1) messages one after
        the other.""")
    item.wrong((count - 1) * (separate / count) * 1e3, "The bytes disappear").why("""The packed array is longer; its
        bytes still travel.""")
    item.wrong((count - 1) * (ranks - 1) * latency * 1e3, "Half of the steps").why("""The all-gather pays p − 1
        latencies, too.""")

"""Collectives: what they leave where, what rings, trees and messages cost, who waits for whom."""

from distlab import costs
from distlab.quizzes import simulations
from distlab.quizzes.item import Item, Wrong, number, one_number_of, one_of, several_of
from distlab.quizzes.numbers import Numbers, figure


def latency_share(numbers: Numbers) -> Item:
    """How much of a message's time is latency?"""
    microseconds = numbers.pick("microseconds", (2, 4, 5, 8, 10, 20))
    gigabytes = numbers.pick("gigabytes", (0.5, 1, 2, 5, 10))
    kilobytes = numbers.pick("kilobytes", (2, 5, 10, 20, 50, 100))
    latency, per_byte = microseconds * 1e-6, 1e-9 / gigabytes
    seconds = float(costs.message(1e3 * kilobytes).seconds(latency, per_byte))
    moving = seconds - latency
    return one_number_of(
        f"A message takes α + nβ, with α = {microseconds} µs and a bandwidth 1/β of {figure(gigabytes)} GB/s. It has "
        f"{kilobytes} kB. How much of its time is latency?",
        latency / seconds,
        "%",
        f"α is {microseconds} µs, and the whole message takes {figure(1e6 * seconds)} µs.",
        Wrong(moving / seconds, "The other part", "That is the share of nβ, the time of the bytes."),
        Wrong(latency / moving, "Divided by the rest", "A share is a part of the whole time, not of the other part."),
        Wrong(
            2 * latency / (seconds + latency), "Two latencies", "A message pays its latency once, not there and back."
        ),
        scale=100,
    )


def ring_bytes(numbers: Numbers) -> Item:
    """How much does each rank send in a ring all-reduce?"""
    ranks = numbers.pick("ranks", (3, 4, 5, 6, 8, 10, 16))
    megabytes = numbers.pick("megabytes", (12, 30, 48, 60, 100, 240))
    sent = float(costs.all_reduce("ring", ranks, megabytes).largest_bytes_sent)
    return number(
        f"A ring all-reduce of {megabytes} MB runs on {ranks} ranks. How many MB does each rank send?",
        sent,
        "MB",
        f"Each rank sends a chunk of 1/{ranks} of the array in each of {2 * (ranks - 1)} steps.",
        Wrong(sent / 2, "Half of the way", "That is the reduce-scatter. The all-gather sends as much again."),
        Wrong(2 * (ranks - 1) * megabytes, "Whole arrays", "A step sends one chunk, not the whole array."),
        Wrong(megabytes, "Once the array", "Each chunk goes round once to collect, and once to be handed out."),
        Wrong(2 * megabytes, "The limit", "2n is what many ranks come close to, but never reach."),
    )


def twice_the_ranks(numbers: Numbers) -> Item:
    """What happens to the time of a large all-reduce when the ranks are doubled?"""
    ranks = numbers.pick("ranks", (2, 3, 4, 6, 8))
    before, after = (costs.all_reduce("ring", count, 1.0) for count in (ranks, 2 * ranks))
    return one_number_of(
        f"A ring all-reduce of a very large array runs on {ranks} ranks, then on {2 * ranks} ranks with the same "
        "links. "
        "How many times as long does it take, if latency does not count?",
        float(after.bytes_on_path / before.bytes_on_path),
        "times",
        f"It goes from {figure(float(before.bytes_on_path))} nβ to {figure(float(after.bytes_on_path))} nβ.",
        Wrong(
            2, "Twice the ranks, twice the time", "The chunks are half as long, so more steps move hardly more bytes."
        ),
        Wrong(0.5, "The work is shared", "Each rank still has to receive what all others contribute."),
        Wrong(float(after.steps / before.steps), "Steps counted", "The steps grow so, but each has a shorter chunk."),
    )


def what_a_rank_has(numbers: Numbers) -> Item:
    """What has a rank after a collective?"""
    ranks = 3
    names = ("reduce_scatter", "all_reduce", "all_to_all")
    asked = numbers.pick("collective", names)
    rank = numbers.pick("rank", (1, 2))
    rows = [numbers.pick(f"row {index}", _rows(index)) for index in range(ranks)]
    results = {name: list(simulations.left_on(rank, name, tuple(rows))) for name in names}
    results["no exchange"] = list(rows[rank])
    mistakes = {
        "reduce_scatter": "A reduce-scatter adds, and leaves each rank one chunk of the sum.",
        "all_reduce": "An all-reduce leaves the whole sum on every rank.",
        "all_to_all": "An all-to-all adds nothing: it hands chunk j to rank j.",
        "no exchange": "Nothing would have been sent.",
    }
    wrong = [
        Wrong(str(result), f"Taken for {name.replace('_', '-')}", mistakes[name])
        for name, result in results.items()
        if name != asked
    ]
    return one_of(
        f"Three ranks contribute the arrays below, each of three chunks with one number. "
        f"What has rank {rank} after `{asked}`?",
        str(results[asked]),
        mistakes[asked],
        *wrong,
        block="\n".join(f"rank {index}: {list(row)}" for index, row in enumerate(rows)),
    )


def _rows(index: int) -> list[tuple[int, ...]]:
    return [tuple(10**index * (start + step) for step in range(3)) for start in (1, 3, 6)]


def fused_gradients(numbers: Numbers) -> Item:
    """What does tensor fusion save?"""
    ranks = numbers.pick("ranks", (4, 8, 16, 32))
    count = numbers.pick("count", (10, 20, 40, 60))
    microseconds = numbers.pick("microseconds", (5, 10, 20))
    latency, per_byte = 1e-6 * microseconds, 1e-9
    separate = count * float(costs.all_reduce("ring", ranks, 100e3).seconds(latency, per_byte))
    fused = float(costs.all_reduce("ring", ranks, count * 100e3).seconds(latency, per_byte))
    return number(
        f"{count} gradients of 100 kB are all-reduced one after the other by a ring on {ranks} ranks; α is "
        f"{microseconds} µs and 1/β is 1 GB/s. Tensor fusion packs them into one array. How many ms does that save?",
        separate - fused,
        "ms",
        f"Of {count} times {2 * (ranks - 1)} latencies only {2 * (ranks - 1)} remain; the same bytes travel.",
        Wrong((count - 1) * latency, "One message per all-reduce", "A ring has 2(p − 1) messages one after the other."),
        Wrong(
            (count - 1) * (separate / count),
            "The bytes disappear",
            "The packed array is longer; its bytes still travel.",
        ),
        Wrong((count - 1) * (ranks - 1) * latency, "Half of the steps", "The all-gather pays p − 1 latencies, too."),
        scale=1e3,
    )


def slow_link(numbers: Numbers) -> Item:
    """How much does one slow link slow a ring?"""
    ranks = numbers.pick("ranks", (4, 6, 8))
    factor = numbers.pick("factor", (3, 4, 5, 8, 10))
    usual, hampered = simulations.ring_seconds(ranks, 1), simulations.ring_seconds(ranks, factor)
    return one_number_of(
        f"In a ring of {ranks} ranks one link is {factor} times slower than the others. How many times as long does a "
        "ring all-reduce take, if latency does not count?",
        hampered / usual,
        "times",
        "Every chunk passes every link, and in each step all others wait for the slow one.",
        Wrong(
            (ranks - 1 + factor) / ranks,
            "The average link",
            "The links work at once: the slowest decides, not the mean.",
        ),
        Wrong(
            (1 + factor) / 2,
            "In one half only",
            "Chunks pass the slow link in both halves, reduce-scatter and all-gather.",
        ),
        Wrong(1, "There is another way", "A ring has one way only; no message goes around the slow link."),
    )


def straggler(numbers: Numbers) -> Item:
    """How much does a slow rank lengthen a step?"""
    ranks = numbers.pick("ranks", (4, 8))
    milliseconds = numbers.pick("milliseconds", (6, 12, 20, 30))
    percent = numbers.pick("percent", (40, 50, 60, 75))

    even, uneven = (simulations.step_seconds(ranks, milliseconds, speed) for speed in (100, percent))
    slower = uneven - even
    return one_number_of(
        f"Each of {ranks} ranks computes for {milliseconds} ms, then they all-reduce. Now rank 1 computes at {percent} "
        "% "
        "of its speed. By how much is each step longer?",
        slower,
        "ms",
        "All others wait in the all-reduce until rank 1 has computed; the exchange itself takes as long as before.",
        Wrong(slower / ranks, "The mean of the ranks", "The sum needs the last share, so the slowest rank decides."),
        Wrong(
            1e-3 * milliseconds * (1 - percent / 100),
            "Time for speed",
            "Half the speed is twice the time, not half more.",
        ),
        Wrong(2 * slower, "Twice in each step", "The ranks wait once; after that all are equally late."),
        scale=1e3,
    )


def blocking_ring(numbers: Numbers) -> Item:
    """For whom does a rank wait in a ring of blocking sends?"""
    ranks = numbers.pick("ranks", (4, 5, 6, 8))
    rank = numbers.pick("rank", (1, 2, 3))

    source = simulations.whom_it_waits_for(ranks, rank)
    return one_of(
        f"Each of {ranks} ranks first sends a long array to its right neighbour with a blocking send, then receives "
        "from "
        f"its left one. For whom does rank {rank} wait?",
        f"For rank {source}",
        "Its send does not return before the receiver has taken the message, and all ranks wait in a circle: a "
        "deadlock.",
        Wrong(
            f"For rank {(rank - 1) % ranks}", "The next line", "It never comes to its receive; it is still in its send."
        ),
        Wrong("For rank 0", "Rank 0 leads", "A ring has no special rank."),
        Wrong(
            "For nobody",
            "A send returns at once",
            "Only short messages are buffered; a long one waits for its receiver.",
        ),
    )


def fastest_all_reduce(numbers: Numbers) -> Item:
    """Which all-reduce is fastest?"""
    ranks = numbers.pick("ranks", (8, 12, 16, 24, 48))
    kilobytes = numbers.pick("kilobytes", (1, 4, 4_000, 40_000, 400_000))
    seconds = {
        name: float(costs.all_reduce(name, ranks, 1e3 * kilobytes).seconds(5e-6, 1e-9))
        for name in ("naive", "tree", "ring", "halving_doubling")
    }
    notes = {
        "naive": ("Simple is fast", "Rank 0 takes one whole array after another."),
        "tree": ("Few steps are enough", "Halving-doubling has no more steps than the tree, and sends fewer bytes."),
        "ring": ("A ring is always best", "The ring has 2(p − 1) steps, and for other ways fewer are enough here."),
        "halving_doubling": ("Few steps are always best", "Ranks beyond a power of two cost two more whole arrays."),
    }
    best = min(seconds, key=lambda name: seconds[name])
    wrong = (
        Wrong(name.replace("_", "-"), notes[name][0], f"{notes[name][1]} It takes {_milliseconds(seconds[name])}.")
        for name in seconds
        if name != best
    )
    return one_of(
        f"{ranks} ranks all-reduce {figure(kilobytes)} kB; α is 5 µs and 1/β is 1 GB/s, between all ranks alike. Which "
        "way is the fastest by the formulas?",
        best.replace("_", "-"),
        f"It takes {_milliseconds(seconds[best])}: small arrays want few steps, large ones few bytes.",
        *wrong,
    )


def _milliseconds(seconds: float) -> str:
    return f"{figure(1e3 * seconds)} ms"


def ring_statements(numbers: Numbers) -> Item:
    """What is true of a ring all-reduce?"""
    ranks = numbers.pick("ranks", (4, 6, 8, 12, 32))
    cost = costs.all_reduce("ring", ranks, 1.0)
    return several_of(
        f"What is true of a ring all-reduce on {ranks} ranks?",
        {
            f"It has {cost.steps:.0f} steps.": "p − 1 steps collect, p − 1 steps hand out.",
            "After half of its steps each rank has one finished chunk.": "That is what a reduce-scatter leaves.",
        },
        Wrong(
            f"It has {ranks} steps.",
            "One round",
            "A chunk travels p − 1 steps to collect, then p − 1 to be handed out.",
        ),
        Wrong(
            "Rank 0 sends more than the others.", "A hidden root", "A ring has no centre; all ranks send equally much."
        ),
        Wrong("It averages the weights after each epoch.", "Weights, epochs", "It adds gradients, and in every step."),
    )


TEMPLATES = (
    latency_share,
    what_a_rank_has,
    ring_statements,
    ring_bytes,
    twice_the_ranks,
    blocking_ring,
    fastest_all_reduce,
    slow_link,
    straggler,
    fused_gradients,
)

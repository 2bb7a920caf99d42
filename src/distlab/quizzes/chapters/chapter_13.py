"""Fault tolerance: how often to save, who is the cause, what a damaged checkpoint does, who stops together."""

import math

import numpy as np

from distlab import collectives
from distlab.quizzes.item import Item, pick
from distlab.simulate import Network, Rank, World


def faults_of_many_parts(item: Item, parts: int = pick(512, 1_024, 4_096, 16_384), years: int = pick(3, 5, 10)) -> None:
    hours = years * 365 * 24 / parts
    item.enter(f"""Each GPU fails once in {years} years. A synchronous job needs {parts:,} of them. How many hours
        pass between two faults of the job, on average?""")
    item.right(hours, "hours").why("Any one of them stops the job, so the rates add up.")
    item.wrong(hours * parts, "As reliable as a part").why("The job stops when any one part stops.")
    item.wrong(hours * math.sqrt(parts), "The square root").why("Rates of independent faults add up.")
    item.wrong(hours / 24, "Days").why("The answer is asked for in hours.")


def save_interval(item: Item, seconds: int = pick(20, 30, 60, 120), hours: int = pick(2, 3, 6, 12)) -> None:
    minutes = math.sqrt(2 * seconds * 3600 * hours) / 60
    item.enter(f"""A save takes {seconds} s, and a fault comes every {hours} hours on average. How many minutes
        should pass between two saves?""")
    item.right(minutes, "minutes").why("""Every √(2CM) seconds, where the cost of the saves and of the lost work are
        equal.""")
    item.wrong(minutes / math.sqrt(2), "The 2 is missing").why("""A fault costs half an interval on average, not a whole
        one.""")
    item.wrong(60 * hours / 2, "Halfway to the fault").why("Then a quarter of all work would be lost.")
    item.wrong(seconds * math.sqrt(2 * hours) / 60, "Hours as seconds").why("Both times must have the same unit.")


def lost_time(
    item: Item, seconds: int = pick(30, 60), minutes: int = pick(5, 10, 20, 30), hours: int = pick(2, 4, 8)
) -> None:
    saving, repeated = seconds / (60 * minutes), minutes / 2 / (60 * hours)
    item.choose(f"""A job saves every {minutes} minutes, which takes {seconds} s. A fault comes every {hours} hours.
        What share of the time is lost to saves and repeated steps?""")
    item.right(saving + repeated, "%").why(f"""Saves take {100 * saving:.1f} %, and half an interval per fault is
        {100 * repeated:.1f} %.""")
    item.wrong(saving, "Only the saves").why("After a fault the steps since the last save are done again.")
    item.wrong(repeated, "Only the faults").why("Saves cost time in every interval.")
    item.wrong(saving + 2 * repeated, "A whole interval").why("A fault comes in the middle of an interval on average.")


def repeated_steps(item: Item, every: int = pick(5, 8, 10, 20), killed: int = pick(23, 37, 58, 94)) -> None:
    item.enter(f"""A job saves every {every} steps. A worker is killed right after step {killed}. How many steps must
        be repeated?""")
    item.right(killed % every, "steps").why(f"""The newest checkpoint holds step {killed // every * every}; everything
        after it is done again.""")
    item.wrong(killed, "From the start").why("The job resumes from the newest whole checkpoint.")
    item.wrong(every - killed % every, "Until the next save").why("What counts is the distance to the last save.")
    item.wrong(every, "A whole interval").why("That is the most, not the number here.")


def who_died_first(item: Item, dead: int = pick(0, 1, 2, 3), second: int = pick(11, 24, 42)) -> None:
    lost = "error in a collective: the peer has closed the connection"
    lines = [f"12:07:{second + 3 + worker:02} worker {worker}: {lost}" for worker in range(4)]
    lines[dead] = f"12:07:{second:02} worker {dead}: exit code -9"
    item.choose("A job with four workers has failed; its log is below. What do you look into first?")
    item.block = "\n".join(lines)
    item.right(f"Why worker {dead} was killed: memory, or its machine").why("""It ended first, by signal 9. The others
        waited in the all-reduce for a gradient that never came.""")
    item.wrong(f"The code of worker {(dead + 1) % 4}", "The loudest line").why("""Its error follows from the missing
        peer.""")
    item.wrong("The network: three workers report it", "The most frequent line").why("""The connection ended with the
        process.""")
    item.wrong("The checkpoint", "The last save").why("Nothing in the log is about reading or writing.")


def _waiting_times(ranks: int, slow: int, times: int) -> tuple[float, ...]:
    """Milliseconds that each rank waits for the sum in a step of 10 ms, in which one rank computes longer."""

    async def step(rank: Rank, array: np.ndarray) -> float:
        await rank.compute(10e-3)
        computed = rank.now
        await collectives.ring_all_reduce(rank, array)
        return 1e3 * (rank.now - computed)

    arrays = [np.ones(1_000, np.float32)] * ranks
    return tuple(World(ranks, Network(), {slow: 1 / times}).run(step, arrays).results)


def find_the_straggler(
    item: Item, ranks: int = pick(3, 4, 5), slow: int = pick(0, 1, 2), times: int = pick(2, 3, 4)
) -> None:
    waiting = _waiting_times(ranks, slow, times)
    item.choose("""All ranks report the same slow step. The table shows how long each of them waits for the sum in a
        step. Which rank is the straggler?""")
    item.block = "\n".join(
        f"rank {index}: step {max(waiting) + 10:5.1f} ms, of which waiting {each:5.1f} ms"
        for index, each in enumerate(waiting)
    )
    item.right(f"Rank {slow}").why("A rank that waits is healthy; the straggler is the one that waits least.")
    item.wrong(f"Rank {(slow + 1) % ranks}", "Waiting taken for slowness").why("It waits because another rank is late.")
    item.wrong("None: all steps are equal", "Steps compared").why("The steps are equal because all wait for one rank.")
    item.wrong("The network", "Waiting taken for sending").why("A slow network would let all ranks wait alike.")


def shares_by_speed(
    item: Item, ranks: int = pick(3, 4, 5), times: int = pick(2, 4), images: int = pick(180, 360, 720)
) -> None:
    item.choose(f"""{ranks} ranks share {images} images per step and need 1 ms per image, except one rank, which needs
        {times} ms. How long do they compute if each gets a share in proportion to its speed?""")
    item.right(images / (1 / times + ranks - 1), "ms").why("""Then all finish at the same time: the images divided by
        the speeds together.""")
    item.wrong(images / ranks * times, "Even shares").why("With even shares all wait for the slow rank.")
    item.wrong(images / (ranks - 1), "Without the slow rank").why("It still does a part of the work.")
    item.wrong(images / ranks, "No slow rank").why("That would need equal speeds.")


def damaged_checkpoint(
    item: Item,
    newest: int = pick(20, 40, 60, 100),
    every: int = pick(5, 10),
    damage: str = pick("index is missing", "data file was cut in half"),
    way: str = pick("what `latest_checkpoint` names", "the newest one that can be read whole"),
) -> None:
    silent, error = (
        "It starts from step 0, without an exception.",
        "Restoring raises an error, and the job cannot start.",
    )
    older = f"It continues after step {newest - every}."
    mistakes = {
        silent: ("The list is empty", "`latest_checkpoint` returns None only if the index is missing."),
        error: ("An error whatever is chosen", "Restoring fails only if the damaged one is chosen."),
        older: ("TensorFlow goes back by itself", "Only a program that checks each checkpoint goes back."),
    }
    right = older if "whole" in way else silent if damage == "index is missing" else error
    item.choose(f"""A job keeps the checkpoints of steps {newest - every} and {newest}. In the newest one, the {damage}.
        The job restores {way}. What happens?""")
    item.right(right).why("`latest_checkpoint` looks only whether the index exists, and `restore(None)` does nothing.")
    for text, (mistake, why) in mistakes.items():
        if text != right:
            item.wrong(text, mistake).why(why)
    item.wrong(f"It continues after step {newest}.", "Damage has no effect").why("This checkpoint is not whole.")


def elastic_training(
    item: Item,
    ranks: int = pick(3, 5, 9),
    batch: int = pick(64, 128, 256),
    every: int = pick(5, 10),
    died: int = pick(13, 27, 38),
) -> None:
    item.choose(f"""A Horovod Elastic job with {ranks} ranks keeps its global batch size at about {batch} and commits
        every {every} steps. One rank dies after step {died}. Which statements are true?""")
    item.right(f"The others continue after step {died // every * every}.").why("They go back to the last commit.")
    item.right(f"Each of the others then gets {batch // (ranks - 1)} samples in a step.").why("The global batch stays.")
    item.wrong(f"The others continue after step {died}.", "Nothing is lost").why("""The steps since the last commit are
        lost.""")
    item.wrong("The learning rate must be lowered.", "Fewer ranks, smaller rate").why("The global batch is the same.")
    item.wrong("The commits survive if all ranks die.", "A commit is a file").why("""Commits are in memory; save to
        disk, too.""")


def save_after_a_notice(
    item: Item, step: int = pick(7, 12, 23, 31), every: int = pick(5, 10), workers: int = pick(2, 4, 8)
) -> None:
    item.choose(f"""{workers} workers save every {every} steps, and after each step they add up who has a notice. Worker
        1 receives SIGUSR1 just after the sum that follows step {step}. At which step do they save?""")
    item.right(step + 1).why("The next sum comes after the next step. Then all know of the notice and save together.")
    item.wrong(step, "The worker saves at once").why("The others would be in the next step and wait for it.")
    item.wrong(step // every * every, "The last regular save").why("That would lose steps that a notice can save.")
    item.wrong(-(-step // every) * every, "The next regular save").why("A notice leaves time for one save, soon.")

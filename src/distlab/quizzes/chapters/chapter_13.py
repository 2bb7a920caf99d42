"""Fault tolerance: how often to save, who is the cause, what a damaged checkpoint does, who stops together."""

import math

import numpy as np

from distlab.quizzes import simulations
from distlab.quizzes.item import Item, Wrong, number, one_number_of, one_of, several_of
from distlab.quizzes.numbers import Numbers


def save_interval(numbers: Numbers) -> Item:
    """How often should a job save?"""
    seconds = numbers.pick("seconds", (20, 30, 60, 120))
    hours = numbers.pick("hours", (2, 3, 6, 12))
    minutes = math.sqrt(2 * seconds * 3600 * hours) / 60
    return number(
        f"A save takes {seconds} s, and a fault comes every {hours} hours on average. Every how many minutes should "
        "the job "
        "save?",
        minutes,
        "minutes",
        "Every √(2CM) seconds, where the cost of the saves and of the lost work are equal.",
        Wrong(
            minutes / math.sqrt(2), "The 2 is missing", "A fault costs half an interval on average, not a whole one."
        ),
        Wrong(60 * hours / 2, "Half-way to the fault", "Then a quarter of all work would be lost."),
        Wrong(seconds * math.sqrt(2 * hours) / 60, "Hours as seconds", "Both times must have the same unit."),
    )


def lost_time(numbers: Numbers) -> Item:
    """Which share of the time is lost?"""
    seconds = numbers.pick("seconds", (30, 60))
    minutes = numbers.pick("minutes", (5, 10, 20, 30))
    hours = numbers.pick("hours", (2, 4, 8))
    saving, repeated = seconds / (60 * minutes), minutes / 2 / (60 * hours)
    return one_number_of(
        f"A job saves every {minutes} minutes, which takes {seconds} s. A fault comes every {hours} hours. Which share "
        "of the "
        "time is lost to saves and repeated steps?",
        saving + repeated,
        "%",
        f"Saves take {100 * saving:.1f} %, and half an interval per fault is {100 * repeated:.1f} %.",
        Wrong(saving, "Only the saves", "After a fault the steps since the last save are done again."),
        Wrong(repeated, "Only the faults", "Saves cost time in every interval."),
        Wrong(saving + 2 * repeated, "A whole interval", "A fault comes in the middle of an interval on average."),
        scale=100,
    )


def faults_of_many_parts(numbers: Numbers) -> Item:
    """How often does a large job fail?"""
    parts = numbers.pick("parts", (512, 1_024, 4_096, 16_384))
    years = numbers.pick("years", (3, 5, 10))
    hours = years * 365 * 24 / parts
    return number(
        f"Each GPU fails once in {years} years. A synchronous job needs {parts:,} of them. After how many hours does a "
        "fault "
        "stop it on average?",
        hours,
        "hours",
        "Any one of them stops the job, so the rates add up.",
        Wrong(hours * parts, "As reliable as a part", "The job stops when any one part stops."),
        Wrong(hours * math.sqrt(parts), "The square root", "Rates of independent faults add up."),
        Wrong(hours / 24, "Days", "The answer is asked for in hours."),
    )


def repeated_steps(numbers: Numbers) -> Item:
    """How many steps are done twice?"""
    every = numbers.pick("every", (5, 8, 10, 20))
    killed = numbers.pick("killed", (23, 37, 58, 94))
    return number(
        f"A job saves every {every} steps. A worker is killed when step {killed} is done. How many steps are done "
        "twice?",
        len(range(killed // every * every, killed)),
        "steps",
        f"The newest checkpoint holds step {killed // every * every}; everything after it is done again.",
        Wrong(killed, "From the start", "The job resumes from the newest whole checkpoint."),
        Wrong(every - killed % every, "Until the next save", "What counts is the way back to the last save."),
        Wrong(every, "A whole interval", "That is the most, not the number here."),
        exact=True,
    )


def find_the_straggler(numbers: Numbers) -> Item:
    """Which rank is the straggler?"""
    ranks = numbers.pick("ranks", (3, 4, 5))
    slow = numbers.pick("slow", (0, 1, 2))
    times = numbers.pick("times", (2, 3, 4))
    waiting = simulations.waiting_times(ranks, slow, times)
    step = max(waiting) + 10
    rank = int(np.argmin(waiting))
    return one_of(
        "All ranks report the same slow step. The table has the time that each waits for the sum in a step. Which rank "
        "is "
        "the straggler?",
        f"Rank {rank}",
        "A rank that waits is healthy; the straggler is the one that waits least.",
        Wrong(f"Rank {(rank + 1) % ranks}", "Waiting taken for slowness", "It waits because another rank is late."),
        Wrong("None: all have the same step", "Steps compared", "The steps are equal because all wait for one rank."),
        Wrong("The network", "Waiting taken for sending", "A slow network would let all ranks wait alike."),
        block="\n".join(
            f"rank {index}: step {step:5.1f} ms, of which waiting {each:5.1f} ms" for index, each in enumerate(waiting)
        ),
    )


def shares_by_speed(numbers: Numbers) -> Item:
    """How long does a step take with shares by speed?"""
    ranks = numbers.pick("ranks", (3, 4, 5))
    times = numbers.pick("times", (2, 4))
    images = numbers.pick("images", (180, 360, 720))
    speeds = np.array([1 / times] + [1.0] * (ranks - 1))
    by_speed = float(images / speeds.sum())
    return one_number_of(
        f"{ranks} ranks share {images} images per step and need 1 ms for each, but one rank needs {times} ms. How long "
        "do they "
        "compute if each gets a share in proportion to its speed?",
        by_speed,
        "ms",
        "Then all finish at the same time: the images divided by the speeds together.",
        Wrong(images / ranks * times, "Even shares", "With even shares all wait for the slow rank."),
        Wrong(images / (ranks - 1), "Without the slow rank", "It still does a part of the work."),
        Wrong(images / ranks, "No slow rank", "That would need equal speeds."),
    )


def damaged_checkpoint(numbers: Numbers) -> Item:
    """What does a job do with a damaged checkpoint?"""
    newest = numbers.pick("newest", (20, 40, 60, 100))
    every = numbers.pick("every", (5, 10))
    damage = numbers.pick("damage", ("index is missing", "data file was cut in half"))
    way = numbers.pick("way", ("what `latest_checkpoint` names", "the newest one that can be read whole"))
    silent, error, older = (
        "It starts from step 0, without an exception.",
        "Restoring raises an error, and the job cannot start.",
        f"It continues after step {newest - every}.",
    )
    notes = {
        silent: ("The list is empty", "`latest_checkpoint` returns None only if the index is missing."),
        error: ("An error whatever is chosen", "Restoring fails only if the damaged one is chosen."),
        older: ("TensorFlow goes back by itself", "Only a program that checks each checkpoint goes back."),
    }
    missing = damage == "index is missing"
    right = older if "whole" in way else silent if missing else error
    wrong = (Wrong(text, *notes[text]) for text in notes if text != right)
    return one_of(
        f"A job keeps the checkpoints of steps {newest - every} and {newest}. Of the newest, the {damage}. The job "
        "restores "
        f"{way}. What happens?",
        right,
        "`latest_checkpoint` looks only whether the index exists, and `restore(None)` does nothing.",
        *wrong,
        Wrong(f"It continues after step {newest}.", "Damage has no effect", "This checkpoint is not whole."),
    )


def save_after_a_notice(numbers: Numbers) -> Item:
    """At which step do the workers save after a notice?"""
    step = numbers.pick("step", (7, 12, 23, 31))
    every = numbers.pick("every", (5, 10))
    workers = numbers.pick("workers", (2, 4, 8))
    return one_number_of(
        f"{workers} workers save every {every} steps, and after each step they add up who has a notice. Worker 1 gets "
        "SIGUSR1 "
        f"when the sum after step {step} has been formed. Which step does the checkpoint hold that they write?",
        step + 1,
        "",
        "The next sum comes after the next step. Then all know of the notice and save together.",
        Wrong(step, "The worker saves at once", "The others would be in the next step and wait for it."),
        Wrong(step // every * every, "The last regular save", "That would lose steps that a notice can save."),
        Wrong(-(-step // every) * every, "The next regular save", "A notice leaves time for one save, soon."),
        exact=True,
    )


def elastic_training(numbers: Numbers) -> Item:
    """What happens when an elastic rank dies?"""
    ranks = numbers.pick("ranks", (3, 5, 9))
    batch = numbers.pick("batch", (64, 128, 256))
    every = numbers.pick("every", (5, 10))
    died = numbers.pick("died", (13, 27, 38))
    return several_of(
        f"A Horovod Elastic job with {ranks} ranks keeps its global batch of about {batch} and commits every {every} "
        "steps. "
        f"One rank dies after step {died}. What is true?",
        {
            f"The others continue after step {died // every * every}.": "They go back to the last commit.",
            f"Each of the others then gets {batch // (ranks - 1)} samples in a step.": "The global batch stays.",
        },
        Wrong(
            f"The others continue after step {died}.", "Nothing is lost", "The steps since the last commit are lost."
        ),
        Wrong("The learning rate must be lowered.", "Fewer ranks, smaller rate", "The global batch is the same."),
        Wrong(
            "The commits survive if all ranks die.", "A commit is a file", "Commits are in memory; save to disk, too."
        ),
    )


def who_died_first(numbers: Numbers) -> Item:
    """Which worker is the cause?"""
    workers = 4
    dead = numbers.pick("dead", (0, 1, 2, 3))
    second = numbers.pick("second", (11, 24, 42))
    lines = [
        f"12:07:{second + (0 if worker == dead else 3 + worker):02} worker {worker}: "
        + ("exit code -9" if worker == dead else "error in a collective: the peer has closed the connection")
        for worker in range(workers)
    ]
    first = min(range(workers), key=lambda worker: lines[worker])
    return one_of(
        "A job of four workers has ended; its log is below. What do you look at first?",
        f"Why worker {first} was killed: memory, or its machine",
        "It ended first, by signal 9. The others waited in the all-reduce for a gradient that never came.",
        Wrong(
            f"The program of worker {(first + 1) % workers}",
            "The loudest line",
            "Its error follows from the missing peer.",
        ),
        Wrong(
            "The network: three workers report it", "The most frequent line", "The connection ended with the process."
        ),
        Wrong("The checkpoint", "The last save", "Nothing in the log is about reading or writing."),
        block="\n".join(lines),
    )


TEMPLATES = (
    faults_of_many_parts,
    save_interval,
    lost_time,
    repeated_steps,
    who_died_first,
    find_the_straggler,
    shares_by_speed,
    damaged_checkpoint,
    elastic_training,
    save_after_a_notice,
)

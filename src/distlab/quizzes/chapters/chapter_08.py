"""Other strategies: parameter servers, staleness, waiting for slow workers, where variables are."""

import math

from distlab.quizzes import simulations
from distlab.quizzes.item import Item, Wrong, number, one_number_of, one_of
from distlab.quizzes.numbers import Numbers


def processes_of_a_cluster(numbers: Numbers) -> Item:
    """How many processes has a parameter-server cluster?"""
    workers = numbers.pick("workers", (2, 4, 8))
    servers = numbers.pick("servers", (1, 2, 3))
    roles = ["chief"] + ["worker"] * workers + ["ps"] * servers
    return number(
        f"`distlab launch --workers {workers} --parameter-servers {servers}` starts a program with "
        "ParameterServerStrategy. How many "
        "processes is that?",
        len(roles),
        "processes",
        "The chief is not a worker here: it hands out the steps.",
        Wrong(workers + servers, "The chief is a worker", "That is so under MultiWorkerMirroredStrategy."),
        Wrong(workers, "Workers only", "Servers store the variables in processes of their own."),
        Wrong(workers * servers, "A server for each worker", "Every worker talks to all servers."),
        exact=True,
    )


def pieces_of_a_variable(numbers: Numbers) -> Item:
    """Into how many pieces is a variable cut?"""
    rows = numbers.pick("rows", (256, 784, 2_048, 4_096))
    columns = numbers.pick("columns", (16, 64, 128))
    shards = numbers.pick("shards", (3, 4, 6))
    kib = rows * columns * 4 // 1024
    pieces = max(1, min(shards, kib // 64))
    return one_number_of(
        f"`MinSizePartitioner(64 << 10, max_shards={shards})` cuts a float32 variable of {rows:,} × {columns}, which "
        f"has {kib:,} KiB. Into "
        "how many pieces?",
        pieces,
        "pieces",
        f"At most {shards}, and none smaller than 64 KiB.",
        Wrong(shards if pieces < shards else kib // 64, "One limit forgotten", "There are two: a number and a size."),
        Wrong(rows // 64, "Rows for KiB", "The least size of a piece is in bytes, not in rows."),
        Wrong(2 * shards, "Both axes", "A variable is cut along its first axis only."),
        exact=True,
    )


def central_storage(numbers: Numbers) -> Item:
    """Which value has a central variable after a step?"""
    replicas = numbers.pick("replicas", (2, 3, 4))
    rate = numbers.pick("rate", (0.05, 0.1))
    gradient = numbers.pick("gradient", (1.0, 2.0, 3.0))
    total = simulations.all_reduced((gradient,) * replicas)
    return number(
        f"Under CentralStorageStrategy a variable is 1. Each of {replicas} replicas computes the gradient {gradient:g} "
        "for it and applies "
        f"it, with SGD and a rate of {rate}. Which value has the variable then?",
        1 - rate * total,
        "",
        f"The parameter device adds the gradients, {total:g}, and applies the sum.",
        Wrong(1 - rate * gradient, "The mean", "Gradients are summed; the loss must be divided by the global batch."),
        Wrong(1 - rate * gradient / replicas, "A share", "Each replica's gradient counts as a whole."),
        Wrong(1 + rate * total, "The wrong direction", "SGD subtracts the gradient."),
    )


def mean_staleness(numbers: Numbers) -> Item:
    """How stale is a typical gradient?"""
    workers = numbers.pick("workers", (4, 6, 8, 16))
    servers = numbers.pick("servers", (2, 4))
    return one_number_of(
        f"{workers} equal workers never pause and share {servers} parameter servers. How stale is a gradient on "
        "average?",
        simulations.staleness(workers),
        "updates",
        "While a worker computes one gradient, each other worker makes one update. Servers divide the variables, not "
        "the workers.",
        Wrong(workers, "The own update counts", "A worker's own update does not make its next gradient stale."),
        Wrong((workers - 1) / servers, "A server for a group", "Every worker talks to all servers."),
        Wrong(0, "The queue waits", "The chief hands out the steps at once."),
        exact=True,
    )


def staleness_of_the_slow(numbers: Numbers) -> Item:
    """How stale are the gradients of a slow worker?"""
    workers = numbers.pick("workers", (3, 4, 6, 8))
    times = numbers.pick("times", (3, 4, 5))
    return number(
        f"One of {workers} asynchronous workers is {times} times slower than the others, which are equal. About how "
        "many updates are "
        "between its reading of the weights and its own update?",
        times * (workers - 1),
        "updates",
        f"It catches about {times} updates of each of the {workers - 1} others.",
        Wrong(workers - 1, "The mean of all", "That is the mean over all gradients; a slow worker's are staler."),
        Wrong(times, "One other worker", "Each of the others makes updates meanwhile."),
        Wrong(times * workers, "Its own update counts", "Only the others' updates count."),
        exact=True,
    )


def gradients_per_second(numbers: Numbers) -> Item:
    """How many gradients per second are applied?"""
    workers = numbers.pick("workers", (3, 4, 8))
    slow = numbers.pick("slow", (200, 250, 400))
    way = numbers.pick("way", ("synchronous", "asynchronous"))
    seconds = [0.05] * (workers - 1) + [slow / 1_000]
    rates = {"synchronous": workers / max(seconds), "asynchronous": sum(1 / each for each in seconds)}
    mistaken = next(rates[each] for each in rates if each != way)
    return one_number_of(
        f"{workers} workers need 50 ms for a gradient, except for one that needs {slow} ms. Communication takes no "
        "time. How many "
        f"gradients per second does {way} training apply?",
        rates[way],
        "per second",
        "Synchronous: all gradients per slowest gradient. Asynchronous: the workers' rates add up.",
        Wrong(mistaken, "The other way", "Ask who waits for whom."),
        Wrong(workers / 0.05, "No slow worker", "One of them delivers fewer gradients, or makes all wait."),
        Wrong(workers / (sum(seconds) / workers), "The mean time", "Neither way has the pace of the mean."),
    )


def unlucky_steps(numbers: Numbers) -> Item:
    """How often does a step wait?"""
    workers = numbers.pick("workers", (4, 8, 16, 32))
    percent = numbers.pick("percent", (2, 5, 10))
    waiting = 1 - (1 - percent / 100) ** workers
    return number(
        f"Each of {workers} synchronous workers is slow in {percent} % of its gradients, by chance. In which share of "
        "the steps does "
        "somebody make the others wait?",
        waiting,
        "%",
        f"All are lucky in (1 − {percent / 100:g})^{workers} of the steps.",
        Wrong(percent / 100, "One worker's share", "A step waits if any worker is unlucky."),
        Wrong(1 - waiting, "The lucky steps", "That is the share in which nobody waits."),
        Wrong(workers * percent / 100, "Added up", "Some steps have several unlucky workers; they wait once."),
        scale=100,
    )


def backup_workers(numbers: Numbers) -> Item:
    """Which share of the work do backup workers lose?"""
    workers = numbers.pick("workers", (8, 16, 20))
    backups = numbers.pick("backups", (1, 2, 4))
    return one_number_of(
        f"A step takes the first {workers} gradients of {workers + backups} workers and drops the rest. Which share of "
        "the work is lost?",
        backups / (workers + backups),
        "%",
        f"{backups} of {workers + backups} gradients are dropped in every step.",
        Wrong(backups / (workers - backups), "Of the others", "The share is of all gradients that were computed."),
        Wrong(0.0, "Nothing is lost", "Dropped gradients were computed, too."),
        Wrong(workers / (workers + backups), "What is kept", "That is the share that is used."),
        scale=100,
    )


def added_twice(numbers: Numbers) -> Item:
    """What does one all-reduce too many do?"""
    workers = numbers.pick("workers", (2, 4, 8))
    optimizer = numbers.pick("optimizer", ("SGD", "Adam"))
    rate = numbers.pick("rate", (0.01, 0.05))
    factor = {"SGD": simulations.all_reduced((1.0,) * workers), "Adam": 1.0}
    mistaken = next(factor[each] for each in factor if each != optimizer)
    return one_number_of(
        f"With Keras 3, {workers} workers add up their gradients with `all_reduce(SUM)` and then call `apply`, which "
        "adds them up again. The "
        f"optimizer is {optimizer} with a rate of {rate}. How many times too large is the first step, about?",
        factor[optimizer],
        "times",
        "The gradient is that many times too large for SGD; Adam divides by the gradient's own size, so the factor "
        "cancels.",
        Wrong(mistaken, "The other optimizer", "Ask whether its step grows with the gradient."),
        Wrong(workers**2, "Squared", "The first sum is what it should be; only the second one is too many."),
        Wrong(
            math.sqrt(workers), "The square root", f"A sum of {workers} equal gradients is {workers} times one of them."
        ),
    )


def which_way(numbers: Numbers) -> Item:
    """Which way fits this cluster?"""
    machines = numbers.pick("machines", (8, 16, 64))
    ways = {
        "equal GPUs and a fast network": "synchronous, with an all-reduce",
        "one machine that is always slower": "synchronous, with fewer images for the slow one",
        "steps that are slow now and then, on any machine": "synchronous, with backup workers",
        "machines that come and go": "asynchronous, with parameter servers",
    }
    cluster = numbers.pick("cluster", tuple(ways))
    wrong = (
        Wrong(f"{way.capitalize()}", f"Made for {case}", "Ask who waits here, and why.")
        for case, way in ways.items()
        if case != cluster
    )
    return one_of(
        f"A cluster of {machines} machines has {cluster}. Which way to train do you try first?",
        ways[cluster].capitalize(),
        "Wait for nobody only where waiting costs more than stale gradients do.",
        *wrong,
    )


TEMPLATES = (
    processes_of_a_cluster,
    central_storage,
    pieces_of_a_variable,
    mean_staleness,
    staleness_of_the_slow,
    gradients_per_second,
    unlucky_steps,
    backup_workers,
    which_way,
    added_twice,
)

"""Other strategies: parameter servers, staleness, waiting for slow workers, where variables are."""

import math

from distlab.quizzes.item import Item, other, pick


def processes_of_a_cluster(item: Item, workers: int = pick(2, 4, 8), servers: int = pick(1, 2, 3)) -> None:
    item.enter(f"""`distlab launch --workers {workers} --parameter-servers {servers}` starts a program with
        ParameterServerStrategy. How many processes is that?""")
    item.right(1 + workers + servers, "processes").why("The chief is not a worker here: it hands out the steps.")
    item.wrong(workers + servers, "The chief is a worker").why("That is so under MultiWorkerMirroredStrategy.")
    item.wrong(workers, "Workers only").why("Servers store the variables in processes of their own.")
    item.wrong(workers * servers, "A server for each worker").why("Every worker talks to all servers.")


def central_storage(
    item: Item, replicas: int = pick(2, 3, 4), rate: float = pick(0.05, 0.1), gradient: float = pick(1.0, 2.0, 3.0)
) -> None:
    total = gradient * replicas
    item.enter(f"""Under CentralStorageStrategy a variable is 1. Each of {replicas} replicas computes the gradient
        {gradient:g} for it and applies it, with SGD and a rate of {rate}. What value does the variable have then?""")
    item.right(1 - rate * total).why(f"The parameter device adds the gradients, {total:g}, and applies the sum.")
    item.wrong(1 - rate * gradient, "The mean").why("""Gradients are summed; the loss must be divided by the global
        batch.""")
    item.wrong(1 - rate * gradient / replicas, "A share").why("Each replica's gradient counts as a whole.")
    item.wrong(1 + rate * total, "The wrong direction").why("SGD subtracts the gradient.")


def pieces_of_a_variable(
    item: Item, rows: int = pick(256, 784, 2_048, 4_096), columns: int = pick(16, 64, 128), shards: int = pick(3, 4, 6)
) -> None:
    kib = rows * columns * 4 // 1024
    begun = math.ceil(kib / 64)
    pieces = min(shards, begun)
    item.choose(f"""`MinSizePartitioner(64 << 10, max_shards={shards})` cuts a float32 variable of {rows:,} × {columns},
        which has {kib:,} KiB. Into how many pieces?""")
    item.right(pieces, "pieces").why(f"One for each 64 KiB begun, but at most {shards}.")
    item.wrong(shards if pieces < shards else begun, "One limit forgotten").why("There are two: a number and a size.")
    item.wrong(rows // 64, "Rows for KiB").why("The least size of a piece is in bytes, not in rows.")
    item.wrong(2 * shards, "Both axes").why("A variable is cut along its first axis only.")


def mean_staleness(item: Item, workers: int = pick(4, 6, 8, 16), servers: int = pick(2, 4)) -> None:
    item.choose(f"""{workers} equal workers never pause and share {servers} parameter servers. How stale is a gradient
        on average?""")
    item.right(workers - 1, "updates").why("""While a worker computes one gradient, each other worker makes one update.
        Servers divide the variables, not the workers.""")
    item.wrong(workers, "Its own updates count").why("A worker's own update does not make its next gradient stale.")
    item.wrong((workers - 1) / servers, "A server for a group").why("Every worker talks to all servers.")
    item.wrong(0, "The queue waits").why("The chief hands out the steps at once.")


def staleness_of_the_slow(item: Item, workers: int = pick(3, 4, 6, 8), times: int = pick(3, 4, 5)) -> None:
    item.enter(f"""One of {workers} asynchronous workers is {times} times slower than the others, which are equal. About
        how many updates are between its reading of the weights and its own update?""")
    item.right(times * (workers - 1), "updates").why(f"""It catches about {times} updates of each of the {workers - 1}
        others.""")
    item.wrong(workers - 1, "The mean of all").why("That is the mean over all gradients; a slow worker's are staler.")
    item.wrong(times, "One other worker").why("Each of the others makes updates meanwhile.")
    item.wrong(times * workers, "Its own update counts").why("Only the others' updates count.")


def gradients_per_second(
    item: Item,
    workers: int = pick(3, 4, 8),
    slow: int = pick(200, 250, 400),
    way: str = pick("synchronous", "asynchronous"),
) -> None:
    seconds = [0.05] * (workers - 1) + [slow / 1_000]
    rates = {"synchronous": workers / max(seconds), "asynchronous": sum(1 / each for each in seconds)}
    item.choose(f"""{workers} workers need 50 ms for a gradient, except for one that needs {slow} ms. Communication
        takes no time. How many gradients per second does {way} training apply?""")
    item.right(rates[way], "per second").why("""Synchronous: all gradients per slowest gradient. Asynchronous: the
        workers' rates add up.""")
    item.wrong(other(rates, way), "The other way").why("Ask who waits for whom.")
    item.wrong(workers / 0.05, "No slow worker").why("One of them delivers fewer gradients, or makes all wait.")
    item.wrong(workers / (sum(seconds) / workers), "The mean time").why("Neither way has the pace of the mean.")


def unlucky_steps(item: Item, workers: int = pick(4, 8, 16, 32), percent: int = pick(2, 5, 10)) -> None:
    waiting = 1 - (1 - percent / 100) ** workers
    item.enter(f"""Each of {workers} synchronous workers is slow in {percent} % of its gradients, by chance. In what
        share of the steps does somebody make the others wait?""")
    item.right(waiting, "%").why(f"All are lucky in (1 − {percent / 100:g})^{workers} of the steps.")
    item.wrong(percent / 100, "One worker's share").why("A step waits if any worker is unlucky.")
    item.wrong(1 - waiting, "The lucky steps").why("That is the share in which nobody waits.")
    item.wrong(workers * percent / 100, "Added up").why("Some steps have several unlucky workers; they wait once.")


def backup_workers(item: Item, workers: int = pick(8, 16, 20), backups: int = pick(1, 2, 4)) -> None:
    item.choose(f"""A step takes the first {workers} gradients of {workers + backups} workers and drops the rest. What
        share of the work is lost?""")
    item.right(backups / (workers + backups), "%").why(f"""{backups} of {workers + backups} gradients are dropped in
        every step.""")
    item.wrong(backups / (workers - backups), "Of the others").why("The share is of all gradients that were computed.")
    item.wrong(0.0, "Nothing is lost").why("Dropped gradients were computed, too.")
    item.wrong(workers / (workers + backups), "What is kept").why("That is the share that is used.")


WAYS = {
    "equal GPUs and a fast network": "Synchronous, with an all-reduce",
    "one machine that is always slower": "Synchronous, with fewer images for the slow one",
    "steps that are slow now and then, on any machine": "Synchronous, with backup workers",
    "machines that come and go": "Synchronous, with saves on notice, and elastic workers",
}


def which_way(item: Item, machines: int = pick(8, 16, 64), cluster: str = pick(*WAYS)) -> None:
    item.choose(f"A cluster of {machines} machines has {cluster}. Which way of training do you try first?")
    item.right(WAYS[cluster]).why("Ask who waits for whom, and what a lost machine costs.")
    for case, way in WAYS.items():
        if case != cluster:
            item.wrong(way, f"Made for {case}").why("Ask who waits here, and why.")


AFTER_A_KILL = {
    "a worker": "All gradients are applied: the other workers compute the rest",
    "a parameter server": "The chief gets an error; the job starts again from a checkpoint",
}


def killed(item: Item, scheduled: int = pick(80, 120, 200, 400), victim: str = pick(*AFTER_A_KILL)) -> None:
    item.choose(f"""The chief has scheduled {scheduled} gradients. Half of them are applied when {victim}, one of
        several, is killed with `kill -9`. What happens?""")
    item.right(AFTER_A_KILL[victim]).why("""A lost worker's step goes back into the queue; a lost server takes its
        variables with it.""")
    item.wrong(other(AFTER_A_KILL, victim), "Worker and server confused").why("Ask where the variables are.")
    item.wrong("Its share of the gradients is lost, and the rest are applied", "Fixed shares").why("""No worker has a
        share: the next free one takes the next step.""")
    item.wrong("All wait until it comes back", "As in an all-reduce").why(
        "That is so where every step needs everybody."
    )

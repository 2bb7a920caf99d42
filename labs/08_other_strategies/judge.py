"""The judge of lab 08: how stale gradients are, who waits for whom, and shares of a batch for slow workers."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distlab.labs import Exercise, Lab
from distlab.labs.by_programs import ByPrograms, Case, Mistake, OfPart, formulas
from distlab.labs.number_judge import described, is_near, number, numbers_of, problem_of_names

Log = Sequence[tuple[int, str]]

# Staleness -----------------------------------------------------------------------------------------------------------

EQUAL, SLOW, PAUSE = "workers that take turns", "a slow worker", "a worker that pauses"
READS, UPDATES = "reads", "updates"
IN_ORDER = [READS, READS, UPDATES, READS, READS, UPDATES, UPDATES, READS, UPDATES]
LOG = list(zip([0, 1, 0, 0, 2, 0, 1, 1, 2], IN_ORDER, strict=True))


def staleness(events: Log) -> list[int]:
    """For each update the number of updates by other workers since its own worker's last read."""
    updates, at_read, stale = 0, dict[int, int](), []
    for worker, event in events:
        if event == READS:
            at_read[worker] = updates
        else:
            stale.append(updates - at_read[worker])
            updates += 1
    return stale


def between(events: Log) -> list[Log]:
    """For each update what happened since its worker's last read."""
    found, last = [], dict[int, int]()
    for place, (worker, event) in enumerate(events):
        if event == UPDATES:
            found.append(events[last[worker] + 1 : place])
        last[worker] = place
    return found


def drawn_log(generator: np.random.Generator, part: str) -> OfPart:
    """Each worker computes for its own time; in PAUSE one waits a while before it reads again."""
    workers = int(generator.integers(3, 6))
    seconds = generator.uniform(0.9, 1.1, workers)
    if part == SLOW:
        seconds[generator.integers(workers)] *= generator.uniform(3, 5)
    pause = float(generator.uniform(2, 3)) if part == PAUSE else 1e-3
    paused = int(generator.integers(workers))
    events = []
    for worker in range(workers):
        now = 1e-4 * worker
        while now < 9:
            end = now + float(seconds[worker]) * float(generator.uniform(0.8, 1.2))
            events += [(now, worker, READS), (end, worker, UPDATES)]
            now = end + (pause if worker == paused else 1e-3)
    return OfPart(part, [(worker, event) for _, worker, event in sorted(events)])


def logs(generator: np.random.Generator) -> list[OfPart]:
    """One of each kind, the example, and at last logs without an update and without anything."""
    drawn = [drawn_log(generator, part) for part in (EQUAL, SLOW, PAUSE)]
    return [*drawn, OfPart(SLOW, LOG), OfPart(EQUAL, [(0, READS), (1, READS)]), OfPart(EQUAL, [])]


def stale_otherwise(case: OfPart, said: Any) -> str:
    """The first update that is wrong, with what stands between it and its read."""
    values, expected = numbers_of(said), staleness(case[0])
    if values is None or len(values) != len(expected):
        count = f"for each of the {len(expected)} updates"
        return f"`staleness` must give a list with one whole number {count}; yours gives {described(said)}."
    place = next(place for place, value in enumerate(values) if value != expected[place])
    events = ", ".join(f"{worker} {event}" for worker, event in between(case[0])[place])
    return (
        f"update {place} has {values[place]:g}, and between its worker's read and it stands ({events}): count for each "
        "update which updates stand between it and the same worker's read before it."
    )


NO_UPDATE = {EQUAL: "nobody has updated yet. How many numbers does the list have?"}
STALENESS_FORMULAS = {
    "[stale + 1 for stale in right]": "this counts the worker's own update, too. Whose updates make a gradient stale?",
    "list(range(len(right)))": "this counts all updates before it. Since when did this worker not look at the weights?",
    "[len(since) for since in between]": "this counts reads, too. Which events change the weights?",
    "[sum(event == 'reads' for _, event in since) for since in between]": (
        "this counts reads. Which events change the weights?"
    ),
    "[len({peer for peer, event in since if event == 'updates'}) for since in between]": (
        "this counts the workers that updated in between. What if one of them did so twice?"
    ),
    "[len({worker for worker, _ in events}) - 1] * len(right)": (
        "that is the mean for workers that never pause. How many updates were there between these two events?"
    ),
    "right or [0]": NO_UPDATE,
    "right or None": NO_UPDATE,
}
STALENESS = ByPrograms(
    staleness,
    logs,
    said=lambda case: f"in a log of {len(case[0])} events",
    parts=(EQUAL, SLOW, PAUSE),
    split=OfPart.split,
    otherwise=stale_otherwise,
    mistakes=formulas(staleness, {"": STALENESS_FORMULAS}, lambda events: {"between": between(events)}),
)

# A rule that bounds it -----------------------------------------------------------------------------------------------

RULE_EXAMPLES = (([4, 3, 5], 2, 2), ([4, 2, 5], 2, 2))


def may_begin(finished: list[int], worker: int, lead: int) -> bool:
    """Whether a worker may read the weights for its next gradient; the others may be computing one."""
    return finished[worker] - min(finished) <= lead


def states(generator: np.random.Generator) -> list[tuple[list[int], int, int]]:
    """Just allowed, just forbidden and far away, for leads from 0 on; all but one far ahead; one worker only."""
    drawn = []
    for lead in (0, 1, 2, 4):
        for ahead in (0, lead, lead + 1, lead + 3):
            lowest, workers = int(generator.integers(0, 9)), int(generator.integers(3, 7))
            finished = generator.integers(lowest + 1, lowest + lead + 3, workers)
            slowest, worker = generator.choice(workers, 2, replace=False)
            finished[slowest], finished[worker] = lowest, lowest + ahead
            drawn.append((finished.tolist(), int(worker), lead))
    behind = ([7, 7, 2, 7], int(generator.choice([0, 1, 3])), 2)
    return [*drawn, behind, ([9, 0, 8], 0, 2), ([6, 0, 1, 8, 1], 0, 2), *RULE_EXAMPLES, ([0], 0, 0), ([5], 0, 2)]


WHOSE = "Whose gradient would become too stale?"
RULES = {
    "True": "it is True in every state. When must a worker wait, and when not?",
    "False": "it is False in every state. When must a worker wait, and when not?",
    "ahead < lead": "a worker that is ahead by exactly the lead waits here. Is that more than the lead?",
    "ahead <= lead + 1": "a worker may be ahead by one more than the lead here.",
    "max(finished) - own <= lead": "this makes the slow workers wait. Who is too far ahead of whom?",
    "own - max(others) <= lead": f"this compares with the fastest of the others. {WHOSE}",
    "own - sorted(finished)[workers // 2] <= lead": f"this compares with the worker in the middle. {WHOSE}",
    "bool(own - np.median(finished) <= lead)": f"this compares with the worker in the middle. {WHOSE}",
    "own - sum(finished) / workers <= lead": f"this compares with the mean of all workers. {WHOSE}",
    "workers > 1 and right": "a single worker may begin. Whom could it wait for?",
    "own - min(others) <= lead": "a single worker has no others to compare with. Whom could it wait for?",
}


def known_of_state(finished: list[int], worker: int, lead: int) -> dict[str, Any]:
    """What formulas may use."""
    own, workers = finished[worker], len(finished)
    ahead, others = own - min(finished), finished[:worker] + finished[worker + 1 :]
    return locals()


MAY_BEGIN = ByPrograms(
    may_begin,
    states,
    said=lambda case: "with {0} gradients finished and a lead of {2}, for worker {1}".format(*case),
    form=lambda case, allowed: (
        None if isinstance(allowed, bool) else f"`may_begin` gives True or False, not {allowed!r}."
    ),
    otherwise=lambda case, allowed: (
        f"it {'must wait' if allowed else 'may begin'}: it is ahead by {case[0][case[1]] - min(case[0])}"
        f"{'' if allowed else ', which is allowed'}."
    ),
    praise=lambda cases: "No worker gets further ahead than allowed, and none waits needlessly.",
    mistakes=formulas(may_begin, {"": RULES}, known_of_state),
)

# What the bound gives, and what it costs -----------------------------------------------------------------------------

LARGEST, UNBOUNDED, BOUNDED = NAMES = ("largest staleness", "without a bound", "with the bound")


FIVE = [0.5, 0.2, 1.25, 0.4, 0.25], 7
"""No two usual mistakes give the same number here."""


def limits(seconds: list[float], lead: int) -> dict[str, float]:
    """The staleness that no gradient exceeds, and gradients per second in the long run.

    While a worker computes its gradient number a + 1, another one goes from a − lead to a + lead + 1 at most.
    """
    workers = len(seconds)
    values = (workers - 1) * (2 * lead + 1), sum(1 / each for each in seconds), workers / max(seconds)
    return dict(zip(NAMES, map(float, values), strict=True))


def bounded_workers(generator: np.random.Generator) -> list[tuple[list[float], int]]:
    """The example, drawn ones, a lead of 0, and one worker only: the seconds for a gradient, and the lead."""
    count, lead = int(generator.integers(5, 9)), int(generator.integers(3, 6))
    drawn = [round(float(seconds), 2) for seconds in generator.uniform(0.1, 2, count)]
    return [FIVE, (drawn, lead), ([0.5, 0.5, 0.3, 1.7], 0), ([0.7], 2)]


def staleness_otherwise(case: Case, said: Any) -> str:
    """The hint for any other largest staleness."""
    if len(case[0]) == 1:
        return NO_OTHERS
    return (
        "write down the events for 2 workers and a lead of 1, then for 3 workers and a lead of 0. Between A's read and "
        "A's update, how many updates of others can there be?"
    )


def rate_otherwise(name: str) -> Callable[[Case, Any], str]:
    """The hint for other rates; near ones come from a simulation."""

    def hint(case: Case, said: Any) -> str:
        if len(case[0]) == 1:
            return "there is one worker only, which waits for nobody. How many gradients does it send in a second?"
        if is_near(number(said), limits(*case)[name], 0.01):
            return "this is near, as a long simulation is. Which formula does it come near to?"
        return "in a long time, how many gradients does each worker send, and who waits for whom?"

    return hint


LEAD_ITSELF = "the lead is a limit for two workers. How many updates of all others fit into one gradient?"
ONE_SIDE = "another worker may be ahead at the end, and it may be behind at the beginning: how many updates in all?"
IN_FLIGHT = "at its limit a worker may still begin one gradient. Is its update counted?"
ALL_WORKERS = "a worker's own updates do not make its gradients stale."
NO_LEAD = "the lead is not in it. What else may the others do while A computes, when the lead is larger?"
ONE_OTHER = "this counts the updates of one other worker. How many others are there?"
BY_SPEEDS = "it changes with `seconds`. What does the rule alone allow, however fast the others are?"
NO_OTHERS = "there is one worker only. Whose updates make its gradients stale?"
ONE_RATE = "this is one worker's rate. How many send gradients?"
NOT_A_RATE = "these are seconds. Asked for are gradients per second."
FASTEST_PACE = "this takes every worker for the fastest one."
LEAD_EACH_TIME = "the lead can be used up only once. After that, for whom do the fast workers wait?"
LEAD_DIVIDES = "with a larger lead everybody would be slower here. Who waits for whom, and how often?"
OF_ALL_RATES = {
    "workers / min(seconds)": FASTEST_PACE,
    "1 / max(seconds)": ONE_RATE,
    "without_a_bound / workers": ONE_RATE,
    "1 / without_a_bound": NOT_A_RATE,
    "sum(seconds)": NOT_A_RATE,
}
LIMIT_FORMULAS = {
    LARGEST: {
        "largest_staleness if lead else 0": (
            "with a lead of 0 all workers read the same weights. When the first update has changed them, with which "
            "weights do the others still compute?"
        ),
        "max(workers - 1, 1) * (2 * lead + 1)": NO_OTHERS,
        "lead": LEAD_ITSELF,
        "(workers - 1) * (lead + 1)": ONE_SIDE,
        "(workers - 1) * 2 * lead": IN_FLIGHT,
        "workers * (2 * lead + 1)": ALL_WORKERS,
        "workers * (lead + 1)": ALL_WORKERS,
        "workers * 2 * lead": ALL_WORKERS,
        "workers - 1": "that is the mean of workers that never pause, or the limit for a lead of 0.",
        "workers": NO_LEAD,
        "2 * lead + 1": ONE_OTHER,
        "2 * lead": ONE_OTHER,
        "2 * lead + 2": ONE_OTHER,
        "sum(max(seconds) / each for each in seconds) - 1": BY_SPEEDS,
        "int(max(seconds) / min(seconds)) * (workers - 1)": BY_SPEEDS,
    },
    UNBOUNDED: {
        "with_the_bound": "this is the pace of the slowest. Who waits for it without a bound?",
        "workers**2 / sum(seconds)": (
            "the mean of the seconds is not what counts: a fast worker sends more gradients. Add up the rates."
        ),
        **OF_ALL_RATES,
    },
    BOUNDED: {
        "without_a_bound": (
            "that is the rate without a bound. After the first gradients, for whom do the fast workers wait?"
        ),
        "workers**2 / sum(seconds)": (
            "this takes the mean of the seconds. For whom do the fast workers wait in the end?"
        ),
        **OF_ALL_RATES,
        "workers * (lead + 1) / max(seconds)": LEAD_EACH_TIME,
        "(workers + lead) / max(seconds)": LEAD_EACH_TIME,
        "without_a_bound / (lead + 1)": LEAD_DIVIDES,
    },
}
LIMITS = ByPrograms(
    limits,
    bounded_workers,
    said=lambda case: f"for {', '.join(f'{seconds:g}' for seconds in case[0])} s, lead {case[1]}",
    parts=NAMES,
    otherwise={
        LARGEST: staleness_otherwise,
        UNBOUNDED: rate_otherwise(UNBOUNDED),
        BOUNDED: rate_otherwise(BOUNDED),
    },
    mistakes=formulas(limits, LIMIT_FORMULAS, lambda seconds, lead: {"workers": len(seconds)}),
)

# Synchronous, with backup workers, or asynchronous -------------------------------------------------------------------

SYNCHRONOUS, BACKUP, ASYNCHRONOUS = WAYS = ("synchronous", "backup workers", "asynchronous")
CHOICE, STEPS, CLUSTERS = "choice", 300, "ABCDE"
NUMBERS = {f"cluster {letter}": {name: f"{name} in {letter}" for name in (*WAYS, CHOICE)} for letter in CLUSTERS}

Seconds = NDArray[np.float64]


TWO_STEPS = np.array([[0.1, 0.2, 0.4], [0.3, 0.12, 0.15]]), 0.06, 0.02, 1, 3.0


def dropped(seconds: Seconds, backups: int) -> float:
    """The largest share of the steps in which one worker's gradient is dropped."""
    last = np.argsort(seconds, axis=1)[:, seconds.shape[1] - backups :]
    return float(np.bincount(last.ravel(), minlength=seconds.shape[1]).max() / len(seconds))


def excluded(seconds: Seconds, all_reduce: float, server: float, backups: int, allowed: float) -> list[str]:
    """The ways that a cluster does not allow."""
    stale = [ASYNCHRONOUS] if seconds.shape[1] - 1 > allowed else []
    return stale + ([BACKUP] if dropped(seconds, backups) > 0.5 else [])


def choose(seconds: Seconds, all_reduce: float, server: float, backups: int, allowed: float) -> dict[str, Any]:
    """Gradients per second that change the weights, by way, and the fastest way among those that are allowed."""
    workers, ends = seconds.shape[1], np.sort(seconds, axis=1)
    rates = {
        SYNCHRONOUS: workers / float(np.mean(ends[:, -1]) + all_reduce),
        BACKUP: (workers - backups) / float(np.mean(ends[:, workers - backups - 1]) + all_reduce),
        ASYNCHRONOUS: min(float(np.sum(1 / seconds.mean(axis=0))), 1 / server),
    }
    out = excluded(seconds, all_reduce, server, backups, allowed)
    return {**rates, CHOICE: max((way for way in WAYS if way not in out), key=rates.__getitem__)}


def clusters(generator: np.random.Generator) -> list[OfPart]:
    """The example; five clusters with one reason each for the right choice, and far from a tie; and a busy server.

    Each rule is met on its boundary: in A one worker is dropped in exactly half of the steps, in B the mean staleness
    is exactly the largest that is allowed. In A that worker is by far the slowest on average. In E the worker that is
    always dropped is never the slowest in a step, and fast on average. In A every way is allowed, and backup workers
    are the best, asynchronous training the second best. In D asynchronous training is the best and out, and backup
    workers are the second best. The busy server gets more than it can apply, and that is still the most.
    """
    workers, base = int(generator.integers(7, 11)), float(generator.uniform(0.08, 0.12))
    even = base * generator.uniform(0.85, 1.15, (6, STEPS, workers))
    slow, hiccups = np.ones(workers), np.where(generator.random((STEPS, workers)) < 0.06, 10.0, 1.0)
    slow[generator.integers(workers)] = float(generator.uniform(4, 5))
    marked, *rest = generator.permutation(workers).tolist()
    two_hiccups, second_last = np.ones((2, STEPS, workers))
    for place, step in enumerate(generator.permutation(STEPS)):
        pair = generator.choice(rest, 2, replace=False)
        two_hiccups[step, [marked if place % 2 else pair[0], pair[1]]] = 10.0
    second_last[:, marked] = 1.5
    second_last[np.arange(STEPS), generator.choice(rest, STEPS)] = 10.0
    fast, any_staleness, too_few = 0.02 * base, workers + 5.0, workers - 2.0
    return [
        OfPart(CLUSTERS, *TWO_STEPS),
        OfPart("A", even[0] * two_hiccups, fast, fast, 2, any_staleness),
        OfPart("B", even[1] * slow, fast, fast, 1, workers - 1.0),
        OfPart("C", even[2], 0.1 * base, 0.4 * base, 1, any_staleness),
        OfPart("D", even[3] * hiccups, fast, fast, 1, too_few),
        OfPart("E", even[4] * second_last, fast, fast, 2, too_few),
        OfPart("C", even[5], 1.5 * base, 0.2 * base, 1, any_staleness),
    ]


def of_clusters(case: OfPart, said: dict[str, Any]) -> dict[str, Any]:
    """What is said of a cluster; the example counts for all of them."""
    return {part: said[name] for letter in case.part for name, part in NUMBERS[f"cluster {letter}"].items()}


def why_not(case: OfPart, chosen: Any) -> str:
    """What is wrong with a choice."""
    seconds, _, server, backups, allowed = case
    steps, workers = seconds.shape
    if chosen not in WAYS:
        return f"the choice is one of {', '.join(WAYS)}, not {chosen!r}."
    if chosen == ASYNCHRONOUS in excluded(*case):
        return "asynchronous gradients are too stale here: what is their mean staleness, and what is allowed?"
    if chosen == BACKUP in excluded(*case):
        return "a worker is dropped in most steps, and its data are lost. Which way keeps them?"
    numbers = choose(*case)
    if (best := numbers[CHOICE]) == SYNCHRONOUS:
        why = "which rule could exclude it?"
    elif best == BACKUP:
        most = round(dropped(seconds, backups) * steps)
        why = f"no worker is dropped in more than {most} of {steps} steps. When would it be out?"
    elif numbers[ASYNCHRONOUS] == 1 / server:
        why = "the server is always busy, and this limits the rate. Is it a reason to rule the way out?"
    else:
        why = f"what is the mean staleness of {workers} workers that never pause, and is it more than {allowed:g}?"
    higher = f"{numbers[best]:.4g} instead of {numbers[chosen]:.4g}"
    return f"the rate of {best} is higher, {higher}, and this way is not out here: {why}"


def known_of_cluster(*cluster: Any) -> dict[str, Any]:
    """What formulas may use.

    `rate(ends)`: of steps with these ends of the gradients that are taken.  `best(stale, lost)`: the fastest way if
    asynchronous training is too stale, or data are lost with backups.
    """
    seconds, all_reduce, _, backups, allowed = cluster
    (steps, workers), ends, means = seconds.shape, np.sort(seconds, axis=1), seconds.mean(axis=0)
    kept, last, sent, by_column = workers - backups, ends[:, -1], float(np.sum(1 / means)), np.sort(seconds, axis=0)
    numbers, out, share = choose(*cluster), excluded(*cluster), dropped(seconds, backups)
    slowest = np.bincount(seconds.argmax(axis=1)).max()

    def rate(step_ends: Seconds, gradients: int = kept) -> float:
        return float(gradients / (np.mean(step_ends) + all_reduce))

    def best(stale: bool = workers - 1 > allowed, lost: bool = share > 0.5) -> str:
        ways = [SYNCHRONOUS, *([] if lost else [BACKUP]), *([] if stale else [ASYNCHRONOUS])]
        return max(ways, key=numbers.__getitem__)

    return locals()


STEPS_NOT_GRADIENTS = "these are steps per second. How many gradients does a step apply?"
NO_ALL_REDUCE = "the all-reduce is missing in each step."
ONE_ALL_REDUCE = "the all-reduce is added once. How many steps have one?"
MEAN_OF_STEPS = (
    "this is the mean of the steps' rates, and a slow step takes more of the time. Divide all gradients by all seconds."
)
SLOWEST_ON_AVERAGE = "a step takes as long as its own slowest worker, and that is not always the same one."
MEAN_WORKER = "this step waits for a worker of mean speed. For whom does a step wait?"
DROPS = "this drops gradients. Which of the three ways does that?"
NO_BACKUP = "this step waits for all workers. For how many does it wait?"
ALONG_THE_STEPS = "this compares different steps of one worker. What is a row of `seconds`, and what is a column?"
EXCHANGED = "the numbers of steps and of workers are exchanged. Which of them is first in `seconds.shape`?"
SERVER_ADDED = (
    "this adds the server's time to that of the gradients. The workers compute meanwhile: what does it limit?"
)
EACH_RATE = "a fast worker sends more gradients: take each worker's rate, then add up."
NOBODY_WAITS = "nobody waits for the slowest here."
NEAR_RULES = (
    *("best(stale=workers - 1 >= allowed)", "best(stale=workers > allowed)", "best(stale=False)"),
    *("best(lost=share >= 0.5)", "best(lost=False)", "best(lost=slowest > steps / 2)", "'synchronous'"),
    *("best(lost=means.max() > 2 * np.median(seconds))", "best(lost=means.max() > 1.5 * np.median(means))"),
)
"""Rules that are near the right ones; each is wrong for a cluster at least."""


IS_OUT = "the rate is missing. This way is out here, and has a rate all the same: give all three."
NO_RATES = ("0.0", "None", "math.nan", "math.inf")
RATE_FORMULAS: dict[str, dict[str, Any]] = {
    SYNCHRONOUS: {
        "rate(last, 1)": STEPS_NOT_GRADIENTS,
        "workers / last.mean()": NO_ALL_REDUCE,
        "seconds.size / (last.sum() + all_reduce)": ONE_ALL_REDUCE,
        "np.mean(workers / (last + all_reduce))": MEAN_OF_STEPS,
        "rate(means.max(), workers)": SLOWEST_ON_AVERAGE,
        "rate(seconds, workers)": MEAN_WORKER,
        "rate(last)": DROPS,
        "seconds.size / np.sum(by_column[-1] + all_reduce)": ALONG_THE_STEPS,
    },
    BACKUP: {
        "(steps - backups) * workers / np.sum(ends[:, steps - backups - 1] + all_reduce)": EXCHANGED,
        "rate(ends[:, kept - 1], 1)": STEPS_NOT_GRADIENTS,
        "rate(ends[:, kept - 1], workers)": "a step drops some of the gradients. How many does it apply?",
        "kept / ends[:, kept - 1].mean()": NO_ALL_REDUCE,
        "kept * steps / (ends[:, kept - 1].sum() + all_reduce)": ONE_ALL_REDUCE,
        "np.mean(kept / (ends[:, kept - 1] + all_reduce))": MEAN_OF_STEPS,
        "rate(last)": NO_BACKUP,
        "rate(ends[:, backups - 1], backups)": (
            "this step takes as many gradients as there are backups. So many are dropped: how many does it take?"
        ),
        "rate(ends[:, workers - 2], workers - 1)": "one gradient is dropped in each step here. How many are `backups`?",
        "rate(seconds[:, :kept].max(axis=1))": (
            "the backup workers are not always the same ones: a step drops those that come last."
        ),
        "rate(ends[:, :kept])": MEAN_WORKER,
        "rate(ends[:, kept - 2])": (
            "this step ends before its last gradient is there. At which place is that, if one counts from 0?"
        ),
        "rate(np.diff(np.sort(seconds.cumsum(axis=0), axis=1)[:, kept - 1], prepend=0))": (
            "a worker whose gradient is dropped goes on with it here. When does it begin the next step?"
        ),
        "rate(by_column[:, :kept].max(axis=1))": ALONG_THE_STEPS,
        **{f"{none} if 'backup workers' in out else backup_workers": IS_OUT for none in NO_RATES},
    },
    ASYNCHRONOUS: {
        "sent": "the workers send that many gradients, and one server cannot apply them so fast.",
        "np.sum(1 / (means + server))": SERVER_ADDED,
        "1 / (1 / sent + server)": SERVER_ADDED,
        "1 / server": "this is what the server can do. Do the workers send as many?",
        "np.sum(workers / seconds.sum(axis=0))": EXCHANGED,
        "min(sent, 1 / (server * workers))": (
            "the server needs `server` seconds for one gradient here, not for one of every worker."
        ),
        "np.sum(1 / (means + all_reduce))": (
            "there is an all-reduce in it. To whom does a worker send its gradient here?"
        ),
        "np.sum(1 / ends.mean(axis=0))": (
            "it comes from sorted rows. Was `seconds` sorted in place, and whose times are in a column now?"
        ),
        "workers / seconds.mean()": EACH_RATE,
        "workers / means.max()": NOBODY_WAITS,
        "workers / last.mean()": NOBODY_WAITS,
        **{f"{none} if 'asynchronous' in out else asynchronous": IS_OUT for none in NO_RATES},
    },
    CHOICE: dict.fromkeys(NEAR_RULES, why_not),
}
RATES_OTHERWISE: dict[str, Any] = {
    SYNCHRONOUS: "simulate three steps of two workers on paper.",
    BACKUP: "simulate three steps of three workers on paper, which drop the last gradient.",
    ASYNCHRONOUS: "there are no steps here. How many gradients does each worker send in a second?",
    CHOICE: why_not,
}


CHOOSE = ByPrograms(
    choose,
    clusters,
    said=lambda case: "in the example" if case.part == CLUSTERS else f"for {case[0].shape[1]} workers",
    parts=[part for numbers in NUMBERS.values() for part in numbers.values()],
    together=NUMBERS,
    split=of_clusters,
    form=lambda case, said: problem_of_names("choose", (*WAYS, CHOICE), said),
    otherwise={part: RATES_OTHERWISE[name] for numbers in NUMBERS.values() for name, part in numbers.items()},
    mistakes=formulas(choose, RATE_FORMULAS, known_of_cluster),
)

# Shares for slow workers ---------------------------------------------------------------------------------------------

FIRST, LATER, VERY_SLOW = "equal shares so far", "unequal shares so far", "very slow workers"
LAST_STEP = OfPart(LATER, [6, 3, 3], [0.6, 0.6, 0.9])
TRAPS = (OfPart(LATER, [12, 7, 1], [12.0, 7.0, 6.1]), OfPart(VERY_SLOW, [10, 5, 5], [1.0, 50.0, 50.0]))
"""Moving images stops too early here, and so does repairing the sum of rounded shares.

In the first one the worker that would end one more image first is not the one that ends first now, and three rounded
shares have the right sum. In the second one two workers end last together, and each of them needs a whole image.
"""


def next_shares(shares: Sequence[int], seconds: Sequence[float]) -> list[int]:
    """Shares with which the last worker ends as early as possible, at least one image for each."""
    return first_to_finish(sum(shares), [took / share for share, took in zip(shares, seconds, strict=True)])


def first_to_finish(images: int, seconds_per_image: Sequence[float]) -> list[int]:
    """One image for each worker; each other one goes to the worker that would finish it first."""
    shares = [1] * len(seconds_per_image)
    for _ in range(images - len(shares)):
        ends = [(share + 1) * each for share, each in zip(shares, seconds_per_image, strict=True)]
        shares[int(np.argmin(ends))] += 1
    return shares


def last_end(case: OfPart, shares: Sequence[float]) -> float:
    """The seconds of a step with these shares: those of its last worker."""
    return max(share * took / before for share, before, took in zip(shares, *case, strict=True))


def speeds(shares: Sequence[int], seconds: Sequence[float]) -> list[float]:
    """Images per second of each worker."""
    return [share / took for share, took in zip(shares, seconds, strict=True)]


def proportional(shares: Sequence[int], seconds: Sequence[float]) -> list[int]:
    """In proportion to the speeds, at least 1, by largest remainders."""
    ideal = np.array(speeds(shares, seconds)) * sum(shares) / sum(speeds(shares, seconds))
    whole = np.maximum(np.floor(ideal).astype(int), 1)
    whole[np.argsort(np.floor(ideal) - ideal)[: max(sum(shares) - int(whole.sum()), 0)]] += 1
    return [int(share) for share in whole]


def rounded(shares: Sequence[int], seconds: Sequence[float]) -> list[int]:
    """In proportion to the speeds, at least 1, with the rest for the last worker."""
    parts = [speed * sum(shares) / sum(speeds(shares, seconds)) for speed in speeds(shares, seconds)]
    whole = [max(1, round(part)) for part in parts[:-1]]
    return [*whole, sum(shares) - sum(whole)]


def drawn_step(generator: np.random.Generator, part: str) -> OfPart:
    """A step with shares that are equal in FIRST only."""
    workers = int(generator.integers(4, 7))
    shares = np.full(workers, int(generator.integers(9, 14)))
    if part != FIRST:
        shares += generator.permutation(np.arange(workers)) * 2
    per_image = generator.uniform(0.01, 0.03, workers)
    if part == VERY_SLOW:
        per_image[generator.integers(workers)] = generator.uniform(4, 6)
    return OfPart(part, shares.tolist(), (shares * per_image).tolist())


def hard_step(generator: np.random.Generator, part: str) -> OfPart:
    """A drawn step, not of a very slow worker, for which rounded proportional shares are not the best."""
    while True:
        step = drawn_step(generator, part)
        best = last_end(step, next_shares(*step))
        if all(last_end(step, shares(*step)) > best * (1 + 1e-6) for shares in (proportional, rounded)):
            return step


def rearranged(generator: np.random.Generator, step: OfPart) -> OfPart:
    """The same step with the workers in another order, on machines that are all faster or slower by one factor."""
    order, factor = generator.permutation(len(step[0])), float(generator.uniform(0.02, 0.05))
    return OfPart(step.part, [step[0][each] for each in order], [step[1][each] * factor for each in order])


def last_steps(generator: np.random.Generator) -> list[OfPart]:
    """Drawn ones, hard ones, traps, the example, and one worker alone."""
    drawn = [drawn_step(generator, part) for part in (FIRST, LATER, LATER, VERY_SLOW)]
    drawn += [hard_step(generator, part) for part in (FIRST, LATER)]
    return [*drawn, *(rearranged(generator, step) for step in TRAPS), LAST_STEP, OfPart(FIRST, [7], [0.35])]


def problem_of_shares(case: OfPart, said: Any) -> str | None:
    """What is wrong with their form; None if they are shares of as many images."""
    counts = numbers_of(said)
    if counts is None or len(counts) != len(case[0]):
        count = f"for each of the {len(case[0])} workers"
        return f"`next_shares` must give a list with one whole number {count}; yours gives {described(said)}."
    for worker, share in enumerate(counts):
        if share % 1:
            return f"worker {worker} gets {share:.6g} images. Which whole number of images should it get?"
    if sum(counts) != sum(case[0]):
        together = f"{np.asarray(said).tolist()} have {sum(counts):g} images together"
        return f"the shares {together}, and the step has {sum(case[0])}."
    if min(counts) < 1:
        worker = counts.index(min(counts))
        return f"worker {worker} has {counts[worker]:g} images. Each worker needs one, or nobody knows how fast it is."
    return None


def are_best(case: OfPart, said: Any) -> bool:
    """Whether no other shares let the last worker end earlier."""
    is_form = problem_of_shares(case, said) is None
    return is_form and last_end(case, said) <= last_end(case, next_shares(*case)) * (1 + 1e-9)


def shares_otherwise(case: OfPart, said: Any) -> str:
    """By the seconds of the step before, of this one and of the best one."""
    if problem := problem_of_shares(case, said):
        return problem
    before, takes, best = max(case[1]), last_end(case, said), last_end(case, next_shares(*case))
    if list(said) == list(case[0]):
        return (
            f"nothing has changed, and the last worker still ends after {takes:.5g} s, but {best:.5g} s is possible. "
            "Who could take one of its images, and end earlier with it?"
        )
    if takes >= before:
        return f"this step takes {takes:.5g} s, and the one before took {before:.5g} s. Who should get less?"
    return (
        f"this helps, but the last worker ends after {takes:.5g} s, and {best:.5g} s is possible. Give the images out "
        "one by one: to whom goes the next?"
    )


BY_SECONDS = {LATER: "this takes 1 / seconds for the speed. Did all have the same number of images?"}
NEXT_SHARES = ByPrograms(
    next_shares,
    last_steps,
    said=lambda case: f"for shares {case[0]}, seconds {[round(seconds, 4) for seconds in case[1]]}",
    parts=(FIRST, LATER, VERY_SLOW),
    split=lambda case, said: {case.part: next_shares(*case) if are_best(case, said) else said},
    otherwise=shares_otherwise,
    mistakes=[
        Mistake(shares_otherwise, lambda shares, seconds: shares),
        Mistake(BY_SECONDS, lambda shares, seconds: first_to_finish(sum(shares), seconds)),
        Mistake(shares_otherwise, lambda shares, seconds: first_to_finish(sum(shares), speeds(shares, seconds))),
        Mistake(shares_otherwise, proportional),
        Mistake(shares_otherwise, rounded),
    ],
)

# The lab -------------------------------------------------------------------------------------------------------------


def target(name: str) -> str:
    """One call of an exercise's function and what it must give."""
    if name == "staleness":
        return "\n".join(["staleness([", *(f"    {event}," for event in LOG), f"])\n    {staleness(LOG)}"])
    if name == "may_begin":
        call = "may_begin(finished={}, worker={}, lead={})\n    {}"
        return "\n".join(call.format(*state, may_begin(*state)) for state in RULE_EXAMPLES)
    if name == "limits":
        lines = [f"    {number:20}{value:>6g}" for number, value in limits(*FIVE).items()]
        return "\n".join(["limits(seconds={}, lead={})".format(*FIVE), *lines])
    if name == "next_shares":
        return "next_shares(shares={}, seconds={})\n    {}".format(*LAST_STEP, next_shares(*LAST_STEP))
    call = "choose(np.array({}), all_reduce={}, server={},\n       backups={}, allowed={:g})"
    numbers = choose(*TWO_STEPS)
    lines = [call.format(TWO_STEPS[0].tolist(), *TWO_STEPS[1:]), *(f"    {way:16}{numbers[way]:>9.4f}" for way in WAYS)]
    return "\n".join([*lines, f"    {CHOICE:19}{numbers[CHOICE]}"])


LAB = Lab(
    "08_other_strategies",
    [
        Exercise("staleness", 3, STALENESS),
        Exercise("may_begin", 1, MAY_BEGIN),
        Exercise("limits", 3, LIMITS),
        Exercise("choose", 5, CHOOSE),
        Exercise("next_shares", 3, NEXT_SHARES),
    ],
    target=target,
)

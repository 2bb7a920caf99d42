"""Synchronous, with backup workers or asynchronous, by simulation: an exercise of lab 08 and its judge."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from distlab.labs.answer import Answer
from distlab.labs.lab_08.hints import Lab08Hint
from distlab.labs.number_judge import NumberHint, hint_of, is_near, is_rounded, number
from distlab.labs.part_cases import PartCase, judge_cases
from distlab.labs.plain_data import Plain
from distlab.labs.verdict import AnyHint, Verdict, not_done, right, wrong

SYNCHRONOUS, BACKUP, ASYNCHRONOUS = WAYS = ("synchronous", "backup workers", "asynchronous")
STEPS = 300


class MeasuredCluster(NamedTuple):
    """What is known of a cluster.

    seconds: computing times, shape (steps, workers).  all_reduce: seconds of an all-reduce.  server: seconds in which
    the parameter server receives, applies and answers one gradient.  backups: gradients that a step with backup workers
    drops.  allowed: the largest mean staleness that the learning rate tolerates.
    """

    seconds: NDArray[np.float64]
    all_reduce: float
    server: float
    backups: int
    allowed: float

    @property
    def workers(self) -> int:
        """That compute gradients."""
        return int(self.seconds.shape[1])

    @property
    def dropped(self) -> float:
        """The largest share of the steps in which one worker's gradient is dropped."""
        last = np.argsort(self.seconds, axis=1)[:, self.workers - self.backups :]
        return float(np.bincount(last.ravel(), minlength=self.workers).max() / len(self.seconds))


EXAMPLE = MeasuredCluster(np.array([[0.1, 0.2, 0.4], [0.3, 0.1, 0.1]]), 0.07, 0.02, backups=1, allowed=3.0)


def rates(cluster: MeasuredCluster) -> dict[str, float]:
    """Gradients per second that change the weights, by way."""
    seconds, all_reduce, server, backups, _ = cluster
    workers = cluster.workers
    ends = np.sort(seconds, axis=1)
    return {
        SYNCHRONOUS: workers / float(np.mean(ends[:, -1]) + all_reduce),
        BACKUP: (workers - backups) / float(np.mean(ends[:, workers - backups - 1]) + all_reduce),
        ASYNCHRONOUS: min(float(np.sum(1 / seconds.mean(axis=0))), 1 / server),
    }


def choice(cluster: MeasuredCluster) -> str:
    """The fastest way among those that the cluster allows."""
    excluded = set()
    if cluster.workers - 1 > cluster.allowed:
        excluded.add(ASYNCHRONOUS)
    if cluster.dropped > 0.5:
        excluded.add(BACKUP)
    by_way = rates(cluster)
    return max((way for way in WAYS if way not in excluded), key=by_way.__getitem__)


def drawn_clusters(generator: np.random.Generator) -> dict[str, MeasuredCluster]:
    """Five clusters by letter, with one reason each for the right choice, and far from a tie.

    Each rule is met on its boundary: in A one worker is dropped in exactly half of the steps, in B the mean staleness
    is exactly the largest that is allowed. In A that worker is by far the slowest on average. In E the worker that is
    always dropped is never the slowest in a step, and fast on average.
    """
    workers = int(generator.integers(7, 11))
    base = float(generator.uniform(0.08, 0.12))
    even = base * generator.uniform(0.85, 1.15, (5, STEPS, workers))
    hiccups = np.where(generator.random((STEPS, workers)) < 0.06, 10.0, 1.0)
    slow = np.ones(workers)
    slow[generator.integers(workers)] = float(generator.uniform(4, 5))
    fast_network, allowed, too_few = 0.02 * base, workers + 5.0, workers - 2.0
    return {
        "A": MeasuredCluster(
            even[0] * _two_hiccups_in_each_step(generator, workers), fast_network, 0.02 * base, 2, too_few
        ),
        "B": MeasuredCluster(even[1] * slow, fast_network, 0.02 * base, 1, workers - 1.0),
        "C": MeasuredCluster(even[2], 0.1 * base, 0.4 * base, 1, allowed),
        "D": MeasuredCluster(even[3] * hiccups, fast_network, 0.02 * base, 1, allowed),
        "E": MeasuredCluster(even[4] * _always_second_last(generator, workers), fast_network, 0.02 * base, 2, too_few),
    }


def _two_hiccups_in_each_step(generator: np.random.Generator, workers: int) -> NDArray[np.float64]:
    """Factors: of the two workers that hiccup in a step, one is the same in exactly half of the steps."""
    often, *others = generator.permutation(workers).tolist()
    factors = np.ones((STEPS, workers))
    for place, step in enumerate(generator.permutation(STEPS)):
        pair = generator.choice(others, 2, replace=False)
        factors[step, [often if place % 2 else pair[0], pair[1]]] = 10.0
    return factors


def _always_second_last(generator: np.random.Generator, workers: int) -> NDArray[np.float64]:
    """Factors: one worker is always a little slower than the others, one of which hiccups in each step."""
    second, *others = generator.permutation(workers).tolist()
    factors = np.ones((STEPS, workers))
    factors[:, second] = 1.5
    factors[np.arange(STEPS), generator.choice(others, STEPS)] = 10.0
    return factors


def judge_choose(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A fifth of the points for each cluster: the three rates and the choice."""
    example = _verdict(EXAMPLE, answer.call("choose", *EXAMPLE))
    if not example.is_right:
        return Verdict(example.state, f"the example: {example.text}", hints=example.hints)

    def part_case(letter: str, cluster: MeasuredCluster) -> PartCase:
        return PartCase(f"cluster {letter}", lambda: _verdict(cluster, answer.call("choose", *cluster)))

    return judge_cases(part_case(*lettered) for lettered in drawn_clusters(generator).items())


def _verdict(cluster: MeasuredCluster, answer: Plain) -> Verdict:
    names = (*WAYS, "choice")
    if not isinstance(answer, dict) or not set(names) <= set(answer):
        return wrong(Lab08Hint.NO_CHOICE)
    if all(answer[name] is None for name in names):
        return not_done("`choose` gives None")
    finished: list[str] = []
    for way, rate in rates(cluster).items():
        if answer[way] is None:
            others = f", and {', '.join(finished)} is right" if finished else ""
            return not_done(f"`choose` gives None for {way}{others}")
        value = number(answer[way])
        if value is None:
            return wrong(NumberHint.NOT_A_NUMBER, context=f"{way}: ")
        if not is_near(value, rate):
            otherwise = NumberHint.ROUNDED if is_rounded(value, rate) else _OTHERWISE[way]
            hint = hint_of(value, _mistakes(cluster)[way]) or otherwise
            return wrong(Lab08Hint.RATE_OF.says(way=way, said=value).then(hint))
        finished.append(way)
    chosen = answer["choice"]
    if chosen is None:
        return not_done("all three rates are right, and the choice is None")
    if chosen == choice(cluster):
        return right()
    if not isinstance(chosen, str) or chosen not in WAYS:
        return wrong(Lab08Hint.NOT_A_WAY.says(said=chosen))
    if chosen == ASYNCHRONOUS and cluster.workers - 1 > cluster.allowed:
        return wrong(Lab08Hint.TOO_STALE)
    return wrong(Lab08Hint.ALWAYS_DROPPED if chosen == BACKUP and cluster.dropped > 0.5 else Lab08Hint.NOT_THE_FASTEST)


_OTHERWISE = {
    SYNCHRONOUS: Lab08Hint.STEPS_OTHERWISE,
    BACKUP: Lab08Hint.BACKUP_OTHERWISE,
    ASYNCHRONOUS: Lab08Hint.ASYNCHRONOUS_OTHERWISE,
}


def _mistakes(cluster: MeasuredCluster) -> dict[str, list[tuple[float, AnyHint]]]:
    seconds, all_reduce, server, backups, _ = cluster
    workers, kept = cluster.workers, cluster.workers - backups
    ends, by_way = np.sort(seconds, axis=1), rates(cluster)
    sent, means = float(np.sum(1 / seconds.mean(axis=0))), seconds.mean(axis=0)
    last, last_kept = float(ends[:, -1].mean()), float(ends[:, kept - 1].mean())
    return {
        SYNCHRONOUS: [
            (1 / (last + all_reduce), Lab08Hint.STEPS_NOT_GRADIENTS),
            (workers / last, Lab08Hint.ALL_REDUCE_FORGOTTEN),
            (workers / (float(seconds.mean(axis=0).max()) + all_reduce), Lab08Hint.SLOWEST_ON_AVERAGE),
            (workers / (float(seconds.max()) + all_reduce), Lab08Hint.SLOWEST_ON_AVERAGE),
            (workers / (float(seconds.mean()) + all_reduce), Lab08Hint.MEAN_WORKER),
        ],
        BACKUP: [
            (1 / (last_kept + all_reduce), Lab08Hint.STEPS_NOT_GRADIENTS),
            (workers / (last_kept + all_reduce), Lab08Hint.DROPPED_COUNTED),
            (kept / last_kept, Lab08Hint.ALL_REDUCE_FORGOTTEN),
            (kept / (last + all_reduce), Lab08Hint.NO_BACKUP),
            (by_way[SYNCHRONOUS], Lab08Hint.NO_BACKUP),
            (backups / (float(ends[:, backups - 1].mean()) + all_reduce), Lab08Hint.BACKUPS_KEPT),
            (kept / (float(seconds[:, :kept].max(axis=1).mean()) + all_reduce), Lab08Hint.FIRST_WORKERS),
        ],
        ASYNCHRONOUS: [
            (sent, Lab08Hint.SERVER_FORGOTTEN),
            (float(np.sum(1 / (means + server))), Lab08Hint.SERVER_ADDED),
            (1 / (1 / sent + server), Lab08Hint.SERVER_ADDED),
            (1 / server, Lab08Hint.SERVER_ALONE),
            (workers / float(seconds.mean()), Lab08Hint.MEAN_OF_ALL),
            (float(np.sum((1 / seconds).mean(axis=0))), Lab08Hint.MEAN_OF_ALL),
            (workers / last, Lab08Hint.WAITS_IN_ASYNCHRONOUS),
        ],
    }

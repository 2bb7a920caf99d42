"""Lab 08: other right answers, and the judge's own numbers against simulations, brute force and hand calculation."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from lab_08 import judge
from lab_08.judge import LAB

from distlab import collectives
from distlab.simulate import Network, World
from tests.distlab.labs.known_wrong import right_answers


def by_sums(seconds, lead):
    each = 1 / np.array(seconds)
    values = sum(2 * lead + 1 for _ in seconds[1:]), each.sum(), each.min() * len(each)
    return dict(zip(judge.NAMES, values, strict=True))


def step_by_step(seconds, all_reduce, server, backups, allowed):
    steps, workers = seconds.shape
    clocks, drops, kept = [0.0, 0.0], [0] * workers, workers - backups
    for row in seconds:
        order = sorted(range(workers), key=lambda worker: row[worker])
        clocks = [clocks[0] + row[order[-1]] + all_reduce, clocks[1] + row[order[kept - 1]] + all_reduce]
        for worker in order[kept:]:
            drops[worker] += 1
    sent = sum(steps / sum(column) for column in seconds.T)
    values = steps * workers / clocks[0], steps * kept / clocks[1], min(sent, 1 / server)
    rates = dict(zip(judge.WAYS, values, strict=True))
    out = ["backup workers"] * (max(drops) > steps / 2) + ["asynchronous"] * (workers - 1 > allowed)
    return rates | {"choice": max(set(rates) - set(out), key=rates.get)}


def moved(shares, seconds, to_whom, stops):
    """One image at a time from the worker that ends last, until `stops(shares, per_image, slowest, first)` says so."""
    per_image, new = [took / share for share, took in zip(shares, seconds, strict=True)], list(shares)
    while True:
        slowest = max(range(len(new)), key=lambda worker: new[worker] * per_image[worker])
        first = min(range(len(new)), key=lambda worker: to_whom(new, per_image, worker))
        if new[slowest] == 1 or stops(new, per_image, slowest, first):
            return new
        new[slowest], new[first] = new[slowest] - 1, new[first] + 1


def with_one_more(new, per_image, worker):
    return (new[worker] + 1) * per_image[worker]


def is_no_help(new, per_image, slowest, first):
    return with_one_more(new, per_image, first) >= new[slowest] * per_image[slowest]


def image_by_image(shares, seconds):
    return moved(shares, seconds, with_one_more, is_no_help)


test_another_right_answer_gets_full_marks = right_answers(
    LAB, ("limits", by_sums), ("choose", step_by_step), ("next_shares", image_by_image)
)


def test_the_staleness_is_that_of_the_virtual_parameter_server():
    seconds = [0.01, 0.013, 0.05]
    server = partial(
        collectives.parameter_server,
        gradient=lambda weights, worker, step: weights,
        steps=8,
        seconds_per_gradient=lambda worker, step: seconds[worker - 1],
    )
    updates = World(4, Network(0.0, 0.0)).run(server, [np.ones(1)] * 4).results[0].updates
    events = [(worker, judge.READS) for worker in (1, 2, 3)]
    for update in updates:
        events += [(update.worker, judge.UPDATES), (update.worker, judge.READS)]
    assert judge.staleness(events) == [update.staleness for update in updates]


@pytest.mark.parametrize(("workers", "lead"), [(2, 0), (2, 1), (2, 2), (3, 0), (3, 1)])
def test_the_largest_staleness_is_reached_and_not_exceeded_in_any_order_of_events(workers, lead):
    """Every state that the rule allows: how far each worker is ahead, who computes, how stale each gradient is."""
    start = ((0,) * workers, (None,) * workers)
    seen, waiting, largest = {start}, [start], 0
    while waiting:
        finished, stale = waiting.pop()
        for worker in range(workers):
            following = list(finished), list(stale)
            if stale[worker] is None:
                if not judge.may_begin(list(finished), worker, lead):
                    continue
                following[1][worker] = 0
            else:
                largest = max(largest, stale[worker])
                following[0][worker] += 1
                following[1][:] = [None if count is None else count + 1 for count in stale]
                following[1][worker] = None
            state = tuple(count - min(following[0]) for count in following[0]), tuple(following[1])
            if state not in seen:
                seen.add(state)
                waiting.append(state)
    assert largest == judge.limits([1.0] * workers, lead)["largest staleness"]


@pytest.mark.parametrize(("lead", "name"), [(10**9, "without a bound"), (2, "with the bound")])
def test_the_rates_are_those_of_a_simulation(lead, name):
    seconds, until, finished = [0.25, 0.5, 1.0], 400.0, [0, 0, 0]
    ends = dict(enumerate(seconds))
    while (now := min(ends.values())) <= until:
        for worker in [worker for worker, end in ends.items() if end == now]:
            finished[worker] += 1
            del ends[worker]
        for worker in set(range(3)) - set(ends):
            if judge.may_begin(finished, worker, lead):
                ends[worker] = now + seconds[worker]
    assert sum(finished) / until == pytest.approx(judge.limits(seconds, lead)[name], rel=0.02)


@pytest.mark.parametrize("seed", range(20))
def test_every_way_is_right_somewhere_and_no_choice_is_near_a_tie(seed):
    _, *drawn = judge.clusters(np.random.default_rng(seed))
    numbers = [judge.choose(*cluster) for cluster in drawn]
    assert {each["choice"] for each in numbers} == set(judge.WAYS)
    for cluster, by_way in zip(drawn, numbers, strict=True):
        others = set(judge.WAYS) - set(judge.excluded(*cluster)) - {by_way["choice"]}
        assert all(by_way[by_way["choice"]] > 1.03 * by_way[way] for way in others)
        assert all(len(set(row)) == len(row) for row in cluster[0].tolist())  # no two times are equal


def test_no_shares_are_better_than_those_of_the_scheduler():
    step = judge.OfPart(judge.LATER, [3, 4, 5], [0.6, 0.5, 2.0])
    best = min(judge.last_end(step, some) for some in product(range(1, 12), repeat=3) if sum(some) == 12)
    assert judge.last_end(step, judge.next_shares(*step)) == pytest.approx(best)

"""Lab 08: other right answers, and the judge's own numbers against brute force."""

from itertools import product

import numpy as np
import pytest
from lab_08 import judge
from lab_08.judge import LAB

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


def image_by_image(shares, seconds):
    """One at a time goes from the worker that ends last to the one that would end it first, while that helps."""
    per_image, new = [took / share for share, took in zip(shares, seconds, strict=True)], list(shares)
    while True:
        ends = [own * each for own, each in zip(new, per_image, strict=True)]
        later = [(own + 1) * each for own, each in zip(new, per_image, strict=True)]
        slowest, first = ends.index(max(ends)), later.index(min(later))
        if new[slowest] == 1 or later[first] >= ends[slowest]:
            return new
        new[slowest], new[first] = new[slowest] - 1, new[first] + 1


test_another_right_answer_gets_full_marks = right_answers(
    LAB, ("limits", by_sums), ("choose", step_by_step), ("next_shares", image_by_image)
)


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

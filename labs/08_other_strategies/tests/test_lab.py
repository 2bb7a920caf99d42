"""Lab 08: the judge's own numbers against the virtual cluster, brute force and calculations by hand."""

import builtins
from functools import partial
from itertools import combinations, product

import numpy as np
import pytest
from lab_08 import bound, choice_mistakes, clusters, lab, shares, staleness
from lab_08.hints import Lab08Hint
from lab_08_tests.answers_08 import RULES

from distlab import collectives
from distlab.labs import WRONG, OwnAnswer
from distlab.simulate import Network, World
from tests.distlab.labs.known_wrong import assert_not_done, assert_right, verdict_on, written_solution

LAB = lab.LAB


def test_names_without_values_are_not_done_yet() -> None:
    assert_not_done(LAB, "limits", {"limits": lambda *workers: dict.fromkeys(bound.NAMES)})
    assert_not_done(LAB, "choose", {"choose": lambda *cluster: dict.fromkeys((*clusters.WAYS, "choice"))})


def test_the_staleness_is_that_of_the_virtual_parameter_server() -> None:
    seconds, events = [0.01, 0.013, 0.05], []

    def computed(weights: np.ndarray, worker: int, step: int) -> np.ndarray:
        return weights

    server = partial(
        collectives.parameter_server,
        gradient=computed,
        steps=8,
        seconds_per_gradient=lambda worker, step: seconds[worker - 1],
    )
    updates = World(4, Network(0.0, 0.0)).run(server, [np.ones(1)] * 4).results[0].updates
    events = [(worker, staleness.READS) for worker in (1, 2, 3)]
    for update in updates:
        events += [(update.worker, staleness.UPDATES), (update.worker, staleness.READS)]
    assert staleness.staleness(events) == [update.staleness for update in updates]


@pytest.mark.parametrize(("workers", "lead"), [(2, 0), (2, 1), (2, 2), (3, 0), (3, 1)])
def test_the_largest_staleness_is_reached_and_not_exceeded_in_any_order_of_events(workers: int, lead: int) -> None:
    """Every state that the rule allows: how far each worker is ahead, who computes, how stale each gradient is."""
    start = ((0,) * workers, (None,) * workers)
    seen, waiting, largest = {start}, [start], 0
    while waiting:
        finished, stale = waiting.pop()
        for worker in range(workers):
            following = list(finished), list(stale)
            if stale[worker] is None:
                if not bound.may_begin(finished, worker, lead):
                    continue
                following[1][worker] = 0
            else:
                largest = max(largest, stale[worker])
                following[0][worker] += 1
                following[1][:] = [None if count is None else count + 1 for count in stale]
                following[1][worker] = None
            lowest = min(following[0])
            state = tuple(count - lowest for count in following[0]), tuple(following[1])
            if state not in seen:
                seen.add(state)
                waiting.append(state)
    assert largest == bound.limits([1.0] * workers, lead)["largest staleness"]


def test_the_rates_with_and_without_the_bound_are_those_of_a_simulation() -> None:
    seconds, lead, until = [0.25, 0.5, 1.0], 2, 400.0
    expected = bound.limits(seconds, lead)
    for limit, name in ((10**9, "without a bound"), (lead, "with the bound")):
        finished, ends = [0, 0, 0], dict(enumerate(seconds))
        while (now := min(ends.values())) <= until:
            for worker in [worker for worker, end in ends.items() if end == now]:
                finished[worker] += 1
                del ends[worker]
            for worker in set(range(3)) - set(ends):
                if bound.may_begin(finished, worker, limit):
                    ends[worker] = now + seconds[worker]
        assert sum(finished) / until == pytest.approx(expected[name], rel=0.02)


def test_the_rates_of_the_example_are_those_by_hand() -> None:
    rates = clusters.rates(clusters.EXAMPLE)
    assert rates["synchronous"] == pytest.approx(6 / (0.4 + 0.06 + 0.3 + 0.06))
    assert rates["backup workers"] == pytest.approx(4 / (0.2 + 0.06 + 0.15 + 0.06))
    assert rates["asynchronous"] == pytest.approx(2 / 0.4 + 2 / 0.32 + 2 / 0.55)


@pytest.mark.parametrize("seed", range(20))
def test_every_way_is_right_somewhere_and_no_choice_is_near_a_tie(seed: int) -> None:
    drawn = clusters.drawn_clusters(np.random.default_rng(seed))
    assert {clusters.choice(cluster) for cluster in drawn.values()} == set(clusters.WAYS)
    for cluster in drawn.values():
        rates, chosen = clusters.rates(cluster), clusters.choice(cluster)
        allowed = {clusters.SYNCHRONOUS}
        allowed |= {clusters.BACKUP} if cluster.dropped <= 0.5 else set()
        allowed |= {clusters.ASYNCHRONOUS} if cluster.workers - 1 <= cluster.allowed else set()
        assert all(rates[chosen] > 1.03 * rates[way] for way in allowed - {chosen})
        assert (cluster.seconds.shape, cluster.backups >= 1) == ((clusters.STEPS, cluster.workers), True)
        assert all(len(set(row)) == cluster.workers for row in cluster.seconds.tolist())  # no two times are equal
    rates_of = {letter: clusters.rates(drawn[letter]) for letter in "AD"}
    assert sorted(rates_of["A"], key=rates_of["A"].get) == ["synchronous", "asynchronous", "backup workers"]
    assert sorted(rates_of["D"], key=rates_of["D"].get) == ["synchronous", "backup workers", "asynchronous"]
    assert [clusters.excluded(drawn[letter]) for letter in "AD"] == [set(), {"asynchronous"}]
    assert drawn["A"].dropped == 0.5
    assert all(not 0.4 < drawn[letter].dropped < 0.6 for letter in "BCDE")
    assert drawn["B"].workers - 1 == drawn["B"].allowed
    slowest = np.bincount(drawn["E"].seconds.argmax(axis=1), minlength=drawn["E"].workers) / clusters.STEPS
    assert (drawn["E"].dropped, slowest.max() < 0.5) == (1.0, True)


@pytest.mark.parametrize("seed", [0, 7, 12345])
@pytest.mark.parametrize("rules", RULES)
def test_a_rule_near_the_right_one_is_rejected(rules: str, seed: int) -> None:
    verdict = verdict_on(LAB, "choose", {"choose": RULES[rules]}, seed)
    assert (verdict.state, verdict.share < 1) == (WRONG, True), verdict


@pytest.mark.parametrize("given", [None, 0, np.nan, np.inf])
def test_a_way_that_is_out_needs_a_rate_all_the_same(given: float | None) -> None:
    def choose(*cluster: object) -> dict:
        measured = clusters.MeasuredCluster(*cluster)
        rates = clusters.rates(measured) | dict.fromkeys(clusters.excluded(measured), given)
        return rates | {"choice": clusters.choice(measured)}

    assert verdict_on(LAB, "choose", {"choose": choose}).hints == (Lab08Hint.RATE_OF_EXCLUDED,) * 3


def test_a_search_through_all_divisions_is_told_how_many_there_are() -> None:
    def next_shares(shares: list[int], seconds: list[float]) -> list[int]:
        while True:
            pass

    verdict = LAB["next_shares"].verdict(OwnAnswer({"next_shares": next_shares}, seconds=0.1))
    assert "There are 211,876 ways to divide 50 images among 5 workers" in verdict.text
    assert len(list(combinations(range(1, 50), 4))) == 211_876


def test_a_way_without_a_rate_is_not_done_and_what_is_right_is_said() -> None:
    def choose(*cluster: object) -> dict:
        rates = clusters.rates(clusters.MeasuredCluster(*cluster))
        return dict.fromkeys((*clusters.WAYS, "choice")) | {clusters.SYNCHRONOUS: rates[clusters.SYNCHRONOUS]}

    verdict = verdict_on(LAB, "choose", {"choose": choose})
    assert verdict.text == "in the example `choose` gives None for backup workers, and synchronous is right"
    assert_not_done(LAB, "choose", {"choose": choose})


@pytest.mark.parametrize("seed", range(5))
def test_the_steps_to_be_shared_are_as_large_as_the_text_says(seed: int) -> None:
    steps = [shares._drawn(np.random.default_rng(seed), part) for part in (shares.FIRST, shares.LATER)]
    assert all(len(step.shares) <= 6 and sum(step.shares) <= 108 for step in steps)


def test_no_two_mistakes_with_different_hints_give_one_number_in_the_examples() -> None:
    """But for a server that is not asked for as many gradients as it can apply."""
    of_rates = choice_mistakes.mistakes(clusters.EXAMPLE)
    of_limits = bound._mistakes(bound.EXAMPLE)
    for way, rate in clusters.rates(clusters.EXAMPLE).items():
        of_rates[way] = [(rate, "right"), *(each for each in of_rates[way] if each[1] != Lab08Hint.SERVER_FORGOTTEN)]
    for mistakes in (*of_rates.values(), *of_limits.values()):
        for (value, hint), (other_value, other_hint) in combinations(mistakes, 2):
            assert hint == other_hint or value != pytest.approx(other_value, rel=1e-5), (hint, other_hint)


def test_no_shares_are_better_than_those_of_the_scheduler() -> None:
    step = shares.LastStep(shares.LATER, [3, 4, 5], [0.6, 0.5, 2.0])
    images = range(1, sum(step.shares))
    best = min(step.last_end(some) for some in product(images, repeat=3) if sum(some) == sum(step.shares))
    assert step.last_end(shares.next_shares(step.shares, step.seconds)) == pytest.approx(best)


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("staleness", "[0, 0, 2, 2]"),
        ("may_begin", "False"),
        ("limits", "with the bound           4"),
        ("choose", "choice             asynchronous"),
        ("next_shares", "[7, 3, 2]"),
    ],
)
def test_the_targets_end_with_what_a_calculation_by_hand_gives(name: str, last: str) -> None:
    assert LAB.target(name).splitlines()[-1].strip() == last


@pytest.mark.parametrize("exercise", [exercise.name for exercise in LAB])
def test_the_solution_of_the_text_is_right(exercise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtins, "np", np, raising=False)  # the lab's first cell imports it
    solution = written_solution("08", exercise)
    assert_right(verdict_on(LAB, exercise, {exercise: solution}, 7))


def test_the_lab_needs_no_tensorflow() -> None:
    assert not LAB.tensorflow

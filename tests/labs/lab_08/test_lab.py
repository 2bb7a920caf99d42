"""Lab 08: the judge's own numbers against the virtual cluster, brute force and calculations by hand."""

import builtins
from functools import partial
from itertools import product

import numpy as np
import pytest

from distlab import collectives
from distlab.labs import WRONG
from distlab.labs.lab_08 import bound, choice, lab, shares, staleness
from distlab.simulate import Network, World
from tests.labs.known_wrong import assert_not_done, assert_right, verdict_on, written_solution
from tests.labs.lab_08.answers_08 import RULES

LAB = lab.LAB


def test_names_without_values_are_not_done_yet() -> None:
    assert_not_done(LAB, "limits", {"limits": lambda *workers: dict.fromkeys(bound.NAMES)})
    assert_not_done(LAB, "choose", {"choose": lambda *cluster: dict.fromkeys((*choice.WAYS, "choice"))})


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
    rates = choice.rates(choice.EXAMPLE)
    assert rates["synchronous"] == pytest.approx(6 / (0.4 + 0.07 + 0.3 + 0.07))
    assert rates["backup workers"] == pytest.approx(4 / (0.2 + 0.07 + 0.1 + 0.07))
    assert rates["asynchronous"] == pytest.approx(2 / 0.4 + 2 / 0.3 + 2 / 0.5)


@pytest.mark.parametrize("seed", range(20))
def test_every_way_is_right_somewhere_and_no_choice_is_near_a_tie(seed: int) -> None:
    clusters = choice.drawn_clusters(np.random.default_rng(seed))
    assert {choice.choice(cluster) for cluster in clusters.values()} == set(choice.WAYS)
    for cluster in clusters.values():
        rates, chosen = choice.rates(cluster), choice.choice(cluster)
        allowed = {choice.SYNCHRONOUS}
        allowed |= {choice.BACKUP} if cluster.dropped <= 0.5 else set()
        allowed |= {choice.ASYNCHRONOUS} if cluster.workers - 1 <= cluster.allowed else set()
        assert all(rates[chosen] > 1.03 * rates[way] for way in allowed - {chosen})
    assert clusters["A"].dropped == 0.5
    assert all(not 0.4 < clusters[letter].dropped < 0.6 for letter in "BCDE")
    assert clusters["B"].workers - 1 == clusters["B"].allowed
    slowest = np.bincount(clusters["E"].seconds.argmax(axis=1), minlength=clusters["E"].workers) / choice.STEPS
    assert (clusters["E"].dropped, slowest.max() < 0.5) == (1.0, True)


@pytest.mark.parametrize("seed", [0, 7, 12345])
@pytest.mark.parametrize("rules", RULES)
def test_a_rule_near_the_right_one_is_rejected(rules: str, seed: int) -> None:
    verdict = verdict_on(LAB, "choose", {"choose": RULES[rules]}, seed)
    assert (verdict.state, verdict.share < 1) == (WRONG, True), verdict


def test_a_way_without_a_rate_is_not_done_and_what_is_right_is_said() -> None:
    def choose(*cluster: object) -> dict:
        rates = choice.rates(choice.MeasuredCluster(*cluster))
        return dict.fromkeys((*choice.WAYS, "choice")) | {choice.SYNCHRONOUS: rates[choice.SYNCHRONOUS]}

    verdict = verdict_on(LAB, "choose", {"choose": choose})
    assert verdict.text == "the example: `choose` gives None for backup workers, and synchronous is right"
    assert_not_done(LAB, "choose", {"choose": choose})


@pytest.mark.parametrize("seed", range(5))
def test_the_steps_to_be_shared_are_as_large_as_the_text_says(seed: int) -> None:
    steps = [shares._drawn(np.random.default_rng(seed), part) for part in (shares.FIRST, shares.LATER)]
    assert all(len(step.shares) <= 6 and sum(step.shares) <= 108 for step in steps)


def test_no_shares_are_better_than_those_of_the_scheduler() -> None:
    step = shares.LastStep(shares.LATER, [3, 4, 5], [0.6, 0.5, 2.0])
    images = range(1, sum(step.shares))
    best = min(step.slowest(some) for some in product(images, repeat=3) if sum(some) == sum(step.shares))
    assert step.slowest(shares.next_shares(step.shares, step.seconds)) == pytest.approx(best)


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("staleness", "[0, 0, 2, 2]"),
        ("may_begin", "False"),
        ("limits", "with the bound           3"),
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

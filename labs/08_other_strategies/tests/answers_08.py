"""Answers to lab 08 as students give them."""

import functools

import numpy as np
from lab_08 import clusters
from lab_08 import shares as shares_judge
from lab_08.bound import limits as true_limits
from lab_08.bound import may_begin as true_rule
from lab_08.hints import Lab08Hint
from lab_08.staleness import staleness as true_staleness

from distlab.labs.number_judge import NumberHint
from tests.distlab.labs.known_wrong import LabAnswers

ANSWERS = LabAnswers()
wrong, right = ANSWERS.wrong, ANSWERS.right
Hint = Lab08Hint
TWO_THIRDS, THIRD = 2 / 3, 1 / 3


# Staleness


def between(events):
    """For each update: its worker, and the events since this worker's read."""
    for place, (worker, event) in enumerate(events):
        if event == "updates":
            read = max(earlier for earlier in range(place) if events[earlier] == (worker, "reads"))
            yield worker, events[read + 1 : place]


@wrong("staleness", *[Hint.OWN_UPDATE] * 3)
def with_its_own(events):
    return [stale + 1 for stale in true_staleness(events)]


@wrong("staleness", *[Hint.SINCE_THE_BEGINNING] * 3)
def all_before(events):
    return list(range(len(true_staleness(events))))


@wrong("staleness", *[Hint.READS_COUNTED] * 3)
def all_events(events):
    return [len(since) for _, since in between(events)]


@wrong("staleness", Hint.WORKERS_COUNTED, share=TWO_THIRDS)
def workers_in_turns(events):
    counted = [len({worker for worker, event in since if event == "updates"}) for _, since in between(events)]
    others = len({worker for worker, _ in events}) - 1
    return counted if max(true_staleness(events)) > 2 * others else true_staleness(events)


@wrong("staleness", *[Hint.MEAN_ASSUMED] * 3)
def by_the_rule_of_thumb(events):
    return [len({worker for worker, _ in events}) - 1] * len(true_staleness(events))


@wrong("staleness", *[Hint.STALENESS_OTHERWISE] * 3)
def reads_of_others(events):
    return [sum(event == "reads" for _, event in since) + 0.5 for _, since in between(events)]


@wrong("staleness", *[Hint.NO_STALENESS] * 3, "wrong: in a log of", "; yours gives a list of")
def unfinished_too(events):
    at_end = {worker for worker, event in events if event == "reads"}
    return true_staleness(events) + [0] * (1 + len(at_end))


@wrong("staleness", "a slow worker: wrong: in a log of", "it raised IndexError", share=THIRD * 2)
def fails_for_a_slow_worker(events):
    stale = true_staleness(events)
    longest, others = max(stale), len({worker for worker, _ in events}) - 1
    return stale[longest * 100 :] or stale[len(stale)] if longest > 2 * others else stale


@right("staleness")
def by_counting(events):
    return np.array([sum(event == "updates" for _, event in since) for _, since in between(events)], float)


ANSWERS.solved("staleness", lambda events: true_staleness(events))


# The rule


@wrong("may_begin", Hint.ONE_LESS)
def less_than_lead(finished, worker, lead):
    return finished[worker] - min(finished) < lead


@wrong("may_begin", Hint.ONE_MORE)
def one_more(finished, worker, lead):
    return finished[worker] - min(finished) <= lead + 1


@wrong("may_begin", Hint.AGAINST_FASTEST)
def against_the_fastest(finished, worker, lead):
    return max(finished) - finished[worker] <= lead


@wrong("may_begin", Hint.AGAINST_MEAN)
def against_the_mean(finished, worker, lead):
    return bool(finished[worker] - np.mean(finished) <= lead)


@wrong("may_begin", Hint.AGAINST_FASTEST_OTHER)
def against_the_fastest_other(finished, worker, lead):
    return finished[worker] - max(finished[:worker] + finished[worker + 1 :]) <= lead


@wrong("may_begin", Hint.AGAINST_MIDDLE)
def against_the_median(finished, worker, lead):
    return finished[worker] - sorted(finished)[len(finished) // 2] <= lead


@wrong("may_begin", Hint.NO_TRUTH_VALUE)
def the_room(finished, worker, lead):
    return lead - finished[worker] + min(finished)


@wrong("may_begin", Hint.ALWAYS_THE_SAME)
def always(finished, worker, lead):
    return True


@wrong("may_begin", Hint.LEAD_TOO_LARGE)
def free_with_a_lead_of_0(finished, worker, lead):
    return lead == 0 or true_rule(finished, worker, lead)


@wrong("may_begin", Hint.LEAD_TOO_SMALL)
def the_slowest_alone_with_a_lead_of_1(finished, worker, lead):
    return finished[worker] == min(finished) if lead == 1 else true_rule(finished, worker, lead)


@wrong("may_begin", Hint.ALONE)
def nobody_to_wait_for(finished, worker, lead):
    return len(finished) > 1 and true_rule(finished, worker, lead)


@wrong("may_begin", "With one worker only: it raised ValueError")
def every_other_worker(finished, worker, lead):
    return finished[worker] - min(finished[:worker] + finished[worker + 1 :]) <= lead


@right("may_begin")
def nobody_far_behind(finished, worker, lead):
    return all(finished[worker] <= peer + lead for peer in finished)


ANSWERS.solved("may_begin", lambda *state: true_rule(*state))


# Limits


def but_for(name, value):
    """The right limits but for one, computed from the number of workers, the lead and the seconds."""
    return lambda seconds, lead: true_limits(seconds, lead) | {name: value(len(seconds), lead, seconds)}


for title, name, value, hint in (
    ("the_lead", "largest staleness", lambda w, s, t: s, Hint.LEAD_ITSELF),
    ("ahead_only", "largest staleness", lambda w, s, t: (w - 1) * (s + 1), Hint.ONE_SIDE),
    ("no_gradient_in_flight", "largest staleness", lambda w, s, t: (w - 1) * 2 * s, Hint.IN_FLIGHT),
    ("all_workers", "largest staleness", lambda w, s, t: w * (2 * s + 1), Hint.ALL_WORKERS),
    ("the_mean", "largest staleness", lambda w, s, t: w - 1, Hint.MEAN_FOR_LARGEST),
    ("of_one_other", "largest staleness", lambda w, s, t: 2 * s + 1, Hint.ONE_OTHER),
    ("too_many", "largest staleness", lambda w, s, t: (w - 1) * (2 * s + 3), Hint.STALENESS_LIMIT_OTHERWISE),
    ("one_more_than_twice", "largest staleness", lambda w, s, t: (w - 1) * 2 * s + 1, Hint.STALENESS_LIMIT_OTHERWISE),
    ("twice_the_lead", "largest staleness", lambda w, s, t: 2 * s, Hint.ONE_OTHER),
    ("twice_one_more_than_the_lead", "largest staleness", lambda w, s, t: 2 * s + 2, Hint.ONE_OTHER),
    ("one_side_of_all", "largest staleness", lambda w, s, t: w * (s + 1), Hint.ALL_WORKERS),
    ("all_workers_twice_the_lead", "largest staleness", lambda w, s, t: w * 2 * s, Hint.ALL_WORKERS),
    ("the_workers", "largest staleness", lambda w, s, t: w, Hint.NO_LEAD),
    ("nothing_stale_in_turns", "largest staleness", lambda w, s, t: (w - 1) * (2 * s + 1) if s else 0, Hint.LEAD_OF_0),
    ("its_own_alone", "largest staleness", lambda w, s, t: max(w - 1, 1) * (2 * s + 1), Hint.NO_OTHERS),
    ("no_rate_alone", "with the bound", lambda w, s, t: w / max(t) if w > 1 else 0, Hint.WAITS_FOR_NOBODY),
    ("four_places", "with the bound", lambda w, s, t: round(w / max(t), 4), NumberHint.ROUNDED),
    ("by_the_slowest", "largest staleness", lambda w, s, t: sum(max(t) / each for each in t) - 1, Hint.BY_SPEEDS),
    ("by_two_speeds", "largest staleness", lambda w, s, t: int(max(t) / min(t)) * (w - 1), Hint.BY_SPEEDS),
    ("slowest_pace", "without a bound", lambda w, s, t: w / max(t), Hint.SLOWEST_PACE),
    ("fastest_pace", "without a bound", lambda w, s, t: w / min(t), Hint.FASTEST_PACE),
    ("mean_seconds", "without a bound", lambda w, s, t: w * w / sum(t), Hint.MEAN_SECONDS),
    ("seconds", "without a bound", lambda w, s, t: 1 / sum(1 / each for each in t), Hint.SECONDS_NOT_RATE),
    ("free_lead", "with the bound", lambda w, s, t: sum(1 / each for each in t), Hint.UNBOUNDED_RATE),
    ("mean_worker", "with the bound", lambda w, s, t: w * w / sum(t), Hint.MEAN_UNDER_BOUND),
    ("mean_of_rates", "without a bound", lambda w, s, t: sum(1 / each for each in t) / w, Hint.RATE_OF_ONE),
    ("slowest_alone", "with the bound", lambda w, s, t: 1 / max(t), Hint.RATE_OF_ONE),
    ("with_its_lead", "with the bound", lambda w, s, t: (w + s + 0.5) / max(t), Hint.RATE_OTHERWISE),
    ("lead_each_time", "with the bound", lambda w, s, t: (s + 1) * w / max(t), Hint.LEAD_EACH_TIME),
    ("lead_added", "with the bound", lambda w, s, t: (w + s) / max(t), Hint.LEAD_EACH_TIME),
    ("divided_by_the_lead", "with the bound", lambda w, s, t: sum(1 / each for each in t) / (s + 1), Hint.LEAD_DIVIDES),
    ("simulated", "with the bound", lambda w, s, t: w / max(t) * 1.00003, Hint.NEAR_THE_RATE),
    ("a_text", "with the bound", lambda w, s, t: "slow", NumberHint.NOT_A_NUMBER),
):
    ANSWERS.wrong_value("limits", title, but_for(name, value), hint, share=TWO_THIRDS)


@wrong("limits", NumberHint.NAMES)
def three_numbers(seconds, lead):
    return list(true_limits(seconds, lead).values())


@wrong("limits", NumberHint.NAMES)
def nothing_for_one_worker(seconds, lead):
    return true_limits(seconds, lead) if len(seconds) > 1 else {}


@wrong("limits", "lead 0: it raised ZeroDivisionError")
def divides_by_the_lead(seconds, lead):
    return true_limits(seconds, lead) | {"largest staleness": (len(seconds) - 1) * (2 * lead + 1) / lead * lead}


@right("limits")
def by_sums(seconds, lead):
    rates = 1 / np.array(seconds)
    return {
        "largest staleness": sum(2 * lead + 1 for _ in seconds[1:]),
        "without a bound": rates.sum(),
        "with the bound": rates.min() * len(rates),
    }


ANSWERS.solved("limits", lambda *workers: true_limits(*workers), lambda *workers: dict.fromkeys(true_limits(*workers)))


# Choice


def true_choice(*cluster):
    cluster = clusters.MeasuredCluster(*cluster)
    return clusters.rates(cluster) | {"choice": clusters.choice(cluster)}


def with_rate(way, rate):
    """The right rates but for one way, and the right choice."""
    return lambda *cluster: true_choice(*cluster) | {way: rate(*cluster)}


def last(seconds, backups=0):
    return np.sort(seconds, axis=1)[:, seconds.shape[1] - 1 - backups].mean()


for title, way, rate, hint in (
    ("steps", "synchronous", lambda s, a, q, b, m: 1 / (last(s) + a), Hint.STEPS_NOT_GRADIENTS),
    ("no_all_reduce", "synchronous", lambda s, a, q, b, m: s.shape[1] / last(s), Hint.ALL_REDUCE_FORGOTTEN),
    (
        "slowest_mean",
        "synchronous",
        lambda s, a, q, b, m: s.shape[1] / (s.mean(axis=0).max() + a),
        Hint.SLOWEST_ON_AVERAGE,
    ),
    ("mean_worker", "synchronous", lambda s, a, q, b, m: s.shape[1] / (s.mean() + a), Hint.MEAN_WORKER),
    (
        "mean_of_steps",
        "synchronous",
        lambda s, a, q, b, m: (s.shape[1] / (s.max(axis=1) + a)).mean(),
        Hint.MEAN_OF_STEPS,
    ),
    (
        "all_reduce_once",
        "synchronous",
        lambda s, a, q, b, m: s.size / (s.max(axis=1).sum() + a),
        Hint.ALL_REDUCE_ONCE,
    ),
    (
        "largest_of_columns",
        "synchronous",
        lambda s, a, q, b, m: s.size / (s.max(axis=0) + a).sum(),
        Hint.ALONG_THE_STEPS,
    ),
    (
        "synchronous_drops",
        "synchronous",
        lambda s, a, q, b, m: (s.shape[1] - b) / (last(s) + a),
        Hint.SYNCHRONOUS_DROPS,
    ),
    ("another_rate", "synchronous", lambda s, a, q, b, m: 2 / a, Hint.STEPS_OTHERWISE),
    ("dropped_too", "backup workers", lambda s, a, q, b, m: s.shape[1] / (last(s, b) + a), Hint.DROPPED_COUNTED),
    ("waits_for_all", "backup workers", lambda s, a, q, b, m: (s.shape[1] - b) / (last(s) + a), Hint.NO_BACKUP),
    (
        "first_columns",
        "backup workers",
        lambda s, a, q, b, m: (s.shape[1] - b) / (last(s[:, : s.shape[1] - b]) + a),
        Hint.FIRST_WORKERS,
    ),
    ("four_places", "synchronous", lambda s, a, *_: round(s.shape[1] / (last(s) + a), 4), NumberHint.ROUNDED),
    (
        "only_the_backups",
        "backup workers",
        lambda s, a, q, b, m: b / (np.sort(s)[:, b - 1].mean() + a),
        Hint.BACKUPS_KEPT,
    ),
    (
        "mean_of_short_steps",
        "backup workers",
        lambda s, a, q, b, m: ((s.shape[1] - b) / (np.sort(s)[:, -1 - b] + a)).mean(),
        Hint.MEAN_OF_STEPS,
    ),
    (
        "mean_of_the_taken",
        "backup workers",
        lambda s, a, q, b, m: (s.shape[1] - b) / (np.sort(s)[:, :-b].mean() + a),
        Hint.MEAN_WORKER,
    ),
    (
        "one_too_early",
        "backup workers",
        lambda s, a, q, b, m: (s.shape[1] - b) / (last(s, b + 1) + a),
        Hint.ONE_TOO_EARLY,
    ),
    (
        "columns_sorted",
        "backup workers",
        lambda s, a, q, b, m: (s.shape[1] - b) / (np.sort(s, axis=0)[:, : s.shape[1] - b].max(axis=1).mean() + a),
        Hint.ALONG_THE_STEPS,
    ),
    (
        "late_gradients_go_on",
        "backup workers",
        lambda s, a, q, b, m: (s.shape[1] - b) / (np.sort(s.cumsum(axis=0)[-1])[-1 - b] / len(s) + a),
        Hint.LATE_GOES_ON,
    ),
    (
        "steps_and_workers_exchanged",
        "backup workers",
        lambda s, a, q, b, m: (len(s) - b) * s.shape[1] / (np.sort(s)[:, len(s) - b - 1] + a).sum(),
        Hint.SHAPE_EXCHANGED,
    ),
    ("another_step", "backup workers", lambda s, a, q, b, m: 2 / a, Hint.BACKUP_OTHERWISE),
    ("server_each", "asynchronous", lambda s, a, q, b, m: sum(1 / (s.mean(axis=0) + q)), Hint.SERVER_ADDED),
    ("server_after", "asynchronous", lambda s, a, q, b, m: 1 / (1 / sum(1 / s.mean(axis=0)) + q), Hint.SERVER_ADDED),
    ("another_pace", "asynchronous", lambda s, a, q, b, m: 2 / a, Hint.ASYNCHRONOUS_OTHERWISE),
    ("server_alone", "asynchronous", lambda s, a, q, b, m: 1 / q, Hint.SERVER_ALONE),
    ("mean_of_all", "asynchronous", lambda s, a, q, b, m: s.shape[1] / s.mean(), Hint.MEAN_OF_ALL),
    (
        "steps_are_columns",
        "asynchronous",
        lambda s, a, q, b, m: (s.shape[1] / s.sum(axis=0)).sum(),
        Hint.SHAPE_EXCHANGED,
    ),
    ("waits", "asynchronous", lambda s, a, q, b, m: s.shape[1] / last(s), Hint.WAITS_IN_ASYNCHRONOUS),
    (
        "waits_in_the_end",
        "asynchronous",
        lambda s, a, q, b, m: s.size / s.sum(axis=0).max(),
        Hint.WAITS_IN_ASYNCHRONOUS,
    ),
    ("rows_sorted", "asynchronous", lambda s, a, q, b, m: sum(1 / np.sort(s).mean(axis=0)), Hint.SORTED_IN_PLACE),
    ("with_all_reduce", "asynchronous", lambda s, a, q, b, m: sum(1 / (s + a).mean(axis=0)), Hint.NO_ALL_REDUCE_HERE),
):
    ANSWERS.wrong_value("choose", title, with_rate(way, rate), Hint.RATE_OF, hint)


@wrong("choose", Hint.RATE_OF, Hint.SERVER_FORGOTTEN, share=4 / 5)
def free_server(seconds, all_reduce, server, backups, allowed):
    true = true_choice(seconds, all_reduce, server, backups, allowed)
    return true | {"asynchronous": sum(1 / seconds.mean(axis=0))}


@wrong("choose", Hint.RATE_OF, Hint.SERVER_PER_WORKER, share=4 / 5)
def server_for_each_worker(seconds, all_reduce, server, backups, allowed):
    true = true_choice(seconds, all_reduce, server, backups, allowed)
    is_slow_server = server > 0.3 * seconds.mean()
    return true | ({"asynchronous": 1 / (server * seconds.shape[1])} if is_slow_server else {})


@wrong("choose", *[Hint.RATE_OF_EXCLUDED] * 3, share=2 / 5)
def nothing_for_excluded_ways(*cluster):
    measured, true = clusters.MeasuredCluster(*cluster), true_choice(*cluster)
    return true | dict.fromkeys(clusters.excluded(measured), 0)


def chosen(choose):
    """The right rates, and a choice from these, the number of workers, and what the function gets."""

    def answer(seconds, all_reduce, server, backups, allowed):
        true = true_choice(seconds, all_reduce, server, backups, allowed)
        return true | {"choice": choose(true, seconds, backups, allowed)}

    return answer


def fastest(true, *ways):
    return max(ways or ("synchronous", "backup workers", "asynchronous"), key=true.get)


ANSWERS.wrong_value(
    "choose",
    "however_stale",
    chosen(
        lambda true, seconds, backups, allowed: (
            fastest(true, "synchronous", "asynchronous")
            if seconds.shape[1] - 1 > allowed and true["choice"] != "backup workers"
            else true["choice"]
        )
    ),
    Hint.TOO_STALE,
    share=4 / 5,
)
ANSWERS.wrong_value(
    "choose",
    "however_dropped",
    chosen(
        lambda true, seconds, backups, allowed: (
            true["choice"] if seconds.shape[1] - 1 <= allowed else fastest(true, "synchronous", "backup workers")
        )
    ),
    Hint.ALWAYS_DROPPED,
    share=4 / 5,
)


def ruled_out(stale, dropped):
    """The right rates, and the fastest way by two rules: of workers and allowed, of seconds and backups."""

    def choose(true, seconds, backups, allowed):
        ways = ["synchronous"]
        ways += [] if dropped(seconds, backups) else ["backup workers"]
        ways += [] if stale(seconds.shape[1], allowed) else ["asynchronous"]
        return fastest(true, *ways)

    return chosen(choose)


def times_dropped(seconds, backups):
    order = np.argsort(seconds, axis=1)[:, seconds.shape[1] - backups :]
    return np.bincount(order.ravel(), minlength=seconds.shape[1]).max() / len(seconds)


def too_stale(workers, allowed):
    return workers - 1 > allowed


def in_most_steps(seconds, backups):
    return times_dropped(seconds, backups) > 0.5


def slowest_in_most_steps(seconds, backups):
    return np.bincount(seconds.argmax(axis=1)).max() > len(seconds) / 2


RULES = {
    "as stale as allowed": ruled_out(lambda workers, allowed: workers - 1 >= allowed, in_most_steps),
    "as many workers as allowed": ruled_out(lambda workers, allowed: workers > allowed, in_most_steps),
    "dropped in half": ruled_out(too_stale, lambda seconds, backups: times_dropped(seconds, backups) >= 0.5),
    "slowest in most steps": ruled_out(too_stale, slowest_in_most_steps),
    "mean above twice the median": ruled_out(
        too_stale, lambda seconds, backups: seconds.mean(axis=0).max() > 2 * np.median(seconds)
    ),
    "mean above those of others": ruled_out(
        too_stale, lambda seconds, backups: seconds.mean(axis=0).max() > 1.5 * np.median(seconds.mean(axis=0))
    ),
}
"""Rules that are near the right ones; each is wrong for a cluster at least."""
for title, rule, hint in (
    ("as_stale_as_allowed", "as stale as allowed", Hint.STALENESS_ALLOWED),
    ("dropped_in_half", "dropped in half", Hint.DROPPING_ALLOWED),
):
    ANSWERS.wrong_value("choose", title, RULES[rule], Hint.BETTER_WAY, hint, share=4 / 5)
ANSWERS.wrong_value(
    "choose",
    "always_synchronous",
    chosen(lambda *_: "synchronous"),
    Hint.BETTER_WAY,
    Hint.STALENESS_ALLOWED,
)


def allowed_ways(true, seconds, backups, allowed):
    ways = ["synchronous"]
    ways += [] if in_most_steps(seconds, backups) else ["backup workers"]
    return ways + ([] if too_stale(seconds.shape[1], allowed) else ["asynchronous"])


def the_fastest_or_synchronous(true, *cluster):
    best = fastest(true)
    return best if best in allowed_ways(true, *cluster) else "synchronous"


def the_first_faster_than_synchronous(true, *cluster):
    ways = [way for way in ("asynchronous", "backup workers") if way in allowed_ways(true, *cluster)]
    return next((way for way in ways if true[way] > true["synchronous"]), "synchronous")


def the_first_faster_the_other_way_round(true, *cluster):
    ways = [way for way in ("backup workers", "asynchronous") if way in allowed_ways(true, *cluster)]
    return next((way for way in ways if true[way] > true["synchronous"]), "synchronous")


RULES["the fastest or synchronous"] = chosen(the_fastest_or_synchronous)
RULES["the first that is faster than synchronous"] = chosen(the_first_faster_than_synchronous)
ANSWERS.wrong_value(
    "choose",
    "the_first_faster_the_other_way_round",
    chosen(the_first_faster_the_other_way_round),
    Hint.BETTER_WAY,
    Hint.STALENESS_ALLOWED,
)
ANSWERS.wrong_value("choose", "a_number", chosen(lambda *_: 2), Hint.NOT_A_WAY)


@wrong("choose", *[Hint.BETTER_WAY, Hint.DROPPING_ALLOWED] * 2, share=3 / 5)
def no_backup_ever(seconds, all_reduce, server, backups, allowed):
    true = true_choice(seconds, all_reduce, server, backups, allowed)
    return true | {"choice": "synchronous" if true["choice"] == "backup workers" else true["choice"]}


@wrong("choose", Hint.BETTER_WAY, Hint.BUSY_SERVER_ALLOWED, share=4 / 5)
def out_with_a_busy_server(seconds, all_reduce, server, backups, allowed):
    true = true_choice(seconds, all_reduce, server, backups, allowed)
    if true["choice"] == "asynchronous" and sum(1 / seconds.mean(axis=0)) > 1 / server:
        return true | {"choice": fastest(true, "synchronous", "backup workers")}
    return true


@wrong("choose", NumberHint.NAMES)
def only_the_choice(*cluster):
    return true_choice(*cluster)["choice"]


@right("choose")
def step_by_step(seconds, all_reduce, server, backups, allowed):
    steps, workers = seconds.shape
    clocks, drops, sent = {"synchronous": 0.0, "backup workers": 0.0}, [0] * workers, 0.0
    for row in seconds:
        order = sorted(range(workers), key=lambda worker: row[worker])
        clocks["synchronous"] += row[order[-1]] + all_reduce
        clocks["backup workers"] += row[order[workers - backups - 1]] + all_reduce
        for worker in order[workers - backups :]:
            drops[worker] += 1
    for column in seconds.T:
        sent += steps / sum(column)
    rates = {
        "synchronous": steps * workers / clocks["synchronous"],
        "backup workers": steps * (workers - backups) / clocks["backup workers"],
        "asynchronous": min(sent, 1 / server),
    }
    best = dict(rates)
    if max(drops) > steps / 2:
        del best["backup workers"]
    if workers - 1 > allowed:
        del best["asynchronous"]
    return rates | {"choice": max(best, key=best.get)}


ANSWERS.solved(
    "choose",
    true_choice,
    lambda *cluster: dict.fromkeys(("synchronous", "backup workers", "asynchronous", "choice")),
)


# Shares


@wrong("next_shares", *[Hint.SHARES_KEPT] * 3)
def as_before(shares, seconds):
    return shares


@wrong("next_shares", *[Hint.NOT_WHOLE] * 3)
def parts_of_images(shares, seconds):
    speeds = np.array(shares) / np.array(seconds)
    return speeds / speeds.sum() * sum(shares)


@wrong("next_shares", *[Hint.NO_SHARES] * 3, "; yours gives a dict.")
def by_worker(shares, seconds):
    return dict(enumerate(shares_judge.next_shares(shares, seconds)))


@wrong("next_shares", Hint.NO_SHARES, "; yours gives an empty list.", share=TWO_THIRDS)
def nothing_for_a_single_worker(shares, seconds):
    return shares_judge.next_shares(shares, seconds) if len(shares) > 1 else []


@wrong("next_shares", *[Hint.SUM_CHANGED] * 3)
def one_image_lost(shares, seconds):
    best = shares_judge.next_shares(shares, seconds)
    best[int(np.argmax(best))] -= 1
    return best


@wrong("next_shares", Hint.SECONDS_FOR_SPEED, share=TWO_THIRDS)
def rates_of_steps(shares, seconds):
    if len(set(shares)) == 1 or max(seconds) > 20:
        return shares_judge.next_shares(shares, seconds)
    return shares_judge.next_shares(shares, [t * n for t, n in zip(seconds, shares, strict=True)])


@wrong("next_shares")
def more_for_the_slow(shares, seconds):
    speeds = [share / took for share, took in zip(shares, seconds, strict=True)]
    return shares_judge._first_to_finish(sum(shares), speeds)


@wrong("next_shares", Hint.WITHOUT_IMAGES, share=TWO_THIRDS)
def nothing_for_the_slow(shares, seconds):
    if max(seconds) < 20:
        return shares_judge.next_shares(shares, seconds)
    slow, best = int(np.argmax(seconds)), shares_judge.next_shares(shares, seconds)
    best[slow - 1] += best[slow]
    best[slow] = 0
    return best


@wrong("next_shares", *[Hint.NOT_THE_SHORTEST] * 3)
def one_image_less_for_the_slowest(shares, seconds):
    moved = list(shares)
    moved[int(np.argmax(seconds))] -= 1
    moved[int(np.argmin(seconds))] += 1
    return moved


def ideal_of(shares, seconds):
    speeds = np.array(shares) / seconds
    return speeds / speeds.sum() * sum(shares)


@wrong("next_shares")
def largest_remainders(shares, seconds):
    ideal = ideal_of(shares, seconds)
    whole = np.maximum(np.floor(ideal), 1)
    whole[np.argsort(np.floor(ideal) - ideal)[: int(sum(shares) - whole.sum())]] += 1
    return whole.astype(int)


@wrong("next_shares", share=THIRD)
def rounded_and_the_rest_for_the_last(shares, seconds):
    rounded = np.maximum(np.round(ideal_of(shares, seconds)), 1).astype(int)
    rounded[-1] = sum(shares) - sum(rounded[:-1])
    return rounded if rounded[-1] > 0 else shares_judge.next_shares(shares, seconds)


@wrong("next_shares", "very slow workers: wrong: shares [", "it raised ValueError", share=TWO_THIRDS)
def refuses_the_very_slow(shares, seconds):
    if max(seconds) > 20:
        raise ValueError("too slow")
    return shares_judge.next_shares(shares, seconds)


@wrong("next_shares", *[Hint.NOT_THE_SHORTEST] * 3)
def one_image_for_the_slow(shares, seconds):
    best = shares_judge.next_shares(shares, seconds)
    slow, fast = int(np.argmin(best)), int(np.argmax(best))
    best[slow], best[fast] = best[slow] + 1, best[fast] - 1
    return best


def for_three(answer):
    """The answer for up to three workers, and the right shares for more, to which chance makes it wrong or right."""

    @functools.wraps(answer)
    def shared(shares, seconds):
        return answer(shares, seconds) if len(shares) <= 3 else shares_judge.next_shares(shares, seconds)

    return shared


def moved(shares, seconds, to_whom, stops):
    """One image at a time from the worker that ends last, until `stops(new, per_image, slowest, first)` says so."""
    per_image, new = [took / share for share, took in zip(shares, seconds, strict=True)], list(shares)
    while True:
        slowest = max(range(len(new)), key=lambda worker: new[worker] * per_image[worker])
        first = min(range(len(new)), key=lambda worker: to_whom(new, per_image, worker))
        if new[slowest] == 1 or stops(new, per_image, slowest, first):
            return new
        new[slowest] -= 1
        new[first] += 1


def ends_with_one_more(new, per_image, worker):
    return (new[worker] + 1) * per_image[worker]


@wrong("next_shares", Hint.SHARES_KEPT, share=TWO_THIRDS)
@for_three
def to_the_worker_that_ends_first_now(shares, seconds):
    return moved(
        shares,
        seconds,
        lambda new, per_image, worker: new[worker] * per_image[worker],
        lambda new, t, slowest, first: (new[first] + 1) * t[first] >= new[slowest] * t[slowest],
    )


@wrong("next_shares", Hint.SHARES_KEPT, share=TWO_THIRDS)
@for_three
def until_the_last_end_does_not_fall(shares, seconds):
    def stops(new, per_image, slowest, first):
        after = [*new]
        after[slowest] -= 1
        after[first] += 1
        last_ends = [max(share * each for share, each in zip(some, per_image, strict=True)) for some in (new, after)]
        return last_ends[1] >= last_ends[0]

    return moved(shares, seconds, ends_with_one_more, stops)


@wrong("next_shares", Hint.SLOWER_THAN_BEFORE, share=TWO_THIRDS)
@for_three
def rounded_and_the_sum_repaired(shares, seconds):
    new = [max(1, round(each)) for each in ideal_of(shares, seconds)]
    per_image = [took / share for share, took in zip(shares, seconds, strict=True)]
    while sum(new) < sum(shares):
        new[min(range(len(new)), key=lambda worker: ends_with_one_more(new, per_image, worker))] += 1
    while sum(new) > sum(shares):
        several = [worker for worker in range(len(new)) if new[worker] > 1]
        new[max(several, key=lambda worker: new[worker] * per_image[worker])] -= 1
    return new


@wrong("next_shares", Hint.SUM_CHANGED, share=TWO_THIRDS)
@for_three
def whole_parts_and_the_rest_added(shares, seconds):
    new = [max(1, int(each)) for each in ideal_of(shares, seconds)]
    per_image = [took / share for share, took in zip(shares, seconds, strict=True)]
    while sum(new) < sum(shares):
        new[min(range(len(new)), key=lambda worker: ends_with_one_more(new, per_image, worker))] += 1
    return new


@right("next_shares")
def image_by_image(shares, seconds):
    """Move one image from the worker that ends last, as long as that helps."""
    per_image, following = np.array(seconds) / shares, np.array(shares)
    while True:
        slowest = int(np.argmax(following * per_image))
        first = int(np.argmin((following + 1) * per_image))
        if (
            following[slowest] == 1
            or (following[first] + 1) * per_image[first] >= following[slowest] * per_image[slowest]
        ):
            return following
        following[slowest] -= 1
        following[first] += 1


ANSWERS.solved("next_shares", lambda shares, seconds: shares_judge.next_shares(shares, seconds))

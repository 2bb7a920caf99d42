"""Answers to lab 15 as students give them; the job scripts are in answers_15_scripts.py."""

import math

from lab_15 import enlargement, given, requeued_job, scaling_table
from lab_15 import rent as rent_judge
from lab_15.hints import Lab15Hint
from lab_15.rent import Offer, RentRules
from lab_15.scaling_table import StudyRun
from lab_15_tests.answers_15_scripts import ANSWERS

from distlab.labs.number_judge import NumberHint

wrong, right = ANSWERS.wrong, ANSWERS.right
Hint = Lab15Hint
THREE_QUARTERS = 3 / 4


# The job that is queued again

START_AGAIN = 85
ANSWERS.solved("attempt", requeued_job.attempt)


@right("attempt")
async def by_a_while_loop(rank, job):
    step = job["saved"]
    while step < job["steps"]:
        step += 1
        await given.train_step(rank, job, step)
        anybody = await given.add_up(rank, 1.0 if given.has_notice(rank, job) else 0.0)
        if anybody and step != job["steps"]:
            if not rank.index:
                await given.save(rank, job, step)
            await given.add_up(rank, 1)
            return START_AGAIN
    return 0


@right("attempt")
async def saves_after_the_loop(rank, job):
    step = job["saved"]
    notices = 0
    while step < job["steps"] and not notices:
        step = step + 1
        await given.train_step(rank, job, step)
        notices = await given.add_up(rank, int(given.has_notice(rank, job)))
    if step == job["steps"]:
        return 0
    if rank.index == 0:
        await given.save(rank, job, step)
    await given.add_up(rank, 0)
    return START_AGAIN


def attempt_with(
    first=1,
    own=False,
    saver=0,
    save_offset=0,
    saves=1,
    waits=True,
    status=START_AGAIN,
    end=0,
    at_end=False,
    late=0,
    last=0,
    always=False,
):
    """The right program with changes."""

    async def attempt(rank, job):
        pending = None
        for step in range(job["saved"] + first, job["steps"] + 1 + last):
            await given.train_step(rank, job, step)
            if always and rank.index == 0 and step < job["steps"]:
                await given.save(rank, job, step)
            has_notice = given.has_notice(rank, job)
            notices = has_notice if own else await given.add_up(rank, has_notice)
            if notices and pending is None:
                pending = step + late
            if pending is not None and step >= pending and (at_end or step < job["steps"]):
                if saver in (rank.index, None):
                    for _ in range(saves):
                        await given.save(rank, job, step + save_offset)
                if waits:
                    await given.add_up(rank, 0)
                return status
        return end

    return attempt


for title, attempt, hints, share in (
    ("own_notice_only", attempt_with(own=True), [Hint.SAVES_ALONE] * 3, 0.25),
    ("all_save", attempt_with(saver=None), [Hint.SAVED_BY_OTHERS] * 3, 0.25),
    ("step_before", attempt_with(save_offset=-1), [Hint.SAVED_STEP] * 3, 0.25),
    ("step_after", attempt_with(save_offset=1), [Hint.SAVED_STEP] * 3, 0.25),
    ("saves_twice", attempt_with(saves=2), [Hint.SAVED_OFTEN] * 3, 0.25),
    ("never_saves", attempt_with(saves=0), [Hint.NOT_SAVED] * 3, 0.25),
    ("nobody_waits", attempt_with(waits=False), [Hint.LEFT_EARLY] * 3, 0.25),
    ("status_0", attempt_with(status=0), [Hint.STATUS_0] * 3, 0.25),
    ("status_1", attempt_with(status=1), [Hint.STATUS_0] * 3, 0.25),
    ("a_step_later", attempt_with(late=1), [Hint.TOO_LATE] * 3, 0.25),
    ("always_85", attempt_with(end=START_AGAIN), [Hint.STATUS_85] * 2, 0.5),
    ("saves_at_the_end_too", attempt_with(at_end=True), [Hint.SAVED_AT_END], 0.75),
    ("a_step_again", attempt_with(first=0), [Hint.STEP_TWICE] * 4, 0),
    ("a_step_lost", attempt_with(first=2), [Hint.STEP_LOST] * 4, 0),
    ("without_the_last_step", attempt_with(last=-1), [Hint.LAST_MISSING] * 2, 0.5),
    ("a_step_too_many", attempt_with(last=1), [Hint.TOO_MANY_STEPS] * 2, 0.5),
    ("saves_without_a_reason", attempt_with(always=True), [Hint.SAVED_WITHOUT_NOTICE] * 4, 0),
    ("float_status", attempt_with(status=85.0), [Hint.NO_STATUS] * 3, 0.25),
):
    ANSWERS.wrong_value("attempt", title, attempt, *hints, share=share)


@wrong("attempt", Hint.STEP_TWICE, share=0.75)
async def from_the_beginning(rank, job):
    return await requeued_job.attempt(rank, job | {"saved": 0})


@wrong("attempt", *[Hint.TOO_LATE] * 3, share=0.25)
async def forgets_the_notice(rank, job):
    for step in range(job["saved"] + 1, job["steps"] + 1):
        await given.train_step(rank, job, step)
    return 0


@wrong("attempt", *[Hint.TOO_EARLY] * 4)
async def stops_at_once(rank, job):
    return START_AGAIN


@wrong("attempt", Hint.GUESSED, Hint.GUESSED, Hint.GUESSED, share=0.25)
async def guesses_how_long_a_save_takes(rank, job):
    for step in range(job["saved"] + 1, job["steps"] + 1):
        await given.train_step(rank, job, step)
        if await given.add_up(rank, given.has_notice(rank, job)) and step < job["steps"]:
            if rank.index == 0:
                await given.save(rank, job, step)
            else:
                await rank.compute(1000.0)
            return START_AGAIN
    return 0


@wrong("attempt", Hint.NOT_AT_ONCE, share=THREE_QUARTERS)
async def adds_up_with_no_step_left(rank, job):
    if job["saved"] == job["steps"]:
        await given.add_up(rank, 0)
    return await requeued_job.attempt(rank, job)


def meets(is_there):
    """Only some ranks come to the second sum."""

    async def attempt(rank, job):
        for step in range(job["saved"] + 1, job["steps"] + 1):
            await given.train_step(rank, job, step)
            if await given.add_up(rank, given.has_notice(rank, job)) and step < job["steps"]:
                if rank.index == 0:
                    await given.save(rank, job, step)
                if is_there(rank):
                    await given.add_up(rank, 0)
                return START_AGAIN
        return 0

    return attempt


for title, is_there in (
    ("rank_0_does_not_come", lambda rank: rank.index > 0),
    ("only_rank_0_comes", lambda rank: rank.index == 0),
):
    ANSWERS.wrong_value("attempt", title, meets(is_there), *[Hint.NOT_MET] * 3, share=0.25)


@wrong("attempt", *[Hint.NEVER_DONE] * 4)
async def the_same_step_for_ever(rank, job):
    step = job["saved"]
    while step < job["steps"]:
        await given.train_step(rank, job, step)
        notices = await given.add_up(rank, given.has_notice(rank, job))
        if notices > size_of(notices):
            return START_AGAIN
    return 0


def size_of(notices):
    return notices + 1


@wrong("attempt", *[Hint.ADDED_BEFORE] * 4)
async def asks_before_the_step(rank, job):
    for step in range(job["saved"] + 1, job["steps"] + 1):
        if await given.add_up(rank, given.has_notice(rank, job)):
            if rank.index == 0:
                await given.save(rank, job, step - 1)
            await given.add_up(rank, 0)
            return START_AGAIN
        await given.train_step(rank, job, step)
    return 0


@wrong("attempt", Hint.TOO_MANY_STEPS, Hint.TOO_MANY_STEPS, share=0.5)
async def never_done(rank, job):
    step = job["saved"]
    while True:
        step += 1
        await given.train_step(rank, job, step)
        if await given.add_up(rank, given.has_notice(rank, job)):
            if rank.index == 0:
                await given.save(rank, job, step)
            await given.add_up(rank, 0)
            return START_AGAIN


@right("attempt")
async def asks_no_more_after_the_last_step(rank, job):
    for step in range(job["saved"] + 1, job["steps"] + 1):
        await given.train_step(rank, job, step)
        if step < job["steps"] and await given.add_up(rank, given.has_notice(rank, job)):
            if rank.index == 0:
                await given.save(rank, job, step)
            await given.add_up(rank, 0)
            return START_AGAIN
    return 0


@wrong("attempt", *[Hint.NO_STATUS] * 4)
async def truth_value(rank, job):
    return bool(await requeued_job.attempt(rank, job))


# Scaling table


def table_with(change):
    """The right table with some names changed by a function of the runs and the right table."""

    def read_table(runs):
        own = [StudyRun(**run) for run in runs]
        table = scaling_table.read_table(own)
        return table | change(own, table)

    return read_table


def sizes_of(runs):
    return [*scaling_table.speedups(runs)]


def step_ratios(runs):
    steps = {runs[place].nodes: runs[place].step for place in scaling_table.trusted(runs)}
    return [steps[1] / steps[nodes] for nodes in sizes_of(runs)]


def in_order_of_the_list(runs, numbers):
    places = sorted(scaling_table.trusted(runs), key=lambda place: runs[place].nodes)
    by_place = dict(zip(places, numbers, strict=True))
    return [by_place[place] for place in sorted(places)]


def gains_of(runs):
    return scaling_table.speedups(runs)


ANSWERS.solved("read_table", table_with(lambda runs, table: {}), lambda runs: dict.fromkeys(scaling_table.NAMES))
for title, change, hint in (
    (
        "all_complete",
        lambda runs, table: {"trusted": [n for n, run in enumerate(runs) if run.state == "COMPLETED"]},
        Hint.DISTURBED_TRUSTED,
    ),
    (
        "alone_whatever_the_state",
        lambda runs, table: {"trusted": [n for n in range(len(runs)) if not scaling_table.overlapping(runs, n)]},
        Hint.FAILED_TRUSTED,
    ),
    (
        "touching_is_together",
        lambda runs, table: {
            "trusted": [
                n
                for n in table["trusted"]
                if not any(run.start == runs[n].end or run.end == runs[n].start for run in runs)
            ]
        },
        Hint.TRUSTED_LEFT_OUT,
    ),
    ("from_1", lambda runs, table: {"trusted": [n + 1 for n in table["trusted"]]}, Hint.TRUSTED_FROM_1),
    ("nodes_of_runs", lambda runs, table: {"trusted": [[n] for n in table["trusted"]]}, Hint.NO_LIST),
    (
        "by_nodes",
        lambda runs, table: {"trusted": sorted(table["trusted"], key=lambda n: runs[n].nodes)},
        Hint.TRUSTED_ORDER,
    ),
    ("ratio_of_steps", lambda runs, table: {"speedup": step_ratios(runs)}, Hint.TIMES_RATIO),
    ("upside_down", lambda runs, table: {"speedup": [1 / gain for gain in table["speedup"]]}, Hint.UPSIDE_DOWN),
    ("list_order", lambda runs, table: {"speedup": in_order_of_the_list(runs, table["speedup"])}, Hint.TABLE_ORDER),
    (
        "percent",
        lambda runs, table: {"efficiency": [100 * item for item in table["efficiency"]]},
        Hint.EFFICIENCY_OTHERWISE,
    ),
    ("speedup_again", lambda runs, table: {"efficiency": table["speedup"]}, Hint.EFFICIENCY_IS_SPEEDUP),
    (
        "divided_twice",
        lambda runs, table: {
            "efficiency": [item / n for item, n in zip(table["efficiency"], sizes_of(runs), strict=True)]
        },
        Hint.EFFICIENCY_OTHERWISE,
    ),
    (
        "times_of_a_step",
        lambda runs, table: {
            "efficiency": [item / n for item, n in zip(step_ratios(runs), sizes_of(runs), strict=True)]
        },
        Hint.TIMES_RATIO,
    ),
    ("rounded", lambda runs, table: {"speedup": [round(item, 4) for item in table["speedup"]]}, NumberHint.ROUNDED),
    (
        "rounded_to_2",
        lambda runs, table: {"efficiency": [round(item, 2) for item in table["efficiency"]]},
        NumberHint.ROUNDED,
    ),
    ("efficiency_without_batch", lambda runs, table: {"efficiency": step_ratios(runs)}, Hint.BATCH_LEFT_OUT),
    (
        "largest_batch",
        lambda runs, table: {"speedup": [n * item for item, n in zip(step_ratios(runs), sizes_of(runs), strict=True)]},
        Hint.BATCH_LEFT_OUT,
    ),
    ("without_one_node", lambda runs, table: {"efficiency": table["efficiency"][1:]}, Hint.TABLE_LENGTH),
    ("rates", lambda runs, table: {"speedup": [640 * gain for gain in table["speedup"]]}, Hint.SPEEDUP_OTHERWISE),
    ("by_all_nodes", lambda runs, table: {"pays": enlargement.overall(gains_of(runs))}, Hint.PAYS_OVERALL),
    ("last_that_pays", lambda runs, table: {"pays": enlargement.last(gains_of(runs))}, Hint.PAYS_LATER),
    ("fastest", lambda runs, table: {"pays": max(sizes_of(runs))}, Hint.PAYS_FASTEST),
    ("no_number", lambda runs, table: {"pays": str(table["pays"])}, Hint.PAYS_OTHERWISE),
    ("half_is_too_little", lambda runs, table: {"pays": enlargement.more_than_half(gains_of(runs))}, Hint.PAYS_HALF),
    ("one_more", lambda runs, table: {"pays": table["pays"] + 1}, Hint.PAYS_OTHERWISE),
    (
        "first_that_does_not_pay",
        lambda runs, table: {"pays": next((n for n in sizes_of(runs) if n > table["pays"]), table["pays"])},
        Hint.PAYS_NEXT,
    ),
):
    ANSWERS.wrong_value("read_table", title, table_with(change), hint, share=THREE_QUARTERS)


@wrong("read_table", Hint.NO_TABLE)
def only_pays(runs):
    return table_with(lambda own, table: {})(runs)["pays"]


def table_by(rate, is_alone):
    """A table as students write it, with their own rate of a run and rule for two runs."""

    def read_table(runs):
        trusted = []
        for number, run in enumerate(runs):
            peers = [peer for peer in runs if peer is not run]
            if run["state"] == "COMPLETED" and all(is_alone(run, peer) for peer in peers):
                trusted.append(number)
        chosen = sorted((runs[number] for number in trusted), key=lambda run: run["nodes"])
        base = rate(next(run for run in chosen if run["nodes"] == 1))
        speedup = [rate(run) / base for run in chosen]
        sizes = [run["nodes"] for run in chosen]
        pays = enlargement.pays_up_to(dict(zip(sizes, speedup, strict=True)))
        efficiency = [gain / size for gain, size in zip(speedup, sizes, strict=True)]
        return {"trusted": trusted, "speedup": speedup, "efficiency": efficiency, "pays": pays}

    return read_table


def images_per_second(run):
    return run["nodes"] * run["batch"] / run["step"]


def is_apart(run, peer):
    return run["end"] <= peer["start"] or peer["end"] <= run["start"]


def has_a_gap(run, peer):
    return run["end"] < peer["start"] or peer["end"] < run["start"]


ANSWERS.right_answers["read_table"].append(("by_rules", {"read_table": table_by(images_per_second, is_apart)}))
for title, is_alone in (
    ("all_complete_are_alone", lambda run, peer: True),
    ("same_size_is_the_same_run", lambda run, peer: run["nodes"] == peer["nodes"] or is_apart(run, peer)),
):
    answer = table_by(images_per_second, is_alone)
    ANSWERS.wrong_value("read_table", title, answer, Hint.DISTURBED_TRUSTED, *[NumberHint.FOLLOWS] * 3)
ANSWERS.wrong_value("read_table", "touching_leaves_no_base", table_by(images_per_second, has_a_gap), Hint.NO_BASE)
for title, rate, hints in (
    ("without_the_batch", lambda run: run["nodes"] / run["step"], [Hint.BATCH_LEFT_OUT] * 2),
    (
        "divided_by_the_batch",
        lambda run: run["nodes"] / run["batch"] / run["step"],
        [Hint.SPEEDUP_OTHERWISE, Hint.EFFICIENCY_OTHERWISE],
    ),
):
    answer = table_by(rate, is_apart)
    ANSWERS.wrong_value("read_table", title, answer, *hints, NumberHint.FOLLOWS, share=0.25)


@right("read_table")
def by_numpy(runs):
    import numpy as np

    table = table_with(lambda own, table: {})(runs)
    return table | {"speedup": np.array(table["speedup"]), "efficiency": np.array(table["efficiency"])}


# Rent


def rent_with(rules=None, change=None):
    """The right choice under other rules, or changed afterwards."""

    def rent(offers, images, deadline):
        choice = rent_judge.rent([Offer(**offer) for offer in offers], images, deadline, rules or RentRules())
        answer = None if choice is None else choice._asdict()
        return answer if change is None or answer is None else answer | change(answer)

    return rent


ANSWERS.solved("rent", rent_with())
for title, rules, hint, count in (
    ("fully_used", RentRules(efficiency=0), Hint.RENT_NO_EFFICIENCY, 4),
    ("upside_down", RentRules(efficiency=-1), Hint.RENT_EFFICIENCY_DIVIDES, 4),
    ("no_queue", RentRules(waits="never"), Hint.RENT_NO_WAIT, 3),
    ("one_queue", RentRules(waits="once"), Hint.RENT_ONE_WAIT, 2),
    ("a_queue_more", RentRules(waits="once more"), Hint.RENT_MORE_WAITS, 2),
    ("paid_queue", RentRules(pays_wait=True), Hint.RENT_WAIT_PAID, 2),
    ("one_node", RentRules(pays_nodes=False), Hint.RENT_ONE_NODE, 2),
    ("whole_limit", RentRules(pays_limit=True), Hint.RENT_WHOLE_LIMIT, 2),
    ("no_second_job", RentRules(may_exceed=False), Hint.RENT_LIMIT_FORBIDS, 1),
    ("first_done", RentRules(by="done"), Hint.RENT_FASTEST, 1),
    ("largest_size", RentRules(sizes="largest"), Hint.RENT_LARGEST, 1),
    ("smallest_size", RentRules(sizes="smallest"), Hint.RENT_SMALLEST, 1),
    ("before_the_deadline", RentRules(at_deadline=False), Hint.RENT_DEADLINE, 1),
):
    ANSWERS.wrong_value("rent", title, rent_with(rules), *[hint] * count, share=1 - count / 4)
for title, change, hint in (
    ("in_seconds", lambda answer: {"done": 3600 * answer["done"]}, Hint.RENT_UNITS),
    ("from_now_on", lambda answer: {"done": answer["done"] - 0.5}, Hint.RENT_DONE),
    ("more_expensive", lambda answer: {"cost": 1.1 * answer["cost"]}, Hint.RENT_COST),
):
    ANSWERS.wrong_value("rent", title, rent_with(change=change), hint, share=THREE_QUARTERS)


def rent_in(unit):
    """Hours by another number of seconds, as students write it."""

    def rent(offers, images, deadline):
        best = None
        for offer in offers:
            for nodes, efficiency in offer["efficiency"].items():
                hours = images / (nodes * offer["images_per_second"] * efficiency) / unit
                done = hours + math.ceil(hours / offer["limit"]) * offer["wait"]
                cost = nodes * hours * offer["price"]
                if done <= deadline and (best is None or cost < best["cost"]):
                    best = {"name": offer["name"], "nodes": nodes, "done": done, "cost": cost}
        return best

    return rent


ANSWERS.wrong_value("rent", "seconds_as_hours", rent_in(1), Hint.RENT_UNITS)
ANSWERS.wrong_value("rent", "minutes_as_hours", rent_in(60), Hint.RENT_UNITS)
ANSWERS.wrong_value(
    "rent",
    "rounded",
    rent_with(change=lambda answer: {"cost": round(answer["cost"], 2)}),
    NumberHint.ROUNDED,
    share=THREE_QUARTERS,
)


ANSWERS.wrong_value(
    "rent", "nodes_as_text", rent_with(change=lambda answer: {"nodes": str(answer["nodes"])}), Hint.NO_CHOICE_TYPE
)


@wrong("rent", Hint.NOTHING_RAISES, share=THREE_QUARTERS)
def smallest_of_nothing(offers, images, deadline):
    own = [Offer(**offer) for offer in offers]
    in_time = [choice for choice in rent_judge.choices(own, images) if choice.done <= deadline]
    return min(in_time, key=lambda choice: choice.cost)._asdict()


@wrong("rent", Hint.NO_CHOICE)
def only_the_name(offers, images, deadline):
    return (rent_with()(offers, images, deadline) or {"name": "none"})["name"]


@wrong("rent", Hint.NOTHING_FITS, share=THREE_QUARTERS)
def always_something(offers, images, deadline):
    return rent_with()(offers, images, deadline) or rent_with()(offers, images, math.inf)


@wrong("rent", Hint.RENT_CHEAPEST, Hint.RENT_CHEAPEST, share=0.5)
def whenever_it_ends(offers, images, deadline):
    return rent_with()(offers, images, math.inf)


@wrong("rent", Hint.RENT_CHOICE, share=THREE_QUARTERS)
def the_second_cheapest(offers, images, deadline):
    own = [Offer(**offer) for offer in offers]
    in_time = [choice for choice in rent_judge.choices(own, images) if choice.done <= deadline]
    in_time.sort(key=lambda choice: choice.cost)
    return in_time[min(1, len(in_time) - 1)]._asdict() if in_time else None


@right("rent")
def sorted_by_cost(offers, images, deadline):
    in_time = []
    for offer in offers:
        for nodes in offer["efficiency"]:
            seconds = images / offer["images_per_second"] / nodes / offer["efficiency"][nodes]
            waits = offer["wait"] * math.ceil(seconds / 3600 / offer["limit"])
            cost = seconds / 3600 * offer["price"] * nodes
            in_time.append({"cost": cost, "nodes": nodes, "name": offer["name"], "done": waits + seconds / 3600})
    in_time = [choice for choice in in_time if choice["done"] <= deadline]
    return min(in_time, key=lambda choice: choice["cost"]) if in_time else None

"""Answers to lab 13 as students give them."""

import math
from collections import Counter

import numpy as np
from lab_13 import disturbed_runs, jobs
from lab_13.disturbed_runs import Rules
from lab_13.hints import Lab13Hint
from lab_13.plan import DAY
from lab_13.plan import plan as true_plan

from distlab.labs.number_judge import NumberHint
from tests.distlab.labs.known_wrong import LabAnswers, WrongAnswer

ANSWERS = LabAnswers()
wrong, right = ANSWERS.wrong, ANSWERS.right
Hint = Lab13Hint
FIVE_SIXTHS = 5 / 6
NOTHING = {"illness": None, "worker": None, "step": None}


# Diagnosis


def diagnosis(illness, worker, step):
    return {"illness": illness, "worker": worker, "step": step}


def of(log, event):
    return [entry for entry in log if entry["event"] == event]


def first_start(log):
    """The log up to the second start, if there is one."""
    starts = [place for place, entry in enumerate(log) if entry["event"] == "cluster"]
    return log[: starts[1]] if len(starts) > 1 else log


def last_done(log):
    """Who exited first, and its last step."""
    worker = of(log, "exit")[0]["worker"]
    return worker, max(entry["step"] for entry in of(log, "step") if entry["worker"] == worker)


def true_diagnosis(log):
    """By what is in the log, one sign after the other."""
    events, done = Counter(entry["event"] for entry in log), {}
    for entry in of(log, "step"):
        done[entry["worker"]] = max(done.get(entry["worker"], 0), entry["step"])
    if not done:
        listed = log[0]["addresses"]
        return diagnosis(
            jobs.NEVER_COMES,
            next(entry["worker"] for entry in of(log, "listens") if entry["address"] not in listed),
            0,
        )
    if events["cluster"] == 2:
        saves = of(first_start(log), "saved")
        whole = max([0, *(entry["step"] for entry in saves if entry["sealed"])])
        if of(log, "restored")[0]["step"] != whole:
            return diagnosis(jobs.HALF_WRITTEN, 0, saves[-1]["step"])
        return diagnosis(jobs.KILLED, *last_done(first_start(log)))
    if not events["exit"]:
        slow = Counter(e["worker"] for e in of(log, "step") if e["computing"] > 0.004 * e["images"])
        worker = slow.most_common(1)[0][0]
        own = [entry for entry in of(log, "step") if entry["worker"] == worker]
        fast = [entry["step"] for entry in own if entry["computing"] < 0.004 * entry["images"]]
        return diagnosis(jobs.STRAGGLER, worker, 1 + max(fast, default=0))
    worker, code = of(log, "exit")[0]["worker"], of(log, "exit")[0]["code"]
    illness = jobs.COME_AND_GO if events["size"] else jobs.KILLED if code == -9 else jobs.NOTICE
    return diagnosis(illness, worker, done[worker])


def diagnosed(change):
    """The right diagnosis after a change by a function of the log and the diagnosis."""
    return lambda log: true_diagnosis(log) | change(log, true_diagnosis(log))


def if_ill(illness, change):
    """The change for one illness only."""
    return diagnosed(lambda log, true: change(log) if true["illness"] == illness else {})


for title, answer, hint in (
    ("killed_is_a_notice", if_ill(jobs.KILLED, lambda log: {"illness": jobs.NOTICE}), Hint.NOT_KILLED),
    ("killed_is_come_and_go", if_ill(jobs.KILLED, lambda log: {"illness": jobs.COME_AND_GO}), Hint.NOT_KILLED),
    ("straggler_is_killed", if_ill(jobs.STRAGGLER, lambda log: {"illness": jobs.KILLED}), Hint.NOT_STRAGGLER),
    ("missing_is_killed", if_ill(jobs.NEVER_COMES, lambda log: {"illness": jobs.KILLED}), Hint.NOT_NEVER_COMES),
    ("half_written_is_killed", if_ill(jobs.HALF_WRITTEN, lambda log: {"illness": jobs.KILLED}), Hint.NOT_HALF_WRITTEN),
    ("come_and_go_is_killed", if_ill(jobs.COME_AND_GO, lambda log: {"illness": jobs.KILLED}), Hint.NOT_COME_AND_GO),
    ("notice_is_killed", if_ill(jobs.NOTICE, lambda log: {"illness": jobs.KILLED}), Hint.NOT_NOTICE),
    ("killed_last", if_ill(jobs.KILLED, lambda log: {"worker": log[-1]["worker"]}), Hint.KILLED_WORKER),
    ("never_last", if_ill(jobs.NEVER_COMES, lambda log: {"worker": 0}), Hint.NEVER_WORKER),
    (
        "who_was_killed",
        if_ill(jobs.HALF_WRITTEN, lambda log: {"worker": of(log, "exit")[0]["worker"]}),
        Hint.HALF_WRITTEN_WORKER,
    ),
    ("who_restored", if_ill(jobs.COME_AND_GO, lambda log: {"worker": 0}), Hint.COME_AND_GO_WORKER),
    ("first_killed", if_ill(jobs.NOTICE, lambda log: {"worker": of(log, "exit")[1]["worker"]}), Hint.NOTICE_WORKER),
    ("last_save", if_ill(jobs.KILLED, lambda log: {"step": of(log, "saved")[-1]["step"]}), Hint.KILLED_STEP),
    ("step_1", if_ill(jobs.NEVER_COMES, lambda log: {"step": 1}), Hint.NEVER_STEP),
    (
        "last_whole",
        if_ill(
            jobs.HALF_WRITTEN,
            lambda log: {"step": of([e for e in first_start(log) if e.get("sealed")], "saved")[-1]["step"]},
        ),
        Hint.HALF_WRITTEN_STEP,
    ),
    ("last_of_all", if_ill(jobs.COME_AND_GO, lambda log: {"step": log[-1]["step"]}), Hint.COME_AND_GO_STEP),
    ("save_before", if_ill(jobs.NOTICE, lambda log: {"step": of(log, "saved")[-2]["step"]}), Hint.NOTICE_STEP),
    ("last_step", if_ill(jobs.STRAGGLER, lambda log: {"step": of(log, "step")[-1]["step"]}), Hint.STRAGGLER_STEP),
    ("another_word", if_ill(jobs.KILLED, lambda log: {"illness": "killed"}), Hint.UNKNOWN_ILLNESS),
):
    ANSWERS.wrong_value("diagnose", title, answer, hint, share=FIVE_SIXTHS)


def slowest_step(log):
    slowest = max(of(log, "step"), key=lambda entry: entry["computing"])
    return {"worker": slowest["worker"], "step": slowest["step"]}


ANSWERS.wrong_value(
    "diagnose", "the_hiccup", if_ill(jobs.STRAGGLER, slowest_step), Hint.STRAGGLER_WORKER, share=FIVE_SIXTHS
)


def first_slow_step(log):
    worker = true_diagnosis(log)["worker"]
    own = [entry for entry in of(log, "step") if entry["worker"] == worker]
    return {"step": min(entry["step"] for entry in own if entry["computing"] > 0.004 * entry["images"])}


def least_waiting_backwards(log):
    steps = {}
    for entry in of(log, "step"):
        steps.setdefault(entry["step"], []).append(entry)
    least = {step: min(entries, key=lambda entry: entry["waiting"])["worker"] for step, entries in steps.items()}
    first = last = max(steps)
    while first > 1 and least[first - 1] == least[last]:
        first -= 1
    return {"worker": least[last], "step": first}


def last_unsealed(log):
    return {"step": [entry["step"] for entry in of(log, "saved") if not entry["sealed"]][-1]}


def last_rank(log):
    return {"worker": len(log[0]["addresses"]) - 1}


def last_worker(log):
    return true_diagnosis(log)["worker"]


def one_signal(log):
    true = true_diagnosis(log)
    if true["illness"] == jobs.KILLED and len(of(log, "signal")) == 1:
        return {"illness": jobs.NOTICE}
    return {}


for title, change, hint in (
    ("the_first_slow_step", if_ill(jobs.STRAGGLER, first_slow_step), Hint.STRAGGLER_STEP),
    ("who_waits_least", if_ill(jobs.STRAGGLER, least_waiting_backwards), Hint.STRAGGLER_STEP),
    ("last_of_the_whole_log", if_ill(jobs.HALF_WRITTEN, last_unsealed), Hint.HALF_WRITTEN_STEP),
    ("the_last_rank", if_ill(jobs.COME_AND_GO, last_rank), Hint.COME_AND_GO_WORKER),
    ("one_signal_is_a_notice", diagnosed(lambda log, true: one_signal(log)), Hint.NOT_KILLED),
):
    ANSWERS.wrong_value("diagnose", title, change, hint, share=FIVE_SIXTHS)


def from_checkpoints(log):
    """A job that began again has a half-written checkpoint if the newest one has no seal, whatever it then used."""
    if len(of(log, "cluster")) == 1:
        return {}
    newest = of(first_start(log), "saved")[-1]
    return {"illness": jobs.KILLED} if newest["sealed"] else {"illness": jobs.HALF_WRITTEN, "step": newest["step"]}


def began_again(log):
    return {"illness": jobs.HALF_WRITTEN} if len(of(log, "cluster")) == 2 else {}


def slowest_at_the_end(log):
    last = of(log, "step")[-1]["step"]
    end = [entry for entry in of(log, "step") if entry["step"] == last]
    return {"worker": max(end, key=lambda entry: entry["computing"])["worker"]}


def last_of_both_starts(log):
    worker = true_diagnosis(log)["worker"]
    return {"step": max(entry["step"] for entry in of(log, "step") if entry["worker"] == worker)}


for title, change, hint in (
    ("began_again", diagnosed(lambda log, true: began_again(log)), Hint.NOT_KILLED),
    ("newest_has_no_seal", diagnosed(lambda log, true: from_checkpoints(log)), Hint.NOT_KILLED),
    ("slowest_at_the_end", if_ill(jobs.STRAGGLER, slowest_at_the_end), Hint.STRAGGLER_WORKER),
    ("after_the_second_start", if_ill(jobs.KILLED, last_of_both_starts), Hint.KILLED_STEP),
    ("worker_as_text", if_ill(jobs.KILLED, lambda log: {"worker": f"worker {last_worker(log)}"}), Hint.NO_WHOLE_NUMBER),
    ("worker_as_digit", if_ill(jobs.KILLED, lambda log: {"worker": str(last_worker(log))}), Hint.NO_WHOLE_NUMBER),
    ("worker_in_a_list", if_ill(jobs.NOTICE, lambda log: {"worker": [last_worker(log)]}), Hint.NO_WHOLE_NUMBER),
    ("step_as_digit", if_ill(jobs.NEVER_COMES, lambda log: {"step": "0"}), Hint.NO_WHOLE_NUMBER),
    ("step_too_late", if_ill(jobs.NOTICE, lambda log: {"step": 1 + of(log, "step")[-1]["step"]}), Hint.NOTICE_STEP),
):
    ANSWERS.wrong_value("diagnose", title, change, hint, share=FIVE_SIXTHS)


@wrong("diagnose", "job D: not done yet: ", "`diagnose` gives None", share=FIVE_SIXTHS)
def all_but_one(log):
    true = true_diagnosis(log)
    return None if true["illness"] == jobs.KILLED else true


def slow_from(threshold, least=3, among=lambda times, worker: min(times[peer] for peer in times if peer != worker)):
    """The straggler and its first step by a rule: so many times as long as `among` says, in so many steps."""

    def change(log, true):
        if true["illness"] != jobs.STRAGGLER:
            return {}
        steps = {}
        for entry in of(log, "step"):
            steps.setdefault(entry["step"], {})[entry["worker"]] = entry["computing"]
        for worker in range(size(log)):
            fast = [step for step, times in steps.items() if times[worker] < threshold * among(times, worker)]
            first = 1 + max(fast, default=0)
            if len(steps) - first + 1 >= least:
                return {"worker": worker, "step": first}
        return NOTHING

    return diagnosed(change)


def mean_of_all(times, worker):
    return np.mean(list(times.values()))


NOT_FOUND = (Hint.NOTHING_FOUND, Hint.STRAGGLER_NOT_FOUND)
for title, answer, hints in (
    ("slow_from_three_times", slow_from(3), NOT_FOUND),
    ("slow_in_four_steps", slow_from(2, least=4), NOT_FOUND),
    ("slow_from_one_and_a_half", slow_from(1.5), (Hint.STRAGGLER_STEP,)),
):
    ANSWERS.wrong_value("diagnose", title, answer, *hints, share=FIVE_SIXTHS)


@wrong("diagnose", Hint.NOTHING_FOUND, Hint.NOT_NEVER_COMES, share=FIVE_SIXTHS)
def by_ports(log):
    true, listed = true_diagnosis(log), [address[-5:] for address in log[0]["addresses"]]
    if true["illness"] != jobs.NEVER_COMES:
        return true
    missing = [entry["worker"] for entry in of(log, "listens") if entry["address"][-5:] not in listed]
    return true | {"worker": missing[0]} if missing else NOTHING


@wrong("diagnose", *[NumberHint.NAMES] * 6)
def only_the_name(log):
    return true_diagnosis(log)["illness"]


@wrong(
    "diagnose",
    Hint.NOT_NOTICE,
    Hint.NOT_STRAGGLER,
    Hint.NOT_HALF_WRITTEN,
    Hint.KILLED_WORKER,
    Hint.NOT_COME_AND_GO,
    Hint.NOT_NEVER_COMES,
)
def always_the_same(log):
    return diagnosis(jobs.KILLED, 99, 1)


@wrong("diagnose", Hint.NOT_NOTICE, Hint.NOT_HALF_WRITTEN, Hint.NOT_COME_AND_GO, Hint.NOT_NEVER_COMES, share=2 / 6)
def every_sigkill_is_a_kill(log):
    killed = [entry for entry in of(log, "exit") if entry["code"] == -9]
    return diagnosis(jobs.KILLED, killed[0]["worker"], true_diagnosis(log)["step"]) if killed else true_diagnosis(log)


@right("diagnose")
def by_counting(log):
    return true_diagnosis(log)


def solution_of_lab(log):
    """As in the lab's text: by what the job did after the exit."""
    true = true_diagnosis(log)
    return {"step": float(true["step"]), "worker": np.int64(true["worker"]), "illness": true["illness"]}


ANSWERS.solved("diagnose", solution_of_lab, lambda log: NOTHING)


# Cure


def true_cure(log, illness, worker, step):
    saved = of(first_start(log), "saved")
    workers = len(log[0]["addresses"])
    if illness == jobs.KILLED:
        return step - [0, *(entry["step"] for entry in saved if entry["sealed"])][-1]
    if illness == jobs.STRAGGLER:
        times = {entry["worker"]: entry["computing"] for entry in of(log, "step")}
        speeds = {worker: 1 / seconds for worker, seconds in times.items()}
        return speeds[worker] / sum(speeds.values())
    if illness == jobs.NEVER_COMES:
        return next(float(e["address"][-5:]) for e in of(log, "listens") if e["worker"] == worker)
    if illness == jobs.HALF_WRITTEN:
        return [entry["step"] for entry in of(first_start(log), "saved") if entry["sealed"]][-1]
    if illness == jobs.COME_AND_GO:
        return log[-1]["images"] * workers // (workers - 1)
    return 1 + step


def cured(illness, number):
    """The right cure, but this number for one illness."""

    def cure(log, of_job, worker, step):
        return number(log, worker, step) if of_job == illness else true_cure(log, of_job, worker, step)

    return cure


def times_slower(log, worker):
    last = [entry for entry in log if entry["event"] == "step"][-1]["step"]
    times = {entry["worker"]: entry["computing"] for entry in of(log, "step") if entry["step"] == last}
    return times[worker] / min(times.values())


def share_of_all(log, worker, typical):
    """The share by the times of all steps, also of those in which the worker was fast."""
    times = {other: [e["computing"] for e in of(log, "step") if e["worker"] == other] for other in range(size(log))}
    speeds = {other: 1 / typical(seconds) for other, seconds in times.items()}
    return speeds[worker] / sum(speeds.values())


def share_by_two(log, worker, typical):
    """The share by the times of all steps of the straggler, and of all others together."""
    slow, normal = (
        typical([entry["computing"] for entry in of(log, "step") if (entry["worker"] == worker) == is_slow])
        for is_slow in (True, False)
    )
    return 1 / slow / (1 / slow + (size(log) - 1) / normal)


def size(log):
    return len(log[0]["addresses"])


for title, illness, number, hint in (
    ("where_it_resumes", jobs.KILLED, lambda log, w, s: s - true_cure(log, jobs.KILLED, w, s), Hint.KILLED_RESUME),
    ("all_twice", jobs.KILLED, lambda log, w, s: s + 0.5, Hint.KILLED_OTHERWISE),
    ("even_share", jobs.STRAGGLER, lambda log, w, s: 1 / size(log), Hint.EVEN_SHARE),
    ("its_speed", jobs.STRAGGLER, lambda log, w, s: 1 / times_slower(log, w), Hint.SPEED_AS_SHARE),
    ("others_only", jobs.STRAGGLER, lambda log, w, s: 1 / times_slower(log, w) / (size(log) - 1), Hint.SHARE_OF_OTHERS),
    ("by_workers", jobs.STRAGGLER, lambda log, w, s: 1 / times_slower(log, w) / size(log), Hint.SPEED_BY_WORKERS),
    (
        "upside_down",
        jobs.STRAGGLER,
        lambda log, w, s: times_slower(log, w) / (times_slower(log, w) + size(log) - 1),
        Hint.SHARE_UPSIDE_DOWN,
    ),
    ("slow_and_fast", jobs.STRAGGLER, lambda log, w, s: 1 / (1 + times_slower(log, w)), Hint.ONE_OTHER),
    ("in_percent", jobs.STRAGGLER, lambda log, w, s: 100 * true_cure(log, jobs.STRAGGLER, w, s), Hint.NOT_A_SHARE),
    ("mean_of_all_steps", jobs.STRAGGLER, lambda log, w, s: share_of_all(log, w, np.mean), Hint.ALL_STEPS),
    ("median_of_all_steps", jobs.STRAGGLER, lambda log, w, s: share_of_all(log, w, np.median), Hint.ALL_STEPS),
    ("means_of_all_steps", jobs.STRAGGLER, lambda log, w, s: share_by_two(log, w, np.mean), Hint.ALL_STEPS),
    ("all_of_it", jobs.STRAGGLER, lambda log, w, s: 1, Hint.STRAGGLER_OTHERWISE),
    ("port_of_the_list", jobs.NEVER_COMES, lambda log, w, s: int(log[0]["addresses"][w][-5:]), Hint.PORT_LISTED),
    ("port_of_the_first", jobs.NEVER_COMES, lambda log, w, s: int(log[0]["addresses"][0][-5:]), Hint.PORT_OTHERWISE),
    ("the_broken_one", jobs.HALF_WRITTEN, lambda log, w, s: s, Hint.RESUME_BROKEN),
    ("from_the_start", jobs.HALF_WRITTEN, lambda log, w, s: 0, Hint.RESUME_AT_ZERO),
    ("one_step_before", jobs.HALF_WRITTEN, lambda log, w, s: s - 1, Hint.RESUME_OTHERWISE),
    ("images_as_before", jobs.COME_AND_GO, lambda log, w, s: log[-1]["images"], Hint.IMAGES_KEPT),
    ("global_batch", jobs.COME_AND_GO, lambda log, w, s: log[-1]["images"] * size(log), Hint.IMAGES_OF_ALL),
    (
        "fewer_images",
        jobs.COME_AND_GO,
        lambda log, w, s: log[-1]["images"] * (size(log) - 1) / size(log),
        Hint.IMAGES_FEWER,
    ),
    ("one_image_more", jobs.COME_AND_GO, lambda log, w, s: log[-1]["images"] + 0.5, Hint.IMAGES_OTHERWISE),
    ("save_at_once", jobs.NOTICE, lambda log, w, s: s, Hint.SAVE_AT_ONCE),
    ("save_later", jobs.NOTICE, lambda log, w, s: s + 2, Hint.SAVE_OTHERWISE),
    ("a_text", jobs.NOTICE, lambda log, w, s: "after the next", Hint.NO_NUMBER),
):
    ANSWERS.wrong_value("cure", title, cured(illness, number), hint, share=FIVE_SIXTHS)


@wrong("cure", Hint.KILLED_SAVED_AGAIN, share=FIVE_SIXTHS)
def from_the_newest_of_both_starts(log, illness, worker, step):
    if illness == jobs.KILLED:
        return step - max([0, *(entry["step"] for entry in of(log, "saved") if entry["sealed"])])
    return true_cure(log, illness, worker, step)


@wrong("cure", Hint.KILLED_UNSEALED, share=FIVE_SIXTHS)
def from_the_newest(log, illness, worker, step):
    if illness == jobs.KILLED:
        return step - of(log, "saved")[-1]["step"]
    return true_cure(log, illness, worker, step)


@wrong("cure", "`cure` gives None: is a `return` missing?", share=1 / 6)
def one_illness_so_far(log, illness, worker, step):
    return step + 1 if illness == jobs.NOTICE else None


@wrong("cure", "job D: wrong: in another log like this one: it raised ValueError", share=FIVE_SIXTHS)
def no_default(log, illness, worker, step):
    if illness == jobs.KILLED:
        return step - max(entry["step"] for entry in of(log, "saved") if entry["sealed"])
    return true_cure(log, illness, worker, step)


@right("cure")
def by_the_last_step(log, illness, worker, step):
    return true_cure(log, illness, worker, step)


def mean_cure(log, illness, worker, step):
    if illness != jobs.STRAGGLER:
        return float(true_cure(log, illness, worker, step))
    late = [entry for entry in of(log, "step") if entry["step"] >= step]
    means = [np.mean([e["computing"] for e in late if e["worker"] == other]) for other in range(size(log))]
    return (1 / np.array(means) / np.sum(1 / np.array(means)))[worker]


ANSWERS.solved("cure", mean_cure)


# Plan


def planned(name, value):
    """The right plan but for one number, computed from the job and the right plan."""
    return lambda *job: true_plan(*job) | {name: value(*job, true_plan(*job))}


def with_interval(workers, days, save, step, factor):
    """What follows from an interval that is wrong by a factor."""
    between = days * DAY / workers
    interval = factor * (2 * save * between) ** 0.5
    lost = save / interval + interval / 2 / between
    return {"between faults": between, "interval": interval, "steps": round(interval / step), "lost": lost}


for title, name, value, hint in (
    ("of_one", "between faults", lambda w, d, s, t, p: d * DAY, Hint.ONE_WORKER),
    ("rarer", "between faults", lambda w, d, s, t, p: d * DAY * w, Hint.FAULTS_RARER),
    ("in_hours", "between faults", lambda w, d, s, t, p: d * 24 / w, Hint.NOT_IN_SECONDS),
    ("one_less", "between faults", lambda w, d, s, t, p: d * DAY / (w - 1), Hint.BETWEEN_OTHERWISE),
    ("no_two", "interval", lambda w, d, s, t, p: (s * p["between faults"]) ** 0.5, Hint.TWO_FORGOTTEN),
    ("two_outside", "interval", lambda w, d, s, t, p: 2 * (s * p["between faults"]) ** 0.5, Hint.TWO_OUTSIDE),
    ("no_root", "interval", lambda w, d, s, t, p: 2 * s * p["between faults"], Hint.NO_ROOT),
    ("interval_of_one", "interval", lambda w, d, s, t, p: (2 * s * d * DAY) ** 0.5, Hint.INTERVAL_OF_ONE),
    ("in_minutes", "interval", lambda w, d, s, t, p: p["interval"] / 60, Hint.NOT_IN_SECONDS),
    ("with_save", "interval", lambda w, d, s, t, p: p["interval"] - s, Hint.INTERVAL_OTHERWISE),
    ("down", "steps", lambda w, d, s, t, p: p["interval"] // t, Hint.ROUNDED_DOWN),
    ("up", "steps", lambda w, d, s, t, p: -(-p["interval"] // t), Hint.ROUNDED_UP),
    ("parts", "steps", lambda w, d, s, t, p: p["interval"] / t, Hint.PARTS_OF_STEPS),
    ("times", "steps", lambda w, d, s, t, p: p["interval"] * t, Hint.STEPS_OTHERWISE),
    ("saves", "lost", lambda w, d, s, t, p: s / p["interval"], Hint.HALF_OF_LOSS),
    (
        "whole",
        "lost",
        lambda w, d, s, t, p: s / p["interval"] + p["interval"] / p["between faults"],
        Hint.WHOLE_INTERVAL,
    ),
    ("rounded", "lost", lambda w, d, s, t, p: p["lost"] + s, Hint.LOST_OTHERWISE),
    ("a_text", "lost", lambda w, d, s, t, p: "5 %", NumberHint.NOT_A_NUMBER),
):
    ANSWERS.wrong_value("plan", title, planned(name, value), hint, share=3 / 4)


@wrong("plan", Hint.SAVED_PER_FAULT, share=3 / 4)
def one_save_per_fault(workers, days, save, step):
    numbers = true_plan(workers, days, save, step)
    between = numbers["between faults"]
    return numbers | {"lost": save / between + numbers["interval"] / 2 / between}


@wrong("plan", Hint.LOST_WHEN_ROUNDED, share=3 / 4)
def lost_with_the_rounded_interval(workers, days, save, step):
    numbers = true_plan(workers, days, save, step)
    rounded = numbers["steps"] * step
    return numbers | {"lost": save / rounded + rounded / 2 / numbers["between faults"]}


@wrong("plan", Hint.SAVE_IN_INTERVAL, share=3 / 4)
def save_in_the_interval(workers, days, save, step):
    numbers = true_plan(workers, days, save, step)
    interval = numbers["interval"]
    return numbers | {"lost": save / (interval + save) + interval / 2 / numbers["between faults"]}


ANSWERS.wrong_value(
    "plan",
    "all_from_hours",
    lambda workers, days, save, step: true_plan(workers, days / 3600, save, step),
    Hint.NOT_IN_SECONDS,
    *[NumberHint.FOLLOWS] * 3,
)
ANSWERS.wrong_value(
    "plan",
    "all_of_half_the_save",
    lambda workers, days, save, step: with_interval(workers, days, save, step, 0.5**0.5),
    Hint.TWO_FORGOTTEN,
    *[NumberHint.FOLLOWS] * 2,
    share=1 / 4,
)
ANSWERS.wrong_value(
    "plan", "percent", planned("lost", lambda w, d, s, t, p: 100 * p["lost"]), Hint.NOT_A_SHARE, share=3 / 4
)


@wrong("plan", NumberHint.NAMES)
def one_number(workers, days, save, step):
    return (2 * save * days * DAY / workers) ** 0.5


@right("plan")
def lost_twice_the_saves(workers, days, save, step):
    between = days * DAY / workers
    lost = (2 * save / between) ** 0.5
    numbers = {"between faults": between, "interval": lost * between, "lost": lost}
    return numbers | {"steps": int(lost * between / step + 0.5)}


ANSWERS.solved("plan", lambda *job: true_plan(*job), lambda *job: dict.fromkeys(true_plan(*job)))


# Elapsed time


def ruled(**changes):
    return lambda *run: disturbed_runs.elapsed(*run, rules=Rules(**changes))


ANSWERS.wrong_value("elapsed", "a_last_save", ruled(saves_at_end=True), *[Hint.SAVED_AT_END] * 4)
ANSWERS.wrong_value(
    "elapsed",
    "work_survives",
    ruled(loses_work=False),
    Hint.NOTHING_LOST,
    Hint.SAVE_SURVIVES,  # if a fault comes during a save, the two mistakes are one
    Hint.NOTHING_LOST,
    share=1 / 4,
)
ANSWERS.wrong_value("elapsed", "all_is_lost", ruled(loses_saved_work=True), *[Hint.ALL_LOST] * 3, share=1 / 4)
ANSWERS.wrong_value("elapsed", "broken_save", ruled(broken_saves_count=True), Hint.SAVE_SURVIVES, share=3 / 4)
ANSWERS.wrong_value("elapsed", "safe_start", ruled(start_can_fail=False), Hint.RESTART_UNDISTURBED, share=3 / 4)


@wrong("elapsed", *[Hint.NO_SAVES] * 4)
def free_saves(work, interval, save, restart, faults):
    return disturbed_runs.elapsed(work, interval, 0, restart, faults)


@wrong("elapsed", *[Hint.NO_RESTART] * 3, share=1 / 4)
def free_start(work, interval, save, restart, faults):
    return disturbed_runs.elapsed(work, interval, save, 0, faults)


@wrong("elapsed", Hint.ONE_FAULT, Hint.ONE_FAULT, Hint.RESTART_UNDISTURBED, share=1 / 4)
def one_fault(work, interval, save, restart, faults):
    return disturbed_runs.elapsed(work, interval, save, restart, faults[:1])


@wrong("elapsed", *[Hint.LATER_THAN_THAT] * 4)
def young(work, interval, save, restart, faults):
    return work * (1 + save / interval) + len(faults) * (interval / 2 + restart) + 0.125


@wrong("elapsed", *[Hint.NO_SECONDS] * 4)
def with_the_work(work, interval, save, restart, faults):
    return work, disturbed_runs.elapsed(work, interval, save, restart, faults)


def undisturbed(work, interval, save, restart, faults):
    return work + save * (math.ceil(work / interval) - 1)


@wrong("elapsed", Hint.AFTER_END, *[Hint.HALF_INTERVALS] * 3)
def half_an_interval_per_fault(work, interval, save, restart, faults):
    return undisturbed(work, interval, save, restart, faults) + len(faults) * (restart + interval / 2)


@wrong("elapsed", *[Hint.FIRST_START] * 2, share=1 / 2)
def a_start_before_all(*run):
    return disturbed_runs.elapsed(*run, rules=Rules(first_start_counts=True))


@wrong("elapsed", *[Hint.FIRST_START] * 4)
def one_start_added(work, interval, save, restart, faults):
    return restart + disturbed_runs.elapsed(work, interval, save, restart, faults)


@wrong("elapsed", Hint.START_LOSES_WORK, share=3 / 4)
def remainders_of_intervals(work, interval, save, restart, faults):
    total, extra = undisturbed(work, interval, save, restart, faults), 0
    for fault in faults:
        if fault > total + extra:
            break
        extra += restart + (fault - extra) % (interval + save)
    return total + extra


ANSWERS.wrong_value("elapsed", "no_fault_at_all", undisturbed, *[Hint.NO_FAULTS] * 3, share=1 / 4)


@wrong("elapsed", Hint.FAULTS_ADDED, Hint.FAULTS_ADDED, Hint.FAULTS_ADDED, share=1 / 4)
def faults_as_distances(work, interval, save, restart, faults):
    return disturbed_runs.elapsed(work, interval, save, restart, np.cumsum(faults).tolist())


@wrong("elapsed", *[Hint.SMALL_STEPS] * 4)
def by_small_steps_of_time(work, interval, save, restart, faults):
    clock, done, computed, saving, starting, faults, step = 0.0, 0.0, 0.0, 0.0, 0.0, list(faults), 0.01
    while True:
        if faults and faults[0] <= clock:
            faults.pop(0)
            starting, computed, saving = restart, done, 0.0
        if starting > 0:
            starting -= step
        elif saving > 0:
            saving -= step
            if saving <= 0:
                done = computed
        else:
            computed += step
            if computed >= work:
                return clock + step
            if computed - done >= interval:
                saving = save
        clock += step


@wrong("elapsed", *[NumberHint.ROUNDED] * 3, share=1 / 4)
def whole_seconds(*run):
    return int(disturbed_runs.elapsed(*run))


@wrong("elapsed", Hint.AFTER_END, Hint.AFTER_END, share=1 / 2)
def every_fault_counts(work, interval, save, restart, faults):
    """Simulates fault by fault, and then finishes; also with faults after the end."""
    now, done = 0.0, 0.0
    for fault in faults:
        if fault < now:
            now = fault + restart
            continue
        while now + interval + save <= fault and work - done > interval:
            now, done = now + interval + save, done + interval
        now = fault + restart
    while work - done > interval:
        now, done = now + interval + save, done + interval
    return now + work - done


@wrong("elapsed", Hint.AFTER_END, Hint.AFTER_END, share=1 / 2)
def a_start_after_the_end(work, interval, save, restart, faults):
    end = disturbed_runs.elapsed(work, interval, save, restart, faults)
    return end + restart * sum(fault > end for fault in faults)


def at_least_one_save(work, interval, save, restart, faults):
    return disturbed_runs.elapsed(work, interval, save, restart, faults) + (save if work <= interval else 0)


@wrong("elapsed", Hint.SAVED_FIRST, share=3 / 4)
def at_least_one_whole_interval(work, interval, save, restart, faults):
    true = disturbed_runs.elapsed(work, interval, save, restart, faults)
    return true if work > interval else interval + save + min(0, work - interval)


def next_run(work, interval, save, restart, faults, again):
    """A simulation; `again` says when a start ends, from the faults and when it would."""
    now, done, faults = 0.0, 0.0, list(faults)
    while True:
        left = work - done
        end = now + (left if left <= interval else interval + save)
        faults = [fault for fault in faults if fault >= now]
        if faults and faults[0] < end:
            now = again(faults, faults[0] + restart, restart)
        elif left <= interval:
            return end
        else:
            now, done = end, done + interval


def last_fault_within_the_start(*run):
    return next_run(*run, lambda faults, end, restart: [fault for fault in faults if fault < end][-1] + restart)


@wrong("elapsed", Hint.START_AGAIN_DISTURBED, share=3 / 4)
def if_instead_of_while(*run):
    return next_run(
        *run, lambda faults, end, restart: faults[1] + restart if len(faults) > 1 > faults[1] - end else end
    )


@wrong("elapsed", *[Hint.INTERVAL_WITH_SAVE] * 4)
def interval_with_the_save(work, interval, save, restart, faults):
    """The end of the work is seen one interval before it, the save included."""
    now, done, faults = 0.0, 0.0, list(faults)
    while True:
        is_last = work - done <= interval
        end = now + (work - done if is_last else interval)
        if faults and faults[0] < end:
            now = faults.pop(0) + restart
            while faults and faults[0] < now:
                now = faults.pop(0) + restart
        elif is_last:
            return end
        else:
            now, done = end, done + interval - save


def shorter_intervals(work, interval, save, restart, faults):
    return disturbed_runs.elapsed(work, interval - save, save, restart, faults)


@wrong("elapsed", *[Hint.FAULTS_CHANGED] * 3, share=1 / 4)
def takes_faults_out(work, interval, save, restart, faults):
    seconds = disturbed_runs.elapsed(work, interval, save, restart, faults)
    while faults and faults[0] < seconds:
        faults.pop(0)
    return seconds


@wrong("elapsed", *[Hint.FAULTS_CHANGED] * 4)
def clears_its_list(work, interval, save, restart, faults):
    seconds = disturbed_runs.elapsed(work, interval, save, restart, faults)
    faults.clear()
    return seconds


@right("elapsed")
def second_by_half_second(work, interval, save, restart, faults):
    """A clock of half a second; all times are multiples of it."""
    clock, done, unsaved, saving, starting = 0, 0.0, 0.0, 0.0, 0.0
    faults = {round(2 * fault) for fault in faults}
    while done + unsaved < work:
        if clock in faults:
            unsaved, saving, starting = 0.0, 0.0, restart
        if starting > 0:
            starting -= 0.5
        elif unsaved == interval:
            saving += 0.5
            if saving == save:
                done, unsaved, saving = done + unsaved, 0.0, 0.0
        else:
            unsaved += 0.5
        clock += 1
    return clock / 2


ANSWERS.solved("elapsed", lambda *run: disturbed_runs.elapsed(*run))


# Comparison


def seconds(intervals, work, save, restart, runs):
    return np.array([[disturbed_runs.elapsed(work, one, save, restart, run) for run in runs] for one in intervals])


def compared(means=None, best=None):
    """The right comparison but for the means (of the seconds, the work) or the best (of intervals, means)."""

    def compare(intervals, work, save, restart, runs):
        all_seconds = seconds(intervals, work, save, restart, runs)
        mean = all_seconds.mean(axis=1)
        chosen = intervals[int(mean.argmin())]
        return {
            "means": means(all_seconds, work) if means else mean.tolist(),
            "best": best(intervals, mean) if best else chosen,
        }

    return compare


for title, means, hint in (
    ("sums", lambda every, work: every.sum(axis=1), Hint.SUMS),
    ("first_run", lambda every, work: every[:, 0], Hint.FIRST_RUN),
    ("medians", lambda every, work: np.median(every, axis=1), Hint.MEDIANS),
    ("lost_seconds", lambda every, work: every.mean(axis=1) - work, Hint.WORK_SUBTRACTED),
    ("sorted_means", lambda every, work: np.sort(every.mean(axis=1)), Hint.MEANS_ANOTHER_ORDER),
    ("one_second_more", lambda every, work: every.mean(axis=1) + 1, Hint.MEANS_OTHERWISE),
    ("one_mean", lambda every, work: every.mean(), Hint.NO_MEANS),
):
    ANSWERS.wrong_value("compare", title, compared(means=means), hint, share=1 / 2)
for title, best, hint in (
    ("the_place", lambda intervals, means: int(means.argmin()), Hint.BEST_IS_INDEX),
    ("the_worst", lambda intervals, means: intervals[int(means.argmax())], Hint.BEST_IS_WORST),
    ("the_mean", lambda intervals, means: float(means.min()), Hint.BEST_IS_MEAN),
    ("the_mean_as_text", lambda intervals, means: f"{intervals[int(means.argmin())]:g} s", Hint.BEST_NO_NUMBER),
    ("the_best_in_a_list", lambda intervals, means: [intervals[int(means.argmin())]], Hint.BEST_NO_NUMBER),
    ("the_middle", lambda intervals, means: sum(intervals) / len(intervals), Hint.BEST_OTHERWISE),
):
    ANSWERS.wrong_value("compare", title, compared(best=best), hint, share=1 / 2)


def compared_in(every_of):
    """The means and the best of the seconds that a function gives for the arguments of `compare`."""

    def compare(intervals, work, save, restart, runs):
        means = every_of(intervals, work, save, restart, runs).mean(axis=1)
        return {"means": means, "best": intervals[int(means.argmin())]}

    return compare


def with_emptied_lists(intervals, work, save, restart, runs):
    rows, coming = [], [list(run) for run in runs]
    for interval in intervals:
        rows.append([disturbed_runs.elapsed(work, interval, save, restart, run) for run in coming])
        coming = [[fault for fault in run if fault >= end] for run, end in zip(coming, rows[-1], strict=True)]
    return np.array(rows)


@wrong("compare", Hint.LIST_CHANGED, Hint.BEST_OTHERWISE)
def empties_its_lists(*arguments):
    return compared_in(with_emptied_lists)(*arguments) | {"best": -1.0}


@wrong("compare", Hint.SAVE_AND_RESTART, share=1 / 2)
def save_and_restart_exchanged(intervals, work, save, restart, runs):
    true = compared()(intervals, work, save, restart, runs)
    return true | {"means": compared()(intervals, work, restart, save, runs)["means"]}


@wrong("compare", Hint.BEST_IN_MOST_RUNS, share=1 / 2)
def best_in_most_runs(intervals, work, save, restart, runs):
    every = np.array(seconds(intervals, work, save, restart, runs))
    true = compared()(intervals, work, save, restart, runs)
    if len(intervals) > 2:
        return true
    return true | {"best": intervals[int(np.bincount(every.argmin(axis=0)).argmax())]}


def nearest_to_young(intervals, work, save, restart, runs):
    between = np.mean(np.concatenate([np.diff([0, *run]) for run in runs]))
    true = compared()(intervals, work, save, restart, runs)
    return true | {"best": min(intervals, key=lambda interval: abs(interval - (2 * save * between) ** 0.5))}


ANSWERS.wrong_value("compare", "nearest_to_young", nearest_to_young, Hint.BEST_BY_YOUNG, share=1 / 2)


def work_and_interval_exchanged(intervals, work, save, restart, runs):
    return np.array([[disturbed_runs.elapsed(one, work, save, restart, run) for run in runs] for one in intervals])


def one_run_of_all_faults(intervals, work, save, restart, runs):
    return seconds(intervals, work, save, restart, [sorted(fault for run in runs for fault in run)])


for every, hint in ((work_and_interval_exchanged, Hint.WORK_AND_INTERVAL), (one_run_of_all_faults, Hint.RUNS_JOINED)):
    ANSWERS.wrong_value("compare", every.__name__, compared_in(every), hint, NumberHint.FOLLOWS)


def without_elapsed(intervals, work, save, restart, runs):
    raise NameError("name 'elapsed' is not defined", name="elapsed")


def simulated_by(elapsed):
    """A right `compare` with this `elapsed`."""

    def compare(intervals, work, save, restart, runs):
        means = [sum(elapsed(work, one, save, restart, run) for run in runs) / len(runs) for one in intervals]
        return {"means": means, "best": intervals[means.index(min(means))]}

    return {"compare": compare, "elapsed": elapsed}


for title, elapsed, hints, share in (
    ("simulated_with_every_fault_counts", every_fault_counts, (Hint.ELAPSED_WRONG, NumberHint.FOLLOWS), 0.0),
    ("simulated_with_safe_start", ruled(start_can_fail=False), (Hint.ELAPSED_WRONG,), 1 / 2),
    ("simulated_with_whole_seconds", whole_seconds, (Hint.ELAPSED_WRONG,), 1 / 2),
    ("simulated_with_all_is_lost", ruled(loses_saved_work=True), (Hint.ELAPSED_WRONG, NumberHint.FOLLOWS), 0.0),
    ("simulated_with_lists_of_faults_changed", takes_faults_out, (Hint.LIST_CHANGED, NumberHint.FOLLOWS), 0.0),
):
    ANSWERS.wrong_answers["compare"].append(WrongAnswer(title, simulated_by(elapsed), hints, (), share))


one_run_less = {
    "compare": compared(means=lambda every, work: every[:, 1:].mean(axis=1)),
    "elapsed": lambda *run: disturbed_runs.elapsed(*run),
}
ANSWERS.wrong_answers["compare"].append(WrongAnswer("one_run_less", one_run_less, (Hint.MEANS_COMBINED,), (), 1 / 2))


for title, namespace, hint in (
    ("simulated_with_an_empty_elapsed", simulated_by(lambda *run: None), Hint.ELAPSED_EMPTY),
    ("simulated_without_elapsed", {"compare": without_elapsed}, Hint.ELAPSED_MISSING),
):
    ANSWERS.wrong_answers["compare"].append(WrongAnswer(title, namespace, (hint,), (), 0.0))


@wrong("compare", NumberHint.NAMES)
def only_the_best(intervals, work, save, restart, runs):
    return intervals[0]


@right("compare")
def by_a_loop(intervals, work, save, restart, runs):
    means = {interval: sum(seconds([interval], work, save, restart, runs)[0]) / len(runs) for interval in intervals}
    return {"best": min(means, key=means.get), "means": tuple(means.values())}


@right("compare")
def by_a_loop_without_a_list(intervals, work, save, restart, runs):
    means = {interval: sum(seconds([interval], work, save, restart, runs)[0]) / len(runs) for interval in intervals}
    return {"best": min(means, key=means.get), "means": means.values()}


ANSWERS.solved("compare", compared(), lambda *arguments: {"means": None, "best": None})

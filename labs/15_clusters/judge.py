"""The judge of lab 15: four job scripts, a job that is queued again, a scaling table, and what to rent.

The scripts have their judges in a file of their own; the rest is judged by programs.
"""

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from lab_15 import given, scripts

from distlab.labs import Answer, AnswerError, Exercise, Lab, NotDone, Raised
from distlab.labs.by_programs import Advice, ByPrograms, Follows, Mistake, changed, drawn_until, formulas, is_same
from distlab.labs.number_judge import FOLLOWS, ROUNDED, counted, is_near, is_rounded, number
from distlab.labs.verdict import first
from distlab.simulate import DeadlockError, Network, ProgramError, RankFailedError, SimulationError, World

Generator = np.random.Generator

# A job that is queued again ------------------------------------------------------------------------------------------

ONE, SEVERAL, END, NEXT = "a notice for one rank", "notices for several", "the end", "the next attempt"
TICK = 2.0**-12  # sums of these are exact, so that a computation's seconds say which step it was


class Planned(NamedTuple):
    """An attempt after the step `saved`; notices: for each rank in which step it gets one, 0 before all, or None."""

    part: str
    steps: int
    saved: int
    notices: list[int | None]

    @property
    def last(self) -> int:
        """The last step that is done in this attempt."""
        return min([max(step, self.saved + 1) for step in self.notices if step is not None] + [self.steps])

    def jobs(self) -> list[given.QueuedJob]:
        """What each rank gets; every step and every save takes a time of its own, on every rank."""
        times = [[TICK * (16 * rank + step) for step in range(self.steps + 4)] for rank in range(len(self.notices))]
        middle = {step: 0.5 + 1.01 * (step - self.saved - 1) for step in range(1, self.steps + 1)}
        seconds = {None: 1e9, 0: 0.0} | middle
        return [
            given.QueuedJob(
                steps=self.steps,
                saved=self.saved,
                notice=seconds[notice],
                step_seconds=[1 + time for time in own],
                save_seconds=[8 + time for time in own],
                done=[],
            )
            for notice, own in zip(self.notices, times, strict=True)
        ]


def planned_attempts(generator: Generator) -> list[Planned]:
    """Every part has at least two; ranks, steps and notices are drawn."""
    ranges = ((8, 13), (3, 5), (6, 8), (3, 5), (2, 4))
    steps, middle, later, size, saved = (int(generator.integers(*low_and_high)) for low_and_high in ranges)
    nobody: list[int | None] = [None] * (size - 1)
    of_several: list[list[int | None]] = [[middle, later, *nobody[1:]], [middle, middle, later, None], [1, 1, 1]]

    def shuffled(notices: list[int | None]) -> list[int | None]:
        return [notices[place] for place in generator.permutation(len(notices))]

    return [
        Planned(ONE, steps, 0, [*nobody, middle]),
        Planned(ONE, steps, 0, [later, *nobody]),
        Planned(ONE, steps, 0, [None, steps - 1, *nobody[1:]]),
        Planned(ONE, steps, 0, shuffled([0, *nobody])),
        *(Planned(SEVERAL, steps, 0, shuffled(notices)) for notices in of_several),
        Planned(END, steps, 0, [None, None]),
        Planned(END, steps, 0, [*nobody, steps]),
        Planned(NEXT, steps, saved, [None, *nobody]),
        Planned(NEXT, steps, saved, shuffled([saved + 2, *nobody])),
        Planned(NEXT, steps, steps, [None, None]),
        Planned(NEXT, steps, steps, [None, 0]),
    ]


def observed(answer: Answer, planned: Planned) -> dict[str, Any]:
    """Rank 0's steps, all saves and pauses, the exit statuses, who ends before a save; or what stops the attempt."""
    jobs = planned.jobs()
    try:
        run = answer.run("attempt", World(len(jobs), Network(latency=TICK, seconds_per_byte=0.0)), jobs)
    except (RankFailedError, ProgramError) as error:
        beyond, again = (re.search(text.format(r"(\d+)"), str(error)) for text in (given.NO_STEP, given.STEP_AGAIN))
        if beyond or again:
            return {"beyond": int(beyond[1])} if beyond else {"again": int(again[1])}
        raise
    except Raised as error:
        if error.kind == "SystemExit":
            return {"exits": error.message}
        raise
    except SimulationError as error:
        waits = error.waiting.items() if isinstance(error, DeadlockError) else []
        return {"stuck": [(rank, wait.source) for rank, wait in waits if wait.source_has_finished][:1]}
    marks = [
        {job[kind][n]: (kind[:4], n) for kind in ("step_seconds", "save_seconds") for n in range(len(job[kind]))}
        for job in jobs
    ]
    events = [(event.rank, event.end - event.start, event.end) for event in run.events if event.kind == "compute"]
    done = [(rank, *marks[rank].get(length, ("idle", length)), end) for rank, length, end in events]
    saves = [(rank, n, end) for rank, kind, n, end in done if kind == "save"]
    steps = [n for rank, kind, n, _ in done if kind == "step" and rank == 0]
    return {
        "steps": steps,
        "first": planned.saved + 1,
        "last": steps[-1] if steps else planned.saved,
        "saves": [(rank, n) for rank, n, _ in saves],
        "idle": [(rank, n) for rank, kind, n, _ in done if kind == "idle"][:1],
        "statuses": [status if type(status) is int else repr(status)[:40] for status in run.results],
        "early": [rank for rank, end in enumerate(run.finished) if saves and end < saves[0][2]],
        "adds first": [event.kind for event in run.events if event.rank == 0][:1] not in ([], ["compute"]),
    }


def said_of_attempt(planned: Planned, seen: Any) -> str:
    """For every attempt that is none of the mistakes."""
    if "stuck" in seen or "exits" in seen:
        return STUCK
    if "again" in seen:
        return f"step {seen['again']} is done again and again. What changes the number of the step?"
    last, done, statuses = seen.get("beyond") or seen["last"], seen.get("steps"), seen.get("statuses", [])
    steps, ends = [*range(planned.saved + 1, planned.last + 1)], f"it ends after step {last}"
    rank = next((rank for rank, status in enumerate(statuses) if isinstance(status, str)), None)
    no_status = f"the attempt ends with {rank is not None and statuses[rank]} on rank {rank}."
    saves = ", ".join(f"step {step} by rank {rank}" for rank, step in seen.get("saves", ())) or "nothing"
    return str(
        first(
            (last > planned.steps, f"step {last} is done, and the job has {planned.steps}. When is no step left?"),
            (rank is not None, f"{no_status} A rank gives its exit status, a whole number."),
            (seen.get("adds first"), ADDS_FIRST.format(first=planned.saved + 1)),
            (last < planned.last, f"{ends}, and nobody has had a notice before step {planned.last}."),
            (done != steps, f"the steps are {done}, and should be {steps}."),
            (True, f"saved is {saves}, and the ranks end with {statuses}. Which of these does a rule forbid?"),
        )
    )


ATTEMPT = """\
async def attempt(rank, job):
    for step in range(job["saved"] + 1, job["steps"] + 1):
        await train_step(rank, job, step)
        notices = await add_up(rank, has_notice(rank, job))
        if notices > 0 and step < job["steps"]:
            if rank.index == 0:
                await save(rank, job, step)
            await add_up(rank, 0)
            return 85
    return 0
"""
BEGIN, STEP, ASK = "    for", "        await train_step(rank, job, step)\n", "await add_up(rank, has_notice(rank, job))"
SAVE, MEET, GIVE = "await save(rank, job, step)", "            await add_up(rank, 0)\n", "            return 85\n"
ADDS_FIRST = "before step {first} the ranks add something up. When do they ask how many have a notice?"
STUCK = "some ranks go on, and others save, wait or end: their sums no longer match. By which number do all decide?"
ATTEMPT_MISTAKES = {
    STUCK: [[(ASK, "has_notice(rank, job)")]],
    "rank {stuck[0][0]} waits in `add_up` for rank {stuck[0][1]}, which has ended. Which ranks must call it?": [
        [(MEET, "            if rank.index: await add_up(rank, 0)\n")],
        [(MEET, "            if not rank.index: await add_up(rank, 0)\n")],
    ],
    "rank {saves[1][0]} writes a checkpoint, too. Who writes it?": [[("rank.index == 0", "True")]],
    "step {saves[0][1]} is written into the checkpoint, and the last step done is {case.last}.": [
        [(SAVE, "await save(rank, job, step - 1)")],
        [(SAVE, "await save(rank, job, step + 1)")],
    ],
    "it is saved 2 times in one attempt. When is one save enough?": [[(SAVE, f"{SAVE}; {SAVE}")]],
    "nothing is saved before the attempt ends.": [[(SAVE, "pass")]],
    "rank {early[0]} ends while rank 0 is still writing. What makes a rank wait for the others?": [[(MEET, "")]],
    "rank {idle[0][0]} only lets {idle[0][1]:g} s pass, and a save may take longer. "
    "What makes a rank wait until rank 0 has saved?": [
        [(MEET, "            if rank.index: await rank.compute(1000.0)\n")]
    ],
    "after the save rank 0 ends with {statuses[0]}. Which status asks for the queue?": [
        [(GIVE, "            return 0\n")],
        [(GIVE, "            return 1\n")],
    ],
    "after the save the ranks go on. What do they return?": [
        [(GIVE, "")],
        [
            (BEGIN, "    saved = 0\n    for"),
            ("if notices", "if not saved and notices"),
            (GIVE, "            saved = 1\n"),
        ],
    ],
    "after the save one more step is trained, so that all meet. Which call only waits?": [
        [(MEET, "            await train_step(rank, job, step + 1)\n")]
    ],
    "`sys.exit` ends the whole program. What does a rank give back instead?": [[("return 85", "sys.exit(85)")]],
    "all steps are done, and rank 0 ends with 85, so the job is queued again. Which status ends it?": [
        [("return 0", "return 85")]
    ],
    "all steps are done, and a checkpoint is written. What is left to do?": [[(' and step < job["steps"]', "")]],
    "step {steps[0]} is done again: the attempt after step {case.saved} begins with step {steps[0]}.": [
        [('job["saved"] + 1', 'job["saved"]')],
        [('job["saved"] + 1', "1")],
    ],
    "step {first} is never done: the attempt after step {case.saved} begins with step {steps[0]}.": [
        [('job["saved"] + 1', 'job["saved"] + 2')]
    ],
    "a notice comes in step {case.last}, and the last step is {last}. After which step does everybody know of it?": [
        [("notices > 0", "False")],
        [(BEGIN, "    notices = 0\n    for"), (STEP, f"{STEP}        due = notices\n"), ("notices >", "due >")],
    ],
    "it is saved after step {saves[0][1]}, and no rank has a notice then. What is the reason to save?": [
        [(STEP, f'{STEP}        if rank.index == 0 and step < job["steps"]: {SAVE}\n')]
    ],
    ADDS_FIRST: [
        [(STEP, ""), ("job, step)", "job, step - 1)"), (GIVE, GIVE + STEP)],
        [(STEP, f"        await add_up(rank, 0)\n{STEP}")],
    ],
    "no step is left at the beginning, and the ranks still call something. What do they return at once?": [
        [(BEGIN, '    if job["saved"] == job["steps"]: await add_up(rank, 0)\n    for')]
    ],
}


def attempt_with(*changes: tuple[str, str]) -> Callable[..., Any]:
    """The right program with other lines."""
    return changed(ATTEMPT, *changes, sys=sys, **vars(given))


ATTEMPT_JUDGE = ByPrograms(
    attempt_with(),
    planned_attempts,
    [
        Mistake(lambda planned, seen, hint=hint: hint.format(case=planned, **seen), attempt_with(*changes))
        for hint, programs in ATTEMPT_MISTAKES.items()
        for changes in programs
    ],
    otherwise=said_of_attempt,
    said=lambda planned: f"with notices in the steps {planned.notices} of the ranks",
    parts=(ONE, SEVERAL, END, NEXT),
    split=lambda planned, seen: {planned.part: seen},
    observe=observed,
)

# A scaling table -----------------------------------------------------------------------------------------------------

NAMES = TRUSTED, SPEEDUP, EFFICIENCY, PAYS = ("trusted", "speedup", "efficiency", "pays")
FROM_OTHER_RUNS, NOT_EXACT = Advice(FOLLOWS.format(TRUSTED)), Advice(ROUNDED)
Run = dict[str, Any]
Study = tuple[list[Run]]


def study_of(*runs: tuple[int, str, float, float, int, float]) -> Study:
    """A study from the values of its runs."""
    return ([dict(zip(("nodes", "state", "start", "end", "batch", "step"), run, strict=True)) for run in runs],)


EXAMPLE = study_of(
    (1, "COMPLETED", 0, 300, 64, 0.1),
    (4, "COMPLETED", 300, 500, 32, 0.08),
    (2, "COMPLETED", 600, 900, 64, 0.11),
    (8, "FAILED", 910, 950, 64, 0.12),
    (8, "COMPLETED", 1000, 1300, 64, 0.3),
    (2, "COMPLETED", 1200, 1400, 64, 0.2),
)


def together(runs: list[Run], place: int) -> list[int]:
    """The other runs that ran at the same time."""
    start, end = runs[place]["start"], runs[place]["end"]
    return [peer for peer, run in enumerate(runs) if peer != place and run["start"] < end and run["end"] > start]


def read_table(runs: list[Run]) -> dict[str, Any]:
    """All four by name."""
    trusted = [n for n, run in enumerate(runs) if run["state"] == "COMPLETED" and not together(runs, n)]
    rates = {runs[n]["nodes"]: runs[n]["batch"] / runs[n]["step"] for n in trusted}
    speedup = {nodes: nodes * rates[nodes] / rates[1] for nodes in sorted(rates)}
    efficiency = [gain / nodes for nodes, gain in speedup.items()]
    return {TRUSTED: trusted, SPEEDUP: [*speedup.values()], EFFICIENCY: efficiency, PAYS: pays_up_to(speedup)}


def pays_up_to(gains: Mapping[int, float]) -> int:
    """The nodes up to which each size brings at least half of what its additional nodes would bring ideally."""
    return next((a for a, b in pairwise(gains) if gains[b] - gains[a] < (b - a) / 2), max(gains))


def drawn_study(generator: Generator, gains: Mapping[int, float], unit: float, states: Sequence[str] = ()) -> Study:
    """Runs one after the other that reach these speed-ups, in any order, some of them touching; batches differ.

    With two states there are others that are not to be trusted: failed ones, and pairs that disturbed one another.
    """
    sizes, runs, now = [*gains], [], 0
    factors = generator.choice([1, 2, 3, 4, 6, 8], len(sizes), replace=False)
    for place, factor in zip(generator.permutation(len(sizes)), map(int, factors), strict=True):
        nodes, seconds = sizes[place], int(generator.integers(200, 400))
        runs.append((nodes, "COMPLETED", now, now + seconds, 64 * factor, unit * factor * nodes / gains[nodes]))
        now += seconds + int(generator.integers(0, 2)) * 30
    if states:
        batch, step, (state, failed) = runs[0][4], min(run[5] for run in runs) * 0.9, states
        one, other = (int(size) for size in generator.choice(sizes, 2, replace=False))
        others = [(one, "COMPLETED", 50, 300), (other, "COMPLETED", 250, 500), (1, "COMPLETED", 600, 1000)]
        others += [(2, failed, 700, 800), (4, state, 1100, 1200), (2, "COMPLETED", 1350, 1400)]
        others += [(4, "COMPLETED", 1300, 1500), (one, "COMPLETED", 1600, 1800), (one, state, 1700, 1900)]
        runs += [(nodes, how, now + start, now + end, batch, step) for nodes, how, start, end in others]
        runs = [runs[place] for place in generator.permutation(len(runs))]
    return study_of(*runs)


def studies(generator: Generator) -> list[Study]:
    """A middle size, the last or the first one pays; nodes bring exactly half; the ratio of speed-ups misleads."""

    def near(gain: float) -> float:
        return gain * float(generator.uniform(0.97, 1.03))

    unit = float(generator.integers(20, 60)) / 1000
    middle = {1: 1.0, 2: near(1.9), 4: near(3.5), 8: near(4.8), 16: near(10.5)}
    return [
        EXAMPLE,
        drawn_study(generator, middle, unit, ("FAILED", "TIMEOUT")),
        drawn_study(generator, {1: 1.0, 2: 1.6, 4: 2.7, 8: near(5.0)}, unit, ("CANCELLED", "FAILED")),
        drawn_study(generator, {1: 1.0, 3: 2.5, 5: near(3.2)}, unit, ("NODE_FAIL", "TIMEOUT")),
        drawn_study(generator, {1: 1.0, 2: near(1.3), 4: near(1.9)}, unit),
        drawn_study(generator, {1: 1.0, 2: 2.0, 6: 4.0, 10: 5.0}, 1.0),
        drawn_study(generator, {1: 1.0, 2: 1.8, 4: 2.75}, unit),
    ]


def known_of_study(runs: list[Run]) -> dict[str, Any]:
    """What formulas may use."""
    table = read_table(runs)
    steps = {runs[n]["nodes"]: runs[n]["step"] for n in table[TRUSTED]}
    sizes = sorted(steps)
    return {
        "sizes": sizes,
        "pairs": [*pairwise(sizes)],
        "ratios": [steps[1] / steps[nodes] for nodes in sizes],
        "gains": dict(zip(sizes, table[SPEEDUP], strict=True)),
        "in_list": lambda numbers: [numbers[sizes.index(runs[n]["nodes"])] for n in table[TRUSTED]],
        "together": together,
    }


def said_of_trusted(study: Study, value: Any) -> str:
    """For other runs."""
    runs, expected = study[0], read_table(study[0])[TRUSTED]
    if not isinstance(value, (list, np.ndarray)) or any(number(item) is None for item in value):
        return "this is a list of numbers."
    place = next((int(n) for n in value if n in range(len(runs)) and n not in expected), None)
    left = [n for n in expected if n not in value]
    if place is not None and runs[place]["state"] != "COMPLETED":
        return f"run {place} has the state {runs[place]['state']}."
    if place is not None:
        return f"run {place} was not alone: run {together(runs, place)[0]} ran at the same time."
    alone = "it is complete, and nothing else ran between its start and its end."
    return f"run {left[0]} is left out: {alone}" if left else ORDER


def said_of_numbers(name: str, what: str) -> Callable[[Study, Any], str]:
    """For other speed-ups or efficiencies."""

    def said(study: Study, value: Any) -> str:
        sizes, expected = known_of_study(study[0])["sizes"], read_table(study[0])[name]
        if not isinstance(value, (list, np.ndarray)) or any(number(item) is None for item in value):
            return "this is a list of numbers."
        if len(value) != len(sizes):
            return f"{len(value)} numbers for {len(sizes)} trusted runs: one for each, in order of nodes."
        place = next(n for n, pair in enumerate(zip(value, expected, strict=True)) if not is_near(*pair))
        return (
            f"for {counted(sizes[place], 'node')} the {name.replace('speedup', 'speed-up')} is {value[place]:.4g}{what}"
        )

    return said


def by_trust(study: Study, table: Any) -> dict[str, Any]:
    """The table by names; what is wrong where other runs are trusted says nothing of itself, nor what is rounded."""
    expected, own = read_table(study[0]), {name: table[name] for name in NAMES}
    for name in (SPEEDUP, EFFICIENCY):
        numbers = [number(item) for item in own[name]] if isinstance(own[name], (list, tuple, np.ndarray)) else []
        pairs = zip(numbers, expected[name], strict=False)
        if len(numbers) == len(expected[name]) and all(is_rounded(*pair) for pair in pairs):
            own[name] = own[name] if is_same(own[name], expected[name]) else NOT_EXACT
    if own[TRUSTED] is None or is_same(own[TRUSTED], expected[TRUSTED]):
        return own
    return {n: own[n] if n == TRUSTED or is_same(own[n], expected[n]) else FROM_OTHER_RUNS for n in NAMES}


def table_of(answer: Answer, study: Study) -> Any:
    """What the answer gives; a sentence if it fails only because some runs touch one another."""
    try:
        table = answer.call("read_table", study[0])
        if isinstance(table, dict) and all(value is None for value in table.values()):
            raise NotDone("`read_table` gives None")
        return table
    except Raised as error:
        try:
            answer.call("read_table", [run | {"end": run["end"] - 1} for run in study[0]])
        except AnswerError:
            raise error from None
        return f"{error}. {NO_BASE}"


def form_of_table(study: Study, table: Any) -> str | None:
    """What is wrong with the form."""
    names = f"`read_table` gives a dictionary with the names {', '.join(NAMES)}."
    return first(
        (isinstance(table, str) and NO_BASE in table, str(table)),
        (not isinstance(table, dict) or not set(NAMES) <= set(table), names),
    )


ORDER = "these are numbers of runs in the list, from 0, in increasing order."
UPSIDE_DOWN = "this is upside down: more images per second make a larger number."
BATCH_LEFT_OUT = "the batches of the runs differ. How many images does a node work on in a step of each run?"
TIMES_RATIO = "this compares the times of a step only. How many images does each step work on?"
IN_LIST = "these are the right numbers in another order. Which run has the fewest nodes?"
NO_BASE = (
    "Every study has a trusted run on one node. A run that begins in the second in which another ends was alone: is "
    "such a run in your list?"
)
SIZE_BEFORE = "{} is not the last size up to which every enlargement pays. Compare each size with the one before."
COMPLETED = "[n for n, run in enumerate(runs) if run['state'] == 'COMPLETED'{}]"
TOUCHED = "any(peer['start'] <= run['end'] and peer['end'] >= run['start'] for peer in runs if peer is not run)"
TABLE_FORMULAS: dict[str, dict[str, Any]] = {
    TRUSTED: {
        COMPLETED.format(""): said_of_trusted,
        "[n for n in range(len(runs)) if not together(runs, n)]": said_of_trusted,
        COMPLETED.format(f" and not {TOUCHED}"): said_of_trusted,
        COMPLETED.format(" and all(runs[n]['state'] != 'COMPLETED' for n in together(runs, n))"): said_of_trusted,
        "[n + 1 for n in trusted]": "these are counted from 1. Which number has the first run of the list?",
        "sorted(trusted, key=lambda n: runs[n]['nodes'])": ORDER,
    },
    SPEEDUP: {
        "ratios": TIMES_RATIO,
        "[n * ratio for n, ratio in zip(sizes, ratios)]": BATCH_LEFT_OUT,
        "[1 / gain for gain in speedup]": UPSIDE_DOWN,
        "in_list(speedup)": IN_LIST,
        "efficiency": "this is the efficiency. How many nodes share the work?",
    },
    EFFICIENCY: {
        "speedup": "this is the speed-up. What part of the ideal one is it?",
        "ratios": BATCH_LEFT_OUT,
        "[ratio / n for n, ratio in zip(sizes, ratios)]": TIMES_RATIO,
        "[1 / item for item in efficiency]": UPSIDE_DOWN,
        "[100 * item for item in efficiency]": "this is in per cent; asked for is a part of 1.",
        "in_list(efficiency)": IN_LIST,
    },
    PAYS: {
        "next((a for a, b in pairs if gains[b] - gains[a] <= (b - a) / 2), max(gains))": (
            "nodes that bring exactly half pay, too. How do you compare?"
        ),
        "max(n for n in gains if gains[n] / n >= 0.5)": (
            "this looks at the efficiency of all nodes. What do those bring that were added last?"
        ),
        "max((b for a, b in pairs if gains[b] - gains[a] >= (b - a) / 2), default=1)": (
            "this is the last size that pays, but a smaller one did not. Where would you stop?"
        ),
        "next((n for n in gains if n > pays), pays)": (
            "this is the first size that does not pay. Which was the last that did?"
        ),
        "max(gains, key=gains.get)": "this is the fastest run. Are its last nodes worth it?",
        "next((a for a, b in pairs if gains[b] < 1.5 * gains[a]), max(gains))": (
            "this compares the ratio of two speed-ups. By how much do they differ, and by how many nodes?"
        ),
    },
}
TABLE_JUDGE = ByPrograms(
    read_table,
    studies,
    formulas(read_table, TABLE_FORMULAS, known_of_study),
    otherwise={
        TRUSTED: said_of_trusted,
        SPEEDUP: said_of_numbers(SPEEDUP, ". How many images per second are that, and how many on one?"),
        EFFICIENCY: said_of_numbers(EFFICIENCY, ": the speed-up over the number of nodes."),
        PAYS: lambda study, value: SIZE_BEFORE.format(repr(value)[:40]),
    },
    said=lambda study: f"in a study of {len(study[0])} runs",
    parts=NAMES,
    split=by_trust,
    form=form_of_table,
    follows=[
        Follows(
            PAYS,
            SPEEDUP,
            lambda study, own: pays_up_to(dict(zip(known_of_study(study[0])["sizes"], own[SPEEDUP], strict=True))),
        ),
    ],
    observe=table_of,
)

# What to rent --------------------------------------------------------------------------------------------------------

CHOICE, DONE, COST, NOTHING = "the choice", "done", "cost", "nothing in time"
RENT = """\
def rent(offers, images, deadline):
    best = None
    for offer in offers:
        sizes, limit, wait = offer["efficiency"], offer["limit"], offer["wait"]
        for nodes in sizes:
            hours = images / (nodes * offer["images_per_second"] * sizes[nodes]) / 3600
            jobs = math.ceil(hours / limit)
            done = hours + jobs * wait
            cost = nodes * hours * offer["price"]
            if done <= deadline and (best is None or cost < best["cost"]):
                best = {"name": offer["name"], "nodes": nodes, "done": done, "cost": cost}
    return best
"""
rent = changed(RENT)


class Offered(NamedTuple):
    """What `rent` is called with."""

    offers: list[dict[str, Any]]
    images: float
    deadline: float


def offer_of(*values: Any) -> dict[str, Any]:
    """A kind of node; the efficiency by the numbers of nodes."""
    return dict(zip(("name", "price", "images_per_second", "efficiency", "wait", "limit"), values, strict=True))


SMALL = offer_of("small", 2.0, 500.0, {1: 1.0, 2: 0.95, 4: 0.9}, 1.0, 24.0)
OFFERED = Offered([SMALL, offer_of("large", 9.0, 2000.0, {1: 1.0, 2: 0.8, 4: 0.6}, 12.0, 48.0)], 108e6, 40.0)


def choices(case: Offered) -> list[dict[str, Any]]:
    """Every offer with every number of nodes, whenever it ends."""
    sizes = [(offer, nodes) for offer in case.offers for nodes in offer["efficiency"]]
    single = [offer | {"efficiency": {nodes: offer["efficiency"][nodes]}} for offer, nodes in sizes]
    return [rent([offer], case.images, math.inf) for offer in single]


def drawn_offers(generator: Generator) -> Offered:
    """Three offers: cheap and slow, dear and fast, in between, in any order; about half of them end in time."""
    offers = []
    for name, price, speed in (("birch", 2, 400), ("maple", 5, 900), ("cedar", 11, 2200)):
        loss = float(generator.uniform(0.04, 0.2))
        efficiency = {nodes: round(1 / (1 + loss * math.log2(nodes)), 3) for nodes in (1, 2, 4, 8)[name == "maple" :]}
        rate, cents = float(generator.integers(speed * 9 // 10, speed * 11 // 10)), int(generator.integers(85, 115))
        wait, limit = float(generator.integers(1, 14)), float(generator.integers(5, 30))
        offers.append(offer_of(name, round(price * cents / 100, 2), rate, efficiency, wait, limit))
    images = float(generator.integers(80, 240)) * 1e6
    ends = sorted(choice["done"] for choice in choices(Offered(offers, images, 0.0)))
    deadline = round(float(ends[int(generator.integers(3, 8))]) + 0.25, 2)
    return Offered([offers[place] for place in generator.permutation(3)], images, deadline)


def offered(generator: Generator) -> list[Offered]:
    """One in which each mistake chooses otherwise, one in which nothing ends in time, one exactly at the deadline."""

    def is_clear(case: Offered, program: Callable[..., Any]) -> bool:
        true, mistaken = by_choice(case, rent(*case)), program(*case)
        costs = sorted(choice["cost"] for choice in choices(case) if choice["done"] <= case.deadline)
        is_other = CHOICE in true and (mistaken is None or by_choice(case, mistaken)[CHOICE] != true[CHOICE])
        return is_other and costs[1:2] > [1.001 * costs[0]]

    others = [partial(is_clear, program=program) for program in CHOOSING[:-2]]  # the last two show where it is exact
    cases = [drawn_until(is_other, lambda: drawn_offers(generator)) for is_other in others]
    late = drawn_offers(generator)
    earliest = min(choice["done"] for choice in choices(late))
    limit, wait = float(generator.integers(4, 9)) * 2, float(generator.integers(1, 5))
    slow = offer_of("birch", 2.0, 256.0, {1: 1.0, 2: 1.0}, wait, limit)
    fast = offer_of("cedar", 16.0, 1024.0, {1: 1.0, 2: 0.75}, wait, limit)
    exact = Offered([fast, slow], 2 * limit * 3600 * 512, 2 * limit + 2 * wait)
    return [OFFERED, *cases, late._replace(deadline=round(0.97 * earliest, 2)), exact]


def by_choice(case: Offered, value: Any) -> dict[str, Any]:
    """Which offer; its end and cost as parts of the right ones of this offer, unless they are only rounded."""
    if value is None or rent(*case) is None:
        return {CHOICE if rent(*case) else NOTHING: value and "an offer"}
    choice = [value["name"], number(value["nodes"])]
    own = next((each for each in choices(case) if [each["name"], each["nodes"]] == choice), None)

    def share(said: float, true: float) -> Any:
        return NOT_EXACT if not is_near(said, true) and is_rounded(said, true) else said / true

    shares = {name: share(number(value[name]), own[name]) for name in (DONE, COST)} if own else {}
    return {CHOICE: choice} | shares


def form_of_choice(case: Offered, value: Any) -> str | None:
    """What is wrong with the form; in the example something ends in time."""
    names = ("name", "nodes", "done", "cost")
    if value is None and case == OFFERED:
        return "`rent` gives None, and small with 2 nodes ends in time. Images are per second, prices per hour."
    if value is not None and (not isinstance(value, dict) or not set(names) <= set(value)):
        return f"`rent` gives a dictionary with the names {', '.join(names)}, or None if nothing ends in time."
    for name in names if value else ():
        expected = "a text" if name == "name" else "a number"
        if not isinstance(value[name], str) if name == "name" else number(value[name]) is None:
            return f"`{name}` is {repr(value[name])[:40]}, and should be {expected}."
    return None


RENT_MISTAKES = {
    "only the largest number of nodes of each offer is considered here. Which smaller ones end in time?": (
        ("in sizes:", "in [max(sizes)]:")
    ),
    "only the smallest number of nodes of each offer is considered here. Which larger ones end in time?": (
        ("in sizes:", "in [min(sizes)]:")
    ),
    "the speed is that of one node here. How many images do all nodes work on in a second?": ("(nodes *", "("),
    "this counts every node as fully used. What does the efficiency do to the images per second?": (
        (" * sizes[nodes]", "")
    ),
    "a lower efficiency makes the nodes faster here. Multiply or divide by it?": ("* sizes[nodes]", "/ sizes[nodes]"),
    "the time in the queue is left out.": (" + jobs * wait", ""),
    "the queue is waited for once here. How often is a job there that takes longer than the limit?": ("jobs *", "1 *"),
    "this waits once too seldom: the first job is in the queue, too.": ("jobs *", "(jobs - 1) *"),
    "the number of jobs is rounded down: what does one within the limit wait?": ("jobs *", "(hours // limit) *"),
    "the time in the queue is paid for here. Who uses the nodes then?": ("nodes * hours", "nodes * done"),
    "this is the price of one node.": ("nodes * hours", "hours"),
    "this pays for the whole limit. Are nodes given back when a job ends?": ("nodes * hours", "nodes * jobs * limit"),
    "longer runs than the limit are left out here. What does a job do that can be queued again?": (
        ("if done", "if hours <= limit and done")
    ),
    "this is the one that ends first. Which is the cheapest that ends in time?": (
        ('cost < best["cost"]', 'done < best["done"]')
    ),
    "this is the first one that ends in time. Which is the cheapest of all?": (' or cost < best["cost"]', ""),
    "this is the cheapest, and it ends too late.": ("done <= deadline", "True"),
    "this waits once too often: a run as long as the limit is one job.": ("jobs *", "(hours // limit + 1) *"),
    "an offer that ends exactly at the deadline is left out. Is that in time?": ("done <=", "done <"),
}
CHOOSING = [changed(RENT, change) for change in RENT_MISTAKES.values()]
UNITS = "the numbers are {} times too large or too small. Images are per second, prices per hour."
OTHER_UNITS = 'return best and best | {{"{0}": best["{0}"] {1}}}'
TOO_LATE = "this ends too late, or costs more than it could: nothing here ends in time. Then give None."
NONE_LEFT = "nothing ends in time here: then give None."
RENT_JUDGE = ByPrograms(
    rent,
    offered,
    [
        *(Mistake(hint, program) for hint, program in zip(RENT_MISTAKES, CHOOSING, strict=True)),
        *(
            Mistake({name: UNITS.format(by[2:])}, changed(RENT, ("return best", OTHER_UNITS.format(name, by))))
            for name in (DONE, COST)
            for by in ("* 60", "* 3600", "/ 60", "/ 3600")
        ),
        Mistake({NOTHING: TOO_LATE}, lambda *case: rent(*case) or rent(*case[:2], math.inf)),
        Mistake({NOTHING: NONE_LEFT}, lambda *case: rent(*case)["name"] and rent(*case)),
        Mistake({NOTHING: NONE_LEFT}, lambda *case: min([rent(*case)] * bool(rent(*case)), key=str)),
    ],
    otherwise={
        CHOICE: lambda case, value: (
            f"{value[0][:40]} with {value[1]:g} nodes is not the cheapest of those that end in time."
            if value
            else "`rent` gives None, and an offer ends in time."
        ),
        DONE: "another end is right: that of the run, and each time in the queue.",
        COST: "another cost is right: price per node and hour, times nodes, times the hours of the run.",
        NOTHING: TOO_LATE,
    },
    said=lambda case: f"for {case.images / 1e6:g} million images in {case.deadline:g} hours",
    parts=(CHOICE, DONE, COST, NOTHING),
    split=by_choice,
    form=form_of_choice,
    observe=lambda answer, case: answer.call("rent", *case, none_is_an_answer=True),
)

# The lab -------------------------------------------------------------------------------------------------------------


def target(name: str) -> str:
    """One call of an exercise's function and what it must give."""
    if name == "read_table":
        lines = ["read_table(runs)", *(f"    {place}: {run}" for place, run in enumerate(EXAMPLE[0]))]
        numbers = {key: np.round(value, 4).tolist() for key, value in read_table(*EXAMPLE).items()}
        return "\n".join(lines + [f"    {key!r:13} {value}" for key, value in numbers.items()])
    lines = [f"rent(offers, images={OFFERED.images:g}, deadline={OFFERED.deadline:g})"]
    lines += [f"    {each}" for each in OFFERED.offers]
    choice = rent(*OFFERED)
    return "\n".join([*lines, f"    gives {choice | {key: round(choice[key], 4) for key in (DONE, COST)}}"])


LAB = Lab(
    "15_clusters",
    [
        *(Exercise(name, 4 + (name == "gpus"), judge) for name, judge in scripts.JUDGES.items()),
        Exercise("attempt", 4, ATTEMPT_JUDGE),
        Exercise("read_table", 4, TABLE_JUDGE),
        Exercise("rent", 4, RENT_JUDGE),
    ],
    target=target,
)

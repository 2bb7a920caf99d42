"""Half of the judge of lab 12: schedules of a pipeline, and the number of micro-batches.

The table is read; the order of one forward, one backward and the plan are judged by programs.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from distlab.labs import Answer, Verdict, not_done, right, wrong
from distlab.labs.by_programs import ByPrograms, by_changes, changed, formulas
from distlab.labs.number_judge import counted, problem_of_names
from distlab.labs.number_judge import number as as_number
from distlab.labs.verdict import Picture, picture
from distlab.model_parallel import pipelines
from distlab.model_parallel.pipelines import BACKWARD, FORWARD, Pass, Timing, Work

Orders = Sequence[Sequence[Pass]]
"""By stage, its passes in order."""

Place: TypeAlias = tuple[float, int]
"""When and on which stage."""

# Passes of a schedule, "F0" and "B0" ---------------------------------------------------------------------------------


def text_of(each: Pass) -> str:
    """Such as "F0"."""
    return f"{each.kind[0].upper()}{each.micro_batch}"


def pass_of(text: object) -> Pass | None:
    """What "F0", "B12" or "B-1" means; None for all else."""
    match = re.fullmatch(r"\s*([FB])\s*(-?\d{1,6})\s*", text, re.IGNORECASE) if isinstance(text, str) else None
    return Pass({"F": FORWARD, "B": BACKWARD}[match[1].upper()], int(match[2])) if match else None


def source_of(each: Pass, stage: int) -> int:
    """The stage that has to do a pass before this one can; −1 or the number of stages where there is none."""
    return stage + (1 if each.kind == BACKWARD else -1)


def hint_of_passes(order: Sequence[Pass], stage: int, micro_batches: int) -> str | None:
    """What a stage does too often, not at all, or backward before forward; None if nothing is wrong."""
    for each, count in Counter(order).items():
        if not 0 <= each.micro_batch < micro_batches:
            counts_from_one = all(other.micro_batch > 0 for other in order)
            question = "Which is the first one?" if counts_from_one else "What if there are fewer of them than stages?"
            return f"Stage {stage} does {text_of(each)}, but the micro-batches are 0 to {micro_batches - 1}. {question}"
        if count > 1:
            return f"Stage {stage} does {text_of(each)} {count} times."
    for forward, backward in ((Pass(FORWARD, number), Pass(BACKWARD, number)) for number in range(micro_batches)):
        for each in (forward, backward):
            if each not in order:
                return f"Stage {stage} never does {text_of(each)}: every stage works on every micro-batch, both ways."
        if order.index(backward) < order.index(forward):
            return (
                f"Stage {stage} does {text_of(backward)} before {text_of(forward)}: a backward pass needs what the "
                "forward pass has kept."
            )
    return None


def timing_of(works: list[list[Work]]) -> Timing:
    """What stages did, as a time line; it ends with the last pass."""
    return Timing(works, 1, max((work.end for of_stage in works for work in of_stage), default=0.0))


def carried_out(orders: Orders, seconds: Mapping[str, float]) -> tuple[Timing, dict[int, Pass]]:
    """Let every stage do its passes in its order: the time line, and the pass that a stage never begins, by stage.

    A stage begins as soon as it is free and what it needs is finished; messages take no time.
    """
    works: list[list[Work]] = [[] for _ in orders]
    ends: dict[tuple[int, Pass], float] = {}
    done = -1
    while done < len(ends):
        done = len(ends)
        for stage, order in enumerate(orders):
            for each in order[len(works[stage]) :]:
                source = source_of(each, stage)
                if 0 <= source < len(orders) and (source, each) not in ends:
                    break
                start = max(ends.get((source, each), 0.0), works[stage][-1].end if works[stage] else 0.0)
                ends[stage, each] = start + seconds[each.kind]
                works[stage].append(Work(stage, 0, each.micro_batch, each.kind, start, ends[stage, each]))
    pairs = zip(works, orders, strict=True)
    waiting = {stage: order[len(of)] for stage, (of, order) in enumerate(pairs) if len(of) < len(order)}
    return timing_of(works), waiting


def idle_place(timing: Timing, soon: Timing) -> Place | None:
    """Where a pass comes later than as `soon` as in this order it can, else where a stage first waits for its next."""
    pairs = [pair for both in zip(soon.works, timing.works, strict=True) for pair in zip(*both, strict=True)]
    late = [(early.start, early.stage) for early, work in pairs if early.start < work.start]
    steps = [pair for works in timing.works for pair in pairwise(works)]
    return min(late or [(work.end, work.stage) for work, after in steps if work.end < after.start], default=None)


def drawn_schedule(timing: Timing, title: str, unit: str, wrong: Place | None = None) -> Picture:
    """The time line as a drawing, with a mark at what is wrong."""
    from distlab import draw  # here, since it needs matplotlib

    rows = [
        f"stage {stage}: {' '.join(text_of(Pass(work.kind, work.micro_batch)) for work in of_stage) or 'nothing'}"
        for stage, of_stage in enumerate(timing.works)
    ]
    description = f"Time line of {len(rows)} stages, {timing.seconds:g} {unit}. {'; '.join(rows)}."
    description += f" Wrong: stage {wrong[1]} at {wrong[0]:g}." if wrong else ""
    return picture(lambda: draw.pipeline_schedules({title: timing}, unit), description, wrong)


# The table -----------------------------------------------------------------------------------------------------------

STAGES, MICRO_BATCHES = 3, 4
FEWEST = round(float(pipelines.seconds(STAGES, MICRO_BATCHES, 1.0, 1.0)))
WAITS = {".", "..", "-", "--"}


def judge_table(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Half of the points for a table that can be carried out, half for one without a needless slot."""
    table = answer.value("table")
    if not isinstance(table, str):
        return wrong(f"The table is one text with a line for each of the {STAGES} stages.")
    lines = [line.strip() for line in table.splitlines() if line.strip()]
    if len(lines) != STAGES:
        return wrong(f"The table has {len(lines)} lines; {STAGES} are asked for, one for each stage.")
    rows: list[list[Pass | None]] = []
    for stage, line in enumerate(lines):
        words = re.sub(r"^stage\s*\d*\s*[:|]?", "", line, flags=re.IGNORECASE).split()
        rows.append([pass_of(word) for word in words])
        for slot, (word, each) in enumerate(zip(words, rows[-1], strict=True)):
            if each is None and word not in WAITS:
                return wrong(
                    f"Stage {stage}, slot {slot}: `{word[:12]}` is neither one pass, such as F0 or B0, nor `..`. In a "
                    "slot a stage does one pass."
                )
    orders = [[each for each in row if each] for row in rows]
    if not any(orders):
        return not_done("the table is still empty")
    for stage, order in enumerate(orders):
        if hint := hint_of_passes(order, stage, MICRO_BATCHES):
            return wrong(hint)
    timing = timing_of(
        [
            [Work(stage, 0, each.micro_batch, each.kind, float(at), at + 1.0) for at, each in enumerate(row) if each]
            for stage, row in enumerate(rows)
        ]
    )
    drawn = partial(drawn_schedule, timing, "your table", "slots")
    if found := hint_of_slots(rows):
        return wrong(found[0], picture=partial(drawn, found[1]))
    if (slots := round(timing.seconds)) > FEWEST:
        too_many = f"The table can be carried out, but it takes {slots} slots, and {FEWEST} are enough."
        soon = carried_out(orders, {FORWARD: 1.0, BACKWARD: 1.0})[0]
        hint = hint_of_length(orders, slots, soon.seconds)
        return wrong(f"{too_many} {hint}", 0.5, partial(drawn, idle_place(timing, soon)))
    most = [round(timing.activations_held(stage)) for stage in range(STAGES)]
    return right(
        f"{slots} slots, bubble {timing.bubble_fraction:.0%}. The stages hold at most {most[0]}, {most[1]} and "
        f"{most[2]} micro-batches at once.",
        drawn,
    )


def hint_of_slots(rows: Sequence[Sequence[Pass | None]]) -> tuple[str, Place] | None:
    """What is said of the first pass that is before what it needs, and where it is."""
    for each in (Pass(kind, number) for kind in (FORWARD, BACKWARD) for number in range(MICRO_BATCHES)):
        for stage, row in enumerate(rows):
            before, slot, name = source_of(each, stage), row.index(each), text_of(each)
            if not 0 <= before < STAGES or (needed := rows[before].index(each)) < slot:
                continue
            if needed == slot:
                return (
                    f"Stage {stage} and stage {before} do {name} in the same slot, {slot}. Stage {stage} needs what "
                    f"stage {before} has at the end of it."
                ), (slot, stage)
            question = (
                "Through which stage does a micro-batch go first?"
                if each.kind == FORWARD
                else "Where is the loss computed, and which way do gradients go from there?"
            )
            said = f"Stage {stage} does {name} in slot {slot}, stage {before} only in slot {needed}. {question}"
            return said, (slot, stage)
    return None


def hint_of_length(orders: Orders, slots: int, shorter: float) -> str:
    """Why a table is too long; `shorter` is what its order of passes can take."""
    if shorter < slots:
        return (
            f"The same order of passes needs {shorter:g}: some pass could be further to the left, since all that it "
            "needs is there."
        )
    under_way = np.cumsum([1 if each.kind == FORWARD else -1 for each in orders[0]])
    emptied = [(place + 1) // 2 for place in np.flatnonzero(under_way == 0)]
    if len(emptied) == MICRO_BATCHES:
        return "Only one micro-batch is under way at any time. What could stage 0 do while the others work on it?"
    if len(emptied) > 1:
        return (
            f"After {emptied[0]} micro-batches the pipeline runs empty, and is filled a second time. How often must it "
            "be filled?"
        )
    return (
        "The order keeps a stage waiting in the middle. Look for the first grey slot between two passes of a stage: "
        "which pass could the stage do there?"
    )


# One forward, one backward -------------------------------------------------------------------------------------------

SECONDS_OF_PASS = 1.0, 2.0
ON_FOUR, ON_ANY, TIME, MEMORY = ORDER_PARTS = ("orders for 4 stages", "orders for any stages", "time", "memory")


@dataclass(frozen=True)
class Seen:
    """What is wrong, compared by `what`; `text` says it."""

    what: Any
    text: str = field(default="", compare=False)


class Schedule(NamedTuple):
    """The orders of all stages and their time line; `problem` if they cannot be carried out."""

    orders: Orders = ()
    timing: Timing = timing_of([])
    problem: str = ""


def stages_in_words(case: tuple[int, int]) -> str:
    """Such as "4 stages, 8 micro-batches"."""
    return f"{counted(case[0], 'stage')}, {counted(case[1], 'micro-batch')}"


def observe_order(answer: Answer, case: tuple[int, int]) -> Schedule:
    """The orders of all stages, carried out."""
    stages, micro_batches = case
    orders: list[list[Pass]] = []
    for stage in range(stages):
        texts = answer.call("one_forward_one_backward", stage, stages, micro_batches)
        texts = texts.tolist() if isinstance(texts, np.ndarray) else texts
        passes = [pass_of(text) for text in texts] if isinstance(texts, (list, tuple)) else [None]
        if None in passes:
            return Schedule(problem='The order of one stage is a list of texts such as ["F0", "F1", "B0", "B1"].')
        orders.append([each for each in passes if each])
        if hint := hint_of_passes(orders[-1], stage, micro_batches):
            return Schedule(problem=hint)
    timing, waiting = carried_out(orders, {FORWARD: SECONDS_OF_PASS[0], BACKWARD: SECONDS_OF_PASS[1]})
    if waiting:
        sentences = [
            f"stage {stage} wants to do {text_of(each)} and waits for stage {source_of(each, stage)}"
            for stage, each in sorted(waiting.items())[:3]
        ]
        return Schedule(orders, timing, f"Deadlock: {', '.join(sentences)}. Which of these passes should not be next?")
    return Schedule(orders, timing)


def split_order(case: tuple[int, int], schedule: Schedule) -> Mapping[str, Seen]:
    """Whether the orders can be carried out; how much too long they take; what stages hold too much."""
    runs = ON_FOUR if case == (4, 8) else ON_ANY
    if schedule.problem:
        return {runs: Seen(schedule.problem, schedule.problem)}
    timing, fewest = schedule.timing, float(pipelines.seconds(*case, *SECONDS_OF_PASS))
    most = [round(timing.activations_held(stage)) for stage in range(case[0])]
    allowed = [round(pipelines.activations_held("1f1b", *case, stage)) for stage in range(case[0])]
    too_much = [max(0, held - may) for held, may in zip(most, allowed, strict=True)]
    stage = int(np.argmax(np.array(too_much) > 0))
    held = counted(most[stage], "micro-batch")
    return {
        runs: Seen(""),
        TIME: Seen(timing.seconds - fewest, f"the orders take {timing.seconds:g} seconds, and {fewest:g} are enough."),
        MEMORY: Seen(too_much, f"stage {stage} holds {held} at a time; it needs to hold only {allowed[stage]}."),
    }


def wrong_place(case: tuple[int, int], seen: Schedule) -> Place | None:
    """Where a stage waits for ever, holds a micro-batch too many, or waits in vain."""
    for stage, (works, order) in enumerate(zip(seen.timing.works, seen.orders, strict=True)):
        held = np.cumsum([1 if work.kind == FORWARD else -1 for work in works])
        too_many = [work.start for work, count in zip(works, held, strict=True) if count > case[0] - stage]
        if too_many or len(works) < len(order):
            return (too_many or [seen.timing.seconds])[0], stage
    is_long = seen.timing.seconds > pipelines.seconds(*case, *SECONDS_OF_PASS)
    return idle_place(seen.timing, seen.timing) if is_long else None


def told(question: str) -> Callable[[Any, Seen], str]:
    """A hint: what is too much, then a question."""
    return lambda case, seen: f"{seen.text} {question}"


ORDER_TEXT = """\
def one_forward_one_backward(stage, stages, micro_batches):
    ahead = min(stages - stage - 1, micro_batches)
    order = [f"F{number}" for number in range(ahead)]
    for number in range(ahead, micro_batches):
        order += [f"F{number}", f"B{number - ahead}"]
    return order + [f"B{number}" for number in range(micro_batches - ahead, micro_batches)]
"""
"""As many forward passes ahead as there are stages behind, then one forward and one backward in turn, then the rest."""
one_forward_one_backward = changed(ORDER_TEXT)
AHEAD = "stages - stage - 1"
OTHERS_AHEAD = {
    told("All forward passes come first: that is GPipe. When could micro-batch 0 leave the memory?"): [
        [(AHEAD, "micro_batches")]
    ],
    told(
        "Every stage finishes a micro-batch before it takes the next one. What could stage 0 do while the others work "
        "on micro-batch 0?"
    ): [[(AHEAD, "0")]],
    told(
        "How long is the way of a micro-batch to the loss and back, and what can be done before its gradient is there?"
    ): [[(AHEAD, "max(stages - stage - 2, 0)")]],
    told("There is one forward pass too many before a backward pass whose gradient is there already."): [
        [(AHEAD, "stages - stage")]
    ],
    told("It is the same number on every stage. How many stages does a micro-batch still have before it?"): [
        [(AHEAD, "stages - 1")],
        [(AHEAD, "stages")],
    ],
    told("These are right for 4 stages. Which of your numbers should follow from `stages`?"): [
        [(AHEAD, "max(3 - stage, 0)")]
    ],
}
GRADIENT_WAITS = "It does forward passes although a gradient is waiting for it. When can it first go backward?"
ORDER = ByPrograms(
    one_forward_one_backward,
    lambda generator: [
        *((4, 8), (2, 3), (1, 3), (5, 2), (3, 1), (3, 3), (6, 9), (7, 12)),
        *((int(generator.integers(2, 8)), int(generator.integers(1, 13))) for _ in range(2)),
    ],
    said=lambda case: f"for {stages_in_words(case)}",
    parts=ORDER_PARTS,
    split=split_order,
    after={ON_ANY: [ON_FOUR], TIME: [ON_FOUR, ON_ANY], MEMORY: [ON_FOUR, ON_ANY]},
    observe=observe_order,
    draw=lambda case, seen, every: (
        partial(
            drawn_schedule, seen.timing, f"your schedule, {stages_in_words(case)}", "seconds", wrong_place(case, seen)
        )
        if seen.timing.seconds
        else None
    ),
    otherwise={
        TIME: told("Which stage waits in the middle of its work? Who could have sent it something earlier?"),
        MEMORY: told(GRADIENT_WAITS),
    }
    | dict.fromkeys((ON_FOUR, ON_ANY), lambda case, seen: seen.text),
    praise=lambda cases: "For 4 stages, 8 micro-batches: 33 seconds as under GPipe, and stage 0 holds 4, not 8.",
    mistakes=by_changes(ORDER_TEXT, OTHERS_AHEAD, (TIME, MEMORY)),
)

# The number of micro-batches -----------------------------------------------------------------------------------------

COUNT, SECONDS, BUBBLE = PLAN = ("micro-batches", "seconds", "bubble")


class Pipeline(NamedTuple):
    """Stages, examples of a batch, examples that a stage has room for, seconds of a micro-batch and an example."""

    stages: int
    batch: int
    fits: int
    fixed: float
    each: float

    def seconds(self, count: int) -> float:
        """Of the batch, by formula."""
        return float(pipelines.seconds(self.stages, count, self.fixed + self.batch / count * self.each, 0.0))

    def held(self, count: int, schedule: str = "1f1b") -> float:
        """The examples whose activations stage 0 holds at once."""
        return pipelines.activations_held(schedule, self.stages, count, 0) * self.batch / count

    def counts(self) -> list[int]:
        """The numbers of micro-batches that divide the batch."""
        return [count for count in range(1, self.batch + 1) if self.batch % count == 0]

    def possible(self) -> list[int]:
        """Those of them that fit into the memory under 1F1B."""
        return [count for count in self.counts() if self.held(count) <= self.fits]

    def best(self) -> int:
        """The possible number with the shortest time."""
        return min(self.possible(), key=self.seconds)

    def planned(self, count: int) -> dict[str, float]:
        """The plan with a number of micro-batches."""
        bubble = float(pipelines.bubble_fraction(self.stages, count))
        return {COUNT: count, SECONDS: self.seconds(count), BUBBLE: bubble}

    def __str__(self) -> str:
        return f"plan({self.stages}, {self.batch}, {self.fits}, {self.fixed:.4g}, {self.each:.4g})"


EXAMPLE = Pipeline(4, 48, 36, 2e-3, 1e-3)
FIXED = (
    Pipeline(3, 32, 32, 2.1e-3, 1e-3),  # 6 micro-batches would be faster, and do not divide the batch
    Pipeline(8, 24, 36, 7.2e-3, 1e-3),  # the best are fewer micro-batches than stages: stage 0 holds only those
    Pipeline(4, 48, 24, 3e-3, 1e-3),  # memory is full exactly
    Pipeline(4, 48, 12, 1.0, 1e-3),  # fewer micro-batches than stages would be faster, and do not fit
    Pipeline(4, 72, 40, 2.2e-3, 1e-3),  # 9 is best, a little better than 8 and 12
    Pipeline(2, 12, 12, 1.0, 1e-3),  # one micro-batch is best
    Pipeline(2, 12, 4, 1e-4, 1e-3),  # micro-batches of one example are best
)
"""Pipelines that tell apart what the drawn ones may not."""


PLAN_TEXT = """\
def plan(stages, batch, fits, fixed, each):
    job = Pipeline(stages, batch, fits, fixed, each)
    possible = [count for count in job.counts() if job.held(count) <= fits]
    return job.planned(min(possible, key=job.seconds))
"""
"""The best number of micro-batches, the batch's seconds, and the bubble's share of them."""
plan = changed(PLAN_TEXT, Pipeline=Pipeline)


def drawn_pipeline(generator: np.random.Generator, memory_decides: bool) -> Pipeline:
    """A pipeline whose best number of micro-batches is none of the obvious ones."""
    while True:
        stages, batch = int(generator.integers(3, 9)), int(generator.choice([48, 72, 96, 120, 144, 240]))
        fixed, each = float(generator.uniform(2e-3, 6e-3)), float(generator.uniform(2e-4, 2e-3))
        free = Pipeline(stages, batch, batch, fixed, each)
        job = free._replace(fits=int(generator.integers(batch // 8, batch)))
        if not job.possible() or job.best() in (1, stages, batch):
            continue
        times = sorted(map(job.seconds, job.possible()))
        if len(times) > 1 and times[1] > 1.002 * times[0] and (job.best() != free.best()) == memory_decides:
            return job


def pipelines_of_plan(generator: np.random.Generator) -> list[Pipeline]:
    """The example, two drawn ones, those that tell mistakes apart, and one stage alone."""
    drawn = [drawn_pipeline(generator, memory_decides) for memory_decides in (False, True)]
    return [EXAMPLE, *drawn, *FIXED, Pipeline(1, 64, 20, float(generator.uniform(1e-3, 5e-3)), 1e-3)]


def split_plan(job: Pipeline, numbers: Mapping[str, Any]) -> Mapping[str, Any]:
    """Time and bubble as they would be of the best number, so that one mistake is not counted three times."""
    count, best = as_number(numbers[COUNT]), plan(*job)
    if count is None or count == best[COUNT] or not (1 <= count <= job.batch and count.is_integer()):
        return numbers
    own = job.planned(int(count))
    return {
        name: value if name == COUNT or as_number(value) is None else as_number(value) - own[name] + best[name]
        for name, value in numbers.items()
    }


def hint_of_count(job: Pipeline, count: Any) -> str:
    """Why another number of micro-batches is better."""
    whole = as_number(count)
    if whole is None or whole < 1 or whole % 1 or job.batch % whole:
        return f"{count!r} micro-batches do not divide a batch of {job.batch} equally."
    if job.held(int(whole)) > job.fits:
        return (
            f"with {whole:g} micro-batches stage 0 holds {job.held(int(whole)):g} examples at a time, and {job.fits} "
            "fit. How many micro-batches does it hold under 1F1B, and how large are they?"
        )
    return (
        f"{whole:g} micro-batches take {job.seconds(int(whole)):.4g} s, and others that divide the batch and fit take "
        "less. Which did you compare?"
    )


POWERS = "([count for count in possible if count.bit_count() == 1] or possible)"
OTHER_COUNTS = {
    "the number is a power of two here, and need not be one. Which others divide the batch?": [
        [("min(possible", f"min({POWERS}")]
    ],
    "with fewer micro-batches than stages, stage 0 holds all of them: does the whole batch fit?": [
        [("if job.held", "if count < stages or job.held")]
    ],
}
NONE_POSSIBLE = {
    "by your count no number of micro-batches fits, and one does. How many micro-batches does stage 0 hold at a time "
    "under 1F1B, however many there are?": [[("job.held(count)", "batch"), ("job.seconds", "int")]]
}
PLAN_FORMULAS = {
    SECONDS: {
        "micro_batches * per_micro_batch": "that is the time without a bubble: when does the last stage begin?",
        "(micro_batches + stages) * per_micro_batch": (
            "that is one micro-batch too long: how many stages are before the last one?"
        ),
        "stages * micro_batches * per_micro_batch": "stages work at the same time, not one after the other.",
        "passes * batch / micro_batches * each": "the fixed seconds of each micro-batch are missing.",
        "passes * batch / micro_batches * each + fixed": (
            "every micro-batch takes the fixed seconds; they are counted once here."
        ),
    },
    BUBBLE: {
        "(stages - 1) / micro_batches": (
            "that is the bubble as a part of the time *without* it; a share of the whole time is asked for."
        ),
        "1 - bubble": "that is the share in which a stage works.",
        "stages / (micro_batches + stages)": ("how many of the stages does the last one wait for before it can begin?"),
        "100 * bubble": "a share is asked for, from 0 to 1, not per cent.",
    },
}


def more_of_plan(*case: Any) -> Mapping[str, float]:
    """What formulas know besides."""
    job, best = Pipeline(*case), plan(*case)[COUNT]
    return {"per_micro_batch": job.fixed + job.batch / best * job.each, "passes": best + job.stages - 1}


PLAN_OF_BATCH = ByPrograms(
    plan,
    pipelines_of_plan,
    said=lambda job: f"in {job}",
    parts=PLAN,
    split=split_plan,
    weights={COUNT: 2, SECONDS: 1, BUBBLE: 1},
    tolerance=1e-9,
    observe=lambda answer, job: answer.call("plan", *job, none_is_an_answer=True),
    form=lambda job, numbers: problem_of_names("plan", PLAN, numbers),
    otherwise={
        COUNT: hint_of_count,
        SECONDS: "that is not right. Draw the time line of a few micro-batches and count.",
        BUBBLE: "that is not right. Draw the time line of a few micro-batches and count.",
    },
    praise=lambda cases: (
        f"In the example {EXAMPLE.best()} micro-batches take {1e3 * EXAMPLE.seconds(EXAMPLE.best()):.0f} ms. Under "
        f"GPipe no number fits: stage 0 would hold all {EXAMPLE.batch} examples."
    ),
    mistakes=[
        *formulas(plan, PLAN_FORMULAS, more_of_plan),
        *by_changes(PLAN_TEXT, OTHER_COUNTS, (COUNT,), Pipeline=Pipeline),
        *by_changes(PLAN_TEXT, NONE_POSSIBLE, PLAN, Pipeline=Pipeline),
    ],
)

"""Schedules of a pipeline: two exercises of lab 12 and their judges.

In the table a slot of time is filled in for each pass; one forward, one backward is a function for any numbers.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from lab_12 import pipeline_runs
from lab_12.hints import Lab12Hint
from lab_12.pipeline_runs import Orders, text_of

from distlab.labs.answer import Answer
from distlab.labs.verdict import Advice, AnyHint, Picture, Verdict, not_done, right, wrong
from distlab.model_parallel import pipelines
from distlab.model_parallel.pipelines import BACKWARD, FORWARD, Pass, Timing, Work

STAGES, MICRO_BATCHES = 3, 4
_WAITS = {".", "..", "-", "--"}
ORDER = "one_forward_one_backward"
FORWARD_SECONDS, BACKWARD_SECONDS = 1.0, 2.0
CASES = ((4, 8), (2, 3), (1, 3), (5, 2), (3, 1), (3, 3), (6, 9))

Row = dict[Pass, int]
"""The slot of each pass of a stage."""


def fewest_slots(stages: int = STAGES, micro_batches: int = MICRO_BATCHES) -> int:
    """The slots that a table needs, by formula, when each pass takes one."""
    return round(float(pipelines.seconds(stages, micro_batches, 1.0, 1.0)))


def judge_table(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Half of the points for a table that can be carried out, half for one without a needless slot."""
    table = answer.value("table")
    if not isinstance(table, str):
        return wrong(Lab12Hint.TABLE_IS_NO_TEXT.says(stages=STAGES))
    lines = [line.strip() for line in table.splitlines() if line.strip()]
    if len(lines) != STAGES:
        return wrong(Lab12Hint.LINES.says(lines=len(lines), stages=STAGES))
    orders: list[list[Pass]] = []
    rows: list[Row] = []
    for stage, line in enumerate(lines):
        words = re.sub(r"^stage\s*\d*\s*[:|]?", "", line, flags=re.IGNORECASE).split()
        passes = [None if word in _WAITS else pipeline_runs.pass_of(word) for word in words]
        for slot, (word, each) in enumerate(zip(words, passes, strict=True)):
            if each is None and word not in _WAITS:
                return wrong(Lab12Hint.NO_PASS.says(stage=stage, slot=slot, word=word[:12]))
        orders.append([each for each in passes if each])
        rows.append({each: slot for slot, each in reversed(list(enumerate(passes))) if each})
    if not any(orders):
        return not_done("the table is still empty")
    return _verdict(orders, rows)


def _verdict(orders: Orders, rows: Sequence[Row]) -> Verdict:
    for stage, order in enumerate(orders):
        if hint := pipeline_runs.hint_of_passes(order, stage, MICRO_BATCHES):
            return wrong(hint)
    timing = _timing(rows)

    def picture() -> Picture:
        return pipeline_runs.picture(timing, "your table", "slots")

    if hint := _hint_of_slots(rows):
        return wrong(hint, picture=picture)
    slots, fewest = round(timing.seconds), fewest_slots()
    if slots > fewest:
        too_many = Lab12Hint.TOO_MANY_SLOTS.says(slots=slots, fewest=fewest)
        return wrong(too_many.then(_hint_of_length(orders, timing)), 0.5, picture)
    most = [round(timing.activations_held(stage)) for stage in range(STAGES)]
    return right(
        f"{slots} slots, bubble {timing.bubble_fraction:.0%}. The stages hold at most {most[0]}, {most[1]} and "
        f"{most[2]} micro-batches at once.",
        picture,
    )


def _timing(rows: Sequence[Row]) -> Timing:
    return pipeline_runs.timing_of(
        [
            [
                Work(stage, 0, each.micro_batch, each.kind, float(slot), slot + 1.0)
                for each, slot in sorted(row.items(), key=lambda item: item[1])
            ]
            for stage, row in enumerate(rows)
        ]
    )


def _hint_of_slots(rows: Sequence[Row]) -> Advice | None:
    """The first pass that is before what it needs."""
    for each in (Pass(kind, number) for kind in (FORWARD, BACKWARD) for number in range(MICRO_BATCHES)):
        for stage, row in enumerate(rows):
            before = pipeline_runs.source_of(each, stage)
            if not 0 <= before < STAGES or rows[before][each] < row[each]:
                continue
            name, slot, needed = text_of(each), row[each], rows[before][each]
            if needed == slot:
                return Lab12Hint.SAME_SLOT.says(stage=stage, before=before, name=name, slot=slot)
            hint = Lab12Hint.FORWARD_TOO_EARLY if each.kind == FORWARD else Lab12Hint.BACKWARD_TOO_EARLY
            return hint.says(stage=stage, before=before, name=name, slot=slot, needed=needed)
    return None


def _hint_of_length(orders: Orders, timing: Timing) -> AnyHint:
    without_waits = pipeline_runs.run(orders, 1.0, 1.0).timing.seconds
    if without_waits < timing.seconds:
        return Lab12Hint.LATER_THAN_POSSIBLE.says(slots=without_waits)
    emptied = _emptied(timing.works[0])
    if len(emptied) == MICRO_BATCHES:
        return Lab12Hint.ONE_UNDER_WAY
    return Lab12Hint.FILLED_AGAIN.says(count=emptied[0]) if len(emptied) > 1 else Lab12Hint.KEPT_WAITING


def _emptied(works: Sequence[Work]) -> list[int]:
    """After how many micro-batches nothing is under way any more, the end included."""
    under_way, done, emptied = 0, 0, []
    for work in works:
        under_way += 1 if work.kind == FORWARD else -1
        done += work.kind == BACKWARD
        if under_way == 0:
            emptied.append(done)
    return emptied


@dataclass(frozen=True)
class ScheduleRun:
    """The student's orders for some stages, and their run."""

    stages: int
    micro_batches: int
    orders: list[list[Pass]]
    timing: Timing

    @property
    def circumstances(self) -> str:
        """Such as "4 stages, 8 micro-batches"."""
        return _circumstances(self.stages, self.micro_batches)

    @property
    def fewest_seconds(self) -> float:
        """By formula."""
        return float(pipelines.seconds(self.stages, self.micro_batches, FORWARD_SECONDS, BACKWARD_SECONDS))

    def most_held(self) -> list[int]:
        """By stage, the most micro-batches that waited for their backward pass."""
        return [round(self.timing.activations_held(stage)) for stage in range(self.stages)]

    def may_hold(self) -> list[int]:
        """By stage, by formula."""
        return [
            round(pipelines.activations_held("1f1b", self.stages, self.micro_batches, stage))
            for stage in range(self.stages)
        ]

    def before_backward(self) -> list[int]:
        """By stage, the forward passes before its first backward pass."""
        return [next(place for place, each in enumerate(order) if each.kind == BACKWARD) for order in self.orders]

    def picture(self) -> Picture:
        """The time line."""
        return pipeline_runs.picture(self.timing, f"your schedule, {self.circumstances}", "seconds")


def judge_order(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points each for orders that run on 4 stages, and on any; for the time; for the memory."""
    drawn = [(int(generator.integers(2, 8)), int(generator.integers(1, 13))) for _ in range(2)]
    runs: list[ScheduleRun] = []
    for stages, micro_batches in (*CASES, *drawn):
        run = _scheduled(answer, stages, micro_batches)
        if isinstance(run, Verdict):
            context = f"{_so_far(runs)}{_circumstances(stages, micro_batches)}: "
            return wrong(Advice(run.text, run.hints), 0.25 if runs else 0.0, run.picture, context)
        runs.append(run)
    slow = next((run for run in runs if run.timing.seconds > run.fewest_seconds + 1e-9), None)
    full = next((run for run in runs if np.any(np.array(run.most_held()) > run.may_hold())), None)
    if slow or full:
        hint = Lab12Hint.CARRIED_OUT.says()
        hint = hint.then(_hint_of_time(slow)) if slow else hint
        hint = hint.then(_hint_of_memory(full)) if full else hint
        picture = slow.picture if slow else full.picture if full else None
        return wrong(hint, 0.5 if slow and full else 0.75, picture)
    first = runs[0]
    return right(
        f"{first.circumstances}: {first.timing.seconds:g} seconds, bubble {first.timing.bubble_fraction:.0%} as under "
        f"GPipe, and stage 0 holds {first.most_held()[0]} micro-batches instead of {first.micro_batches}.",
        first.picture,
    )


def _scheduled(answer: Answer, stages: int, micro_batches: int) -> ScheduleRun | Verdict:
    orders: list[list[Pass]] = []
    for stage in range(stages):
        texts = answer.call(ORDER, stage, stages, micro_batches)
        if isinstance(texts, np.ndarray):
            texts = texts.tolist()
        texts = texts if isinstance(texts, (list, tuple)) else [None]
        passes = [pipeline_runs.pass_of(text) for text in texts]
        order = [each for each in passes if each]
        if below := next((text for text in texts if pipeline_runs.is_below_zero(text)), None):
            name = str(below).strip()
            return wrong(Lab12Hint.NO_SUCH_MICRO_BATCH.says(stage=stage, name=name, last=micro_batches - 1))
        if len(order) < len(passes):
            return wrong(Lab12Hint.NO_ORDER)
        if hint := pipeline_runs.hint_of_passes(order, stage, micro_batches):
            return wrong(hint)
        orders.append(order)
    done = pipeline_runs.run(orders, FORWARD_SECONDS, BACKWARD_SECONDS)
    schedule = ScheduleRun(stages, micro_batches, orders, done.timing)
    if done.waiting:
        return wrong(done.hint_of_deadlock(), picture=schedule.picture if done.timing.seconds else None)
    return schedule


def _counted(count: int, name: str, plural: str) -> str:
    return f"{count} {name if count == 1 else plural}"


def _circumstances(stages: int, micro_batches: int) -> str:
    return f"{_counted(stages, 'stage', 'stages')}, {_counted(micro_batches, 'micro-batch', 'micro-batches')}"


def _so_far(runs: Sequence[ScheduleRun]) -> str:
    return f"The orders can be carried out on {runs[-1].circumstances}, but not on " if runs else ""


def _hint_of_time(run: ScheduleRun) -> Advice:
    too_slow = Lab12Hint.TOO_SLOW.says(case=run.circumstances, seconds=run.timing.seconds, fewest=run.fewest_seconds)
    counts, needed = run.before_backward(), run.may_hold()
    early = [stage for stage in range(run.stages) if counts[stage] < needed[stage]]
    if early and all(count == 1 for count in counts):
        return too_slow.then(Lab12Hint.ONE_AFTER_THE_OTHER)
    if early:
        passes = _counted(counts[early[0]], "forward pass", "forward passes")
        return too_slow.then(Lab12Hint.TOO_FEW_AHEAD.says(stage=early[0], passes=passes))
    stage, start = _first_wait(run)
    return too_slow.then(Lab12Hint.WAITS_IN_THE_MIDDLE.says(stage=stage, start=start))


def _first_wait(run: ScheduleRun) -> tuple[int, float]:
    """The stage and the time of the first wait after a stage's first backward pass."""
    waits = []
    for stage, works in enumerate(run.timing.works):
        going_back = run.before_backward()[stage]
        for work, following in zip(works[going_back:], works[going_back + 1 :], strict=False):
            if following.start > work.end:
                waits.append((work.end, stage))
    start, stage = min(waits, default=(0.0, 0))
    return stage, start


def _hint_of_memory(run: ScheduleRun) -> Advice:
    most, allowed = run.most_held(), run.may_hold()
    stage = next(stage for stage in range(run.stages) if most[stage] > allowed[stage])
    micro_batches = _counted(most[stage], "micro-batch", "micro-batches")
    too_much = Lab12Hint.HOLDS_TOO_MUCH.says(
        case=run.circumstances, stage=stage, micro_batches=micro_batches, allowed=allowed[stage]
    )
    if all(each.kind == FORWARD for each in run.orders[stage][: run.micro_batches]):
        return too_much.then(Lab12Hint.GPIPE)
    if len(set(most)) == 1:
        return too_much.then(Lab12Hint.SAME_ON_EVERY_STAGE)
    if most[stage] == allowed[stage] + 1:
        return too_much.then(Lab12Hint.ONE_TOO_MANY_AHEAD)
    return too_much.then(Lab12Hint.GRADIENT_WAITS)

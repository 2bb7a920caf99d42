"""A schedule filled in by hand, a slot of time for each pass: an exercise of lab 12 and its judge."""

import re
from collections.abc import Sequence

import numpy as np

from distlab.labs.answer import Answer
from distlab.labs.lab_12 import pipeline_runs
from distlab.labs.lab_12.pipeline_runs import Orders, text_of
from distlab.labs.verdict import Verdict, not_done, right, wrong
from distlab.model_parallel import pipelines
from distlab.model_parallel.pipelines import BACKWARD, FORWARD, Pass, Timing, Work

STAGES, MICRO_BATCHES = 3, 4
_WAITS = {".", "..", "-", "--"}

Row = dict[Pass, int]
"""The slot of each pass of a stage."""


def fewest_slots(stages: int = STAGES, micro_batches: int = MICRO_BATCHES) -> int:
    """The slots that a table needs, by formula, when each pass takes one."""
    return round(float(pipelines.seconds(stages, micro_batches, 1.0, 1.0)))


def judge_table(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Half of the points for a table that can be carried out, half for one without a needless slot."""
    given = answer.value("table")
    if not isinstance(given, str):
        return wrong(f"The table is one text with a line for each of the {STAGES} stages.")
    lines = [line.strip() for line in given.splitlines() if line.strip()]
    if len(lines) != STAGES:
        return wrong(f"The table has {len(lines)} lines; {STAGES} are wanted, one for each stage.")
    orders: list[list[Pass]] = []
    rows: list[Row] = []
    for stage, line in enumerate(lines):
        words = re.sub(r"^stage\s*\d*\s*[:|]?", "", line, flags=re.IGNORECASE).split()
        passes = [None if word in _WAITS else pipeline_runs.pass_of(word) for word in words]
        for slot, (word, each) in enumerate(zip(words, passes, strict=True)):
            if each is None and word not in _WAITS:
                return wrong(
                    f"Stage {stage}, slot {slot}: `{word[:12]}` is neither one pass, such as F0 or B0, nor `..`. In a "
                    "slot a stage does one pass."
                )
        orders.append([each for each in passes if each])
        rows.append({each: slot for slot, each in reversed(list(enumerate(passes))) if each})
    if not any(orders):
        return not_done("the table is still empty")
    return _verdict(orders, rows)


def _verdict(orders: Orders, rows: Sequence[Row]) -> Verdict:
    for stage, order in enumerate(orders):
        if hint := pipeline_runs.hint_of_passes(order, stage, MICRO_BATCHES):
            return wrong(hint[:1].upper() + hint[1:])
    timing = _timing(rows)

    def drawn() -> pipeline_runs.Picture:
        return pipeline_runs.picture(timing, "your table", "slots")

    if hint := _hint_of_slots(rows):
        return wrong(hint, picture=drawn)
    slots, fewest = round(timing.seconds), fewest_slots()
    if slots > fewest:
        hint = _hint_of_length(orders, timing)
        return wrong(
            f"The table can be carried out, but it takes {slots} slots, and {fewest} are enough. {hint}", 0.5, drawn
        )
    held = [round(timing.activations_held(stage)) for stage in range(STAGES)]
    return right(
        f"{slots} slots, bubble {timing.bubble_fraction:.0%}. The stages hold at most {held[0]}, {held[1]} and "
        f"{held[2]} micro-batches at once.",
        drawn,
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


def _hint_of_slots(rows: Sequence[Row]) -> str | None:
    """The first pass that stands before what it needs."""
    for each in (Pass(kind, number) for kind in (FORWARD, BACKWARD) for number in range(MICRO_BATCHES)):
        for stage, row in enumerate(rows):
            before = pipeline_runs.source_of(each, stage)
            if not 0 <= before < STAGES or rows[before][each] < row[each]:
                continue
            name, slot, needed = text_of(each), row[each], rows[before][each]
            if needed == slot:
                return (
                    f"Stage {stage} and stage {before} do {name} in the same slot, {slot}. Stage {stage} needs what "
                    f"stage {before} has at the end of it."
                )
            if each.kind == FORWARD:
                return (
                    f"Stage {stage} does {name} in slot {slot}, stage {before} only in slot {needed}. Through which "
                    "stage does a micro-batch go first?"
                )
            return (
                f"Stage {stage} does {name} in slot {slot}, stage {before} only in slot {needed}. Where does the loss "
                "stand, and which way do gradients go from there?"
            )
    return None


def _hint_of_length(orders: Orders, timing: Timing) -> str:
    without_waits = pipeline_runs.run(orders, 1.0, 1.0).timing.seconds
    if without_waits < timing.seconds:
        return (
            f"The same order of passes needs {without_waits:g}: some pass could stand further to the left, since all "
            "that it needs is there."
        )
    emptied = _emptied(timing.works[0])
    if len(emptied) == MICRO_BATCHES:
        return "Only one micro-batch is under way at any time. What could stage 0 do while the others work on it?"
    if len(emptied) > 1:
        return (
            f"After {emptied[0]} micro-batches the pipeline runs empty, and is filled a second time. How often does it "
            "have to be filled?"
        )
    return (
        "The order keeps a stage waiting in the middle. Look for the first grey slot between two passes of a stage: "
        "which pass of its could be done there?"
    )


def _emptied(works: Sequence[Work]) -> list[int]:
    """After how many micro-batches nothing is under way any more, the end included."""
    under_way, done, found = 0, 0, []
    for work in works:
        under_way += 1 if work.kind == FORWARD else -1
        done += work.kind == BACKWARD
        if under_way == 0:
            found.append(done)
    return found

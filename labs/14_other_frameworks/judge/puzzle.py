"""The puzzle of lab 14: the program runs on the fake PyTorch, and each of the eight steps is judged by what it did.

A card that raises an error is noted and left out, and the rest runs again, so that one mistake does not hide others.
"""

from collections.abc import Callable
from itertools import chain

import numpy as np
from lab_14.given import CARDS, LINES
from lab_14.hints import Lab14PuzzleHint as Puzzle
from lab_14.program_run import (
    EPOCHS,
    PER_HOST,
    RANKS,
    ProgramFault,
    ProgramJob,
    RankRecord,
    drawn_job,
    run,
)

from distlab.labs.answer import Answer
from distlab.labs.puzzle_layout import Layout, layout_of
from distlab.labs.verdict import AnyHint, Verdict, not_done, parts, right, wrong

STEPS = (
    "1 initialise",
    "2 pin the device",
    "3 scale the learning rate",
    "4 average the gradients",
    "5 broadcast the weights",
    "6 checkpoint on rank 0",
    "7 shard the data",
    "8 steps per epoch",
)
INITIALISE, PIN, SCALE, AVERAGE, BROADCAST, CHECKPOINT, SHARD, STEPS_PER_EPOCH = STEPS
GUARDS = ("only rank 0", "only local rank 0")

Mistakes = dict[str, AnyHint]

_TOO_EARLY: dict[str, tuple[str, AnyHint]] = {
    "rate by size": (SCALE, Puzzle.RATE_BEFORE_OPTIONS),
    "rate by local size": (SCALE, Puzzle.RATE_BY_LOCAL_SIZE),
    "pin by rank": (PIN, Puzzle.PINNED_BY_RANK),
    "wrap": (AVERAGE, Puzzle.WRAPPED_BEFORE_NETWORK),
    "broadcast": (BROADCAST, Puzzle.BROADCAST_BY_HAND),
    "shard": (SHARD, Puzzle.SHARDED_BEFORE_IMAGES),
    "shard by local rank": (SHARD, Puzzle.SHARDED_PER_HOST),
    "set epoch": (SHARD, Puzzle.NO_EPOCH_YET),
    "init": (INITIALISE, Puzzle.INIT_IN_LOOP),
}
"""By card: its step, and what is said if the card raises an error."""


def judge_program(answer: Answer, generator: np.random.Generator) -> Verdict:
    """An eighth of the points for each step that has its effect."""
    layout = layout_of(answer.value("program"), LINES, CARDS)
    if not isinstance(layout, list):
        return wrong(layout)
    if not any(name in CARDS for name in layout):
        return not_done("no card has been placed")
    mistakes = _mistakes(layout, drawn_job(generator))
    return parts({step: wrong(mistakes[step]) if step in mistakes else right() for step in STEPS})


def _mistakes(layout: Layout, job: ProgramJob) -> Mistakes:
    """What is wrong with each step that is wrong."""
    mistakes: Mistakes = {}
    if "init" not in layout:
        mistakes[INITIALISE] = Puzzle.NO_INIT
        layout = ["init", *layout]
    layout = _without_misplaced_guards(layout, mistakes)
    is_divided = "steps by size" in layout
    # It leaves too few steps to judge the others by.
    layout = [name for name in layout if name != "steps by size"]
    placed = list(layout)
    while isinstance(records := run(layout, job), ProgramFault):
        layout = _after_fault(layout, records, mistakes)
    for step, judge in _JUDGES.items():
        if step not in mistakes and (mistake := judge(records, placed, job)):
            mistakes[step] = mistake
    if is_divided:
        is_of_share = STEPS_PER_EPOCH not in mistakes
        mistakes[STEPS_PER_EPOCH] = Puzzle.STEPS_DIVIDED if is_of_share else Puzzle.STEPS_DIVIDED_OF_ALL
    return mistakes


def _without_misplaced_guards(layout: Layout, mistakes: Mistakes) -> Layout:
    """Leave out the guards of any line but `save`: what they keep from the other ranks would end the program."""
    for guard in [name for name in layout if name in GUARDS]:
        line = next((name for name in layout[layout.index(guard) :] if name not in GUARDS), "nothing")
        if line == "nothing":
            mistakes[CHECKPOINT] = Puzzle.GUARDS_NOTHING
        elif line != "save":
            hint = Puzzle.GUARDS_A_COLLECTIVE if line in ("wrap", "broadcast", "init", "backward") else None
            hint = Puzzle.GUARDS_RESTORE if line == "restore" else hint or Puzzle.GUARDS_ANOTHER_LINE
            mistakes[CHECKPOINT] = hint.says(line=line)
        if line != "save":
            if guard == "only rank 0" and layout.index(guard) < layout.index("init"):
                mistakes.setdefault(INITIALISE, Puzzle.USED_BEFORE_INIT.says(card=guard))
            elif line == "init":
                mistakes.setdefault(INITIALISE, Puzzle.INIT_GUARDED)
            layout = [name for name in layout if name != guard]
    return layout


def _after_fault(layout: Layout, fault: ProgramFault, mistakes: Mistakes) -> Layout:
    """Note the error; the layout without it."""
    rest = [name for name in layout if name != fault.name]
    if fault.kind == "NotInitialised":
        mistakes.setdefault(INITIALISE, Puzzle.USED_BEFORE_INIT.says(card=fault.name))
        return ["init", *(name for name in layout if name != "init")]
    if fault.name == "init":
        mistakes.setdefault(INITIALISE, Puzzle.INIT_IN_LOOP)
        return ["init", *rest]
    step, hint = _TOO_EARLY[fault.name]
    if fault.name == "broadcast" and "wrap" not in layout:
        hint = Puzzle.BROADCAST_WITHOUT_WRAP
    if fault.kind == "AttributeError":
        hint = Puzzle.SET_EPOCH_OF_RANDOM_SAMPLER
    if not (fault.name == "set epoch" and "shard" not in layout):
        mistakes.setdefault(step, hint)
    return rest


def _pinned(records: list[RankRecord], layout: Layout, job: ProgramJob) -> AnyHint | None:
    if "pin by rank" in layout:
        return Puzzle.PINNED_BY_RANK
    if "pin by local rank" not in layout:
        return Puzzle.NOT_PINNED
    is_pinned = [record.device for record in records] == [rank % PER_HOST for rank in range(RANKS)]
    return None if is_pinned else Puzzle.PINNED_LATE


def _scaled(records: list[RankRecord], layout: Layout, job: ProgramJob) -> AnyHint | None:
    if "rate by local size" in layout:
        return Puzzle.RATE_BY_LOCAL_SIZE
    if "rate by size" not in layout:
        return Puzzle.RATE_NOT_SCALED
    return None if np.isclose(records[0].rate, RANKS * job.rate) else Puzzle.RATE_LATE


def _averaged(records: list[RankRecord], layout: Layout, job: ProgramJob) -> AnyHint | None:
    if "wrap" not in layout:
        return Puzzle.NOT_WRAPPED
    if records[0].models_wrapped > 1:
        return Puzzle.WRAPPED_IN_LOOP
    if all(all(record.averaged) for record in records):
        return None
    return Puzzle.WRAPPER_LOST if layout.index("wrap") < layout.index("model") else Puzzle.WRAPPED_LATE


def _broadcast(records: list[RankRecord], layout: Layout, job: ProgramJob) -> AnyHint | None:
    if "broadcast" in layout and "wrap" in layout:
        return Puzzle.BROADCAST_BY_HAND
    first = [record.first for record in records]
    if all(np.array_equal(first[0], own) for own in first):  # type: ignore[arg-type]
        return None  # by `broadcast` alone, too: that the gradients are not averaged is step 4
    return Puzzle.BROADCAST_WITHOUT_WRAP if "broadcast" in layout else Puzzle.STARTS_DIFFER


def _saved(records: list[RankRecord], layout: Layout, job: ProgramJob) -> AnyHint | None:
    writers = [rank for rank, record in enumerate(records) if record.saves]
    if "only local rank 0" in layout:
        return Puzzle.SECOND_GUARD if writers == [0] else Puzzle.ONE_PER_HOST_WRITES
    return None if writers == [0] else Puzzle.ALL_WRITE


def _sharded(records: list[RankRecord], layout: Layout, job: ProgramJob) -> AnyHint | None:
    if "shard" not in layout:
        return Puzzle.SHARDED_PER_HOST if "shard by local rank" in layout else Puzzle.NOT_SHARDED
    orders = [[list(chain.from_iterable(steps)) for steps in record.seen.values()] for record in records]
    together = [image for epochs in orders for image in epochs[0]]
    is_sharded = len(set(together)) == len(together)
    if "shard by local rank" in layout:
        return Puzzle.SECOND_SHARD if is_sharded else Puzzle.SHARDED_PER_HOST
    if not is_sharded:
        is_early = layout.index("shard") < layout.index("sampler")
        return Puzzle.SHARDED_EARLY if is_early else Puzzle.SHARDED_LATE
    if "set epoch" not in layout:
        return Puzzle.NO_SET_EPOCH
    own = orders[0]
    if all(own[epoch] == own[0] for epoch in range(EPOCHS)):
        return Puzzle.SET_EPOCH_WITHOUT_EFFECT
    return Puzzle.SET_EPOCH_LATE if own[0] == own[1] else None


def _counted(records: list[RankRecord], layout: Layout, job: ProgramJob) -> AnyHint | None:
    expected = -(-len(job.images) // RANKS) // job.batch
    steps = {len(epoch) for record in records for epoch in record.seen.values()}
    return None if steps == {expected} else Puzzle.STEPS_FOLLOW


_JUDGES: dict[str, Callable[[list[RankRecord], Layout, ProgramJob], AnyHint | None]] = {
    PIN: _pinned,
    SCALE: _scaled,
    AVERAGE: _averaged,
    BROADCAST: _broadcast,
    CHECKPOINT: _saved,
    SHARD: _sharded,
    STEPS_PER_EPOCH: _counted,
}

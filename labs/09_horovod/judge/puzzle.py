"""The puzzle of lab 09: what is wrong with a layout of cards between the lines of a serial program.

A layout is a list of names, those of LINES in their order and cards between them. Only what Horovod demands is judged,
so that several layouts are right.
"""

from collections.abc import Callable

import numpy as np
from lab_09.given import CARDS, LINES
from lab_09.hints import Lab09PuzzleHint as Puzzle

from distlab.labs.answer import Answer
from distlab.labs.puzzle_layout import Layout, layout_of
from distlab.labs.verdict import AnyHint, Verdict, not_done, parts, right, wrong

STEPS = (
    "1 initialise",
    "2 pin the device",
    "3 scale the learning rate",
    "4 wrap the tape",
    "5 broadcast the variables",
    "6 checkpoint on rank 0",
    "7 shard the data",
    "8 steps per epoch",
)

GUARD = "only rank 0"  # the one card that may be there twice: rank 0 alone reads the checkpoint too
Mistake = AnyHint | None


def judge_program(answer: Answer, generator: np.random.Generator) -> Verdict:
    """An eighth of the points for each step that is in its place."""
    layout = layout_of(answer.value("program"), LINES, CARDS, [GUARD])
    if not isinstance(layout, list):
        return wrong(layout)
    if not any(name in CARDS for name in layout):
        return not_done("no card has been placed")
    return parts({step: wrong(hint) if hint else right() for step, hint in _mistakes(layout).items()})


def _mistakes(layout: Layout) -> dict[str, Mistake]:
    """For each of STEPS what is wrong with it in this layout; None where it is right."""
    return {step: judge(layout) for step, judge in zip(STEPS, _JUDGES, strict=True)}


def _initialise(layout: Layout) -> Mistake:
    if "init" not in layout:
        return Puzzle.NO_INIT
    before = [name for name in layout[: layout.index("init")] if name in CARDS]
    return Puzzle.USED_BEFORE_INIT.says(card=before[0]) if before else None


def _pin(layout: Layout) -> Mistake:
    if mistake := _chosen(layout, "pin by local rank", "pin by rank", Puzzle.PINNED_BY_RANK, Puzzle.NOT_PINNED):
        return mistake
    place = layout.index("pin by local rank")
    if place > layout.index("model"):
        return Puzzle.PINNED_AFTER_MODEL
    return Puzzle.PINNED_BEFORE_INIT if "init" in layout and place < layout.index("init") else None


def _rate(layout: Layout) -> Mistake:
    local, missing = Puzzle.RATE_BY_LOCAL_SIZE, Puzzle.RATE_NOT_SCALED
    if mistake := _chosen(layout, "rate by size", "rate by local size", local, missing):
        return mistake
    if layout.index("rate by size") < layout.index("read options"):
        return Puzzle.RATE_BEFORE_OPTIONS
    return Puzzle.RATE_AFTER_OPTIMIZER if layout.index("rate by size") > layout.index("optimizer") else None


def _tape(layout: Layout) -> Mistake:
    if "wrap the tape" not in layout:
        return Puzzle.TAPE_NOT_WRAPPED
    place = layout.index("wrap the tape")
    if place > layout.index("gradients"):
        return Puzzle.TAPE_WRAPPED_LATE
    return Puzzle.TAPE_WRAPPED_EARLY if place < layout.index("loss") else None


def _broadcast(layout: Layout) -> Mistake:
    if "broadcast" not in layout:
        return Puzzle.NO_BROADCAST
    place = layout.index("broadcast")
    too_early = {
        "model": Puzzle.BROADCAST_BEFORE_MODEL,
        "slots": Puzzle.BROADCAST_BEFORE_SLOTS,
        "restore": Puzzle.BROADCAST_BEFORE_RESTORE,
    }
    for line, mistake in too_early.items():
        if place < layout.index(line):
            return mistake
    if place > layout.index("apply"):
        return Puzzle.BROADCAST_AFTER_TRAINING
    return Puzzle.BROADCAST_IN_LOOP if place > layout.index("steps") else None


def _checkpoint(layout: Layout) -> Mistake:
    local = Puzzle.ONE_PER_HOST_WRITES
    if mistake := _chosen(layout, "only rank 0", "only local rank 0", local, Puzzle.ALL_WRITE):
        return mistake
    lines = [line for name, line in zip(layout, [*layout[1:], "nothing"], strict=True) if name == GUARD]
    line = next((line for line in lines if line not in ("save", "restore")), lines[0])
    if "save" in lines and line in ("save", "restore"):
        return None
    is_collective = line in ("broadcast", "gradients", "wrap the tape")
    return (Puzzle.GUARDS_A_COLLECTIVE if is_collective else Puzzle.GUARDS_ANOTHER_LINE).says(line=line)


def _shard(layout: Layout) -> Mistake:
    if "batch by size" in layout:
        return Puzzle.GLOBAL_BATCHES
    if "shard" not in layout:
        return Puzzle.NOT_SHARDED
    place = layout.index("shard")
    if place < layout.index("shuffle"):
        return Puzzle.SHARDED_EARLY
    return Puzzle.SHARDED_LATE if place > layout.index("batch") else None


def _steps(layout: Layout) -> Mistake:
    local, missing = Puzzle.STEPS_BY_LOCAL_SIZE, Puzzle.STEPS_NOT_DIVIDED
    if mistake := _chosen(layout, "steps by size", "steps by local size", local, missing):
        return mistake
    if layout.index("steps by size") < layout.index("read options"):
        return Puzzle.STEPS_BEFORE_OPTIONS
    return Puzzle.STEPS_DIVIDED_LATE if layout.index("steps by size") > layout.index("steps") else None


def _chosen(layout: Layout, card: str, wrong_card: str, mistaken: Puzzle, missing: Puzzle) -> Mistake:
    """A hint if the wrong card is in the layout, or none of the two."""
    if wrong_card in layout:
        return mistaken
    return None if card in layout else missing


_JUDGES: tuple[Callable[[Layout], Mistake], ...] = (
    _initialise,
    _pin,
    _rate,
    _tape,
    _broadcast,
    _checkpoint,
    _shard,
    _steps,
)

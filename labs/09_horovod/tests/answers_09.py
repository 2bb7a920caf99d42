"""Layouts of lab 09's puzzle as students make them; the functions are in answers_09_horovod."""

from lab_09.given import LINES
from lab_09.hints import Lab09PuzzleHint as Hints

from distlab.labs.puzzle_layout import LayoutHint
from tests.distlab.labs.known_wrong import LabAnswers, written_solution

ANSWERS = LabAnswers()

SOLUTION = written_solution("09", "program")


def without(*cards):
    return [name for name in SOLUTION if name not in cards]


def moved(card, before):
    layout = without(card)
    layout.insert(layout.index(before), card)
    return layout


def instead(card, other):
    return [other if name == card else name for name in SOLUTION]


def wrong(title, layout, *hints, wrong_steps=1):
    ANSWERS.wrong_value("program", title, layout, *hints, share=(8 - wrong_steps) / 8)


wrong("no_init", without("init"), Hints.NO_INIT, "1 initialise")
wrong(
    "init_late",
    moved("init", "load"),
    Hints.USED_BEFORE_INIT,
    Hints.PINNED_BEFORE_INIT,
    "1 initialise",
    "'pin by local rank' already asks",
    wrong_steps=2,
)
wrong("rate_before_init", moved("rate by size", "init"), Hints.USED_BEFORE_INIT, "'rate by size' already asks")
wrong("pinned_by_rank", instead("pin by local rank", "pin by rank"), Hints.PINNED_BY_RANK)
wrong("not_pinned", without("pin by local rank"), Hints.NOT_PINNED)
wrong("pinned_after_the_model", moved("pin by local rank", "optimizer"), Hints.PINNED_AFTER_MODEL)
wrong("local_rate", instead("rate by size", "rate by local size"), Hints.RATE_BY_LOCAL_SIZE)
wrong("rate_not_scaled", without("rate by size"), Hints.RATE_NOT_SCALED)
wrong("rate_after_the_optimizer", moved("rate by size", "slots"), Hints.RATE_AFTER_OPTIMIZER)
wrong("tape_not_wrapped", without("wrap the tape"), Hints.TAPE_NOT_WRAPPED)
wrong("tape_wrapped_late", moved("wrap the tape", "apply"), Hints.TAPE_WRAPPED_LATE)
wrong("tape_wrapped_early", moved("wrap the tape", "steps"), Hints.TAPE_WRAPPED_EARLY)
wrong("no_broadcast", without("broadcast"), Hints.NO_BROADCAST)
wrong("broadcast_before_the_model", moved("broadcast", "model"), Hints.BROADCAST_BEFORE_MODEL)
wrong("broadcast_before_the_optimizer", moved("broadcast", "optimizer"), Hints.BROADCAST_BEFORE_SLOTS)
wrong("broadcast_before_the_checkpoint", moved("broadcast", "restore"), Hints.BROADCAST_BEFORE_RESTORE)
wrong("broadcast_in_each_step", moved("broadcast", "loss"), Hints.BROADCAST_IN_LOOP)
wrong("all_save", without("only rank 0"), Hints.ALL_WRITE)
wrong("one_saves_on_each_host", instead("only rank 0", "only local rank 0"), Hints.ONE_PER_HOST_WRITES)
wrong("rank_0_broadcasts_alone", moved("only rank 0", "broadcast"), Hints.GUARDS_A_COLLECTIVE, "it guards 'broadcast'")
wrong("rank_0_reads_alone", moved("only rank 0", "restore"), Hints.GUARDS_ANOTHER_LINE, "it guards 'restore'")
wrong("not_sharded", without("shard"), Hints.NOT_SHARDED)
wrong("sharded_after_batching", moved("shard", "steps"), Hints.SHARDED_LATE)
wrong("sharded_before_shuffling", moved("shard", "shuffle"), Hints.SHARDED_EARLY)
wrong("global_batches", [*SOLUTION[:12], "batch by size", *SOLUTION[12:]], Hints.GLOBAL_BATCHES)
wrong("steps_not_divided", without("steps by size"), Hints.STEPS_NOT_DIVIDED)
wrong("steps_by_local_size", instead("steps by size", "steps by local size"), Hints.STEPS_BY_LOCAL_SIZE)
wrong("steps_divided_late", moved("steps by size", "loss"), Hints.STEPS_DIVIDED_LATE)
ANSWERS.wrong_value("program", "a_line_lost", without("load"), LayoutHint.LINES_CHANGED)
ANSWERS.wrong_value("program", "a_name_misspelt", instead("init", "initialise"), LayoutHint.UNKNOWN_NAME)
ANSWERS.wrong_value("program", "a_card_twice", ["init", *SOLUTION], LayoutHint.NAME_TWICE)
ANSWERS.wrong_value("program", "one_text", " ".join(SOLUTION), LayoutHint.NOT_NAMES)

wrong(
    "rate_before_the_options",
    moved("rate by size", "read options"),
    Hints.USED_BEFORE_INIT,
    Hints.RATE_BEFORE_OPTIONS,
    wrong_steps=2,
)
wrong("broadcast_after_the_loop", moved("broadcast", "only rank 0"), Hints.BROADCAST_AFTER_TRAINING)
FIRST = ["init", "pin by local rank", "steps by size"]
wrong("steps_before_the_options", [*FIRST, *without(*FIRST)], Hints.STEPS_BEFORE_OPTIONS)

EARLY = ("init", "pin by local rank")
ANSWERS.right_answers["program"] += [
    ("all_that_can_be_early", {"program": [*EARLY, *without(*EARLY)]}),
    ("init_as_late_as_it_can_be", {"program": moved("init", "pin by local rank")}),
    ("rank_0_alone_reads_too", {"program": [*SOLUTION[:8], "only rank 0", *SOLUTION[8:]]}),
    ("broadcast_just_before_the_loop", {"program": tuple(moved("broadcast", "steps"))}),
]

ANSWERS.solved("program", SOLUTION, untouched=list(LINES))

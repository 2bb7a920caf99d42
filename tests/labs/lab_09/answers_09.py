"""Layouts of lab 09's puzzle as students make them; the functions are in answers_09_horovod."""

from distlab.labs.lab_09.puzzle import LINES
from tests.labs.known_wrong import LabAnswers, written_solution

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


def wrong(title, layout, *hint, wrong_steps=1):
    ANSWERS.wrong_value("program", title, layout, *hint, share=(8 - wrong_steps) / 8)


wrong("no_init", without("init"), "1 initialise", "no rank knows its number")
wrong("init_late", moved("init", "load"), "1 initialise", "'pin by local rank' already asks", wrong_steps=2)
wrong("rate_before_init", moved("rate by size", "init"), "'rate by size' already asks")
wrong("pinned_by_rank", instead("pin by local rank", "pin by rank"), "Is there a gpus[4]")
wrong("not_pinned", without("pin by local rank"), "takes memory on every GPU")
wrong("pinned_after_the_model", moved("pin by local rank", "optimizer"), "has taken its devices by then")
wrong("local_rate", instead("rate by size", "rate by local size"), "How many ranks does this card count")
wrong("rate_not_scaled", without("rate by size"), "each step is as long as before")
wrong("rate_after_the_optimizer", moved("rate by size", "slots"), "was made with the old value")
wrong("tape_not_wrapped", without("wrap the tape"), "the models drift apart")
wrong("tape_wrapped_late", moved("wrap the tape", "apply"), "nobody has averaged them")
wrong("tape_wrapped_early", moved("wrap the tape", "steps"), "there is no tape here yet")
wrong("no_broadcast", without("broadcast"), "keep their distance")
wrong("broadcast_before_the_model", moved("broadcast", "model"), "no variable yet")
wrong("broadcast_before_the_optimizer", moved("broadcast", "optimizer"), "it knows no model yet")
wrong("broadcast_before_the_checkpoint", moved("broadcast", "restore"), "read from the checkpoint afterwards")
wrong("broadcast_in_each_step", moved("broadcast", "loss"), "How often is it needed")
wrong("broadcast_at_the_end", [*without("broadcast"), "broadcast"], "The training is over".lower())
wrong("all_save", without("only rank 0"), "write the same files")
wrong("one_saves_on_each_host", instead("only rank 0", "only local rank 0"), "Every host has a process".lower())
wrong("rank_0_broadcasts_alone", moved("only rank 0", "broadcast"), "it guards 'broadcast'", "never come to it")
wrong("rank_0_reads_alone", moved("only rank 0", "restore"), "it guards 'restore'")
wrong("not_sharded", without("shard"), "with the same samples")
wrong("sharded_after_batching", moved("shard", "steps"), "does not reach it any more")
wrong("sharded_before_shuffling", moved("shard", "shuffle"), "no `samples` here yet")
wrong("global_batches", [*SOLUTION[:12], "batch by size", *SOLUTION[12:]], "batches of global size")
wrong("steps_not_divided", without("steps by size"), "call it one epoch")
wrong("steps_by_local_size", instead("steps by size", "steps by local size"), "each host goes through all of it")
wrong("steps_divided_late", moved("steps by size", "loss"), "has asked for `steps` already")
ANSWERS.wrong_value("program", "a_line_lost", without("load"), "all and in their order")
ANSWERS.wrong_value("program", "a_name_misspelt", instead("init", "initialise"), "neither a line nor a card")
ANSWERS.wrong_value("program", "a_card_twice", ["init", *SOLUTION], "more than once")
ANSWERS.wrong_value("program", "one_text", " ".join(SOLUTION), "is a list of names")

EARLY = ("init", "pin by local rank", "rate by size", "steps by size")
ANSWERS.right_answers["program"] += [
    ("all_that_can_be_early", {"program": [*EARLY, *without(*EARLY)]}),
    ("init_as_late_as_it_can_be", {"program": moved("init", "pin by local rank")}),
    ("broadcast_just_before_the_loop", {"program": tuple(moved("broadcast", "steps"))}),
]

ANSWERS.solved("program", SOLUTION, untouched=list(LINES))

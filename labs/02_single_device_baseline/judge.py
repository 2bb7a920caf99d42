"""The judge of lab 02: a shuffled pipeline, what a second epoch repeats, steps per execution.

`fast_training` has the exercise on a slow program. Nothing is timed: what pipelines and trainings do is counted.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from lab_02 import observe
from lab_02.fast_training import ACROSS, FAST, mixing_of

from distlab.labs import Exercise, Lab
from distlab.labs.by_programs import ByPrograms, Follows, Hint, Mistake, changed, formulas
from distlab.labs.number_judge import described

# A shuffled pipeline -------------------------------------------------------------------------------------------------

EPOCHS, MIXING, NEW = ("epochs", "mixing", "new order")
MANY = 30  # epochs, so that chance decides nothing


class Pipeline(NamedTuple):
    """One call."""

    count: int
    batch: int
    epochs: int


def facts_of_batches(case: Pipeline, batches: Sequence[Sequence[int]]) -> dict[str, Any]:
    """What is the same in every run of a program, whatever its order: by part of the exercise."""
    steps = -(-case.count // case.batch)
    if len(batches) != steps * case.epochs:
        return {EPOCHS: len(batches), MIXING: "unknown", NEW: False}
    epochs = [batches[start : start + steps] for start in range(0, len(batches), steps)]
    orders = [[number for batch in epoch for number in batch] for epoch in epochs]
    sizes = sorted({tuple(sorted(map(len, epoch))) for epoch in epochs})
    is_complete = all(sorted(order) == list(range(case.count)) for order in orders)
    return {
        EPOCHS: [*map(list, sizes), is_complete],
        MIXING: mixing_of(epochs, case.count - max(6, case.count // 20)),
        NEW: len({tuple(order) for order in orders}) == len(orders),
    }


def form_of_batches(case: Pipeline, value: Any) -> str | None:
    """What is no dataset of batches."""
    return f"`mixed_batches` gives {value}; a dataset of batches is asked for." if isinstance(value, str) else None


def mixed_batches(numbers: Any, batch: int, epochs: int) -> Any:
    """Shuffle with a buffer for all, then batch, then repeat."""
    return numbers.shuffle(len(numbers)).batch(batch).repeat(epochs)


SLICES = (
    "each batch holds neighbours, so every batch has one class. What does `shuffle` move where it is written: numbers, "
    "or whole batches?"
)
SHORT = "no number comes many places earlier than it was stored. How many numbers does the buffer of `shuffle` hold?"
FEW = "that buffer holds all numbers only where there are few. On what must its size depend?"
KEPT = "every epoch has the order of the first. What keeps it: a cache behind the shuffle, or an option of `shuffle`?"
MIXED_FORMULAS: dict[str, Hint] = {
    "numbers.batch(batch).repeat(epochs)": {MIXING: "the batches are in the stored order. What mixes them?"},
    "numbers.batch(batch).shuffle(99).repeat(epochs)": {MIXING: SLICES},
    "numbers.shuffle(batch).batch(batch).repeat(epochs)": {MIXING: SHORT},
    "numbers.shuffle(50).batch(batch).repeat(epochs)": {MIXING: FEW},
    "mixed.cache().batch(batch).repeat(epochs)": {NEW: KEPT},
    "mixed.repeat(epochs).batch(batch)": {EPOCHS: ACROSS},
    "numbers.repeat(epochs).shuffle(len(numbers)).batch(batch)": {
        EPOCHS: "a number comes twice before all have come once. Should `shuffle` see the end of an epoch?"
    },
    "mixed.batch(batch, drop_remainder=True).repeat(epochs)": {
        EPOCHS: "some numbers are missing in each epoch: what happens to those that do not fill a batch?"
    },
    "mixed.batch(batch)": {EPOCHS: "there is one epoch only. Which transformation begins the next one?"},
    "mixed.batch(batch).repeat()": {EPOCHS: "the dataset does not end after the last epoch. How often does it repeat?"},
}
MIXED = ByPrograms(
    mixed_batches,
    lambda generator: [
        Pipeline(30, int(generator.integers(7, 9)), MANY),
        Pipeline(28, 7, MANY),
        Pipeline(int(generator.integers(10_800, 10_900)), 1500, 2),
    ],
    said=lambda case: f"for {case.count:,} numbers in batches of {case.batch:,}",
    parts=(EPOCHS, MIXING, NEW),
    split=facts_of_batches,
    after={MIXING: [EPOCHS], NEW: [EPOCHS, MIXING]},
    form=form_of_batches,
    observe=lambda answer, case: answer.inside(observe.watch_batches, *case),
    otherwise={
        EPOCHS: "count the batches and the numbers in them: each epoch must have every number once.",
        MIXING: "are the numbers of a batch from all over the data?",
        NEW: KEPT,
    },
    praise=lambda cases: f"{MANY} epochs, each with every number once, in {MANY} orders.",
    mistakes=formulas(
        mixed_batches,
        {"": MIXED_FORMULAS},
        lambda numbers, batch, epochs: {"mixed": numbers.shuffle(len(numbers))},
    ),
)

# What a second epoch repeats -----------------------------------------------------------------------------------------

ORDER, AUGMENTATION = FROZEN = ("order", "augmentation")


class Passes(NamedTuple):
    """A batch size, and the passes in turn: of each image its number and its two values; see `watch_repeats`."""

    batch: int
    passes: list[list[tuple[int, float, float]]]
    is_noisy: bool = False


def drawn_passes(generator: np.random.Generator, *, order: str, augmentation: str, count: int = 11) -> Passes:
    """Order and augmentation of the second pass: as the first, new, or new in one place; what was added, moved; flips.

    An image is its number and what was added, which is never a whole number.
    """
    numbers, added = generator.permutation(count), generator.permutation(count) / 16 + 17 / 32
    again, added_again = numbers.copy(), added.copy()
    if order == "new":
        again = np.roll(numbers, int(generator.integers(4, count - 3)))
    if order == "new at the end":
        again[-2:] = numbers[[-1, -2]]
    if augmentation == "new":
        added_again = added + 1
    if augmentation == "moved":
        added_again = np.roll(added, 1)
    if augmentation == "new at the end":
        added_again[numbers[-1]] += 1
    first = [(int(number), float(number), float(added[number])) for number in numbers]
    second = [(int(number), float(number), float(added_again[number])) for number in again]
    if augmentation == "flipped":
        second = [(number, right, left) for number, left, right in second]
    return Passes(4, [first, second])


def all_passes(generator: np.random.Generator) -> list[Passes]:
    """Random numbers that start again in each pass, so that all repeats; then what does not, or only nearly."""
    kinds = [("new", "same"), ("new", "new"), ("same", "flipped"), ("same", "moved"), ("new", "new at the end")]
    kinds += [("new at the end", "same"), ("same", "new at the end")]
    drawn = [drawn_passes(generator, order=order, augmentation=augmentation) for order, augmentation in kinds]
    return [Passes(4, drawn[0].passes[:1], is_noisy=True), *drawn]


def form_of_repeats(case: Passes, value: Any) -> str | None:
    """What is no truth value."""
    for part in FROZEN:
        if value[part] is not None and not isinstance(value[part], bool):
            return f'give `True` or `False` for "{part}"; yours is {described(value[part])}.'
    return None


REPEATS = '''
def repeats(dataset):
    """Two passes, compared by the numbers of the images."""
    passes = []
    for _ in range(2):
        batches = [(np.asarray(images), np.asarray(numbers)) for images, numbers in dataset]
        passes.append([np.concatenate(field) for field in zip(*batches)])
    (images, numbers), (images_again, numbers_again) = passes
    images, images_again = images[np.argsort(numbers)], images_again[np.argsort(numbers_again)]
    return {
        "order": np.array_equal(numbers, numbers_again),
        "augmentation": np.array_equal(images, images_again),
    }
'''
ALIGNED = "    images, images_again = images[np.argsort(numbers)], images_again[np.argsort(numbers_again)]\n"
IN_ORDER, IN_IMAGES = "np.array_equal(numbers, numbers_again)", "np.array_equal(images, images_again)"
ONE_PASS = (
    "this is true of every dataset: a pass is compared with itself. Each epoch begins a new pass through the dataset. "
    "Where does yours begin?"
)
NEVER = "this finds no repetition anywhere. Are two passes compared, or two batches of one pass?"
PLACES = (
    "images are compared place by place, so that a new order looks like a new augmentation. By what do you find the "
    "same image again?"
)
WRONG_REPEATS: list[tuple[Sequence[str], str, list[tuple[str, str]]]] = [
    (
        FROZEN,
        ONE_PASS,
        [("for _ in range(2):\n", "once = list(dataset)\n    for _ in range(2):\n"), ("in dataset]", "in once]")],
    ),
    ([AUGMENTATION], PLACES, [(ALIGNED, "")]),
    (
        FROZEN,
        "the second epoch differs only at its end. How far does your comparison go?",
        [("in dataset]", "in list(dataset)[:1]]")],
    ),
    (
        [AUGMENTATION],
        "here both epochs are one pass, in which random numbers go on. Each epoch of `fit` begins a new pass. What "
        "begins your second one?",
        [
            (
                "for _ in range(2):\n",
                "whole = list(dataset.repeat(2))\n"
                "    for epoch in (whole[: len(whole) // 2], whole[len(whole) // 2 :]):\n",
            ),
            ("in dataset]", "in epoch]"),
        ],
    ),
    (
        [ORDER],
        "batches that begin alike, or hold the same numbers, can have another order. What is compared inside a batch?",
        [
            (IN_ORDER, "np.array_equal(*firsts)"),
            ("passes = []\n", "passes, firsts = [], []\n"),
            (
                "        passes.append",
                "        firsts.append([numbers[0] for _, numbers in batches])\n        passes.append",
            ),
        ],
    ),
    (
        [ORDER],
        "every epoch has the same numbers. Are they in the same order?",
        [(IN_ORDER, "set(numbers) == set(numbers_again)")],
    ),
    (
        FROZEN,
        "that is what is new; what the second epoch repeats is asked for.",
        [(IN_ORDER, f"not {IN_ORDER}"), (IN_IMAGES, f"not {IN_IMAGES}")],
    ),
    (
        [AUGMENTATION],
        "sums and means can agree although the images differ. What must be equal in each image?",
        [(IN_IMAGES, "np.isclose(images.sum(), images_again.sum())")],
    ),
    (
        [AUGMENTATION],
        "a flipped image has the same values in other places, and the same sum. What must be equal in each place?",
        [(IN_IMAGES, "np.array_equal(images.sum(axis=1), images_again.sum(axis=1))")],
    ),
    (
        [AUGMENTATION],
        "that some values are equal is not enough. Which values of which images must be?",
        [(IN_IMAGES, "np.array_equal(images[:, 0], images_again[:, 0])")],
    ),
    (
        [AUGMENTATION],
        "one image that repeats can be chance. Do all images repeat?",
        [(IN_IMAGES, "(images == images_again).all(axis=1).any()")],
    ),
    (
        FROZEN,
        "the two answers are exchanged: which of them belongs to the numbers?",
        [(IN_ORDER, "other"), (IN_IMAGES, IN_ORDER), ("other", IN_IMAGES)],
    ),
]
REPEATED = ByPrograms(
    changed(REPEATS),
    all_passes,
    said=lambda case: "",
    parts=FROZEN,
    form=form_of_repeats,
    observe=lambda answer, case: answer.inside(observe.watch_repeats, *case),
    otherwise={
        ORDER: "compare the numbers of two passes, in their order.",
        AUGMENTATION: "all values of all images must be equal, each image with the one of the same number.",
    },
    praise=lambda cases: f"{len(cases)} pipelines, some of which repeat nearly.",
    mistakes=[
        *(Mistake(dict.fromkeys(parts, hint), changed(REPEATS, *changes)) for parts, hint, changes in WRONG_REPEATS),
        Mistake(dict.fromkeys(FROZEN, NEVER), lambda dataset: dict.fromkeys(FROZEN, False)),
    ],
)

# Steps per execution -------------------------------------------------------------------------------------------------

TOGETHER, EXECUTIONS, SECONDS, FASTER = PLAN = (
    "steps per execution",
    "executions per epoch",
    "seconds per epoch",
    "times as fast",
)


def plan(steps: int, every: int, python: int, graph: int) -> dict[str, float]:
    """The smallest divisor of `every` with at most 5 % for Python; the times are in microseconds."""
    fitting = [k for k in range(1, every + 1) if every % k == 0 and 20 * python <= python + k * graph]
    together = fitting[0] if fitting else every
    executions = -(-steps // together)
    seconds = (executions * python + steps * graph) / 1e6
    return {
        TOGETHER: together,
        EXECUTIONS: executions,
        SECONDS: seconds,
        FASTER: steps * (python + graph) / 1e6 / seconds,
    }


def settings(generator: np.random.Generator) -> list[tuple[int, int, int, int]]:
    """In the middle, above 5 %, below it, where no number is enough, where one is, and with fast steps.

    No share is 5 % exactly: there the rounding of the answer's own formula would decide.
    """
    graph = 19 * int(generator.integers(20, 60))
    return [
        (int(generator.integers(20, 40)) * 12 + 7, 60, 103 * graph // 190, graph),
        (4 * 73, 48, 12 * graph // 19 + graph // 100 + 1, graph),
        (4 * 71, 48, 12 * graph // 19 - graph // 100 - 1, graph),
        (205, 10, 30 * graph, graph),
        (180, 20, graph // 38, graph),
        (500, 44, 10, 9),
    ]


def other_numbers(steps: int, every: int, python: int, graph: int) -> dict[str, int]:
    """Steps per execution by other rules."""
    enough = math.ceil(19 * python / graph)
    divisors = [k for k in range(1, every + 1) if every % k == 0]
    return {
        "enough": max(enough, 1),
        "of_epoch": next((k for k in range(1, steps + 1) if steps % k == 0 and 19 * python <= k * graph), every),
        "or_one": next((k for k in divisors if 20 * python <= python + k * graph), 1),
        "largest": max([k for k in divisors if 20 * python > python + k * graph], default=1),
        "of_steps": next((k for k in divisors if 20 * python <= k * graph), every),
        "of_both": next((k for k in divisors if steps % k == 0 and 20 * python <= python + k * graph), every),
        "of_two": next((k for k in divisors if 2 * python <= python + k * graph), every),
    }


PLAN_FORMULAS = {
    TOGETHER: {
        "enough": "the callback must see every {every} steps: which numbers of steps end exactly there?",
        "of_epoch": "that divides the {steps} steps of the epoch. After how many steps must the callback run?",
        "or_one": "no number that divides {every} is enough here. Which one does the text ask for then?",
        "of_steps": "5 % of what? The time of an execution is that of Python and of its steps together.",
        "of_both": "an epoch may end with a shorter execution. What else must the number divide?",
        "every": "Python's share is small enough with fewer steps, too: the smallest such number is asked for.",
        "largest": "Python takes more than 5 % of an execution of so many steps.",
        "of_two": "that is where Python takes half of the time. How many steps make its share 5 %?",
        "1": "with one step per execution Python is paid in each step. What is its share?",
    },
    EXECUTIONS: {
        "steps // steps_per_execution": "the steps that do not fill an execution are trained on too, in a shorter one.",
        "steps // steps_per_execution + 1": "if no step is left over, there is no further execution.",
        "steps / steps_per_execution": "an execution is a call, so their number is whole.",
        "steps": "how many steps does one execution make?",
    },
    SECONDS: {
        "seconds_per_epoch * 1e6": "this is in microseconds.",
        "seconds_per_epoch * 1e3": "this is in milliseconds.",
        "steps * (python + graph) / 1e6": "that is the time with one step per execution.",
        "(python + steps * graph) / 1e6": "Python is paid once in each execution, not once in an epoch.",
        "executions_per_epoch * (python + steps_per_execution * graph) / 1e6": (
            "the last execution may be shorter: how many steps has the epoch?"
        ),
        "executions_per_epoch * (python + graph) / 1e6": "an execution makes several steps, and each takes its time.",
    },
    FASTER: {
        "1 / times_as_fast": "that is below 1: which time is divided by which?",
        "steps_per_execution": "only Python's part becomes smaller; the steps take as long as before.",
        "steps * (python + graph) / 1e6 - seconds_per_epoch": "that is a difference of seconds, not a factor.",
        "steps_per_execution * (python + graph) / (python + steps_per_execution * graph)": (
            "that is the factor of a full execution. How long is the last one of an epoch?"
        ),
        "(python + graph) / graph": "that would be the factor if Python took no time at all.",
    },
}


def executions_of(case: tuple[int, ...], own: Mapping[str, Any]) -> float:
    """From the answer's steps per execution."""
    return -(-case[0] // own[TOGETHER])


def seconds_of(case: tuple[int, ...], own: Mapping[str, Any]) -> float:
    """From the answer's executions."""
    steps, _, python, graph = case
    return (own[EXECUTIONS] * python + steps * graph) / 1e6


def factor_of(case: tuple[int, ...], own: Mapping[str, Any]) -> float:
    """From the answer's seconds."""
    steps, _, python, graph = case
    return steps * (python + graph) / 1e6 / own[SECONDS]


STEPS_PLAN = ByPrograms(
    plan,
    settings,
    said=lambda case: "for {:,} steps, a callback every {} steps, {:,} µs of Python and {:,} µs per step".format(*case),
    parts=PLAN,
    otherwise="not right. Draw an execution as a bar: Python first, then its steps.",
    follows=[
        Follows(EXECUTIONS, TOGETHER, executions_of),
        Follows(SECONDS, EXECUTIONS, seconds_of),
        Follows(FASTER, SECONDS, factor_of),
    ],
    mistakes=formulas(plan, PLAN_FORMULAS, other_numbers),
)

# The lab -------------------------------------------------------------------------------------------------------------

LAB = Lab(
    "02_single_device_baseline",
    [
        Exercise("mixed_batches", 3, MIXED),
        Exercise("repeats", 4, REPEATED),
        Exercise("plan", 4, STEPS_PLAN),
        Exercise("train", 4, FAST),
    ],
    tensorflow=True,
)

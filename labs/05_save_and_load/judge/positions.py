"""The images of any step, in any order of asking: an exercise of lab 05 and its judge."""

from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from lab_05.hints import Lab05Hint
from lab_05.observe import numbers_after_restart
from numpy.typing import NDArray

from distlab.labs.answer import Answer
from distlab.labs.plain_data import Plain
from distlab.labs.verdict import AnyHint, Verdict, right, wrong

EPOCHS = 12  # by then each image has been in a step, unless it is left out on purpose
EPOCHS_OF_OTHER_SEED, EPOCHS_AFTER_RESTART = 4, 2

Numbers = NDArray[np.int64]
Table = dict[int, list[int]]
"""The images of each step."""


class DataOrder(NamedTuple):
    """Images of the data set, images in a batch, seed."""

    images: int
    batch: int
    seed: int

    @property
    def per_epoch(self) -> int:
        """Whole batches in an epoch."""
        return self.images // self.batch


def numbers_of(step: int, images: int, batch: int, seed: int) -> Numbers:
    """The numbers of the images of a step: a function of its arguments alone."""
    epoch, place = divmod(step, images // batch)
    order: Numbers = np.random.default_rng([seed, epoch]).permutation(images)
    return order[place * batch : (place + 1) * batch]


def _drawn(generator: np.random.Generator) -> DataOrder:
    batch = int(generator.integers(3, 6))
    images = batch * int(generator.integers(4, 7)) + int(generator.integers(1, batch))
    return DataOrder(images, batch, int(generator.integers(1, 500)))


def judge_numbers_of(answer: Answer, generator: np.random.Generator) -> Verdict:
    """All steps of some epochs, asked for in any order, some of them twice; with another seed; after a restart."""
    for case in (_drawn(generator), _drawn(generator)):
        steps = generator.permutation(EPOCHS * case.per_epoch).tolist()
        hint, table = _asked(answer, case, [*steps, *steps[: case.per_epoch]])
        if hint := hint or _hint(table, case):
            return wrong(hint)
        again = case._replace(seed=case.seed + 1)
        hint, next_table = _asked(answer, again, list(range(EPOCHS_OF_OTHER_SEED * case.per_epoch)))
        if hint := hint or _hint_of_seed(table, next_table, case) or _hint_of_restart(answer, table, case):
            return wrong(hint)
    return right()


def _asked(answer: Answer, case: DataOrder, steps: list[int]) -> tuple[AnyHint | None, Table]:
    """The images of each of these steps, some of which may be there twice; the hint says why this ends early."""
    table: Table = {}
    for step in steps:
        said = answer.call("numbers_of", step, *case)
        numbers = _numbers(said, case)
        if numbers is None:
            values = {"batch": case.batch, "last": case.images - 1, "step": step, "said": _in_words(said)}
            return Lab05Hint.NO_NUMBERS.says(**values), table
        if table.setdefault(step, numbers) != numbers:
            return Lab05Hint.DEPENDS_ON_CALLS.says(step=step), table
    return None, table


def _in_words(said: Plain) -> str:
    """A value as a student reads it, and what it is that it should not be."""
    text = " ".join(repr(said).split())[:60]
    try:
        numbers = np.asarray(said)
    except ValueError:
        return text
    if numbers.ndim != 1:
        return f"{text}, which has the shape {numbers.shape}"
    return f"{text}, which are not whole numbers" if numbers.dtype.kind == "f" and numbers.size else text


def _numbers(said: Plain, case: DataOrder) -> list[int] | None:
    """The numbers as a list; None if they are none of this data set, or not as many as in a batch."""
    try:
        numbers = np.asarray(said)
    except ValueError:
        return None
    if numbers.shape != (case.batch,) or numbers.dtype.kind not in "iu":
        return None
    return numbers.tolist() if numbers.min() >= 0 and numbers.max() < case.images else None


def _order(table: Table, epoch: int, case: DataOrder) -> list[int]:
    """The images of an epoch, in the order in which its steps have them."""
    steps = range(epoch * case.per_epoch, (epoch + 1) * case.per_epoch)
    return [image for step in steps for image in table[step]]


def _hint(table: Table, case: DataOrder) -> AnyHint | None:
    """What is wrong with the orders of one seed."""
    for step in sorted(table):
        if twice := [image for image in table[step] if table[step].count(image) > 1]:
            return Lab05Hint.TWICE_IN_STEP.says(step=step, image=twice[0])
    orders = []
    for epoch in range(EPOCHS):
        step_of: dict[int, int] = {}
        for step in range(epoch * case.per_epoch, (epoch + 1) * case.per_epoch):
            for image in table[step]:
                if image in step_of:
                    first, settings = step_of[image], {"images": case.images, "batch": case.batch}
                    return Lab05Hint.TWICE_IN_EPOCH.says(first=first, step=step, image=image, **settings)
                step_of[image] = step
        orders.append(list(step_of))
    distances = np.diff(orders, axis=1) % case.images
    if (distances == distances[0, 0]).all() and orders[0] != orders[1]:
        return Lab05Hint.ONLY_SHIFTED
    for earlier, later in combinations(range(EPOCHS), 2):
        if orders[later] == orders[earlier]:
            return Lab05Hint.SAME_EVERY_EPOCH.says(epoch=later, earlier=earlier)
        if len(_batches(orders[later], case) & _batches(orders[earlier], case)) > case.per_epoch // 2:
            return Lab05Hint.ONLY_BATCHES
        if change := _change(orders[earlier], orders[later], case):
            return Lab05Hint.NOT_SHUFFLED_AGAIN.says(epoch=later, earlier=earlier, change=change)
    never = set(range(case.images)) - {image for order in orders for image in order}
    return Lab05Hint.NEVER_USED.says(image=min(never), epochs=EPOCHS) if never else None


def _batches(order: list[int], case: DataOrder) -> set[frozenset[int]]:
    return {frozenset(order[begin : begin + case.batch]) for begin in range(0, len(order), case.batch)}


def _change(order: list[int], changed: list[int], case: DataOrder) -> str | None:
    """How one order follows from another without shuffling: in words, None if it does not."""
    if len(set(np.subtract(changed, order) % case.images)) == 1:
        return "with the same number added to each image"
    neighbours = set(pairwise(order))
    half = len(neighbours) / 2
    if len(neighbours & set(pairwise(changed))) > half:
        return "beginning elsewhere"
    return "backwards" if len(neighbours & set(pairwise(reversed(changed)))) > half else None


def _hint_of_seed(table: Table, next_table: Table, case: DataOrder) -> AnyHint | None:
    """What is wrong with the orders of the next seed, which are in `next_table`."""
    seeds = {"seed": case.seed, "other": case.seed + 1}
    if all(table[step] == numbers for step, numbers in next_table.items()):
        return Lab05Hint.SAME_FOR_EVERY_SEED.says(**seeds)
    for epoch in range(EPOCHS_OF_OTHER_SEED):
        order, changed = _order(table, epoch, case), _order(next_table, epoch, case)
        if order == changed:
            return Lab05Hint.SAME_FOR_SEEDS_IN_AN_EPOCH.says(epoch=epoch, **seeds)
        if change := _change(order, changed, case):
            return Lab05Hint.SEED_DOES_NOT_SHUFFLE.says(epoch=epoch, change=change, **seeds)
    return None


def _hint_of_restart(answer: Answer, table: Table, case: DataOrder) -> AnyHint | None:
    """A new process asks for the last epoch first."""
    steps = sorted(table, reverse=True)[: EPOCHS_AFTER_RESTART * case.per_epoch]
    said = answer.inside(numbers_after_restart, [[step, *case] for step in steps])
    if not isinstance(said, list) or len(said) != len(steps):
        return None  # the function's cell is not known, or does not run a second time
    differing = [step for step, numbers in zip(steps, said, strict=True) if _numbers(numbers, case) != table[step]]
    return Lab05Hint.LOST_AT_RESTART.says(step=differing[0]) if differing else None

"""The images of any step, in any order of asking: an exercise of lab 05 and its judge."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from distlab.labs.answer import Answer
from distlab.labs.lab_05.hints import Lab05Hint
from distlab.labs.plain_data import Plain
from distlab.labs.verdict import AnyHint, Verdict, not_done, right, wrong

EPOCHS = 12  # by then each image has been in a step, unless it is left out on purpose

Numbers = NDArray[np.int64]


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
    """All steps of some epochs, asked for in any order, some of them twice, and with another seed."""
    for case in (_drawn(generator), _drawn(generator)):
        steps = generator.permutation(EPOCHS * case.per_epoch).tolist()
        table: dict[int, list[int]] = {}
        for step in [*steps, *steps[: case.per_epoch]]:
            said = answer.call("numbers_of", step, *case)
            if said is None:
                return not_done("`numbers_of` gives None")
            numbers = _numbers(said, case)
            if numbers is None:
                in_words = repr(said)[:60]
                hint = Lab05Hint.NO_NUMBERS.says(batch=case.batch, last=case.images - 1, step=step, said=in_words)
                return wrong(hint)
            if table.setdefault(step, numbers) != numbers:
                return wrong(Lab05Hint.DEPENDS_ON_CALLS.says(step=step))
        if hint_of_order := _hint(table, case):
            return wrong(hint_of_order)
        again = case._replace(seed=case.seed + 1)
        if all(_numbers(answer.call("numbers_of", step, *again), case) == table[step] for step in range(3)):
            return wrong(Lab05Hint.SAME_FOR_EVERY_SEED)
    return right()


def _numbers(said: Plain, case: DataOrder) -> list[int] | None:
    """The numbers as a list; None if they are none of this data set, or not as many as in a batch."""
    try:
        numbers = np.asarray(said)
    except ValueError:
        return None
    if numbers.shape != (case.batch,) or numbers.dtype.kind not in "iu":
        return None
    return numbers.tolist() if numbers.min() >= 0 and numbers.max() < case.images else None


def _hint(table: dict[int, list[int]], case: DataOrder) -> AnyHint | None:
    orders = []
    for epoch in range(EPOCHS):
        steps = range(epoch * case.per_epoch, (epoch + 1) * case.per_epoch)
        step_of: dict[int, int] = {}
        for step in steps:
            for image in table[step]:
                if image in step_of:
                    first, settings = step_of[image], {"images": case.images, "batch": case.batch}
                    return Lab05Hint.TWICE_IN_EPOCH.says(first=first, step=step, image=image, **settings)
                step_of[image] = step
        orders.append(list(step_of))
    repeated = next((epoch for epoch in range(1, EPOCHS) if orders[epoch] == orders[0]), None)
    if repeated is not None:
        return Lab05Hint.SAME_EVERY_EPOCH.says(epoch=repeated)
    never = set(range(case.images)) - {image for order in orders for image in order}
    distances = np.diff(orders, axis=1) % case.images
    if (distances == distances[0, 0]).all():
        return Lab05Hint.ONLY_SHIFTED
    batches = [
        {frozenset(table[epoch * case.per_epoch + place]) for place in range(case.per_epoch)} for epoch in (0, 1)
    ]
    if len(batches[0] & batches[1]) > case.per_epoch // 2:
        return Lab05Hint.ONLY_BATCHES
    return Lab05Hint.NEVER_USED.says(image=min(never), epochs=EPOCHS) if never else None

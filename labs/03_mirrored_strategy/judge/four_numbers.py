"""Exercise `numbers` of lab 03: global batch, steps, updates and the last batch of a mirrored training."""

import numpy as np
from lab_03.hints import Lab03Hint

from distlab.labs.answer import Answer
from distlab.labs.number_judge import Expected, NumberJudge
from distlab.labs.verdict import AnyHint, Verdict

NUMBERS = ("global batch size", "steps per epoch", "updates", "images in the last batch")


def numbers_of(images: int, per_replica: int, replicas: int, epochs: int) -> dict[str, int]:
    """The four numbers of a mirrored training, by name."""
    global_batch = per_replica * replicas
    steps = -(-images // global_batch)
    return dict(zip(NUMBERS, (global_batch, steps, steps * epochs, images - (steps - 1) * global_batch), strict=True))


def _expected_numbers(images: int, per_replica: int, replicas: int, epochs: int) -> dict[str, Expected]:
    """For each number what usual mistakes give, with their hints."""
    numbers = numbers_of(images, per_replica, replicas, epochs)
    size, steps, updates, last = (numbers[name] for name in NUMBERS)
    small_steps = -(-images // per_replica)
    mistakes: dict[str, list[tuple[float | None, AnyHint]]] = {
        "global batch size": [
            (per_replica, Lab03Hint.BATCH_OF_ONE_REPLICA),
            (per_replica // replicas, Lab03Hint.BATCH_DIVIDED),
        ],
        "steps per epoch": [
            (images // size, Lab03Hint.STEPS_WITHOUT_REST),
            (small_steps, Lab03Hint.STEPS_OF_ONE_REPLICA),
            (images // per_replica, Lab03Hint.STEPS_OF_ONE_REPLICA_WITHOUT_REST),
            (images, Lab03Hint.ONE_STEP_PER_IMAGE),
        ],
        "updates": [
            (steps, Lab03Hint.UPDATES_OF_ONE_EPOCH),
            (updates * replicas, Lab03Hint.UPDATES_TIMES_REPLICAS),
            (images // size * epochs, Lab03Hint.UPDATES_WITHOUT_REST),
            (small_steps * epochs, Lab03Hint.UPDATES_OF_ONE_REPLICA),
        ],
        "images in the last batch": [
            (0, Lab03Hint.LAST_BATCH_EMPTY),
            (images % per_replica, Lab03Hint.LAST_BATCH_OF_SMALL_BATCHES),
            (size, Lab03Hint.LAST_BATCH_FULL),
            (-(-last // replicas), Lab03Hint.LAST_BATCH_OF_ONE_REPLICA),
        ],
    }
    return {name: Expected(numbers[name], mistakes[name], Lab03Hint.ANOTHER_NUMBER) for name in NUMBERS}


def judge_numbers(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points for each number that is right in every case."""
    replicas, per_replica = int(generator.integers(3, 9)), int(generator.integers(20, 60))
    full = int(generator.integers(5, 12)) * replicas * per_replica
    judge = NumberJudge("numbers", NUMBERS)
    for case in (
        (full + int(generator.integers(per_replica + 1, 2 * per_replica)), per_replica, replicas, 4),
        (full, per_replica, replicas, int(generator.integers(2, 9))),
        (per_replica - 3, per_replica, replicas, 3),
    ):
        words = "{:,} images, {} per replica, {} replicas, {} epochs".format(*case)
        if problem := judge.compare(answer.call("numbers", *case), _expected_numbers(*case), words):
            return problem
    return judge.verdict()

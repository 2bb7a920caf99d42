"""The exercise of lab 02 on a slow program: what a training does is counted, and no clock is read."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from lab_02 import observe
from lab_02.observe import Seen

from distlab.labs import Answer
from distlab.labs.answer_errors import NotDone
from distlab.labs.by_programs import ByPrograms, Text, by_changes, changed, is_same
from distlab.labs.plain_data import as_record

ACROSS = "a batch holds the end of one epoch and the beginning of the next. Which comes first, `batch` or `repeat`?"


def mixing_of(epochs: Sequence[Sequence[Sequence[int]]], far: int) -> str:
    """How the numbers 0, 1, 2, … are mixed: whether some number comes at least `far` places early in some epoch."""
    orders = [[number for batch in epoch for number in batch] for epoch in epochs]
    earlier = [number - place for order in orders for place, number in enumerate(order)]
    if not any(earlier):
        return "none"
    if all(batch == list(range(batch[0], batch[0] + len(batch))) for epoch in epochs for batch in epoch):
        return "slices"
    is_kept = len(orders) > 1 and orders[0] == orders[1]  # one order alone proves nothing
    return "mixed" if is_kept or max(earlier) >= far else "short"


IMAGES, DECODED, AUGMENTED, CALLS, AHEAD = TRAINING = (
    "images",
    "decoding",
    "augmentation",
    "executions",
    "prefetch",
)


class Training(NamedTuple):
    """One call."""

    count: int
    batch: int
    together: int
    epochs: int

    @property
    def steps(self) -> int:
        """Of an epoch."""
        return -(-self.count // self.batch)


AS_SLOW: dict[str, tuple[Any, ...]] = {
    "XLA": (False,),
    "optimizer": ("sgd",),
    "momentum": (0.0,),
    "rate": (0.01,),
    "loss": ("mse", "meansquarederror"),
}
OTHER_TRAINING = {
    "fit": "no step is made by `fit`, so none is counted. Which call makes executions of several steps?",
    "XLA": "steps cannot be counted with XLA here: leave `jit_compile` out.",
    "optimizer": "the optimizer is not that of `slow`, so this is another training. What may be faster, and what not?",
    "momentum": "the optimizer of `slow` has no momentum: this is another training.",
    "rate": "the learning rate is not that of `slow`: this is another training. Which one has `slow`?",
    "loss": "the loss is not that of `slow`, so the model learns something else. What does `slow` give to `compile`?",
}


def other_than_slow(compiled: Sequence[dict[str, Any]]) -> str:
    """What differs first from the training of `slow`, whose options are those of Keras; "" if nothing does."""
    for options in compiled:
        for name, values in AS_SLOW.items():
            if not any(is_same(options.get(name), value, 1e-5) for value in values):
                return name
    return "" if compiled else "fit"


def facts_of_training(case: Training, seen: Seen) -> dict[str, Any]:
    """What is the same in every run of a program: by part of the exercise."""
    steps = seen.steps
    epochs = [steps[start : start + case.steps] for start in range(0, len(steps), case.steps)]
    images = [[number for numbers, _, _ in epoch for number in numbers] for epoch in epochs]
    added = [dict(zip(order, _joined(epoch, 1), strict=True)) for order, epoch in zip(images, epochs, strict=True)]
    calls = [call for _, values, _ in steps for call in set(values)]  # each call of `augment` adds its number
    is_complete = all(sorted(order) == list(range(case.count)) for order in images)
    pairs = all(numbers == labels for numbers, _, labels in steps)
    sizes = sorted({tuple(sorted(len(numbers) for numbers, _, _ in epoch)) for epoch in epochs})
    mixing = mixing_of(
        [[numbers for numbers, _, _ in epoch] for epoch in epochs], max(case.count // 2, case.count - 120)
    )
    orders = "kept" if len(images) > 1 and images[0] == images[1] and mixing != "none" else mixing
    if not any(value for of_epoch in added for value in of_epoch.values()):
        augmented = "never"
    elif len(added) > 1 and added[0] == added[1]:
        augmented = "frozen"
    elif len(set(calls)) < len(calls) or max(calls) > seen.augmented:
        augmented = "otherwise"
    else:
        augmented = "each image" if seen.augments_images else "each batch"
    chain = [name for name in seen.chain if "empty" not in name]
    decoded = {case.count: "once", case.count * case.epochs: "in every epoch"}
    return {
        IMAGES: [other_than_slow(seen.compiled), len(steps), *map(list, sizes), is_complete, pairs, orders],
        DECODED: decoded.get(seen.decoded, "another number"),
        AUGMENTED: augmented,
        CALLS: seen.executions,
        AHEAD: next(
            (place for place, name in enumerate(chain) if "prefetch" in name), len(chain) - len(seen.chain) - 1
        ),
    }


def _joined(epoch: Sequence[Any], field: int) -> list[int]:
    return [value for step in epoch for value in step[field]]


TRAIN = '''
def train(records, decode, augment, model, batch, together, epochs):
    """Everything once that is the same in every epoch."""
    model.compile("sgd", "mse", steps_per_execution=together)
    batches = records.map(decode).cache().shuffle(len(records)).batch(batch).map(augment).prefetch(2)
    model.fit(batches, epochs=epochs, verbose=0)
'''


def decodings(case: Training, said: Any) -> str:
    """The hint for a cache that is missing, or in vain."""
    return (
        f"all records were decoded in each of {case.epochs} epochs. Is there a cache behind `decode`, and does it last?"
    )


def too_many_calls(case: Training, said: Any) -> str:
    """The hint for one step per execution."""
    return f"an epoch of {case.steps} steps takes as many executions. Which option of `compile` joins {case.together}?"


def long_executions(case: Training, said: Any) -> str:
    """The hint for more steps in an execution."""
    return f"a callback has to see every {case.together} steps, and an execution is longer."


def images_differ(case: Training, said: Any) -> str:
    """For any other training: what is not that of `slow`."""
    of_images = "each epoch must train on every image once, with its label, in a new order, in the steps of `slow`."
    return OTHER_TRAINING.get(said[0], of_images) if isinstance(said, list) else of_images


def executions_differ(case: Training, said: Any) -> str:
    """For any other number of executions."""
    if isinstance(said, int) and said < case.epochs * -(-case.steps // case.together):
        return long_executions(case, said)
    return "count the executions of an epoch: full ones, and a shorter one for the rest."


LARGER = "a larger batch is another training, with fewer updates. What is faster and changes no update?"
ALL, ONE_CALL = "shuffle(len(records))", "[model.train_on_batch(*step) for _ in range(epochs) for step in batches]"
WRONG_TRAININGS: dict[str, dict[Text, list[list[tuple[str, str]]]]] = {
    DECODED: {decodings: [[(".cache()", "")]]},
    AUGMENTED: {
        "the second epoch has the augmentation of the first. What does the cache keep?": [
            [(".map(augment)", ""), (".cache()", ".map(augment).cache()")]
        ],
        "`augment` is called for single images. Where does one call do a whole batch?": [
            [(".batch(batch).map(augment)", ".map(augment).batch(batch)")]
        ],
        "no image is augmented.": [[(".map(augment)", "")]],
        "the images change, and not by one call of `augment` for each batch. What else is added to them?": [
            [(".map(augment)", ".map(lambda images, labels: (images + images[:1, ::-1], labels))")]
        ],
    },
    CALLS: {
        too_many_calls: [[(", steps_per_execution=together", "")]],
        long_executions: [[("=together", "=2 * together")]],
        "an execution holds the end of one epoch and the beginning of the next. How does `fit` know the epochs?": [
            [(".prefetch(2)", ".repeat(epochs).prefetch(2)"), ("epochs=epochs, ", "")]
        ],
    },
    AHEAD: {
        "nothing prepares the next batch while the model works on this one. Which transformation does?": [
            [(".prefetch(2)", "")]
        ],
        "that prefetch holds no batch, so it prepares nothing. How large must its buffer be?": [
            [(".prefetch(2)", ".prefetch(0)")]
        ],
        "what comes after the prefetch is not prepared ahead. Which transformation is the last one?": [
            [(".map(augment).prefetch(2)", ".prefetch(2).map(augment)")]
        ],
    },
    IMAGES: {
        "every epoch has the order of the first. What keeps it: a cache behind the shuffle, or an option of "
        "`shuffle`?": [[(f".cache().{ALL}", f".{ALL}.cache()")]],
        "the images come in the stored order. `slow` shuffles them.": [[(f".{ALL}", "")]],
        "the same images always meet in a batch. Does `shuffle` move images, or whole batches?": [
            [(f"{ALL}.batch(batch)", "batch(batch).shuffle(99)")]
        ],
        "only neighbours meet in a batch. How many images does the buffer of `shuffle` hold?": [
            [(ALL, "shuffle(batch)")]
        ],
        "that buffer holds all images only where there are few. On what must its size depend?": [
            [(ALL, "shuffle(60)")]
        ],
        LARGER: [[("batch(batch)", "batch(2 * batch)")], [("batch(batch)", "batch(batch * together)")]],
        "images are left out in every epoch: those that do not fill a batch.": [
            [("batch(batch)", "batch(batch, drop_remainder=True)")]
        ],
        ACROSS: [[(".batch(batch)", ".repeat(epochs).batch(batch)"), ("epochs=epochs, ", "")]],
        "all steps together make one epoch. What begins the next ones?": [[("epochs=epochs, ", "")]],
        OTHER_TRAINING["optimizer"]: [[('"sgd"', '"adam"')]],
        OTHER_TRAINING["loss"]: [[('"mse"', '"mae"')]],
        OTHER_TRAINING["XLA"]: [[("=together", "=together, jit_compile=True")]],
        OTHER_TRAINING["fit"]: [[("model.fit(batches, epochs=epochs, verbose=0)", ONE_CALL)]],
    },
}


def seen_of(answer: Answer, case: Training) -> Any:
    """What the training does; a `train` that only returns nothing is done."""
    seen = answer.inside(observe.watch_training, *case)
    if seen is None:
        raise NotDone("`train` is still empty")
    return as_record(seen, Seen, "what was seen")


FAST = ByPrograms(
    changed(TRAIN),
    lambda generator: [
        Training(int(generator.integers(41, 47)), 8, 4, 3),
        Training(100 * int(generator.integers(12, 14)), 100, 5, 3),
    ],
    said=lambda case: f"with {case.count:,} records in batches of {case.batch}",
    parts=TRAINING,
    split=facts_of_training,
    after={part: [IMAGES] for part in (DECODED, AUGMENTED, CALLS, AHEAD)},
    weights={IMAGES: 0, DECODED: 1, AUGMENTED: 1, CALLS: 1, AHEAD: 1},
    observe=seen_of,
    otherwise={
        IMAGES: images_differ,
        DECODED: "each record should be decoded once in all.",
        AUGMENTED: "each image needs a new augmentation in each epoch, made for a whole batch by one call.",
        CALLS: executions_differ,
        AHEAD: "which transformation prepares batches ahead, and where does it belong?",
    },
    praise=lambda cases: (
        f"{cases[0].count} records: decoded {cases[0].count} times instead of {cases[0].count * cases[0].epochs}, "
        f"augmented by {cases[0].steps * cases[0].epochs} calls instead of {cases[0].count * cases[0].epochs}."
    ),
    mistakes=[mistake for part, table in WRONG_TRAININGS.items() for mistake in by_changes(TRAIN, table, (part,))],
)

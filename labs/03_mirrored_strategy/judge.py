"""The judge of lab 03: the numbers of a global batch, a script ported to several replicas, the fault of a port.

Numbers and faults are judged by programs; the ported script is observed, and compared with NumPy's training.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from lab_03 import observe
from lab_03.observe import MirroredTraining

from distlab.labs import Answer, Exercise, Lab, Raised, Verdict, not_done, right, wrong
from distlab.labs.by_programs import ByPrograms, Follows, Mistake, OfPart, changed, formulas
from distlab.labs.plain_data import Array, as_record
from distlab.labs.reference_mlp import (
    SHAPES,
    Batch,
    Weights,
    cross_entropy,
    drawn_batch,
    drawn_weights,
    logits,
    softmax,
    trained,
)
from distlab.labs.verdict import first, parts, waiting_for

# Four numbers --------------------------------------------------------------------------------------------------------

SIZE, STEPS, UPDATES, LAST = NUMBERS = (
    "global batch size",
    "steps per epoch",
    "updates",
    "images in the last batch",
)


def numbers(images: int, per_replica: int, replicas: int, epochs: int) -> dict[str, int]:
    """The four numbers of a mirrored training."""
    size = per_replica * replicas
    steps = -(-images // size)
    return {SIZE: size, STEPS: steps, UPDATES: steps * epochs, LAST: images - (steps - 1) * size}


def trainings(generator: np.random.Generator) -> list[tuple[int, int, int, int]]:
    """With a smaller last batch, with a full one, and with fewer images than one replica gets."""
    replicas, per_replica = int(generator.integers(3, 9)), int(generator.integers(20, 60))
    full = int(generator.integers(5, 12)) * replicas * per_replica
    rest = int(generator.integers(per_replica + 1, 2 * per_replica))
    return [
        (full + rest, per_replica, replicas, 4),
        (full, per_replica, replicas, int(generator.integers(2, 9))),
        (per_replica - 3, per_replica, replicas, 3),
    ]


NUMBER_FORMULAS = {
    SIZE: {
        "per_replica": "that is what one replica gets. How many images does one update see?",
        "min(global_batch_size, images)": (
            "the global batch size is what `batch(...)` gets. Does that depend on the number of images?"
        ),
        "per_replica // replicas": (
            "the strategy divides the global batch. Is the global batch larger or smaller than a part of it?"
        ),
    },
    STEPS: {
        "images // global_batch_size": "the images that do not fill a batch are trained on too.",
        "images / global_batch_size": "there are only whole steps. Who trains on the images that do not fill a batch?",
        "images // global_batch_size + 1": "if nothing is left over, there is no further batch.",
        "-(-images // per_replica)": "in one step every replica uses one batch, all at the same time.",
        "images // per_replica": (
            "in one step every replica uses one batch, and the images that do not fill a batch are trained on too."
        ),
        "images": "a step is an update, not an image.",
    },
    UPDATES: {
        "steps_per_epoch": "that is one epoch.",
        "images / global_batch_size * epochs": "there are only whole steps in each epoch.",
        "updates * replicas": "the replicas make each update together, so it counts once.",
        "images // global_batch_size * epochs": (
            "each epoch has one step more, for the images that do not fill a batch."
        ),
        "-(-images // per_replica) * epochs": "count the steps with the global batch.",
        "-(-images * epochs // global_batch_size)": "each epoch ends with a batch of its own, also if it is not full.",
    },
    LAST: {
        "images % global_batch_size": "if nothing is left over, the last batch is a full one.",
        "images % per_replica": (
            "that is what is left after the batches of one replica. What is left after global batches?"
        ),
        "global_batch_size": "what is left after the full batches?",
        "-(-images_in_the_last_batch // replicas)": "that is one replica's part of it.",
    },
}
FOUR_NUMBERS = ByPrograms(
    numbers,
    trainings,
    said=lambda case: "for {:,} images, {} per replica, {} replicas, {} epochs".format(*case),
    parts=NUMBERS,
    otherwise="not right. Draw the batches as boxes on a line.",
    mistakes=formulas(numbers, NUMBER_FORMULAS),
    follows=[Follows(UPDATES, STEPS, lambda case, numbers: numbers[STEPS] * case[3])],
)

# The ported script ---------------------------------------------------------------------------------------------------

TOLERANCE = 1e-4  # a GPU multiplies with ten bits of a float's mantissa unless told otherwise
LOSS_TOLERANCE = 2e-3
REPLICAS, EPOCHS = 2, 2  # the lab's strategy has two devices
FROM_LOGITS = "The model gives logits, and the loss takes them for probabilities. Keep the serial script's loss."
REDUCTIONS = ("sum", "none")
NO_MEAN = 'The loss has the reduction "{}", and the one of the serial script takes the mean. Keep that one.'
VARIABLES, BATCHES, RATES, EVALUATION, WEIGHTS = "variables", "batches", "learning rate", "evaluation", "weights"


def judge_mirrored(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Train on two replicas and on one; compare what was done with the rules, and the weights with NumPy's."""
    per_replica, rate = int(generator.integers(6, 12)), float(generator.uniform(0.03, 0.06))
    weights, verdicts = drawn_weights(generator), {}
    for rest, replicas in ((2, REPLICAS), (3, 1)):
        train = drawn_batch(generator, 4 * replicas * per_replica + rest)
        validation = drawn_batch(generator, 2 * replicas * per_replica + 5)
        asked = (train, validation, weights, per_replica, rate, EPOCHS, replicas)
        try:
            observed = answer.inside(observe.train_and_observe, *asked)
        except Raised as error:
            return wrong(hint_on_error(error))
        if observed is None:
            return not_done("`mirrored` gives nothing")
        if isinstance(observed, str):
            return wrong(observed)
        training = as_record(observed, MirroredTraining, "what `mirrored` does")
        context = "With a strategy of one replica: " if replicas == 1 else ""
        for part, hint in hints_on(training, train, validation, weights, per_replica, rate, rest).items():
            if hint:
                verdicts[part] = wrong(hint, context=context)
        if verdicts:
            break
    judged = {part: verdicts.get(part, right()) for part in (VARIABLES, BATCHES, RATES, EVALUATION, WEIGHTS)}
    if {VARIABLES, BATCHES, RATES} & set(verdicts):
        judged[WEIGHTS] = waiting_for(f"{VARIABLES}, {BATCHES} and {RATES}")
    return parts(judged) if verdicts else right("On two replicas and on one, it is the serial training.")


def hints_on(
    training: MirroredTraining,
    train: Batch,
    validation: Batch,
    weights: Weights,
    per_replica: int,
    rate: float,
    rest: int,
) -> dict[str, str | None]:
    """By part, what is wrong with a training."""
    batches = observe.global_batches(*train, per_replica * training.replicas)
    after = [np.asarray(array, np.float64) for array in weights]
    for batch, rate_of_step in zip(batches * EPOCHS, rates_of(training.replicas * rate, len(batches)), strict=True):
        after = trained(after, [[(batch, 1 / len(batch[1]))]], rate_of_step)
    return {
        VARIABLES: hint_on_variables(training),
        BATCHES: hint_on_batches(training, train[1], per_replica, rest),
        RATES: hint_on_rates(training, rate, len(batches), -(-len(train[1]) // per_replica)),
        EVALUATION: hint_on_evaluation(training, validation),
        WEIGHTS: hint_on_weights(training, weights, after),
    }


def rates_of(rate: float, warm_up: int, steps: int = 0) -> list[float]:
    """The rate of each step with a warm-up of so many steps."""
    return [rate * min(1, (step + 1) / warm_up) for step in range(steps or EPOCHS * warm_up)]


def shown(rates: Sequence[float]) -> str:
    """The first of them."""
    return ", ".join([*(f"{rate:.4f}" for rate in rates[:4]), "…"])


def hint_on_error(error: Raised) -> str:
    """Of TensorFlow's long messages the reason, which comes last."""
    if "scope" in error.message:
        return (
            "TensorFlow says that a variable and its use belong to different scopes. What must be created inside the "
            "scope?"
        )
    lines = [line.strip() for line in error.message.splitlines() if line.strip()]
    return f"`mirrored` raises {error.kind}: {lines[-1][:300] if lines else 'no message'}"


def hint_on_variables(training: MirroredTraining) -> str | None:
    """Where copies are missing, or too many."""
    if min(training.copies[: len(training.weights)], default=0) < training.replicas:
        return "The weights exist once, on one device: nothing is mirrored. Where must they be created?"
    if min(training.copies) < training.replicas:
        return "The optimizer's step counter has one copy, on one device. Where must the optimizer be created?"
    if (copies := max(training.copies)) > training.replicas:
        return (
            f"Each variable has {copies} copies. A function that gets a strategy uses that one: where does another "
            "come from?"
        )
    return None


def hint_on_batches(training: MirroredTraining, labels: Array, per_replica: int, rest: int) -> str | None:
    """Where a replica gets another number of images, or images are missing."""
    replicas, images, seen = training.replicas, len(labels), len(training.labels)
    if training.fits_arrays:
        return "`fit` got arrays, and those it shuffles. The serial script keeps the order: what does it give to `fit`?"
    first_step = training.parts[0] if training.parts else []
    gets = f"Each replica gets {first_step} images instead of {per_replica}"
    if sum(first_step) == per_replica and replicas > 1:
        return f"{gets}: the strategy divides what batch(...) says. Which batch size is that?"
    if sum(first_step) > per_replica * replicas:
        return f"{gets}: one multiplication too many."
    if first_step != [per_replica] * replicas:
        return f"{gets}."
    if rest and seen == images - rest:
        return f"{rest} of {images} images are never seen: the last, smaller batch is dropped."
    if seen != images and training.is_endless:
        return (
            f"The batches never end, and those of one pass hold {seen} images instead of {images}: the next pass "
            "begins within a batch. Which is first, `batch` or `repeat`?"
        )
    if seen != images:
        return f"The batches hold {seen} images, and there are {images}. Each must come once."
    if not np.array_equal(training.labels, labels):
        return "The images come in another order than in the serial script, so the results cannot be compared."
    return None


def hint_on_rates(training: MirroredTraining, rate: float, warm_up: int, of_one_replica: int) -> str | None:
    """Where a step has another learning rate, by known-wrong rules."""
    rates, replicas, steps = training.rates, training.replicas, EPOCHS * warm_up

    def are(expected: Sequence[float]) -> bool:
        return len(rates) > 0 and np.allclose(rates[: len(expected)], expected[: len(rates)], rtol=1e-3)

    scaled, begins = replicas * rate, f"The first rates are {shown(rates)}"
    return first(
        (are(rates_of(scaled, warm_up)) and len(rates) == steps, ""),
        (are(rates_of(scaled, warm_up)), f"There were {len(rates)} steps, and {EPOCHS} epochs have {steps}."),
        (
            are(rates_of(rate, warm_up)) or are(rates_of(rate, of_one_replica, steps)),
            f"It grows to {rate:.4f}, the rate of one replica. How many times as large is the global batch?",
        ),
        (
            are(rates_of(scaled, of_one_replica, steps)),
            f"The warm-up takes {of_one_replica} steps, and an epoch has {warm_up}. For which batch size are they "
            "counted?",
        ),
        (
            are([scaled] * steps) or are([rate] * steps),
            "It does not grow in the first epoch. Does `fit` get the callback, and for how many steps?",
        ),
        (
            are(rates_of(scaled, warm_up - 1, steps)),
            "The warm-up is a step too short: the images that do not fill a batch make a step too.",
        ),
        (are(rates_of(scaled * replicas, warm_up)), "It is multiplied by the number of replicas twice."),
        (are(rates_of(rate / replicas, warm_up)), "It is divided by the number of replicas. Is the batch smaller?"),
        (
            are(rates_of(scaled, warm_up, warm_up)),
            f"The first epoch is right. Then come the rates {shown(rates[warm_up:])}: does it grow again?",
        ),
        (True, f"{begins}. Which should step 1 have, and which the last step of the first epoch?"),
    )


def hint_on_evaluation(training: MirroredTraining, validation: Batch) -> str | None:
    """Where validation losses are missing, or one is not that of the weights over all images."""
    losses = training.losses
    if len(losses) != EPOCHS:
        return f"The history has {len(losses)} validation losses, and there are {EPOCHS} epochs. What does `fit` need?"
    if not training.from_logits:
        return FROM_LOGITS
    if training.reduction in REDUCTIONS:
        return NO_MEAN.format(training.reduction)
    for epoch, loss in enumerate(losses):
        weights = training.after_epochs[epoch * len(SHAPES) :][: len(SHAPES)] or training.weights
        if [np.shape(array) for array in weights] != SHAPES:
            return None  # the weights' own hint says so
        expected = cross_entropy(softmax(logits(weights, validation[0])), validation[1])
        if abs(loss - expected) >= LOSS_TOLERANCE:
            return (
                f"The validation loss after epoch {epoch + 1} is {loss:.3f}, and the mean over all "
                f"{len(validation[1])} images is {expected:.3f}. Are all of them evaluated, and no other ones?"
            )
    return None


def hint_on_weights(training: MirroredTraining, weights: Weights, expected: Weights) -> str | None:
    """Where the weights are not those of the serial run."""

    def are(others: Weights) -> bool:
        return len(training.weights) == len(others) and all(
            np.shape(array) == np.shape(other) and np.allclose(array, other, atol=TOLERANCE, rtol=0)
            for array, other in zip(training.weights, others, strict=True)
        )

    return first(
        (are(expected), ""),
        (are(weights), "The weights are still the first ones: nothing was trained."),
        (
            training.dropout,
            "The model drops units at random, so no two runs are equal. The serial script has no dropout.",
        ),
        (not training.from_logits, FROM_LOGITS),
        (training.reduction in REDUCTIONS, NO_MEAN.format(training.reduction)),
        (training.optimizer != "SGD", f"The optimizer is {training.optimizer}; the serial script uses another one."),
        (
            True,
            "The rates and the batches are right, but the weights are not those of the serial run. Does the model "
            "begin with the first weights that the function gets?",
        ),
    )


# The fault of a port -------------------------------------------------------------------------------------------------

FAULTS = ("none", "scope", "batch", "rest", "apart", "step")
FORWARDS, BACKWARDS, OPPOSITE = (0, 0, 1, 0), (0, -1, 0, 0), (0, 1, -1, 0)  # how a step changes the weights
NAMES = ("dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias", "SGD/iterations")
EQUAL = 1e-5
Record = dict[str, Any]


def diagnose(run: Mapping[str, Any]) -> str:
    """The fault of a mirrored run."""
    batches = [sum(of_step) for of_step in run["parts"]]
    if min(run["copies"].values()) < run["replicas"]:
        return "scope"
    if batches[0] != min(global_batch(run), run["images"]):
        return "batch"
    if sum(batches) < run["images"]:
        return "rest"
    if not are_equal(*run["after"]):
        return "apart"
    return "none" if are_equal(run["after"][0], run["serial"]) else "step"


def global_batch(run: Mapping[str, Any]) -> int:
    """The intended one."""
    return int(run["images_per_replica"] * run["replicas"])


def are_equal(*arrays: Array) -> bool:
    """Up to rounding."""
    return bool(np.ptp(arrays, axis=0).max() <= EQUAL)


def divided(size: int, replicas: int) -> list[int]:
    """A batch as a strategy divides it: each part as large as the first, as far as there are images."""
    part = -(-size // replicas)
    return [min(part, max(0, size - replica * part)) for replica in range(replicas)]


def recorded(generator: np.random.Generator, fault: str, steps: float, replicas: int, **changes: Any) -> OfPart:
    """What a run of so many full steps writes down that has this fault and no other.

    changes: size, the batch size instead of the global one; factor, of the step; single, the variables without copies;
    scale, of all gradients; direction, in which they change the weights; rounding, of the last copy.
    """
    per_replica = int(generator.integers(7, 13)) if replicas > 1 else 8
    intended = per_replica * replicas
    images = int(steps * intended)
    size = changes.get("size", lambda per_replica: intended)(per_replica)
    starts = range(0, images - size + 1 if fault == "rest" else images, size)
    drawn = [0, *generator.choice([-1, 1], 3)]  # one weight of a unit that no image activates
    change = changes.get("scale", 1) * np.array(changes.get("direction", drawn))
    before = generator.uniform(-1, 1, 4)
    gradient = generator.uniform(0.1, 0.15) * change
    other_images = generator.uniform(0.01, 0.05) * change * (fault == "batch")
    moved = gradient * changes.get("factor", 1) + other_images
    own = np.linspace(-0.04, 0.04, replicas)[:, None] * change * (fault == "apart")  # its mean is 0
    own[-1, -1] += changes.get("rounding", 0)
    single = changes.get("single", ())
    return OfPart(
        fault,
        {
            "images": images,
            "images_per_replica": per_replica,
            "replicas": replicas,
            "copies": {name: 1 if name in single else replicas for name in NAMES},
            "parts": [divided(min(size, images - start), replicas) for start in starts],
            "before": before,
            "after": list(before - moved + own)[: 1 if single == NAMES else replicas],
            "serial": before - gradient + np.array([8e-6, 1e-6, -1e-6, 3e-8]),
        },
    )


def runs(generator: np.random.Generator) -> list[OfPart]:
    """Some of each fault, and sound ones with a rest, without, with an almost empty one, and without a full batch."""

    def run(*described: Any, **changes: Any) -> OfPart:
        return recorded(generator, *described, **changes)

    return [
        *(run("none", steps, replicas) for steps, replicas in ((3.6, 2), (4, 2), (0.6, 4), (2.1, 4), (1, 2))),
        run("none", 3.6, 2, rounding=8e-6),
        *(run("scope", 3.6, 2, single=single) for single in (NAMES, NAMES[-1:], NAMES[2:3])),
        run("batch", 3.6, 4, size=lambda per_replica: per_replica),
        run("batch", 4, 4, size=lambda per_replica: 2 * per_replica),
        run("batch", 6.3, 2, size=lambda per_replica: 4 * per_replica),
        run("batch", 1.5, 2, size=lambda per_replica: 4 * per_replica),
        *(run("rest", steps, replicas) for steps, replicas in ((3.6, 2), (1.4, 4))),
        *(run("apart", 3.6, 2, direction=direction) for direction in (FORWARDS, BACKWARDS, OPPOSITE)),
        run("apart", 4, 3, scale=4e-4, direction=(0, 1, 0, 1)),
        run("step", 3.6, 2, factor=2, direction=(0, 1, 1, 1), rounding=8e-6),
        run("step", 3.6, 2, factor=1 / 2, direction=FORWARDS),
        run("step", 3.6, 4, factor=4, direction=OPPOSITE),
        run("step", 3.6, 4, factor=1 / 4, direction=BACKWARDS),
        run("step", 3.6, 2, factor=2, scale=2.6e-4, direction=(0, -1, -1, -1)),
    ]


def described(case: tuple[Record]) -> str:
    """The part of a run that tells most of them apart."""
    run, shown = case[0], case[0]["parts"]
    listed = ", ".join(map(str, shown[:2])) + (f", …, {shown[-1]}" if len(shown) > 2 else "")
    return (
        "for {images} images, {images_per_replica} for each of {replicas} replicas".format(**run) + f", parts {listed}"
    )


def unlisted(case: tuple[Record], fault: Any) -> str:
    """For all other answers."""
    if not isinstance(fault, str) or fault not in FAULTS:
        return f"the name of a fault is one of {', '.join(FAULTS)}."
    return f"it is not {fault!r}. Which entry of the record would show that, and what does it say here?"


def but(*changes: tuple[str, str]) -> Callable[..., Any]:
    """The right program with other lines."""
    known = {"Mapping": Mapping, "Any": Any, "are_equal": are_equal, "global_batch": global_batch}
    return changed(inspect.getsource(diagnose), *changes, **known)


FIRST_BATCH, ALL_IMAGES = 'batches[0] != min(global_batch(run), run["images"])', 'sum(batches) < run["images"]'
COPIES, REPLICAS_EQUAL = 'min(run["copies"].values()) < run["replicas"]', 'not are_equal(*run["after"])'
TO_SERIAL, AT_FIRST = 'are_equal(run["after"][0], run["serial"])', "    batches = ["
STEP_FIRST = f'    if not {TO_SERIAL}:\n        return "step"\n{AT_FIRST}'
NOT_LONGER = 'np.abs(run["after"][0] - run["before"]).sum() < 1.2 * np.abs(run["serial"] - run["before"]).sum()'
STEPS_INTENDED = '-(-run["images"] // global_batch(run))'
COUNTED = "the number of steps cannot tell another batch size from images that were dropped. What can?"
OTHER_IMAGES = "the first step has other images than the serial one, so the weights differ too. Which entry shows it?"
TRAINED_REST = "some images do not fill a batch, and that is no fault. Were they trained on?"
BELOW = "a difference is below -0.00001 here. Does your comparison see it?"
NOT_ALL = "some of the weights differ here, and the others are equal. Do you compare all of them?"
CANCELS = "two differences cancel each other in a sum here. What would not cancel?"
TOLERANT = "a difference is small here, but larger than 0.00001. Which tolerance do you use?"
LAST_DIGITS = "a difference in the last digits only is no fault. Where do you compare exactly?"
COMPARED = {  # two arrays
    "({0} != {1}).any()": LAST_DIGITS,
    "({0} - {1}).max() > 1e-5": BELOW,
    "({1} - {0}).max() > 1e-5": BELOW,
    **{f"abs({{0}}[{place}] - {{1}}[{place}]) > 1e-5": NOT_ALL for place in (1, 2, 3)},
    "abs(({0} - {1}).sum()) > 1e-5": CANCELS,
    "np.abs({0} - {1}).max() > 1e-3": TOLERANT,
}


def text_of(fault: Any) -> Any:
    """A text is one too in an array without dimensions, as np.select gives it."""
    return fault.item() if isinstance(fault, np.ndarray) and fault.ndim == 0 else fault


def compared(comparison: str, *places: str) -> Callable[..., Any]:
    """The right program with a wrong comparison of the copies, of one with the serial run, or of both."""
    first, last, serial = 'run["after"][0]', 'run["after"][-1]', 'run["serial"]'
    changes = {
        REPLICAS_EQUAL: comparison.format(last, first),
        TO_SERIAL: f"not ({comparison.format(first, serial)})",
    }
    return but(*((place, changes[place]) for place in places))


DIAGNOSED = ByPrograms(
    diagnose,
    runs,
    said=described,
    parts=FAULTS,
    split=lambda case, fault: case.split(text_of(fault)),
    otherwise=unlisted,
    mistakes=[
        Mistake(
            "every step is compared with the global batch here. Which one may be smaller?",
            but((FIRST_BATCH, "any(size != global_batch(run) for size in batches)")),
        ),
        Mistake(
            {"none": "there are fewer images than one global batch. How many can the first batch have?"},
            but((FIRST_BATCH, "batches[0] != global_batch(run)")),
        ),
        Mistake(
            COUNTED,
            but((FIRST_BATCH, f"len(batches) > {STEPS_INTENDED}"), (ALL_IMAGES, f"len(batches) < {STEPS_INTENDED}")),
        ),
        Mistake(COUNTED, but((FIRST_BATCH, f"len(batches) != {STEPS_INTENDED}"))),
        Mistake(
            {"none": "a run without a fault has a name too: which one is in the table?"},
            but(('return "none" if', "return None if")),
        ),
        Mistake(
            "that is the part of one replica. How many images does the whole step have?",
            but(("sum(of_step) for", "of_step[0] for")),
        ),
        Mistake(
            "this takes the images of one replica for the global batch. How many replicas take part in a step?",
            but((FIRST_BATCH, 'batches[0] != run["images_per_replica"]')),
        ),
        Mistake(
            {"batch": "the batch is not that of one replica, and it is wrong too. Which size must the first one have?"},
            but((FIRST_BATCH, 'batches[0] == run["images_per_replica"]')),
        ),
        Mistake(
            {"batch": "this batch is larger than the global one. Is that what was intended?"},
            but(("batches[0] != min", "batches[0] < min")),
        ),
        Mistake(
            {"batch": "the only batch holds all images, and more than a global batch has. Is such a batch compared?"},
            but((FIRST_BATCH, "any(size != global_batch(run) for size in batches[:-1])")),
        ),
        Mistake({"batch": OTHER_IMAGES}, but((FIRST_BATCH, "False"))),
        Mistake(TRAINED_REST, but((ALL_IMAGES, 'run["images"] % global_batch(run)'))),
        Mistake(TRAINED_REST, but((ALL_IMAGES, "batches[-1] < global_batch(run)"))),
        Mistake(TRAINED_REST, but((ALL_IMAGES, 'len(batches) > run["images"] // global_batch(run)'))),
        Mistake({"rest": "how many images do all parts together have?"}, but((ALL_IMAGES, "False"))),
        Mistake(
            {"scope": "one variable has fewer copies than there are replicas. Do you look at every one?"},
            but((COPIES, 'max(run["copies"].values()) < run["replicas"]')),
        ),
        Mistake(
            {"scope": "how many copies has each variable, and how many replicas are there?"}, but((COPIES, "False"))
        ),
        Mistake(
            {
                "batch": OTHER_IMAGES,
                "apart": "the replicas' copies differ from each other. Can one gradient, the same for all, do that?",
            },
            but((AT_FIRST, STEP_FIRST)),
        ),
        Mistake(
            {"apart": "the copies differ from each other, even where their mean is right. Which would you save?"},
            but((REPLICAS_EQUAL, "False"), (TO_SERIAL, 'are_equal(np.mean(run["after"], axis=0), run["serial"])')),
        ),
        Mistake(
            {"step": "all copies are equal here, so the gradient was reduced. With what must they be compared?"},
            but((REPLICAS_EQUAL, 'not are_equal(*run["after"], run["serial"])')),
        ),
        *(
            Mistake(hint, compared(comparison, *places))
            for comparison, hint in COMPARED.items()
            for places in ((REPLICAS_EQUAL,), (TO_SERIAL,), (REPLICAS_EQUAL, TO_SERIAL))
        ),
        Mistake(
            {"step": "this step is shorter than the serial one. Can a gradient be divided too often?"},
            but((TO_SERIAL, NOT_LONGER)),
        ),
        Mistake(
            {"step": "the copies agree with each other. Do all weights agree with the serial run, not only some?"},
            but((TO_SERIAL, "True")),
        ),
    ],
)


LAB = Lab(
    "03_mirrored_strategy",
    [
        Exercise("numbers", 4, FOUR_NUMBERS),
        Exercise("mirrored", 5, judge_mirrored),
        Exercise("diagnose", 6, DIAGNOSED),
    ],
    tensorflow=True,
)

"""The judge of lab 04: by what to divide losses and gradients, so that replicas compute what one device does.

Each exercise is its right program, the cases in which an answer is called, and the mistakes that are recognised.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from distlab.labs import Exercise, Lab
from distlab.labs.by_programs import ByPrograms, Hint, OfPart, formulas, is_same
from distlab.labs.number_judge import NumberHint, described, is_near, is_rounded, number

Array = NDArray[Any]
Losses = Sequence[Array]
"""An array for each replica."""

TOLERANCE = 1e-9

# Factors -------------------------------------------------------------------------------------------------------------


class Loop(NamedTuple):
    """Replicas, images on each of them, and micro-batches before an update."""

    replicas: int
    images: int
    micro_batches: int


LOOP = Loop(2, 3, 7)
"""With 4 micro-batches, a factor that is multiplied by them could be one that is upside down."""
OTHER_LOOP = Loop(5, 7, 3)
"""Apart from the first, in which 3 images are one more than the replicas."""
MICRO_BATCHES = "micro-batches, summed"


def factors(replicas: int, images: int, micro_batches: int) -> dict[str, float]:
    """The update's gradient divided by that of the mean over all of its images, loop by loop."""
    return {
        "means, summed": replicas,
        "means, averaged": 1.0,
        "sums, summed": replicas * images,
        "sums, averaged": images,
        "global means, averaged": 1 / replicas,
        MICRO_BATCHES: micro_batches,
    }


def loops(generator: np.random.Generator) -> list[Loop]:
    """Two that are always the same, and one with replicas whose inverse has no end."""
    replicas = int(generator.choice([3, 7, 11, 13]))
    rest = [number for number in (5, 7, 11, 13, 17) if number != replicas]
    return [LOOP, OTHER_LOOP, Loop(replicas, *generator.choice(rest, 2, replace=False).tolist())]


FACTOR_HINTS = {
    "means, summed": "each replica's mean has its own divisor already. How many of these means are added?",
    "means, averaged": "the replicas' means are averaged, not added. What is the mean of equally large means?",
    "sums, summed": "nothing divides at all here. How many images are added up?",
    "sums, averaged": ("the sums are divided by one number only, the replicas. What remains of the global batch?"),
    "global means, averaged": ("the loss is divided by the global batch. By what does the average divide once more?"),
    MICRO_BATCHES: "each micro-batch gives a complete mean. How many of them are added before the update?",
}
"""For the factor of another loop, upside down or not."""
ONE_MICRO_BATCH = "this loop has one micro-batch per update. For which loop alone does `micro_batches` count?"


def factor_formulas() -> dict[str, dict[str, Hint]]:
    """By loop: factors that are upside down, of a loop that is right, of other loops, or with micro-batches."""
    of_loops = ("replicas", "1", "replicas * images", "images", "1 / replicas", "micro_batches")
    tables = {}
    for (name, hint), formula in zip(FACTOR_HINTS.items(), of_loops, strict=True):
        own = ("micro_batches",) if formula == "1" else (formula, formula[4:])  # it is said of these already
        other = [known for known in of_loops if "1" not in known and known not in own]
        others = [f"{factor}({known})" for known in other for factor in ("", "1 / ")]
        table: dict[str, Hint] = {}
        if formula != "1":
            table = {
                f"1 / ({formula})": "this is the factor upside down: is the gradient too large or too small?",
                "1": "that says the loop is right. What does it divide by in all, and what should it divide by?",
            }
        if name == "global means, averaged":
            table["1 // replicas"] = (
                "this is 0. Is it an integer division, as in `1 // 2`? The gradient is not gone, only too small."
            )
        if name == MICRO_BATCHES:
            others += [f"{formula} * {value}" for value in others]
        else:
            table |= dict.fromkeys([f"{formula} * micro_batches", f"{formula} / micro_batches"], ONE_MICRO_BATCH)
        tables[name] = table | dict.fromkeys(others, hint)
    return tables


def factor_by_hand(name: str) -> Callable[[Loop, Any], str]:
    """How to find the factor of this loop, and whether a wrong one is right for the first case only."""

    def hint(loop: Loop, value: Any) -> str:
        what, question = f"{loop.replicas} replicas with {loop.images} images each", "What reaches the update?"
        if name == MICRO_BATCHES:
            what = f"{loop.micro_batches} micro-batches"
            question = "What does each micro-batch add before the update?"
        by_chance = "" if loop == LOOP else "right for the example only; "
        return f"{by_chance}try it by hand: {what}, and every image has the gradient 1, so the mean is 1. {question}"

    return hint


FACTORS = ByPrograms(
    factors,
    loops,
    said=lambda loop: "for {} replicas with {} images, {} micro-batches".format(*loop),
    parts=tuple(FACTOR_HINTS),
    tolerance=1e-7,
    mistakes=formulas(factors, factor_formulas()),
    otherwise={name: factor_by_hand(name) for name in FACTOR_HINTS},
)

# What is wrong with a list of one number for each replica -------------------------------------------------------------


def numbers_of(value: Any) -> list[float] | None:
    """A list, tuple or array of numbers as a list of floats; None for all else."""
    listed = value.tolist() if isinstance(value, np.ndarray) else value
    values = [number(item) for item in listed] if isinstance(listed, (list, tuple)) else [None]
    return None if None in values else [item for item in values if item is not None]


def divisor(sums: Sequence[float] | Array, values: Sequence[float] | Array) -> float | None:
    """The one number by which all sums were divided to get these values; None if there is none."""
    total, total_value = float(np.sum(sums)), float(np.sum(values))
    if not total_value or not is_same(np.asarray(values) / total_value, np.asarray(sums) / total, TOLERANCE):
        return None
    return total / total_value


def in_words(counts: Sequence[int]) -> str:
    """Counts of each replica: 5, 5 and 3."""
    *first, last = map(str, counts)
    return f"{', '.join(first)} and {last}"


SHARED_OUT = "the sum is right, but a replica knows its own examples only, and its gradient comes from them."


def on_each_replica(
    right_program: Callable[..., list[float]],
    things: str,
    counts: Callable[[Any], Sequence[int]],
    more: Callable[[Any, list[float]], str] | None = None,
) -> Callable[[Any, Any], str]:
    """The hint on a value that no known mistake gives; `more` is for a list of finite numbers, instead of their sum.

    `counts(case)` has how many of these things each replica has.
    """

    def hint(case: Any, value: Any) -> str:
        expected, values = right_program(*case), numbers_of(value)
        if values is None or len(values) != len(expected):
            return (
                f"`{right_program.__name__}` must give a list with {len(expected)} numbers, one for each replica; "
                f"yours gives {described(value)}."
            )
        if infinite := np.flatnonzero(~np.isfinite(values)).tolist():
            for replica in infinite:
                if count := counts(case)[replica]:
                    return (
                        f"replica {replica} gets {values[replica]}, although it has {count} {things}. Do you divide "
                        "by 0?"
                    )
            return f"replica {infinite[0]} gets nan: the mean of nothing. What does it add to the global sum?"
        if is_same(sorted(values), sorted(expected), TOLERANCE):
            return "these are the right numbers in another order. Keep the order of the replicas."
        if all(is_rounded(*pair) or pair[0] == pair[1] for pair in zip(values, expected, strict=True)):
            return NumberHint.ROUNDED.value
        return more(case, values) if more else of_sum(values, expected, sum(counts(case)))

    def of_sum(values: list[float], expected: list[float], count: int) -> str:
        if is_near(sum(values), sum(expected), TOLERANCE):
            return SHARED_OUT
        if (factor := divisor(expected, values)) is not None:
            return (
                f"each replica's sum is right, but divided by {factor * count:.6g}. How many {things} are there in all?"
            )
        return f"the sum over the replicas is {sum(values):.6g}, and the mean over all {things} {sum(expected):.6g}."

    return hint


# The losses of replicas ----------------------------------------------------------------------------------------------

FULL, UNEVEN, EMPTY = "a full batch", "an uneven last batch", "a replica without examples"
LOSSES = [np.array([1.0, 2.0, 6.0]), np.array([7.0])]


def replica_losses(losses: Losses) -> list[float]:
    """Each replica's part of the mean over all examples, as `tf.nn.compute_average_loss` gives it."""
    examples = sum(map(len, losses))
    return [float(np.sum(own)) / examples for own in losses]


def global_batches(generator: np.random.Generator) -> list[OfPart]:
    """A full batch, an uneven one, one that leaves a replica without examples, and the example.

    Neither the examples of a replica nor all of them are as many as the replicas or their square, so that these numbers
    cannot be confused. The replica without examples is neither the first nor the last.
    """
    replicas, each = int(generator.integers(3, 6)), int(generator.choice([7, 8, 10]))
    sizes = {
        FULL: [each] * replicas,
        UNEVEN: [each] * (replicas - 2) + [each - 1, each - 2],
        EMPTY: [each] * (replicas - 2) + [each - 2],
    }
    sizes[EMPTY].insert(int(generator.integers(1, replicas - 1)), 0)
    drawn = [OfPart(part, [generator.uniform(0.5, 3.0, size) for size in of_all]) for part, of_all in sizes.items()]
    return [*drawn, OfPart(UNEVEN, LOSSES)]


def examples_of(case: OfPart) -> list[int]:
    """On each replica."""
    return [len(own) for own in case[0]]


def known_of_losses(losses: Losses, penalty: float = 0.0) -> dict[str, Any]:
    """What the formulas know; `own` are the examples of each replica, and 1 where there are none."""
    sums, counts = np.array([np.sum(own) for own in losses]), np.array([len(own) for own in losses])
    own, filled, full, replicas, examples = np.maximum(counts, 1), counts > 0, counts[0], len(losses), counts.sum()
    everywhere, first, right_losses = np.ones(replicas), np.eye(replicas)[0], sums / examples
    return locals()


OWN_MEAN = "each replica has the mean of its own examples. The strategy adds: what is the sum of {replicas} means?"
MEAN_OF_MEANS = "this is the mean of means, in which an example of a small replica counts more. Is that the mean?"
ONE_REPLICA = "this divides by the examples of one replica. Whose examples are in the mean?"
ALL_THE_SAME = "each replica has the global mean, so the sum is {replicas} times too large."
LOSS_FORMULAS: dict[str, Hint] = {
    "sums": "this is a sum: nothing is divided yet.",
    "sums / own": OWN_MEAN,
    "sums / own / replicas": MEAN_OF_MEANS,
    "sums / own / filled.sum()": MEAN_OF_MEANS,
    "sums / (full * replicas)": (
        "this divides by {full * replicas}, the size of a full batch. How many examples are there this time?"
    ),
    "sums / full": {FULL: OWN_MEAN, UNEVEN: ONE_REPLICA, EMPTY: ONE_REPLICA},
    "sums / replicas": "this divides by the number of replicas only. How many examples does each of them add up?",
    "sums / examples / replicas": (
        "this divides by all examples, and then by the {replicas} replicas again. The strategy adds."
    ),
    "sums.sum() / examples * everywhere": ALL_THE_SAME,
    "sums.sum() / examples / replicas * everywhere": SHARED_OUT,
}


REPLICA_LOSSES = ByPrograms(
    replica_losses,
    global_batches,
    said=lambda case: f"for {in_words(examples_of(case))} examples",
    parts=(FULL, UNEVEN, EMPTY),
    split=OfPart.split,
    tolerance=TOLERANCE,
    mistakes=formulas(replica_losses, {"": LOSS_FORMULAS}, known_of_losses),
    otherwise=on_each_replica(replica_losses, "examples", examples_of),
)

# The penalty ---------------------------------------------------------------------------------------------------------

PENALTY = 0.5


def with_penalty(losses: Losses, penalty: float) -> list[float]:
    """The losses with each replica's part of a penalty, as `tf.nn.scale_regularization_loss` gives it."""
    return [loss + penalty / len(losses) for loss in replica_losses(losses)]


def penalized_batches(generator: np.random.Generator) -> list[OfPart]:
    """As without the penalty."""
    *drawn, example = global_batches(generator)
    cases = [OfPart(case.part, *case, float(generator.uniform(0.1, 0.9))) for case in drawn]
    return [*cases, OfPart(example.part, *example, PENALTY)]


ON_EACH = "each replica adds the whole penalty. How often is it in the sum?"
BY_OWN_EXAMPLES = (
    "each replica divides the penalty by its own examples. It does not depend on them: how many replicas add it?"
)
ON_ONE = "only one replica adds the penalty. All replicas run the same code: what can each of them add?"
PENALTY_UNEVEN = (
    "the penalty is in the sum once, but the replicas add different parts of it. All run the same code: what can each "
    "add?"
)
PENALTY_TERMS = {
    "0": "the penalty is missing.",
    "penalty": ON_EACH,
    "penalty / examples": (
        "the penalty is divided by the examples. It does not depend on them: how many replicas add it?"
    ),
    "penalty / own": BY_OWN_EXAMPLES,
    "filled * penalty / own": BY_OWN_EXAMPLES,
    "first * penalty": ON_ONE,
    "first[::-1] * penalty": ON_ONE,
    "filled * penalty / replicas": (
        "a replica without examples adds no penalty here. Does the penalty depend on examples?"
    ),
    "filled * penalty / filled.sum()": PENALTY_UNEVEN,
    "counts / examples * penalty": PENALTY_UNEVEN,
    "-penalty / replicas": "the penalty is subtracted. Is it a part of the loss to minimise, or a bonus?",
}
"""What the replicas may add as their parts of the penalty by mistake."""


def after(words: str, hint: Hint) -> Hint:
    """A hint, or one for each part, behind these words."""
    return words + hint if isinstance(hint, str) else {part: f"{words}{text}" for part, text in dict(hint).items()}


PENALTY_FORMULAS: dict[str, Hint] = {
    **{f"right_losses + ({term})": hint for term, hint in PENALTY_TERMS.items()},
    "right_losses * (1 + penalty)": "the penalty is multiplied by the losses. Does it depend on them?",
    "penalty / replicas * everywhere": "only the penalty is in it. Where are the losses?",
    **{
        f"{losses} + penalty / replicas": after("the penalty is right, the losses are not: ", hint)
        for losses, hint in LOSS_FORMULAS.items()
    },
    **{
        f"{losses} + penalty": after("the penalty is wrong, and so are the losses: ", hint)
        for losses, hint in LOSS_FORMULAS.items()
    },
}


def other_penalties(case: Any, values: list[float]) -> str:
    """What is known of losses with a penalty that no mistake gives."""
    losses, penalty = np.array(replica_losses(case[0])), case[1]
    each, total, mean = np.array(values) - losses, sum(values), float(losses.sum())
    if np.allclose(each, each[0]):
        return (
            f"the losses are right, but all replicas together add {each.sum():.6g} as the penalty, and should add "
            f"{penalty:.6g}."
        )
    if is_near(total, mean + penalty, TOLERANCE):
        return "the sum is right, but the replicas' parts of it are not. What does each replica know?"
    return (
        f"the sum over the replicas is {total:.6g}; the mean {mean:.6g} and the penalty {penalty:.6g} give "
        f"{mean + penalty:.6g}. Is the check of exercise 2 right?"
    )


WITH_PENALTY = ByPrograms(
    with_penalty,
    penalized_batches,
    said=lambda case: f"for {in_words(examples_of(case))} examples, penalty {case[1]:.3g}",
    parts=(FULL, UNEVEN, EMPTY),
    split=OfPart.split,
    tolerance=TOLERANCE,
    mistakes=formulas(with_penalty, {"": PENALTY_FORMULAS}, known_of_losses),
    otherwise=on_each_replica(with_penalty, "examples", examples_of, other_penalties),
)

# Accumulated gradients -----------------------------------------------------------------------------------------------

EQUAL, UNEQUAL, NO_IMAGES = "equal micro-batches", "unequal micro-batches", "a micro-batch without images"
GRADIENTS, COUNTS = np.array([[[1.0], [5.0]], [[2.0], [8.0]]]), np.array([[3, 1], [1, 1]])


def accumulated(gradients: Array, counts: Array) -> Array:
    """The gradient of the mean over all images, shape (parameters,).

    gradients: shape (ranks, micro-batches, parameters), each the mean over the images of its micro-batch.
    counts: shape (ranks, micro-batches), the images of each.
    """
    sums = np.where(counts[..., None] > 0, gradients, 0.0) * counts[..., None]
    return np.asarray(sums.sum(axis=(0, 1)) / counts.sum())


def micro_batches(generator: np.random.Generator) -> list[OfPart]:
    """There are more micro-batches than ranks, and the images of a full one are neither of these nor their product.

    The empty micro-batch is neither the first nor the last of its rank, nor is its rank.
    """
    cases = []
    for part in (EQUAL, UNEQUAL, NO_IMAGES):
        ranks = int(generator.integers(3, 5))
        each = ranks + int(generator.integers(1, 3))
        full = int(generator.choice([7, 11, 13]))
        counts = np.full((ranks, each), full)
        if part != EQUAL:  # other numbers on each rank and in each micro-batch
            counts -= generator.integers(0, 2, counts.shape)
            counts[-1] -= 1
            counts[-1, -1] = 1
        if part == NO_IMAGES:
            counts[-1, -1] = full - 3
            counts[generator.integers(1, ranks - 1), generator.integers(1, each - 1)] = 0
        gradients = generator.normal(size=(ranks, each, int(generator.integers(3, 6)))) + 1.0
        gradients[counts == 0] = np.nan
        cases.append(OfPart(part, gradients, counts))
    return [*cases, OfPart(UNEQUAL, GRADIENTS, COUNTS)]


def known_of_gradients(gradients: Array, counts: Array) -> dict[str, Any]:
    """What the formulas know; in `means` those of no images are 0, and `used` counts the images that are chosen."""
    means = np.where(counts[..., None] > 0, gradients, 0.0)
    sums, total, (ranks, steps) = means * counts[..., None], counts.sum(), counts.shape
    images, images_of_step = counts.sum(axis=1)[:, None], np.maximum(counts.sum(axis=0), 1)[:, None]
    filled = np.maximum(np.count_nonzero(counts, axis=1), 1)[:, None]
    per_rank, per_step, all_sums = (
        sums.sum(axis=1) / np.maximum(images, 1),
        sums.sum(axis=0) / images_of_step,
        sums.sum(axis=(0, 1)),
    )
    rank, step = np.indices(counts.shape)
    with_all = {"ranks": counts.min(axis=1)[rank] > 0, "steps": counts.min(axis=0)[step] > 0}
    fewest, most = int(counts[counts > 0].min()), int(counts.max())
    smallest = f"{fewest} image{'' if fewest == 1 else 's'}"

    def used(chosen: Array) -> int:
        return int((counts * chosen).sum())

    def mean_over(chosen: Array) -> Array:
        return np.asarray((sums * chosen[..., None]).sum(axis=(0, 1)) / max(used(chosen), 1))

    return locals()


PLAIN_MEAN = "this is the plain mean of the means. Should {smallest} count as much as {most}?"
MEANS_ADDED = (
    "the means of micro-batches are added as they are, and nothing divides by all images. Should the mean of "
    "{smallest} count as much as that of {most}?"
)
STEPS_ADDED = "the micro-batches are added, and nothing divides by their number."
RANKS_ADDED = (
    "this divides by the images or the micro-batches of one rank, and adds up those of all {ranks} ranks. How many are "
    "there in all?"
)
ONE_RANK = "this divides by the images of one rank, and adds up those of all {ranks} ranks. How many images are there?"
BETWEEN_RANKS = (
    "each rank counts by its images, but within a rank each micro-batch counts equally. Do they have equally many?"
)
GRADIENT_FORMULAS: dict[str, Hint] = {
    "means.mean(axis=(0, 1))": PLAIN_MEAN,
    "means.sum(axis=(0, 1)) / np.count_nonzero(counts)": PLAIN_MEAN,
    "means.sum(axis=1).mean(axis=0)": {EQUAL: STEPS_ADDED, UNEQUAL: MEANS_ADDED, NO_IMAGES: MEANS_ADDED},
    "means.sum(axis=0).mean(axis=0)": {EQUAL: RANKS_ADDED, UNEQUAL: MEANS_ADDED, NO_IMAGES: MEANS_ADDED},
    "means.sum(axis=(0, 1))": {EQUAL: STEPS_ADDED, UNEQUAL: MEANS_ADDED, NO_IMAGES: MEANS_ADDED},
    "(means.mean(axis=1) * images).sum(axis=0) / total": BETWEEN_RANKS,
    "(means.sum(axis=1) / filled * images).sum(axis=0) / total": BETWEEN_RANKS,
    "(means / np.maximum(counts, 1)[..., None]).sum(axis=(0, 1))": (
        "each mean is divided by its images. How does a mean become a sum again?"
    ),
    "per_rank.mean(axis=0)": (
        "it is right within each rank, but then the ranks count equally. Do they have equally many images?"
    ),
    "per_step.mean(axis=0)": ("the ranks count rightly within each micro-batch, but then these count equally."),
    "all_sums": "these are sums over images. By how many images in all must they be divided?",
    "all_sums / counts.size": (
        "these are sums over images, divided by {counts.size} micro-batches. How many images are there?"
    ),
    "all_sums / (most * counts.size)": ("this divides as if every micro-batch were full. How many images are there?"),
    "per_rank.sum(axis=0)": {EQUAL: RANKS_ADDED, UNEQUAL: ONE_RANK, NO_IMAGES: ONE_RANK},
    "all_sums / images[0]": {EQUAL: RANKS_ADDED, UNEQUAL: ONE_RANK, NO_IMAGES: ONE_RANK},
    "all_sums / images[-1]": {EQUAL: RANKS_ADDED, UNEQUAL: ONE_RANK, NO_IMAGES: ONE_RANK},
    "all_sums / total / ranks": (
        "this divides by all {total} images, and then by the {ranks} ranks again. Whose images have you counted?"
    ),
    "(means * counts.T.reshape(counts.shape)[..., None]).sum(axis=(0, 1)) / total": (
        "the means are weighted, but with the counts of other micro-batches. Compare the two orders."
    ),
    **{
        f"mean_over({chosen})": (
            f"only {{used({chosen})}} of {{total}} images are in it. What else do you leave out with the empty "
            "micro-batch?"
        )
        for chosen in ("with_all['ranks']", "with_all['steps']")
    },
    **{
        f"mean_over({chosen})": (
            f"only {{used({chosen})}} of {{total}} images are in it. Which ranks, or which micro-batches, are missing?"
        )
        for chosen in (
            "rank == 0",
            "rank < 2",
            "rank == ranks - 1",
            "rank < ranks - 1",
            "step == 0",
            "step == steps - 1",
        )
    },
    "right[::-1]": "these are the right numbers in another order. Keep the order of the parameters.",
}


def other_gradients(case: Any, value: Any) -> str:
    """For every other gradient, or what is none."""
    expected, counts = accumulated(*case), case[1]
    values = numbers_of(value)
    if values is None or len(values) != len(expected):
        return (
            f"`accumulated` must give an array with {len(expected)} numbers, one for each parameter; yours gives "
            f"{described(value)}."
        )
    if not np.isfinite(values).all():
        if counts.all():
            return "this is not finite, although each micro-batch has images. Do you divide by 0?"
        return "this is nan. A micro-batch without images has nan as its mean, and 0 · nan is nan."
    if all(is_rounded(*pair) for pair in zip(values, expected.tolist(), strict=True)):
        return NumberHint.ROUNDED.value
    if (factor := divisor(expected, values)) is not None:
        return (
            f"the sum over all images is right, but divided by {factor * counts.sum():.6g}. How many images are there "
            "in all?"
        )
    place = int(np.flatnonzero(~np.isclose(values, expected, rtol=TOLERANCE, atol=TOLERANCE))[0])
    return (
        f"parameter {place} gets {values[place]:.6g}, and {expected[place]:.6g} is right. How much does one image "
        "count?"
    )


ACCUMULATED = ByPrograms(
    accumulated,
    micro_batches,
    said=lambda case: f"for images {case[1].tolist()}",
    parts=(EQUAL, UNEQUAL, NO_IMAGES),
    split=OfPart.split,
    tolerance=TOLERANCE,
    mistakes=formulas(accumulated, {"": GRADIENT_FORMULAS}, known_of_gradients),
    otherwise=other_gradients,
)

# Masks ---------------------------------------------------------------------------------------------------------------

EQUAL_WORDS, UNEQUAL_WORDS, NO_WORDS = "equally many words", "unequal numbers of words", "a replica of padding only"
PADDED = (
    [np.array([[2.0, 4.0, 9.0], [3.0, 9.0, 9.0]]), np.array([[5.0, 9.0, 9.0]])],
    [np.array([[1, 1, 0], [1, 0, 0]]), np.array([[1, 0, 0]])],
)
"""Losses and masks of two replicas."""


def masked_losses(losses: Losses, masks: Losses) -> list[float]:
    """Each replica's part of the mean over the words of all replicas.

    Arrays of shape (sequences, positions) for each replica; in masks 1 is a word, 0 padding.
    """
    words = sum(int(mask.sum()) for mask in masks)
    return [float(np.sum(own * mask)) / words for own, mask in zip(losses, masks, strict=True)]


def padded_batches(generator: np.random.Generator) -> list[OfPart]:
    """Sequences that are padded; at padding the losses are large, and that of one word is 0.

    Each replica has two sequences at least, so that masks taken as indices of rows raise no IndexError. No replica has
    as many words as there are sequences, and three times its words are not all positions.
    """
    positions = int(generator.choice([8, 10]))
    short, long = int(generator.integers(1, 3)), positions - int(generator.integers(1, 3))
    cases = []
    for part, lengths in {
        EQUAL_WORDS: [[short, long], [long, short], [short, long]],
        UNEQUAL_WORDS: [[long, long, long], [short, long], [short, 1]],
        NO_WORDS: [[long, short], [0, 0], [short, short, short]],
    }.items():
        masks = [(np.arange(positions) < np.array(of_one)[:, None]).astype(np.int64) for of_one in lengths]
        losses = [generator.uniform(0.5, 3.0, mask.shape) + 5 * (1 - mask) for mask in masks]
        losses[0][0, 0] = 0.0
        cases.append(OfPart(part, losses, masks))
    return [*cases, OfPart(UNEQUAL_WORDS, *PADDED)]


def words_of(case: OfPart) -> list[int]:
    """On each replica."""
    return [int(mask.sum()) for mask in case[1]]


def known_of_words(losses: Losses, masks: Losses) -> dict[str, Any]:
    """What the formulas know; `own` are the words of each replica, and 1 where there are none."""
    pairs, replicas = list(zip(losses, masks, strict=True)), len(losses)
    of_words = [own * mask for own, mask in pairs]
    sums, of_all = np.array([np.sum(own) for own in of_words]), np.array([np.sum(own) for own in losses])
    words, sizes = np.array([mask.sum() for mask in masks]), np.array([mask.size for mask in masks])
    own, total, padding = np.maximum(words, 1), words.sum(), of_all - sums
    turned, lengths = np.array([np.sum(own * ~mask) for own, mask in pairs]), np.array([len(mask) for mask in masks])
    means = np.array(
        [np.sum(own.sum(axis=1) / np.maximum(mask.sum(axis=1), 1)) for own, mask in zip(of_words, masks, strict=True)]
    )
    return locals()


MASKS_UNUSED = "the masks are not used at all."
PADDING_ADDED = "the losses at padding are in it. What should become of them?"
PADDING_COUNTED = "this divides by all positions. How many of them are words?"
UPSIDE_DOWN_MASK = "this takes the losses at padding, and leaves the words out. What does a 1 in the mask mean?"
BITS_TURNED = "`~` makes -1 and -2 of the integers 0 and 1. Which positions do you want to keep?"
REPLICAS_EQUAL = "the replicas count equally here, however many words they have."
SEQUENCE_MEANS = (
    "this is a mean of the sequences' means: a word in a short sequence counts more than one in a long one. How much "
    "should each word count?"
)
MASK_FORMULAS: dict[str, Hint] = {
    "of_all / sizes.sum()": MASKS_UNUSED,
    "of_all / total": PADDING_ADDED,
    "padding / (sizes - words).sum()": UPSIDE_DOWN_MASK,
    "turned / sum(np.sum(~mask) for mask in masks)": BITS_TURNED,
    "[own[mask].sum() / total for own, mask in pairs]": (
        "the masks are integers, and as an index they pick rows 0 and 1, not words. What would a comparison give?"
    ),
    "sums": "the padding is gone, but nothing is divided yet.",
    "sums.sum() / total * np.ones(replicas)": ALL_THE_SAME,
    "sums.sum() / total / replicas * np.ones(replicas)": SHARED_OUT,
    "sums / sum(map(np.count_nonzero, of_words))": (
        "a word whose loss is exactly 0 is not counted here. What says that it is a word?"
    ),
    "sums / sizes.sum()": PADDING_COUNTED,
    "sums / sizes": PADDING_COUNTED,
    "sums / own": "each replica divides by its own words, and the strategy adds. What is the sum of {replicas} means?",
    "sums / own / replicas": REPLICAS_EQUAL,
    "sums / own / np.count_nonzero(words)": REPLICAS_EQUAL,
    **{
        f"sums / (replicas * {each})": (
            f"this divides by {{replicas * {each}}}, as if each of the {{replicas}} replicas had {{{each}}} words. How "
            "many are there?"
        )
        for each in ("words[0]", "words[-1]")
    },
    "sums / lengths.sum()": (
        "the words' losses are added, but divided by the {lengths.sum()} sequences. Over what is the mean?"
    ),
    "means / lengths.sum()": SEQUENCE_MEANS,
    "means / lengths / replicas": SEQUENCE_MEANS,
}


MASKED_LOSSES = ByPrograms(
    masked_losses,
    padded_batches,
    said=lambda case: f"for {in_words(words_of(case))} words",
    parts=(EQUAL_WORDS, UNEQUAL_WORDS, NO_WORDS),
    split=OfPart.split,
    tolerance=TOLERANCE,
    mistakes=formulas(masked_losses, {"": MASK_FORMULAS}, known_of_words),
    otherwise=on_each_replica(masked_losses, "words", words_of),
)

# The lab -------------------------------------------------------------------------------------------------------------


def target(name: str) -> str:
    """One call of an exercise's function and what it must give, by the course's own functions."""

    def arrays(each: Iterable[Array]) -> str:
        return "[" + ", ".join(f"np.array({array.tolist()})" for array in each) + "]"

    if name == "factors":
        lines = [f"    {loop:24}{value:>4g}" for loop, value in factors(*LOOP).items()]
        return "\n".join(["factors(replicas={}, images={}, micro_batches={})".format(*LOOP), *lines])
    if name == "replica_losses":
        values = replica_losses(LOSSES)
        return f"replica_losses({arrays(LOSSES)})\n    {values}, and their sum is the mean: {sum(values):g}"
    if name == "with_penalty":
        values = with_penalty(LOSSES, PENALTY)
        return f"with_penalty({arrays(LOSSES)}, {PENALTY})\n    {values}, whose sum is {sum(values):g}"
    if name == "accumulated":
        call = f"accumulated(np.array({GRADIENTS.tolist()}), np.array({COUNTS.tolist()}))"
        return f"{call}\n    {accumulated(GRADIENTS, COUNTS).tolist()}"
    losses, masks = map(arrays, PADDED)
    values = masked_losses(*PADDED)
    return f"masked_losses({losses},\n              {masks})\n    {values}, whose sum is {sum(values):g}"


LAB = Lab(
    "04_custom_training_loop",
    [
        Exercise("factors", 6, FACTORS),
        Exercise("replica_losses", 3, REPLICA_LOSSES),
        Exercise("with_penalty", 3, WITH_PENALTY),
        Exercise("accumulated", 3, ACCUMULATED),
        Exercise("masked_losses", 3, MASKED_LOSSES),
    ],
    target=target,
)

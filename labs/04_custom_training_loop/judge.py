"""The judge of lab 04: by what to divide losses, and a distributed loop that computes what one device does.

Each exercise is its right program, the cases, and the mistakes that are recognised; `distributed_loop` has the
exercise that trains.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from lab_04.distributed_loop import judge_distributed

from distlab.labs import Exercise, Lab
from distlab.labs.by_programs import ByPrograms, Hint, OfPart, formulas, is_same
from distlab.labs.number_judge import ROUNDED, described, is_near, is_rounded, numbers_of
from distlab.labs.plain_data import Array

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
            return ROUNDED
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
    if np.allclose(each, penalty, rtol=1e-6):
        return f"{ON_EACH} Outside `strategy.run`, `tf.nn.scale_regularization_loss` divides by 1."
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
    if name == "distributed":
        return "the weights of `serial`, to within 0.0001, and its losses"
    values = with_penalty(LOSSES, PENALTY)
    return f"with_penalty({arrays(LOSSES)}, {PENALTY})\n    {values}, whose sum is {sum(values):g}"


LAB = Lab(
    "04_custom_training_loop",
    [
        Exercise("factors", 6, FACTORS),
        Exercise("replica_losses", 3, REPLICA_LOSSES),
        Exercise("with_penalty", 3, WITH_PENALTY),
        Exercise("distributed", 8, judge_distributed),
    ],
    tensorflow=True,
    target=target,
)

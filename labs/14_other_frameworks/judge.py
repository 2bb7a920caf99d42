"""The judge of lab 14: the eight steps in PyTorch's DDP, its sampler, and what its average means.

The puzzle of the eight steps and the two exercises on the sampler are in modules of their own.
"""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from lab_14 import observe
from lab_14.fake_torch import cross_entropy
from lab_14.puzzle import PUZZLE
from lab_14.sampler import DIAGNOSE, EXAMPLE, SAMPLES, samples

from distlab.labs import Answer, Exercise, Lab
from distlab.labs.answer_errors import AnswerError, NotDone, TookTooLong
from distlab.labs.by_programs import ByPrograms, Mistake, formulas
from distlab.labs.number_judge import counted
from distlab.labs.plain_data import Array
from distlab.labs.reference_mlp import softmax
from distlab.labs.verdict import first

# What an uneven batch counts -----------------------------------------------------------------------------------------


class UnevenBatch(NamedTuple):
    """The images that each rank has in one step, and the rank that is asked for."""

    counts: list[int]
    rank: int


UNEVEN_EXAMPLE = UnevenBatch([4, 2], 1)


def uneven(counts: list[int], rank: int) -> dict[str, float]:
    """The weight of each image of a rank in DDP's average, and the factor of its loss that makes all images equal."""
    return {"weight": 1 / (len(counts) * counts[rank]), "factor": len(counts) * counts[rank] / sum(counts)}


def uneven_batches(generator: np.random.Generator) -> list[UnevenBatch]:
    """Of several ranks, of which the last and another one are asked for; even ones; the example."""
    ranks = int(generator.integers(3, 7))
    counts = [int(count) for count in generator.choice(np.arange(5, 20), ranks, replace=False)]
    of_ranks = [UnevenBatch(counts, ranks - 1), UnevenBatch(counts, 1)]
    return [*of_ranks, UnevenBatch([8, 8, 8], 0), UNEVEN_EXAMPLE]


OTHER_RANK = "this is the weight of an image on another rank. Whose images does this rank's mean divide by?"
TWO_RANKS = "this is right for 2 ranks. How many are there?"
UNEVEN_FORMULAS = {
    "weight": {
        "1 / own": "this is the weight before the ranks are averaged. By what does DDP divide?",
        "1 / all_": (
            "this is what the weight should be, but DDP knows only the rank's own images. By what does it divide?"
        ),
        "1 / (ranks * counts[0])": OTHER_RANK,
        "1 / (ranks * counts[-1])": OTHER_RANK,
        "1 / (2 * own)": TWO_RANKS,
    },
    "factor": {
        "1 / factor": "rank by rank it is the inverse. Must a rank with few images count more or less than it does?",
        "own / all_": "DDP divides by the number of ranks afterwards. What has to be undone?",
        "1 / all_": ("this is the weight that an image should have. By what must the present one be multiplied?"),
        "ranks * own": "this makes the sum of all images, not their mean. How many images are there together?",
        "2 * own / all_": TWO_RANKS,
    },
}
UNEVEN = ByPrograms(
    uneven,
    uneven_batches,
    said=lambda batch: "for batches of {} images, rank {}".format(*batch),
    parts=("weight", "factor"),
    tolerance=2e-7,  # float32 is near enough, a number rounded to six places is not
    otherwise={
        "weight": "by hand with batches of 4 and 2 images: what does each rank's mean divide by, and then DDP?",
        "factor": "by hand with batches of 4 and 2 images: what turns the present weight into 1/6?",
    },
    mistakes=formulas(
        uneven,
        UNEVEN_FORMULAS,
        lambda counts, rank: {"ranks": len(counts), "own": counts[rank], "all_": sum(counts)},
    ),
)

# Several batches, one all-reduce -------------------------------------------------------------------------------------

WEIGHTS, CALLS = "weights", "all-reduce and backward"
SLOW = "`accumulate` did not end in time and was stopped. Which loop has no end?"


class TwoSteps(NamedTuple):
    """First weights, and by step, rank and batch the images and labels."""

    weight: Array
    images: Array
    labels: Array

    def __str__(self) -> str:
        return f"with {counted(self.images.shape[2], 'pair')}"


def two_steps(generator: np.random.Generator) -> list[TwoSteps]:
    """With several batches, with one, and with two; each of another number of images than there are batches."""
    weight, cases = generator.normal(0, 0.3, observe.SHAPE), []
    for batches in (int(generator.integers(3, 6)), 1, 2):
        count = int(generator.choice([number for number in (2, 3, 4, 5) if number != batches]))
        images = generator.normal(size=(2, observe.RANKS, batches, count, observe.SHAPE[0]))
        cases.append(TwoSteps(weight, images, generator.integers(0, observe.SHAPE[1], images.shape[:-1])))
    return cases


def steps_seen(answer: Answer, case: TwoSteps) -> dict[str, Any]:
    """By part: what a right program does in one way only, and details where it is wrong."""
    try:
        seen = answer.inside(observe.accumulate, *case)
    except TookTooLong:
        raise TookTooLong(SLOW) from None
    if seen is None or (isinstance(seen, list) and seen[1] == "NotImplementedError"):
        raise NotDone("`accumulate` is still empty")
    if isinstance(seen, list):
        rank, kind, message, line = seen
        if kind == "TimeoutError":
            raise TookTooLong(SLOW)
        if kind == "Stalled":
            raise AnswerError(f"{case} it hangs: {message}. Who makes this call, and who does not?")
        place = f" in line {line} of its cell" if line else ""
        raise AnswerError(f"{case} rank {rank} raises {kind}{place}: {message}")
    steps, reduces, passes, kept = (max(seen[name]) for name in ("steps", "all-reduces", "backward", "kept"))
    no_syncs = [max(seen["no_sync"]), max(seen["outside"])]
    own, *others = (of_rank[0] for of_rank in seen["weights"])
    is_equal = all(np.allclose(of_rank, own) for of_rank in others)
    after = seen["weights"] if is_equal else []
    return {
        WEIGHTS: [steps // 2, is_equal, after],
        CALLS: [reduces // 2, min(passes // 2, case.images.shape[2]), kept, *(no_syncs if reduces != 2 else [])],
    }


def gradient(weight: Array, images: Array, labels: Array) -> Array:
    """Of the mean cross-entropy of a linear classifier over all images: float64 (features, classes)."""
    flat, of_labels = images.reshape(-1, images.shape[-1]), labels.ravel()
    of_scores = softmax(flat @ weight) - np.eye(weight.shape[1])[of_labels]
    return np.asarray(flat.T @ of_scores / len(flat))


def of_weights(case: TwoSteps, seen: list[Any]) -> str:
    """What is wrong with the weights, if no known mistake gives them."""
    steps, is_equal, after = seen
    if steps != 1:
        return f"the optimizer makes {steps} steps. How many are asked for?"
    if not is_equal:
        return (
            "after the step the ranks have different weights. Which batch has to be averaged, so that all gradients "
            "are?"
        )
    own, moved = gradient(case.weight, case.images[0], case.labels[0]), case.weight - after[0][0]
    ratio = float(np.vdot(moved, own) / np.vdot(own, own) / observe.RATE)
    if ratio > 0 and not np.isclose(ratio, 1) and np.allclose(moved, observe.RATE * ratio * own):
        counted = str(case).removeprefix("with ").replace("1 pair", "one batch").replace("pairs", "batches")
        return (
            f"the step is too {'short' if ratio < 1 else 'long'}, {ratio:.3g} times the right one. By what does a sum "
            f"become the mean of {counted}?"
        )
    return (
        "all ranks have equal weights, but not those of a step with the mean over all batches of all ranks. What is "
        "summed, and what divided?"
    )


def of_calls(case: TwoSteps, seen: list[int]) -> str:
    """Where there is not one all-reduce, or not one backward pass for each pair."""
    reduces, passes, kept, entered, outside = [*seen, 0, 0][:5]
    pairs = case.images.shape[2]
    many = f"{reduces} all-reduces for {pairs} batches"
    own_way = "no all-reduce at all: each rank went its own way. Which of the batches must be outside `no_sync`?"
    half_outside = "no all-reduce at all, but a `backward` is outside `no_sync`. Is its forward pass outside too?"
    said = first(
        (reduces == 0 and entered and outside, half_outside),
        (reduces == 0, own_way),
        (kept > 1, f"the activations of {kept} batches are kept at a time. After which call can they be forgotten?"),
        (passes < pairs, f"{passes} of {pairs} pairs have a `backward`. Which one is left out?"),
        (entered, f"{many}, although `no_sync` is used. Which forward and backward passes are inside it?"),
        (True, f"{many}. Which of them are not needed, and is the block of `no_sync` entered by `with`?"),
    )
    return str(said)


def each(calls: str, first: int, end: int) -> str:
    """These calls for each of the pairs from one to another."""
    return " ".join(f"{call}{pair}" for pair in range(first, end) for call in calls)


def playing(order: Callable[[int], str], divisor: Callable[[Any], float] = len) -> Callable[..., None]:
    """A step that makes these calls: F and B are forward and backward of a pair, f and b in a block of `no_sync`.

    Z sets the gradients to zero, S is the optimizer's step, A one backward pass for all, n a `no_sync` without `with`.
    """

    def program(model: Any, optimizer: Any, batches: Any) -> None:
        losses: dict[str, Any] = {}
        for call in order(len(batches)).split():
            with model.no_sync() if call[0] in "fb" else nullcontext():
                if call[0] in "Ff":
                    images, labels = batches[int(call[1:])]
                    losses[call[1:]] = cross_entropy(model(images), labels) / divisor(batches)
                elif call[0] in "Bb":
                    losses.pop(call[1:]).backward()
                elif call == "A":
                    sum(losses.values()).backward()
                elif call == "n":
                    model.no_sync()
                else:
                    (optimizer.zero_grad if call[0] == "Z" else optimizer.step)()

    return program


def right_order(pairs: int) -> str:
    """All but the last in a block of `no_sync`."""
    return f"Z {each('fb', 0, pairs - 1)} {each('FB', pairs - 1, pairs)} S"


def accumulate(model: Any, optimizer: Any, batches: Any) -> None:
    """One step with the gradients of all batches."""
    playing(right_order)(model, optimizer, batches)


def after_zero(case: TwoSteps, seen: Any) -> str:
    """For gradients that are set to zero before each quiet pair."""
    return (
        f"of {case.images.shape[2]} batches only the last two count: `zero_grad` forgets what the others have added. "
        "How often must it be called in a step?"
    )


def too_long(case: TwoSteps, seen: Any) -> str:
    """For gradients that are added up."""
    times = case.images.shape[2]
    summed = f"the step is {times} times too long: the gradients of {times} batches were added up."
    return f"{summed} By what is a mean divided?"


OF_PARTS = {WEIGHTS: of_weights, CALLS: of_calls}
BY_RANKS = "the step is too short, by the number of ranks. Who divides by it already?"
OLD = "the first step is right, the second is not: the gradients of the first are still there. When must they go?"
LAST_ONLY = "only the last batch counts. When are the gradients set to zero?"
NOT_APPLIED = "the weights do not change. Who applies the gradients?"
ZERO_LAST = "the gradients are set to zero just before the step. What is left for it?"
STEP_EARLY = "the step comes before the last `backward`, so its gradients are not in it. What must come last?"
FIRST_LOST = "the first pair is left out. Which pairs does the loop go through?"
ACCUMULATE = ByPrograms(
    accumulate,
    two_steps,
    observe=steps_seen,
    said=str,
    parts=(WEIGHTS, CALLS),
    otherwise=OF_PARTS,
    mistakes=[
        Mistake({WEIGHTS: too_long}, playing(right_order, lambda batches: 1)),
        Mistake({WEIGHTS: BY_RANKS}, playing(right_order, lambda batches: observe.RANKS * len(batches))),
        Mistake({WEIGHTS: OLD}, playing(lambda n: right_order(n)[1:])),
        Mistake({WEIGHTS: NOT_APPLIED}, playing(lambda n: right_order(n)[:-1])),
        Mistake({WEIGHTS: ZERO_LAST}, playing(lambda n: f"{right_order(n)[:-1]} Z S")),
        Mistake({WEIGHTS: LAST_ONLY}, playing(lambda n: f"{each('Zfb', 0, n - 1)} {each('ZFB', n - 1, n)} S")),
        Mistake({WEIGHTS: after_zero}, playing(lambda n: f"Z {each('Zfb', 0, n - 1)} {each('FB', n - 1, n)} S")),
        Mistake({WEIGHTS: STEP_EARLY}, playing(lambda n: f"Z {each('fb', 0, n - 1)} S {each('FB', n - 1, n)}")),
        Mistake(
            {WEIGHTS: FIRST_LOST, CALLS: of_calls},
            playing(lambda n: f"Z {each('fb', min(1, n - 1), n - 1)} {each('FB', n - 1, n)} S"),
        ),
        *(
            Mistake(OF_PARTS, playing(order))
            for order in (
                lambda n: each("ZFBS", 0, n),
                lambda n: f"Z {each('fb', 0, n)} S",
                lambda n: f"Z F0 B0 {each('fb', 1, n)} S",
                lambda n: f"Z {each('FB', 0, n)} S",
                lambda n: f"Z n {each('FB', 0, n)} S",
                lambda n: f"Z {each('fb', 0, n - 2)} {each('FB', max(0, n - 2), n)} S",
                lambda n: f"Z {each('Fb', 0, n - 1)} {each('FB', n - 1, n)} S",
                lambda n: f"Z {each('fb', 0, n - 1)} {each('fB', n - 1, n)} S",
                lambda n: f"Z F{n - 1} {each('fb', 0, n - 1)} B{n - 1} S",
                lambda n: f"Z {each('F', 0, n)} {each('B', 0, n)} S",
                lambda n: f"Z {each('f', 0, n - 1)} {each('B', 0, n - 1)} {each('FB', n - 1, n)} S",
                lambda n: f"Z {each('F', 0, n)} A S",
            )
        ),
        Mistake(OF_PARTS, playing(right_order, lambda batches: len(batches[0][0]))),
    ],
)


def target(name: str) -> str:
    """One call of an exercise's function and what it must give."""
    if name == "samples":
        call = "samples(images={}, ranks={}, rank={{}}, epoch={}, seed={}, drop_last={})".format(*EXAMPLE)
        values = [(rank, samples(EXAMPLE.images, EXAMPLE.ranks, rank, *EXAMPLE[2:])) for rank in range(EXAMPLE.ranks)]
        return "\n".join(f"{call.format(rank)}  {value}" for rank, value in values)
    if name == "uneven":
        listed = ", ".join(f'"{number}": {value:.6g}' for number, value in uneven(*UNEVEN_EXAMPLE).items())
        return "uneven(counts={}, rank={})  {{{}}}".format(*UNEVEN_EXAMPLE, listed)
    return {
        "program": "program\n    a list of names",
        "diagnose": "diagnose(log, images)\n    one of lab.given.FAULTS",
        "accumulate": "accumulate(model, optimizer, batches)\n    one step",
    }[name]


LAB = Lab(
    "14_other_frameworks",
    [
        Exercise("program", 8, PUZZLE),
        Exercise("samples", 4, SAMPLES),
        Exercise("diagnose", 6, DIAGNOSE),
        Exercise("uneven", 2, UNEVEN),
        Exercise("accumulate", 4, ACCUMULATE),
    ],
    target=target,
)

"""What DDP averages: the weight of an image in an uneven batch, and a step of several batches. Exercises of lab 14."""

from typing import NamedTuple

import numpy as np
from lab_14 import observe
from lab_14.hints import Lab14Hint
from lab_14.observe import RATE, Observed

from distlab.labs.answer import Answer
from distlab.labs.answer_errors import NotDone, TookTooLong
from distlab.labs.fake_job import ranks_left
from distlab.labs.number_judge import Expected, NumberJudge
from distlab.labs.plain_data import Array, as_record
from distlab.labs.verdict import Advice, AnyHint, Verdict, parts, right, wrong

NAMES = ("weight", "factor")
TOLERANCE = 2e-7  # float32 is near enough, a number rounded to six places is not


class UnevenBatch(NamedTuple):
    """The images that each rank has in one step, and the rank that is asked for."""

    counts: list[int]
    rank: int

    def __str__(self) -> str:
        return f"batches of {self.counts} images, rank {self.rank}"


EXAMPLE = UnevenBatch([4, 2], 1)


def uneven(counts: list[int], rank: int) -> dict[str, float]:
    """The weight of each image of a rank in DDP's average, and the factor of its loss that makes all images equal."""
    return {"weight": 1 / (len(counts) * counts[rank]), "factor": len(counts) * counts[rank] / sum(counts)}


def judge_uneven(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Half of the points for each number."""
    judge = NumberJudge("uneven", NAMES)
    ranks = int(generator.integers(3, 7))
    counts = [int(count) for count in generator.choice(np.arange(5, 20), ranks, replace=False)]
    batches = [EXAMPLE, UnevenBatch([8, 8, 8], 0), UnevenBatch(counts, 1), UnevenBatch(counts, ranks - 1)]
    for batch in batches[::-1]:
        if problem := judge.compare(answer.call("uneven", *batch), _expected(batch), str(batch)):
            return problem
    return judge.verdict()


def _expected(batch: UnevenBatch) -> dict[str, Expected]:
    counts, rank = batch
    ranks, own, together = len(counts), counts[rank], sum(counts)
    right_numbers = uneven(counts, rank)
    weight, factor = right_numbers["weight"], right_numbers["factor"]
    of_others = [(1 / (ranks * count), Lab14Hint.OTHER_COUNT) for count in counts if count != own]
    return {
        "weight": Expected(
            weight,
            [(1 / own, Lab14Hint.NOT_DIVIDED_BY_RANKS), (1 / together, Lab14Hint.IDEAL_WEIGHT), *of_others],
            Lab14Hint.OTHER_WEIGHT,
            TOLERANCE,
        ),
        "factor": Expected(
            factor,
            [
                (1 / factor, Lab14Hint.FACTOR_INVERTED),
                (own / together, Lab14Hint.RANKS_FORGOTTEN),
                (1 / together, Lab14Hint.IDEAL_FACTOR),
                (ranks * own, Lab14Hint.MEAN_FORGOTTEN),
            ],
            Lab14Hint.OTHER_FACTOR,
            TOLERANCE,
        ),
    }


def judge_accumulate(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Half of the points for the weights, half for the calls; with several batches per rank, and with one."""
    weight, gradients, communication = generator.normal(0, 0.3, observe.SHAPE), right(), right()
    several = int(generator.integers(3, 6))
    for batches in (several, 1, 2):
        count = int(generator.choice([number for number in (2, 3, 4, 5) if number != batches]))
        images = generator.normal(size=(2, observe.RANKS, batches, count, observe.SHAPE[0]))
        labels = generator.integers(0, observe.SHAPE[1], images.shape[:-1])
        try:
            seen = as_record(answer.inside(observe.accumulate, weight, images, labels), Observed)
        except TookTooLong:
            return wrong(_endless())
        if not seen.is_written or seen.kind == "NotImplementedError":
            raise NotDone("`accumulate` is still empty")
        case = f"with {batches} pair{'s' if batches > 1 else ''} "
        if seen.kind:
            return wrong(_error_hint(seen, case))
        said = "" if batches == several else f"{case.rstrip()}: "  # of a case that needs to be named
        if gradients.is_right and (problem := _wrong_weights(seen, weight, images, labels)):
            gradients = wrong(problem, context=said)
        if communication.is_right and (problem := _wrong_communication(seen, batches)):
            communication = wrong(problem, context=said)
    return parts({"weights": gradients, "all-reduce and backward": communication})


def _endless() -> AnyHint:
    hint = Advice.of(Lab14Hint.TOO_SLOW)
    return hint.then(Lab14Hint.STILL_RUNNING) if ranks_left() else hint


def _error_hint(seen: Observed, case: str) -> AnyHint:
    if seen.kind == "TimeoutError":
        return _endless()
    if seen.kind == "Stalled":
        return Lab14Hint.HANGS.says(case=case, error=seen.message)
    if seen.kind == "NotInFake":
        return Lab14Hint.NOT_IN_FAKE.says(error=seen.message)
    place = f" in line {seen.line} of its cell" if seen.line else ""
    return Lab14Hint.RAISES.says(case=case, rank=seen.rank, error=f"{seen.kind}{place}: {seen.message}")


def gradient(weight: Array, images: Array, labels: Array) -> Array:
    """Of the mean cross-entropy of a linear classifier over all images: float64 (features, classes)."""
    flat, of_labels = images.reshape(-1, images.shape[-1]), labels.ravel()
    scores = np.exp(flat @ weight)
    of_scores = scores / scores.sum(axis=1, keepdims=True) - np.eye(weight.shape[1])[of_labels]
    return np.asarray(flat.T @ of_scores / len(flat))


def _wrong_weights(seen: Observed, weight: Array, images: Array, labels: Array) -> AnyHint | None:
    batches = images.shape[2]
    own = gradient(weight, images[0], labels[0])
    first = weight - RATE * own
    of_ranks = [np.asarray(of_rank) for of_rank in seen.first]
    if any(of_rank.shape != weight.shape for of_rank in of_ranks):
        return Lab14Hint.WRONG_STEP
    if all(np.allclose(of_rank, weight) for of_rank in of_ranks):
        return Lab14Hint.NOT_APPLIED
    if max(seen.steps) > 2:
        return Lab14Hint.STEP_EACH_BATCH.says(count=max(seen.steps) // 2)
    if not all(np.allclose(of_rank, of_ranks[0]) for of_rank in of_ranks):
        since = max(seen.passes_since_average)
        return Lab14Hint.AVERAGED_EARLY.says(count=since) if seen.all_reduces[0] and since else Lab14Hint.RANKS_DIFFER
    if np.allclose(of_ranks[0], first):
        then = gradient(first, images[1], labels[1])
        second = first - RATE * (observe.MOMENTUM * own + then)
        is_right = all(np.allclose(of_rank, second) for of_rank in seen.second)
        return None if is_right else Lab14Hint.OLD_GRADIENTS
    if np.allclose(of_ranks[0], weight - RATE * batches * own):
        return Lab14Hint.SUMMED_BATCHES.says(count=batches)
    if np.allclose(of_ranks[0], weight - RATE * own / observe.RANKS):
        return Lab14Hint.DIVIDED_BY_RANKS
    last = gradient(weight, images[0][:, -1], labels[0][:, -1])
    if any(np.allclose(of_ranks[0], weight - RATE * last / divisor) for divisor in (1, batches)):
        return Lab14Hint.LAST_BATCH_ONLY
    last_two = gradient(weight, images[0][:, -2:], labels[0][:, -2:])
    if batches > 2 and np.allclose(of_ranks[0], weight - RATE * last_two * 2 / batches):
        return Lab14Hint.LAST_TWO_BATCHES.says(batches=batches)
    ratio = float(np.vdot(weight - of_ranks[0], own) / np.vdot(own, own) / RATE)
    if ratio > 0 and np.allclose(of_ranks[0], weight - RATE * ratio * own):
        counted = f"{batches} batches" if batches > 1 else "one batch"
        return Lab14Hint.STEP_LENGTH.says(short="short" if ratio < 1 else "long", ratio=ratio, count=counted)
    return Lab14Hint.WRONG_STEP


def _wrong_communication(seen: Observed, batches: int) -> AnyHint | None:
    """All ranks make the same calls, or they would hang; two steps were made."""
    count = seen.all_reduces[0] // 2
    if count == 0:
        is_outside = seen.no_syncs[0] and seen.backward_passes_outside[0]
        return Lab14Hint.FORWARD_INSIDE if is_outside else Lab14Hint.NEVER_AVERAGED
    if seen.backward_passes[0] // 2 < batches:
        return Lab14Hint.ONE_BACKWARD
    if seen.most_kept[0] > 1:
        return Lab14Hint.LOSSES_KEPT.says(count=seen.most_kept[0])
    if count == 1:
        return None
    if count < batches:
        return Lab14Hint.OTHER_COUNT_OF_ALL_REDUCES.says(count=count, batches=batches)
    if seen.no_syncs[0]:
        return Lab14Hint.FORWARD_OUTSIDE.says(count=count)
    return (Lab14Hint.WITHOUT_WITH if seen.no_sync_calls[0] else Lab14Hint.AVERAGED_EACH_TIME).says(count=count)

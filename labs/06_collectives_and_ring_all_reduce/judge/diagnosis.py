"""From a wrong run of a collective to the hint that fits the mistake.

A run that ended in an error is judged by the error, wrong arrays first by their form, and then by their sums.
"""

from collections.abc import Callable

import numpy as np
from lab_06.hints import Lab06Hint
from lab_06.runs import Attempt
from lab_06.wrong_sums import Reading

from distlab.labs.answer_errors import first_sentence, sentence
from distlab.labs.verdict import Advice
from distlab.simulate import (
    DeadlockError,
    MismatchError,
    NoSuchRankError,
    RankFailedError,
    SelfMessageError,
    SimulationError,
    UnreceivedMessageError,
)


def of_result(attempt: Attempt, of_sums: Callable[[Reading], Advice], on_ring: bool) -> Advice | None:
    """What leads on after this run; None if it is right.

    `of_sums` advises on wrong sums; `on_ring` says whether each rank is meant to have two neighbours.
    """
    if attempt.error is not None:
        return of_error(attempt.error, on_ring)
    if attempt.is_right:
        return None
    if advice := _of_form(attempt) or _of_divisor(attempt):
        return advice
    if attempt.tags is None:
        return Lab06Hint.WRONG_FOR_SOME_NUMBERS.says()
    reading = Reading.of(attempt, attempt.tags)
    for array, of_rank in zip(attempt.arrays, reading.of_ranks, strict=True):
        if any(value != 0 and not shares for value, shares in zip(np.ravel(array), of_rank, strict=True)):
            return Lab06Hint.NOT_A_SUM.says()
    return of_sums(reading)


def of_error(error: SimulationError, on_ring: bool) -> Advice:
    """Why a run could not go on."""
    text = str(error).splitlines()[0]
    match error:
        case DeadlockError():
            return _of_deadlock(error)
        case UnreceivedMessageError():
            source, to = min(error.unreceived)
            return Lab06Hint.NEVER_RECEIVED.says(source=source, to=to)
        case NoSuchRankError():
            return (Lab06Hint.NO_SUCH_NEIGHBOUR if on_ring else Lab06Hint.NO_SUCH_PARTNER).says(error=text)
        case SelfMessageError():
            return Lab06Hint.OWN_NEIGHBOUR.says(error=text.partition(":")[0])
        case MismatchError() if "shape" in text:
            return Lab06Hint.ANOTHER_CHUNK_ARRIVES.says(error=sentence(text))
        case RankFailedError() if "broadcast" in text:
            return Lab06Hint.LENGTH_OF_ANOTHER_CHUNK.says(error=sentence(text))
        case RankFailedError():
            return Lab06Hint.RUN_ENDED.says(error=first_sentence(error))
    return Lab06Hint.RUN_ENDED.says(error=sentence(text))


def _of_deadlock(error: DeadlockError) -> Advice:
    rank = min(error.waiting)
    source = error.waiting[rank].source
    if not error.events:
        return Lab06Hint.EVERYBODY_RECEIVES_FIRST.says()
    if error.unreceived:
        sender, to = min(error.unreceived)
        return Lab06Hint.WRONG_NEIGHBOUR.says(rank=rank, source=source, sender=sender, to=to)
    if any(wait.source_has_finished for wait in error.waiting.values()):
        return Lab06Hint.MORE_RECEIVES_THAN_SENDS.says(rank=rank, source=source)
    return Lab06Hint.CIRCLE.says(rank=rank, source=source)


def _of_form(attempt: Attempt) -> Advice | None:
    """What is wrong with the type and the shape of what the ranks return; None if nothing is."""
    for rank, (result, expected) in enumerate(zip(attempt.results, attempt.expected, strict=True)):
        if result is None:
            return Lab06Hint.RETURNS_NOTHING.says(rank=rank)
        if isinstance(result, (list, tuple)):
            return Lab06Hint.RETURNS_A_LIST.says(rank=rank, count=len(result))
        if not isinstance(result, np.ndarray):
            return Lab06Hint.RETURNS_A_NUMBER.says(rank=rank, shape=expected.shape)
        if result.dtype.kind not in "iuf":
            return Lab06Hint.RETURNS_NO_NUMBERS.says(rank=rank, dtype=result.dtype)
        if result.shape == expected.shape:
            continue
        if attempt.collective == "reduce_scatter" and result.size == attempt.length:
            return Lab06Hint.RETURNS_THE_WHOLE_ARRAY.says(rank=rank)
        if attempt.collective == "all_reduce" and result.size < attempt.length:
            return Lab06Hint.RETURNS_A_PART.says(rank=rank, count=result.size, length=attempt.length)
        if attempt.collective == "all_gather" and result.shape == attempt.inputs[rank].shape:
            return Lab06Hint.RETURNS_ONE_CHUNK.says(rank=rank)
        return Lab06Hint.RETURNS_ANOTHER_SHAPE.says(rank=rank, shape=result.shape, expected=expected.shape)
    return None


def _of_divisor(attempt: Attempt) -> Advice | None:
    """Whether the results are the right ones divided by a number."""
    pairs = list(zip(attempt.expected, attempt.arrays, strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.concatenate([expected / result for expected, result in pairs])
    if len(ratios) and np.isfinite(ratios[0]) and ratios[0] > 1 and np.allclose(ratios, ratios[0], rtol=1e-6):
        return Lab06Hint.DIVIDED.says(divisor=ratios[0])
    if all(np.all(result == expected // attempt.size) for expected, result in pairs):
        return Lab06Hint.DIVIDED_AND_ROUNDED.says()
    return None

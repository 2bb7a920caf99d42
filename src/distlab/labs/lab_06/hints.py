"""From a wrong run of a collective to the hint that fits the mistake; none of them says what to write instead."""

from collections.abc import Callable

import numpy as np

from distlab.labs.error_text import first_sentence, sentence
from distlab.labs.lab_06.runs import Attempt
from distlab.labs.lab_06.tagged import Shares
from distlab.simulate import (
    DeadlockError,
    MismatchError,
    NoSuchRankError,
    RankFailedError,
    SelfMessageError,
    SimulationError,
    UnreceivedMessageError,
)


def hint_of_error(error: SimulationError, on_ring: bool) -> str:
    """Why a run could not go on; `on_ring` says whether each rank is meant to have two neighbours."""
    text = str(error).splitlines()[0]
    if isinstance(error, DeadlockError):
        return _hint_of_deadlock(error)
    if isinstance(error, UnreceivedMessageError):
        (source, to), _ = min(error.unreceived.items())
        return (
            f"Rank {source} sends rank {to} a message that rank {to} never receives. Do both take the same neighbours "
            "and the same number of rounds?"
        )
    if isinstance(error, NoSuchRankError):
        question = "What follows after the last rank, what comes before rank 0?"
        if not on_ring:
            question = "Two partners have to name each other: is the partner's partner always the rank itself?"
        return f"A neighbour that does not exist: {text}. {question}"
    if isinstance(error, SelfMessageError):
        return f"A rank is its own neighbour: {text.partition(':')[0]}. When are there no messages to send at all?"
    if isinstance(error, MismatchError) and "shape" in text:
        return (
            f"{sentence(text)} What arrives is not the same chunk as the one that it is added to: compare the "
            "index of what the left neighbour sends with the index of what you add to."
        )
    if isinstance(error, RankFailedError) and "broadcast" not in text:
        return first_sentence(error)
    if isinstance(error, RankFailedError):
        return (
            f"{sentence(text)} Chunks can have different lengths: is something of one chunk's length made for "
            "another chunk?"
        )
    return sentence(text)


def _hint_of_deadlock(error: DeadlockError) -> str:
    waiting = {rank: wait.source for rank, wait in error.waiting.items()}
    rank, source = min(waiting.items(), key=lambda item: item[0])
    if not len(error.events):
        return (
            "Deadlock: every rank waits for a message, and nobody has sent one. Which operation does each rank begin "
            "with, and can it end before another rank has gone on?"
        )
    if error.unreceived:
        (sender, to), _ = min(error.unreceived.items())
        return (
            f"Deadlock with a wrong neighbour: rank {rank} waits for rank {source}, while rank {sender} has sent to "
            f"rank {to}, which does not ask for it. If everybody sends to the right, from where do messages come?"
        )
    if any(wait.source_has_finished for wait in error.waiting.values()):
        return (
            f"Deadlock: rank {rank} waits for rank {source}, but a rank that others wait for has finished. Somebody "
            "receives in more rounds than his neighbour sends in."
        )
    return f"Deadlock: rank {rank} waits for rank {source}, and the waiting goes round in a circle. Who sends first?"


def hint_of_form(attempt: Attempt) -> str | None:
    """What is wrong with the type and the shape of what the ranks return; None if nothing is."""
    for rank, (result, wanted) in enumerate(zip(attempt.results, attempt.wanted, strict=True)):
        if result is None:
            return f"Rank {rank} returns None, other ranks do not: does every rank come to a `return`?"
        if isinstance(result, (list, tuple)):
            return (
                f"Rank {rank} returns a list of {len(result)} things: one array is wanted, so put the chunks together."
            )
        if not isinstance(result, np.ndarray):
            return f"Rank {rank} returns a single number; an array of shape {wanted.shape} is wanted."
        if result.dtype.kind not in "iuf":
            return f"Rank {rank} returns an array of {result.dtype}, not of numbers like those that it was given."
        if result.shape == wanted.shape:
            continue
        if attempt.collective == "reduce_scatter" and len(np.ravel(result)) == attempt.length:
            return f"Rank {rank} returns the whole array; it is asked for its own chunk of the sum alone."
        if attempt.collective == "all_reduce" and len(np.ravel(result)) < attempt.length:
            return f"Rank {rank} returns {result.size} of {attempt.length} elements; it is asked for the whole sum."
        if attempt.collective == "all_gather" and result.shape == attempt.inputs[rank].shape:
            return f"Rank {rank} returns one chunk; it is asked for the chunks of all ranks, one behind the other."
        return f"Rank {rank} returns an array of shape {result.shape}; {wanted.shape} is wanted."
    return None


def hint_of_divisor(attempt: Attempt) -> str | None:
    """Whether the results are the right ones divided by a number."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.concatenate(
            [wanted / result for wanted, result in zip(attempt.wanted, attempt.results, strict=True) if len(wanted)]
        )
    if len(ratios) and np.isfinite(ratios[0]) and ratios[0] > 1 and np.allclose(ratios, ratios[0], rtol=1e-6):
        return (
            f"Your result is the right one divided by {ratios[0]:g}. The collective gives the sum; who wants a mean "
            "divides it afterwards."
        )
    pairs = zip(attempt.wanted, attempt.results, strict=True)
    if all(np.all(result == wanted // attempt.size) for wanted, result in pairs):
        return "Your result is the right one divided by the number of ranks and rounded. The collective gives the sum."
    return None


def hint_of_shares(attempt: Attempt, of_shares: Callable[[Attempt, list[list[Shares]]], str]) -> str:
    """The hint of `of_shares`, which is told what is in each element of each rank's result."""
    if attempt.tags is None:
        return "The sums are wrong for other numbers than those of the first cases."
    read = [attempt.tags.read(result) for result in attempt.results]
    if any(
        not shares and value != 0
        for shares_of, result in zip(read, attempt.results, strict=True)
        for shares, value in zip(shares_of, np.ravel(result), strict=True)
    ):
        return "Some element is no sum of the inputs: is anything done to the numbers besides adding?"
    return of_shares(attempt, read)


def ranks_in(shares: Shares) -> list[int]:
    """Whose elements are in a sum, each rank once."""
    return sorted({rank for rank, _ in shares})


def in_words(ranks: list[int]) -> str:
    """Such as "ranks 0, 2 and 3"."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"

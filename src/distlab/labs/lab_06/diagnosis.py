"""From a wrong run of a collective to the hint that fits the mistake.

A run that ended in an error is judged by the error, wrong arrays first by their form. Wrong sums of tagged inputs are
read: a share twice, one missing, shares of unlike chunks.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from distlab.collectives import chunks_of
from distlab.labs.answer_errors import first_sentence, sentence
from distlab.labs.lab_06.hints import Lab06Hint, joined
from distlab.labs.lab_06.runs import Attempt
from distlab.labs.lab_06.tagged import Shares, Tags
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


@dataclass(frozen=True)
class Reading:
    """What is in each element: of each rank's result, of what rank 0 has to return, of each message and sum."""

    attempt: Attempt
    of_ranks: list[list[Shares]]
    expected: list[Shares]
    moved: list[tuple[str, int, Shares]]

    @classmethod
    def of(cls, attempt: Attempt, tags: Tags) -> "Reading":
        """Of a run with these tags."""
        moved = [
            (event.kind, event.rank, shares)
            for kind in ("send", "reduce")
            for event in (attempt.events.select(kind) if attempt.events is not None else ())
            if event.content is not None
            for shares in tags.read(event.content)
        ]
        results = [tags.read(array) for array in attempt.arrays]
        return cls(attempt, results, tags.read(attempt.expected[0]), moved)


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


def of_reduce_scatter(reading: Reading) -> Advice:
    """Of wrong sums after a reduce-scatter on a ring."""
    attempt = reading.attempt
    chunks = [chunk.tolist() for chunk in chunks_of(np.arange(attempt.length), attempt.size)]
    for rank, of_rank in enumerate(reading.of_ranks):
        positions = sorted({position for shares in of_rank for _, position in shares})
        is_finished = all(len(_ranks_in(shares)) == attempt.size and max(shares.values()) == 1 for shares in of_rank)
        if is_finished and positions != chunks[rank] and positions in chunks:
            return Lab06Hint.ANOTHER_CHUNK_IS_FINISHED.says(rank=rank, chunk=chunks.index(positions))
    if advice := _twice(reading) or _mixed(reading, _off_by_one(attempt)):
        return advice
    if attempt.steps < attempt.size - 1:
        return _too_few_rounds(attempt, attempt.size - 1)
    rank, lack = _first_lack(reading)
    if (finished := _finished_chunk(reading, rank)) not in (None, rank) and _positions_of(reading, rank) in chunks:
        returned = chunks.index(_positions_of(reading, rank))
        return Lab06Hint.FINISHED_CHUNK.says(rank=rank, chunk=finished, returned=returned)
    return _not_passed_on(reading, rank, lack) or joined(lack, Lab06Hint.FOLLOW_ONE_CHUNK)


def of_ring_all_reduce(reading: Reading) -> Advice:
    """Of wrong sums after an all-reduce on a ring."""
    half = reading.attempt.size - 1
    steps = reading.attempt.steps
    if advice := _twice(reading):
        return joined(advice, Lab06Hint.SECOND_HALF_ADDS) if steps == 2 * half else advice
    if advice := _mixed(reading, _off_by_one(reading.attempt)) or _misplaced(reading):
        return advice
    rank, lack = _first_lack(reading)
    is_own_alone = all(_ranks_in(shares) == [rank] for shares in reading.of_ranks[rank])
    if steps >= 2 * half and not is_own_alone and _all_arrive(reading):
        return Lab06Hint.RESULT_NOT_WRITTEN.says(rank=rank)
    if advice := _not_passed_on(reading, rank, lack):
        return advice
    if steps == half:
        return joined(lack, Lab06Hint.SECOND_HALF_MISSING)
    if steps < 2 * half:
        return _too_few_rounds(reading.attempt, 2 * half)
    return joined(lack, Lab06Hint.UNFINISHED_CHUNK_SENT)


def of_halving_doubling(reading: Reading) -> Advice:
    """Of wrong sums after an all-reduce by halving and doubling."""
    size = reading.attempt.size
    power = 1 << (size.bit_length() - 1)
    if power < size and _extra_ranks_left_out(reading, power):
        extra = _in_words(list(range(power, size)))
        return Lab06Hint.EXTRA_RANKS.says(last=power - 1, ranks=extra)
    if advice := _twice(reading):
        return joined(advice, Lab06Hint.DOUBLING_ADDS)
    if advice := _mixed(reading, Lab06Hint.ANOTHER_HALF) or _misplaced(reading):
        return advice
    return joined(_first_lack(reading)[1], Lab06Hint.ORDER_OF_HALVES)


def of_all_gather(reading: Reading) -> Advice:
    """Of wrong arrays after an all-gather on a ring."""
    attempt = reading.attempt
    whole = reading.expected
    for rank, of_rank in enumerate(reading.of_ranks):
        for shares in of_rank:
            if shares.total() > 1:
                return Lab06Hint.GATHER_ADDS.says(rank=rank, ranks=_in_words(_ranks_in(shares)))
        sources = sorted({source for shares in of_rank for source, _ in shares})
        if of_rank != whole and sorted(map(repr, of_rank)) == sorted(map(repr, whole)):
            return Lab06Hint.ORDER_OF_ARRIVAL.says(rank=rank)
        if len(sources) < attempt.size and attempt.steps < attempt.size - 1:
            return _too_few_rounds(attempt, attempt.size - 1)
        if len(sources) == 2 and attempt.size > 2:
            return Lab06Hint.ONE_SOURCE.says(rank=rank, source=max(set(sources) - {rank}))
        if len(sources) < attempt.size:
            return Lab06Hint.CHUNKS_MISSING.says(rank=rank, ranks=_in_words(sources))
    return Lab06Hint.WRONG_PLACE.says()


def _first_lack(reading: Reading) -> tuple[int, Advice]:
    """The first element that lacks shares: on which rank, and what it holds."""
    for rank, of_rank in enumerate(reading.of_ranks):
        for position, shares in enumerate(of_rank):
            ranks = _ranks_in(shares)
            if not ranks:
                return rank, Lab06Hint.NO_SHARES.says(rank=rank, position=position)
            if len(ranks) < reading.attempt.size:
                return rank, Lab06Hint.ONLY_SOME_SHARES.says(rank=rank, position=position, ranks=_in_words(ranks))
    return 0, Lab06Hint.WRONG_PLACE.says()


def _not_passed_on(reading: Reading, rank: int, lack: Advice) -> Advice | None:
    """Whether sums are not returned, or not sent on; `rank` is that of the first element that lacks shares."""
    if all(_ranks_in(shares) == [rank] for shares in reading.of_ranks[rank]):
        return Lab06Hint.OWN_SHARE_ONLY.says(rank=rank)
    if all(shares.total() == 1 for kind, _, shares in reading.moved if kind == "send"):
        return joined(lack, Lab06Hint.SENDS_OWN_NUMBERS)
    return None


def _twice(reading: Reading) -> Advice | None:
    for rank, of_rank in enumerate(reading.of_ranks):
        for position, shares in enumerate(of_rank):
            for (source, _), count in sorted(shares.items()):
                if count > 1:
                    times = "twice" if count == 2 else f"{count} times"
                    return Lab06Hint.SHARE_TWICE.says(rank=rank, source=source, position=position, times=times)
    return None


def _mixed(reading: Reading, question: Lab06Hint) -> Advice | None:
    for rank, of_rank in enumerate(reading.of_ranks):
        for position, shares in enumerate(of_rank):
            if len(positions := _positions(shares)) > 1:
                mixed = Lab06Hint.UNLIKE_IN_RESULT.says(rank=rank, position=position, positions=positions)
                return joined(mixed, question)
    for kind, rank, shares in reading.moved:
        if len(positions := _positions(shares)) > 1:
            hint = Lab06Hint.UNLIKE_SENT if kind == "send" else Lab06Hint.UNLIKE_ADDED
            return joined(hint.says(rank=rank, positions=positions), question)
    return None


def _misplaced(reading: Reading) -> Advice | None:
    for rank, of_rank in enumerate(reading.of_ranks):
        for position, shares in enumerate(of_rank):
            if (positions := _positions(shares)) not in ([], [position]):
                return Lab06Hint.PUT_ELSEWHERE.says(rank=rank, position=position, source=positions[0])
    return None


def _off_by_one(attempt: Attempt) -> Lab06Hint:
    """What to ask about indices that do not fit the messages: do those go to the left?"""
    sends = attempt.events.select("send") if attempt.events is not None else ()
    steps = {((send.partner or 0) - send.rank) % attempt.size for send in sends}
    goes_left = attempt.size > 2 and steps == {attempt.size - 1}
    return Lab06Hint.OTHER_DIRECTION if goes_left else Lab06Hint.OFF_BY_ONE


def _positions_of(reading: Reading, rank: int) -> list[int]:
    """The elements that what a rank returns has shares of."""
    return sorted({position for shares in reading.of_ranks[rank] for _, position in shares})


def _finished_chunk(reading: Reading, rank: int) -> int | None:
    """The chunk of which a rank has made the sum of all ranks; None without one, or where nothing was seen of it."""
    chunks = [chunk.tolist() for chunk in chunks_of(np.arange(reading.attempt.length), reading.attempt.size)]
    for kind, of_rank, shares in reading.moved:
        if kind == "reduce" and of_rank == rank and len(_ranks_in(shares)) == reading.attempt.size:
            return next((index for index, chunk in enumerate(chunks) if _positions(shares)[0] in chunk), None)
    return None


def _all_arrive(reading: Reading) -> bool:
    """Whether every rank is sent, or has made, the finished sum of each element."""
    attempt = reading.attempt
    size = attempt.size
    has: list[set[int]] = [set() for _ in range(size)]
    events = () if attempt.events is None else attempt.events
    assert attempt.tags is not None
    for event in events:
        if event.kind in ("send", "reduce") and event.content is not None:
            owner = event.partner if event.kind == "send" else event.rank
            for shares in attempt.tags.read(event.content):
                if owner is not None and len(_ranks_in(shares)) == size and len(_positions(shares)) == 1:
                    has[owner].add(_positions(shares)[0])
    return all(len(positions) == attempt.length for positions in has)


def _extra_ranks_left_out(reading: Reading, power: int) -> bool:
    """Whether what is wrong is that ranks from `power` on give nothing to the sum, or get nothing of it."""
    inner = set(range(power))
    for rank, of_rank in enumerate(reading.of_ranks):
        for shares in of_rank:
            ranks = set(_ranks_in(shares))
            if rank < power and not inner <= ranks:
                return False
            if rank >= power and not (ranks == {rank} or inner <= ranks):
                return False
    return True


def _too_few_rounds(attempt: Attempt, needed: int) -> Advice:
    return Lab06Hint.ROUND_MISSING.says(size=attempt.size, steps=attempt.steps, needed=needed)


def _ranks_in(shares: Shares) -> list[int]:
    """Whose elements are in a sum, each rank once."""
    return sorted({rank for rank, _ in shares})


def _positions(shares: Shares) -> list[int]:
    return sorted({position for _, position in shares})


def _in_words(ranks: list[int]) -> str:
    """Such as "ranks 0, 2 and 3"."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"

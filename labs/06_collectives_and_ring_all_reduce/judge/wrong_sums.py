"""From wrong sums to the hint that fits the mistake.

The sums of tagged inputs are read: a share twice, one missing, shares of unlike chunks.
"""

from dataclasses import dataclass

import numpy as np
from lab_06.hints import Lab06Hint, joined
from lab_06.runs import Attempt
from lab_06.tagged import Shares, Tags

from distlab.collectives import chunks_of
from distlab.labs.verdict import Advice


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

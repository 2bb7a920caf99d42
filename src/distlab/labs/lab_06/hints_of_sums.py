"""What the shares in a wrong sum say about the mistake: a share twice, one missing, shares of unlike chunks.

Each function is told what is in every element of every rank's result, and gives a hint.
"""

from collections.abc import Iterator
from typing import NamedTuple

from distlab.collectives import chunks_of
from distlab.labs.lab_06.hints import in_words, ranks_in
from distlab.labs.lab_06.runs import Attempt
from distlab.labs.lab_06.tagged import Shares

Read = list[list[Shares]]

_OFF_BY_ONE = (
    "Write down, for two rounds and two neighbours, the index of the chunk that goes out and of the one that is added "
    "to; one of them is off by one."
)


def of_reduce_scatter(attempt: Attempt, read: Read) -> str:
    """The hint for a reduce-scatter on a ring."""
    positions = chunks_of(range(attempt.length), attempt.size)
    for rank, of_rank in enumerate(read):
        found = sorted({position for shares in of_rank for _, position in shares})
        is_finished = all(len(ranks_in(shares)) == attempt.size and max(shares.values()) == 1 for shares in of_rank)
        if found != list(positions[rank]) and is_finished and found in map(list, positions):
            chunk = list(map(list, positions)).index(found)
            return (
                f"Rank {rank} returns the finished sum of chunk {chunk}, and is asked for chunk {rank}. Either another "
                "chunk has to be finished here, or each chunk has to begin its journey at another rank."
            )
    if hint := _twice(read) or _mixed(attempt, read, _OFF_BY_ONE):
        return hint
    if attempt.steps < attempt.size - 1:
        return _too_few_rounds(attempt, attempt.size - 1)
    lack = _first_lack(read, attempt.size)
    if hint := _raw_chunks(attempt, read, lack):
        return hint
    return (
        f"{lack.sentence} Follow one chunk round the ring: at which rank does it begin, where does it end, and is that "
        "the chunk that this rank returns?"
    )


def of_ring_all_reduce(attempt: Attempt, read: Read) -> str:
    """The hint for an all-reduce on a ring."""
    if hint := _twice(read):
        in_second = (
            " In the second half finished chunks go round: what happens there to the chunk that was there before?"
        )
        return hint + (in_second if attempt.steps == 2 * (attempt.size - 1) else "")
    if hint := _mixed(attempt, read, _OFF_BY_ONE) or _misplaced(read):
        return hint
    lack = _first_lack(read, attempt.size)
    if hint := _raw_chunks(attempt, read, lack):
        return hint
    if attempt.steps == attempt.size - 1:
        return f"{lack.sentence} Each rank has finished one chunk, and nobody has told the others."
    if attempt.steps < 2 * (attempt.size - 1):
        return _too_few_rounds(attempt, 2 * (attempt.size - 1))
    return (
        f"{lack.sentence} An unfinished chunk went out in the second half and replaced a better one. Which chunk is "
        "finished on rank 0 after the first half, and which one does it send first?"
    )


def of_halving_doubling(attempt: Attempt, read: Read) -> str:
    """The hint for an all-reduce by halving and doubling."""
    if hint := _twice(read):
        return hint + " When you double, finished halves replace unfinished ones."
    if hint := _mixed(attempt, read, "Is the half that arrives the half that you add to?") or _misplaced(read):
        return hint
    lack = _first_lack(read, attempt.size)
    return (
        f"{lack.sentence} Of each two partners one has to answer for the lower half and the other for the upper one, "
        "and on the way back each half has to go to the partner it was split from, the last split first."
    )


def of_all_gather(attempt: Attempt, read: Read) -> str:
    """The hint for an all-gather on a ring."""
    whole = attempt.tags.read(attempt.wanted[0])
    for rank, of_rank in enumerate(read):
        for shares in of_rank:
            if shares.total() > 1:
                return (
                    f"Rank {rank} has the sum of chunks of {in_words(ranks_in(shares))}. An all-gather adds nothing: "
                    "chunks are put side by side."
                )
        sources = sorted({source for shares in of_rank for source, _ in shares})
        if of_rank != whole and sorted(map(repr, of_rank)) == sorted(map(repr, whole)):
            return (
                f"Rank {rank} has every chunk, but not in order of rank. Where does a chunk belong that has come from "
                "so many places to the left?"
            )
        if len(sources) < attempt.size and attempt.steps < attempt.size - 1:
            return _too_few_rounds(attempt, attempt.size - 1)
        if len(sources) == 2 and attempt.size > 2:
            return (
                f"Rank {rank} gets a chunk in every round, but only ever that of rank {max(set(sources) - {rank})}. "
                "What does a rank send on in the second round?"
            )
        if len(sources) < attempt.size:
            return f"Rank {rank} has the chunks of {in_words(sources)} alone, although there were rounds enough."
    return "Some chunk stands in the wrong place."


class _Lack(NamedTuple):
    """The first element that lacks shares: whose result, and whose shares are in it."""

    rank: int
    sentence: str


def _first_lack(read: Read, size: int) -> _Lack:
    for rank, of_rank in enumerate(read):
        for position, shares in enumerate(of_rank):
            there = ranks_in(shares)
            if len(there) < size:
                what = f"only the share of {in_words(there)}" if there else "nothing"
                return _Lack(rank, f"In the result of rank {rank}, element {position} holds {what}.")
    return _Lack(0, "Some chunk stands in the wrong place.")


def _raw_chunks(attempt: Attempt, read: Read, lack: _Lack) -> str | None:
    if all(ranks_in(shares) == [lack.rank] for shares in read[lack.rank]):
        return (
            f"What rank {lack.rank} returns holds its own share alone. Is what you return the array that you have "
            "added to?"
        )
    if all(shares.total() == 1 for _, shares in _moved(attempt, "send")):
        return (
            f"{lack.sentence} What a rank sends on must contain what it has received, and not its own numbers alone: "
            "does adding change the chunk that goes out in the next round?"
        )
    return None


def _moved(attempt: Attempt, kind: str) -> Iterator[tuple[int, Shares]]:
    """Who sent or added up what, element by element."""
    for event in attempt.events.select(kind):
        for shares in attempt.tags.read(event.content):
            yield event.rank, shares


def _twice(read: Read) -> str | None:
    for rank, of_rank in enumerate(read):
        for position, shares in enumerate(of_rank):
            for (source, _), count in sorted(shares.items()):
                if count > 1:
                    times = "twice" if count == 2 else f"{count} times"
                    return f"In the result of rank {rank}, the share of rank {source} is in element {position} {times}."
    return None


def _mixed(attempt: Attempt, read: Read, question: str) -> str | None:
    for rank, of_rank in enumerate(read):
        for position, shares in enumerate(of_rank):
            if len(positions := _positions(shares)) > 1:
                what = f"In the result of rank {rank}, element {position} is a sum of unlike elements ({positions})"
                return f"{what}: a chunk was added to another one. {question}"
    for kind, verb in (("send", "sends"), ("reduce", "makes")):
        for rank, shares in _moved(attempt, kind):
            if len(positions := _positions(shares)) > 1:
                what = f"Rank {rank} {verb} a sum of unlike elements ({positions})"
                return f"{what}: a chunk was added to another one. {question}"
    return None


def _misplaced(read: Read) -> str | None:
    for rank, of_rank in enumerate(read):
        for position, shares in enumerate(of_rank):
            if _positions(shares) not in ([], [position]):
                return (
                    f"In the result of rank {rank}, element {position} holds element {_positions(shares)[0]}: a chunk "
                    "that arrived was put in the place of another one. Which chunk is it that the neighbour sends?"
                )
    return None


def _positions(shares: Shares) -> list[int]:
    return sorted({position for _, position in shares})


def _too_few_rounds(attempt: Attempt, needed: int) -> str:
    return (
        f"On {attempt.size} ranks there were {attempt.steps} rounds of messages; a chunk that meets every rank needs "
        f"{needed}. A round is missing."
    )

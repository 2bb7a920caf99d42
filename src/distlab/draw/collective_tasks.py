"""What each rank begins with and must hold at the end, for each collective, and what is wrong with what it holds."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from distlab.collectives.partition import first_row
from distlab.runtime.lookups import look_up
from distlab.simulate import Contributions

Element = Contributions | None
# What a rank holds: one entry for each element of the whole array, None where it has nothing.
Holding = tuple[Element, ...]


@dataclass(frozen=True)
class Fault:
    """What is wrong at one position of what one rank holds after a step.

    twice: the ranks whose share was added more than once, with how often.
    strange: the (rank, position) pairs that do not belong there.
    missing: the ranks whose share is not there, although the program has ended.
    """

    twice: dict[int, int] = field(default_factory=dict)
    strange: tuple[tuple[int, int], ...] = ()
    missing: tuple[int, ...] = ()


@dataclass(frozen=True)
class Task:
    """A collective on `size` ranks and an array of `length` elements.

    begins, ends: by rank and element, what the rank holds at first and must hold at the end; None in `begins` is
        nothing, None in `ends` is whatever the program leaves there.
    """

    collective: str | None
    size: int
    length: int
    begins: tuple[Holding, ...]
    ends: tuple[Holding, ...]

    @property
    def adds(self) -> bool:
        """Whether the collective adds arrays, and does not only move them."""
        return self.collective in (None, "all_reduce", "reduce", "reduce_scatter")

    @property
    def moves_between_chunks(self) -> bool:
        """Whether an element may end at another position than the one at which it began."""
        return self.collective in (None, "all_to_all")

    def inputs(self) -> list[NDArray[np.object_] | None]:
        """The argument of each rank's program: the elements that it begins with, None for a rank that has none."""
        without = None if self.collective in ("broadcast", "scatter") else _array(())
        return [_array(holding) if any(holding) else without for holding in self.begins]

    def chunk_of(self, position: int) -> int:
        """The number of the chunk, one for each rank, that element `position` of the array is in."""
        return _chunk_of(position, self.size, self.length)

    def fault(self, rank: int, position: int, element: Element, at_end: bool) -> Fault | None:
        """What is wrong if `rank` holds `element` at that position, or None; `at_end`: nothing may be missing."""
        counts = Counter() if element is None else element.counts
        expected = self.ends[rank][position]
        missing: tuple[int, ...] = ()
        if at_end and expected is not None:
            missing = tuple(sorted(owner for owner, _ in expected.counts - counts))
        if element is not None and element == self.begins[rank][position]:
            return Fault(missing=missing) if missing else None

        twice = {owner: count for (owner, _), count in sorted(counts.items()) if count > 1}
        strange: tuple[tuple[int, int], ...] = ()
        if expected is not None:
            strange = tuple(sorted(pair for pair in counts if pair not in expected.counts))
        elif self.collective is not None or len({place for _, place in counts}) > 1:
            strange = tuple(sorted(pair for pair in counts if pair[1] != position))
        return Fault(twice, strange, missing) if twice or strange or missing else None

    def is_complete(self, rank: int, position: int, element: Element) -> bool:
        """Whether `element` is what `rank` must hold there at the end."""
        return element is not None and element == self.ends[rank][position]

    def first_fault(self, steps: Sequence[Sequence[Holding]], ended: bool) -> str | None:
        """Where a run first went wrong, in words, and how many chunks are wrong at the end; None if nothing is.

        steps: by step and rank, what the rank holds.  ended: whether every rank's program ended, so that something may
        be called missing.
        """
        first = None
        faults: dict[tuple[int, int], Fault] = {}
        for step, by_rank in enumerate(steps):
            at_end = ended and step == len(steps) - 1
            faults = {
                (rank, position): fault
                for rank, holding in enumerate(by_rank)
                for position, element in enumerate(holding)
                if (fault := self.fault(rank, position, element, at_end))
            }
            if faults and first is None:
                (rank, position), fault = next(iter(faults.items()))
                when = "In the end" if at_end else f"After step {step}"
                first = f"{when} chunk {self.chunk_of(position)} of rank {rank} {self._in_words(fault)}."
        if first is None:
            return None
        wrong = len({(rank, self.chunk_of(position)) for rank, position in faults})
        chunks = self.size * min(self.size, self.length)
        return f"{first} {wrong} of {chunks} chunks are wrong {'in the end' if ended else 'where it stopped'}."

    def _in_words(self, fault: Fault) -> str:
        """The fault as the rest of a sentence that begins with the chunk."""
        parts = []
        if fault.twice:
            parts.append(
                "has " + " and ".join(f"rank {owner}'s share {_times(count)}" for owner, count in fault.twice.items())
            )
        if fault.strange:
            owners: dict[int, set[int]] = {}
            for owner, position in fault.strange:
                owners.setdefault(self.chunk_of(position), set()).add(owner)
            parts += [f"has chunk {chunk} of {_ranks(ranks)} in it" for chunk, ranks in sorted(owners.items())]
        if fault.missing:
            parts.append(f"lacks the share of {_ranks(fault.missing)}")
        return ", and ".join(parts)


def task(collective: str | None, size: int, length: int, root: int = 0) -> Task:
    """The task of that name, see `draw.trace`; None is the task of which nothing is known but the inputs.

    Raises ValueError for a name that is not a collective's, for a root that is not a rank, and for an all-to-all whose
    chunks differ in length (its ranks would end with arrays of different lengths).
    """
    begins, ends = (_own, _anything) if collective is None else look_up(_TASKS, collective, "collective")
    if root not in range(size):
        raise ValueError(f"root is {root}, but the ranks are 0 to {size - 1}")
    if collective == "all_to_all" and length % size:
        raise ValueError(f"an all-to-all of {size} ranks needs equal chunks; {length} elements do not divide into them")

    def by_rank(rule: _Rule) -> tuple[Holding, ...]:
        return tuple(
            tuple(rule(_ElementPlace(rank, position, size, length, root)) for position in range(length))
            for rank in range(size)
        )

    return Task(collective, size, length, by_rank(begins), by_rank(ends))


class _ElementPlace(NamedTuple):
    """An element of a rank's array, in a collective on `size` ranks with that root."""

    rank: int
    position: int
    size: int
    length: int
    root: int

    @property
    def chunk(self) -> int:
        return _chunk_of(self.position, self.size, self.length)


_Rule = Callable[[_ElementPlace], Element]


def _chunk_of(position: int, size: int, length: int) -> int:
    return next(chunk for chunk in range(size) if position < first_row(length, size, chunk + 1))


def _array(holding: Holding) -> NDArray[np.object_]:
    return np.array([element for element in holding if element is not None], dtype=object)


def _ranks(numbers: Iterable[int]) -> str:
    *first, last = map(str, sorted(numbers))
    return f"ranks {', '.join(first)} and {last}" if first else f"rank {last}"


def _times(count: int) -> str:
    return "twice" if count == 2 else f"{count} times"


def _share(rank: int, position: int) -> Contributions:
    return Contributions(Counter([(rank, position)]))


def _own(place: _ElementPlace) -> Element:
    return _share(place.rank, place.position)


def _anything(place: _ElementPlace) -> Element:
    return None


def _roots(place: _ElementPlace) -> Element:
    return _share(place.root, place.position)


def _sum(place: _ElementPlace) -> Element:
    return Contributions(Counter((rank, place.position) for rank in range(place.size)))


def _every_chunk(place: _ElementPlace) -> Element:
    return _share(place.chunk, place.position)


def _transposed(place: _ElementPlace) -> Element:
    """What a rank has after an all-to-all: one after the other, chunk `rank` of every rank."""
    start, stop = (first_row(place.length, place.size, chunk) for chunk in (place.rank, place.rank + 1))
    source, within = divmod(place.position, stop - start) if stop > start else (place.size, 0)
    return _share(source, start + within) if source < place.size else None


def _at_root(rule: _Rule) -> _Rule:
    """The rule for the root; the other ranks have nothing."""
    return lambda place: rule(place) if place.rank == place.root else None


def _in_own_chunk(rule: _Rule) -> _Rule:
    """The rule for a rank's own chunk; the rest of its array is nothing."""
    return lambda place: rule(place) if place.rank == place.chunk else None


_TASKS: dict[str, tuple[_Rule, _Rule]] = {
    "all_reduce": (_own, _sum),
    "reduce": (_own, _at_root(_sum)),
    "reduce_scatter": (_own, _in_own_chunk(_sum)),
    "broadcast": (_at_root(_roots), _roots),
    "scatter": (_at_root(_roots), _in_own_chunk(_roots)),
    "gather": (_in_own_chunk(_own), _at_root(_every_chunk)),
    "all_gather": (_in_own_chunk(_own), _every_chunk),
    "all_to_all": (_own, _transposed),
}

"""What each rank begins with and must hold at the end, for each collective, and what is wrong with what it holds."""

from collections import Counter
from dataclasses import dataclass, field

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
    needed: the chunk that the rank had to return; it returned this one.
    """

    twice: dict[int, int] = field(default_factory=dict)
    strange: tuple[tuple[int, int], ...] = ()
    missing: tuple[int, ...] = ()
    needed: int | None = None


@dataclass(frozen=True)
class Task:
    """A collective on `size` ranks and an array of `length` elements.

    begins, ends: by rank and element, what the rank holds at first and must hold at the end; None in `begins` is
        nothing, None in `ends` is whatever the program leaves there.
    """

    collective: str
    size: int
    length: int
    begins: tuple[Holding, ...]
    ends: tuple[Holding, ...]

    @property
    def adds(self) -> bool:
        """Whether the collective adds arrays, and does not only move them."""
        return self.collective in ("all_reduce", "reduce", "reduce_scatter")

    @property
    def moves_between_chunks(self) -> bool:
        """Whether an element may end at another position than the one at which it began."""
        return self.collective == "all_to_all"

    def inputs(self) -> list[NDArray[np.object_] | None]:
        """The argument of each rank's program: the elements that it begins with, None for a rank that has none."""
        without = None if self.collective in ("broadcast", "scatter") else _array(())
        return [_array(holding) if any(holding) else without for holding in self.begins]

    def chunk_of(self, position: int) -> int:
        """The number of the chunk, one for each rank, that element `position` of the array is in."""
        return _chunk_of(position, self.size, self.length)

    def needed(self, rank: int) -> list[int]:
        """The positions of what `rank` must return; none if it need not, or if elements change their positions."""
        ends = enumerate(self.ends[rank] if not self.moves_between_chunks else ())
        return [position for position, element in ends if element is not None]

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
        if expected is None:
            strange = tuple(sorted(pair for pair in counts if pair[1] != position))
        else:
            strange = tuple(sorted(pair for pair in counts if pair not in expected.counts))
        return Fault(twice, strange, missing) if twice or strange or missing else None


def task(collective: str, size: int, length: int) -> Task:
    """The task of that name, see `draw.trace`; ValueError for a name that is not a collective's."""
    table = [
        [_begin_and_end(collective, rank, position, size, length) for position in range(length)] for rank in range(size)
    ]
    begins, ends = (tuple(tuple(both[which] for both in of_rank) for of_rank in table) for which in (0, 1))
    return Task(collective, size, length, begins, ends)


def _begin_and_end(collective: str, rank: int, position: int, size: int, length: int) -> tuple[Element, Element]:
    """What the rank has at that position of the whole array before and after; the root is rank 0."""

    def share(owner: int, place: int = position) -> Contributions:
        return Contributions(Counter([(owner, place)]))

    chunk = _chunk_of(position, size, length)
    total = Contributions(Counter((owner, position) for owner in range(size)))
    own, is_own, is_root = share(rank), rank == chunk, rank == 0
    # After an all-to-all a rank has, one after the other, chunk `rank` of every rank.
    start, stop = first_row(length, size, rank), first_row(length, size, rank + 1)
    source, within = divmod(position, stop - start) if stop > start else (size, 0)
    both: dict[str, tuple[Element, Element]] = {
        "all_reduce": (own, total),
        "reduce": (own, total if is_root else None),
        "reduce_scatter": (own, total if is_own else None),
        "broadcast": (own if is_root else None, share(0)),
        "scatter": (own if is_root else None, share(0) if is_own else None),
        "gather": (own if is_own else None, share(chunk) if is_root else None),
        "all_gather": (own if is_own else None, share(chunk)),
        "all_to_all": (own, share(source, start + within) if source < size else None),
    }
    return look_up(both, collective, "collective")


def _chunk_of(position: int, size: int, length: int) -> int:
    return next(chunk for chunk in range(size) if position < first_row(length, size, chunk + 1))


def _array(holding: Holding) -> NDArray[np.object_]:
    return np.array([element for element in holding if element is not None], dtype=object)

"""What each rank begins with and has to hold in the end, for each collective: a trace's inputs and its yardstick."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from distlab.collectives.chunks import first_row
from distlab.simulate import Contributions

# What a rank holds: one entry for each element of the whole array, None where it has nothing.
Holding = tuple[Contributions | None, ...]


@dataclass(frozen=True)
class Task:
    """A collective on `size` ranks and an array of `length` elements.

    begins, ends: by rank and element, what the rank holds at first and has to hold in the end; None in `begins` is
        nothing, None in `ends` is whatever the program leaves there.
    """

    collective: str | None
    size: int
    length: int
    begins: tuple[Holding, ...]
    ends: tuple[Holding, ...]

    @property
    def adds(self) -> bool:
        """Whether the collective adds arrays, and not only moves them."""
        return self.collective in (None, "all_reduce", "reduce", "reduce_scatter")

    @property
    def moves_between_chunks(self) -> bool:
        """Whether an element may end at another position than the one at which it began."""
        return self.collective in (None, "all_to_all")

    def inputs(self) -> list[np.ndarray | None]:
        """The argument of each rank's program: the elements that it begins with, None for a rank that has none."""
        return [_array(held) if any(held) else self._nothing(held) for held in self.begins]

    def chunk_of(self, position: int) -> int:
        """The number of the chunk, one for each rank, that element `position` of the array is in."""
        return _chunk_of(position, self.size, self.length)

    def _nothing(self, held: Holding) -> np.ndarray | None:
        return None if self.collective in ("broadcast", "scatter") else _array(held)


def task(collective: str | None, size: int, length: int, root: int = 0) -> Task:
    """The task of that name, see `draw.trace`; None is the task of which nothing is known but the inputs.

    Raises ValueError for a name that is not a collective's, for a root that is not a rank, and for an all-to-all whose
    chunks are not of one length (its ranks would end with arrays of different lengths).
    """
    if collective is not None and collective not in _TASKS:
        raise ValueError(f"there is no collective {collective!r}; there are {', '.join(_TASKS)}")
    if root not in range(size):
        raise ValueError(f"root is {root}, but the ranks are 0 to {size - 1}")
    if collective == "all_to_all" and length % size:
        raise ValueError(f"an all-to-all of {size} ranks needs equal chunks, and {length} elements cannot be so cut")
    begins, ends = _TASKS.get(collective, (_own, _anything))

    def each(rule: _Rule) -> tuple[Holding, ...]:
        return tuple(
            tuple(rule(rank, position, size, length, root) for position in range(length)) for rank in range(size)
        )

    return Task(collective, size, length, each(begins), each(ends))


_Rule = Callable[[int, int, int, int, int], Contributions | None]


def _chunk_of(position: int, size: int, length: int) -> int:
    return next(chunk for chunk in range(size) if position < first_row(length, size, chunk + 1))


def _array(held: Holding) -> np.ndarray:
    return np.array([element for element in held if element is not None], dtype=object)


def _share(rank: int, position: int) -> Contributions:
    return Contributions(Counter([(rank, position)]))


def _own(rank: int, position: int, size: int, length: int, root: int) -> Contributions:
    return _share(rank, position)


def _own_chunk(rank: int, position: int, size: int, length: int, root: int) -> Contributions | None:
    return _share(rank, position) if _chunk_of(position, size, length) == rank else None


def _roots(rank: int, position: int, size: int, length: int, root: int) -> Contributions:
    return _share(root, position)


def _at_root(rank: int, position: int, size: int, length: int, root: int) -> Contributions | None:
    return _share(root, position) if rank == root else None


def _anything(rank: int, position: int, size: int, length: int, root: int) -> None:
    return None


def _sum(rank: int, position: int, size: int, length: int, root: int) -> Contributions:
    return Contributions(Counter((other, position) for other in range(size)))


def _sum_at_root(rank: int, position: int, size: int, length: int, root: int) -> Contributions | None:
    return _sum(rank, position, size, length, root) if rank == root else None


def _sum_of_own_chunk(rank: int, position: int, size: int, length: int, root: int) -> Contributions | None:
    return _sum(rank, position, size, length, root) if _chunk_of(position, size, length) == rank else None


def _roots_chunk(rank: int, position: int, size: int, length: int, root: int) -> Contributions | None:
    return _share(root, position) if _chunk_of(position, size, length) == rank else None


def _every_chunk(rank: int, position: int, size: int, length: int, root: int) -> Contributions:
    return _share(_chunk_of(position, size, length), position)


def _every_chunk_at_root(rank: int, position: int, size: int, length: int, root: int) -> Contributions | None:
    return _every_chunk(rank, position, size, length, root) if rank == root else None


def _transposed(rank: int, position: int, size: int, length: int, root: int) -> Contributions | None:
    """Element `position` of what `rank` has after an all-to-all: below each other, chunk `rank` of every rank."""
    start, stop = first_row(length, size, rank), first_row(length, size, rank + 1)
    source, within = divmod(position, stop - start) if stop > start else (size, 0)
    return _share(source, start + within) if source < size else None


_TASKS: dict[str | None, tuple[_Rule, _Rule]] = {
    "all_reduce": (_own, _sum),
    "reduce": (_own, _sum_at_root),
    "reduce_scatter": (_own, _sum_of_own_chunk),
    "broadcast": (_at_root, _roots),
    "scatter": (_at_root, _roots_chunk),
    "gather": (_own_chunk, _every_chunk_at_root),
    "all_gather": (_own_chunk, _every_chunk),
    "all_to_all": (_own, _transposed),
}

"""Arrays that remember what was added: give them to a program instead of numbers, and see who is in each sum."""

from collections import Counter
from numbers import Real


class Contributions:
    """A sum of inputs, as the multiset of what has been added: (rank, position) pairs with how often.

    It adds like a number, also to 0, so that NumPy arrays of dtype object that hold it run through any program that
    moves and adds arrays. Multiplied or divided by a number it stays what it is: who is in the sum does not change.
    """

    __slots__ = ("counts",)

    def __init__(self, counts: Counter[tuple[int, int]]) -> None:
        """`counts` says how often element `position` of rank `rank`'s input is in the sum, by (rank, position)."""
        self.counts = counts

    @property
    def ranks(self) -> list[int]:
        """The ranks whose input is in the sum, in order, each as often as it was added."""
        return sorted(rank for rank, _ in self.counts.elements())

    @property
    def positions(self) -> set[int]:
        """The positions of the inputs that were added; more than one only if different elements were mixed."""
        return {position for _, position in self.counts}

    def __add__(self, addend: "Contributions | int") -> "Contributions":
        if isinstance(addend, Contributions):
            return Contributions(self.counts + addend.counts)
        return self if addend == 0 else NotImplemented

    __radd__ = __add__

    def __mul__(self, factor: float) -> "Contributions":
        if not isinstance(factor, Real):
            return NotImplemented
        return self

    __rmul__ = __truediv__ = __mul__

    def __eq__(self, value: object) -> bool:
        return isinstance(value, Contributions) and self.counts == value.counts

    def __hash__(self) -> int:
        return hash(frozenset(self.counts.items()))

    def __repr__(self) -> str:
        return "+".join(f"r{rank}[{position}]" for rank, position in sorted(self.counts.elements())) or "0"

"""Up to how many nodes it pays to add more: the rule, and what usual mistakes take for it."""

from collections.abc import Callable, Mapping
from itertools import pairwise

from lab_15.hints import Lab15Hint

PAYS = 0.5


def pays_up_to(gains: Mapping[int, float]) -> int:
    """The nodes up to which each size brings at least half of what its additional nodes would bring ideally."""
    sizes = [*gains]
    for before, after in pairwise(sizes):
        if gains[after] - gains[before] < PAYS * (after - before):
            return before
    return sizes[-1]


def size_after(gains: Mapping[int, float]) -> int:
    """The size after the right one, if there is one."""
    return next((nodes for nodes in gains if nodes > pays_up_to(gains)), pays_up_to(gains))


def more_than_half(gains: Mapping[int, float]) -> int:
    """As if exactly half did not pay."""
    pairs = pairwise(gains)
    return next((a for a, b in pairs if gains[b] - gains[a] <= PAYS * (b - a)), max(gains))


def overall(gains: Mapping[int, float]) -> int:
    """By the efficiency of all nodes."""
    return max(nodes for nodes, gain in gains.items() if gain / nodes >= PAYS)


def last(gains: Mapping[int, float]) -> int:
    """The last size that brings half, whatever is before it."""
    sizes = [*gains]
    pairs = pairwise(sizes)
    return max((b for a, b in pairs if gains[b] - gains[a] >= PAYS * (b - a)), default=1)


RULES: list[tuple[Callable[[Mapping[int, float]], int], Lab15Hint]] = [
    (more_than_half, Lab15Hint.PAYS_HALF),
    (overall, Lab15Hint.PAYS_OVERALL),
    (last, Lab15Hint.PAYS_LATER),
    (size_after, Lab15Hint.PAYS_NEXT),
    (lambda gains: max(gains, key=lambda nodes: gains[nodes]), Lab15Hint.PAYS_FASTEST),
]
"""Usual mistakes, and their hints."""

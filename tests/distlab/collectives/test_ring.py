"""A ring all-reduce, step by step: what was added where, by arrays that remember it."""

from collections import Counter

import numpy as np

from distlab.collectives import ring_all_reduce
from distlab.simulate import Contributions, World


def contributions(rank: int, length: int) -> np.ndarray:
    """The input of a rank that says what it is."""
    return np.array([Contributions(Counter([(rank, position)])) for position in range(length)], object)


def test_a_right_ring_adds_every_rank_once_and_the_events_show_how() -> None:
    size = 4
    run = World(size).run(ring_all_reduce, [contributions(rank, size) for rank in range(size)], keep_contents=True)
    for result in run.results:
        assert [element.ranks for element in result] == [list(range(size))] * size
    for rank in range(size):
        sums = [event.content[0].ranks for event in run.events.select("reduce", rank=rank)]
        assert [len(ranks) for ranks in sums] == [2, 3, 4]
        held = [event.buffer for event in run.events.select("send", rank=rank)]
        assert [max(len(element.ranks) for element in buffer) for buffer in held] == [1, 2, 3, 4, 4, 4]
        positions = [event.position for event in run.events.select("send", rank=rank)]
        assert positions == [(rank - step) % size for step in (0, 1, 2, -1, 0, 1)]

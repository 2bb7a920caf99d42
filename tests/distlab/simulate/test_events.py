"""What a run on the virtual cluster records: events with their times, contents if they are kept, and counts."""

import numpy as np

from distlab.simulate import Rank, World
from tests.distlab.simulate.test_world import SLOW


async def ring_step(rank: Rank, array: np.ndarray) -> np.ndarray:
    received = await rank.exchange((rank.index + 1) % rank.size, array[1:], (rank.index - 1) % rank.size)
    await rank.reduce(array[:2], received)
    return array


def test_events_have_their_times_on_the_rank_s_own_port() -> None:
    async def program(rank: Rank) -> None:
        if rank.index:
            await rank.send(0, np.zeros(rank.index))
        else:
            await rank.receive(2)
            await rank.receive(1)
            await rank.reduce(np.zeros(2), np.zeros(2))

    run = World(3, SLOW).run(program)
    assert [event[:7] for event in run.events] == [
        ("send", 1, 0, 8, 0.0, 2.0, 0),
        ("receive", 0, 1, 8, 0.0, 2.0, 0),
        ("send", 2, 0, 16, 0.0, 3.0, 1),
        ("receive", 0, 2, 16, 2.0, 5.0, 1),
        ("reduce", 0, None, 16, 5.0, 6.0, 2),
    ]
    assert all(event[-3:] == (None, None, None) for event in run.events)
    assert run.finished.tolist() == [6, 2, 3] and run.elapsed == 6
    assert (run.messages_by_rank.tolist(), run.bytes_sent_by_rank.tolist()) == ([0, 1, 1], [0, 8, 16])
    assert repr(run) == "<Run: 3 ranks, 2 messages, 24 bytes, 6 s>"


def test_contents_show_what_moved_and_what_the_rank_held() -> None:
    arrays = [np.array([1.0, 2, 3]), np.array([10.0, 20, 30])]
    events = World(2).run(ring_step, arrays, keep_contents=True).events
    shown = [
        (events.select(kind, rank=rank)[0].content.tolist(), events.select(kind, rank=rank)[0].buffer.tolist())
        for kind, rank in (("send", 0), ("receive", 1), ("reduce", 1))
    ]
    assert shown == [([2, 3], [1, 2, 3]), ([2, 3], [2, 3]), ([12, 23], [12, 23, 30])]
    assert [event.position for event in events if event.kind != "receive"] == [1, 1, 0, 0]


def test_without_events_everything_else_is_the_same() -> None:
    arrays = [np.zeros(3)] * 9
    kept, counted = (World(9, SLOW).run(ring_step, arrays, keep_events=keep) for keep in (True, False))
    assert counted.finished.tolist() == kept.finished.tolist()
    for run in (kept, counted):
        assert (run.messages_by_rank.tolist(), run.bytes_sent_by_rank.tolist()) == ([1] * 9, [16] * 9)
    assert (len(kept.events), len(counted.events)) == (9 * 3, 0)

"""The virtual cluster: what is recorded."""

import numpy as np
import pytest

from distlab.simulate import (
    DeadlockError,
    Events,
    Rank,
    UnreceivedMessageError,
    World,
    contributions,
)
from tests.distlab.simulate.slow_world import waits_for_left, world


class TestEvents:
    async def ring_step(self: Rank, array: np.ndarray) -> np.ndarray:
        received = await self.exchange((self.index + 1) % self.size, array[1:], (self.index - 1) % self.size)
        await self.reduce(array[:2], received)
        return array

    def test_totals_are_counted_per_rank_and_together(self) -> None:
        async def program(rank: Rank) -> None:
            if rank.index == 0:
                await rank.send(1, np.zeros(2))
                await rank.send(2, np.zeros(3))
            else:
                await rank.receive(0)

        run = world(3).run(program)
        assert (run.messages, run.bytes_sent) == (2, 40)
        assert run.messages_by_rank.tolist() == [2, 0, 0]
        assert run.bytes_sent_by_rank.tolist() == [40, 0, 0]
        assert run.finished.tolist() == [7.0, 3.0, 7.0]
        assert repr(run) == "<Run: 3 ranks, 2 messages, 40 bytes, 7 s>"
        assert repr(run.events) == "<Events: 2 send, 2 receive, 0 compute, 0 reduce>"

    def test_a_run_without_events_has_empty_columns(self) -> None:
        async def program(rank: Rank) -> int:
            return rank.size

        run = World(1).run(program)
        assert (run.results, len(run.events), run.elapsed, run.messages) == ([1], 0, 0.0, 0)

    def test_events_are_a_sequence_ordered_by_start(self) -> None:
        run = world(3).run(TestEvents.ring_step, [np.arange(3.0)] * 3)
        starts = [event.start for event in run.events]
        assert starts == sorted(starts)
        assert len(run.events) == len(run.events.columns) == 9
        assert run.events[-1].kind == "reduce"
        assert isinstance(run.events[:3], Events) and len(run.events[:3]) == 3
        assert {event.partner for event in run.events.select(kind="send", rank=2)} == {0}
        assert len(run.events.select(kind="receive", partner=2)) == 1
        with pytest.raises(ValueError, match="There is no kind of event 'sned'; there are send, receive"):
            run.events.select(kind="sned")

    def test_the_two_events_of_a_message_share_its_number(self) -> None:
        events = world(3).run(TestEvents.ring_step, [np.arange(3.0)] * 3).events
        sends = {event.operation: (event.rank, event.partner) for event in events.select("send")}
        receives = {event.operation: (event.partner, event.rank) for event in events.select("receive")}
        assert sends == receives
        assert len(sends) == 3

    def test_contents_show_what_moved_and_what_the_rank_held(self) -> None:
        run = world(2).run(TestEvents.ring_step, [np.array([1.0, 2, 3]), np.array([10.0, 20, 30])], keep_contents=True)
        (send,) = run.events.select("send", rank=0)
        assert send.content.tolist() == [2, 3]
        assert send.buffer.tolist() == [1, 2, 3]
        assert send.position == 1
        (receive,) = run.events.select("receive", rank=1)
        assert receive.content.tolist() == [2, 3]
        (reduce,) = run.events.select("reduce", rank=1)
        assert reduce.content.tolist() == [12, 23]
        assert reduce.buffer.tolist() == [12, 23, 30]
        assert reduce.position == 0

    def test_contents_are_kept_only_when_asked_for(self) -> None:
        run = world(2).run(TestEvents.ring_step, [np.arange(3.0)] * 2)
        assert all(event[-3:] == (None, None, None) for event in run.events)

    def test_contributions_say_who_is_in_a_sum(self) -> None:
        run = world(2).run(TestEvents.ring_step, [contributions(rank, 3) for rank in range(2)], keep_contents=True)
        assert repr(run.results[0].tolist()) == "[r0[0]+r1[1], r0[1]+r1[2], r0[2]]"
        assert run.results[0][0].ranks == [0, 1]
        assert run.results[0][0].positions == {0, 1}
        assert run.results[0][0] + 0 == 0 + run.results[0][0] == run.results[0][0]
        assert (contributions(1, 2) + contributions(1, 2))[0].ranks == [1, 1]

    def test_events_until_an_error_come_with_the_error(self) -> None:
        async def program(rank: Rank) -> None:
            if rank.index == 0:
                await rank.send(1, np.zeros(1))
                await rank.send(1, np.ones(2))
            else:
                await rank.receive(0)
                await rank.receive(0)
                await rank.receive(0)

        with pytest.raises(DeadlockError) as failure:
            world(2).run(program)
        assert [(event.kind, event.bytes) for event in failure.value.events] == [
            ("send", 8),
            ("receive", 8),
            ("send", 16),
            ("receive", 16),
        ]

    def test_a_message_nobody_received_has_no_receive_event(self) -> None:
        async def program(rank: Rank) -> None:
            if rank.index == 0:
                await rank.send(1, np.zeros(1))
                await rank.send(1, np.zeros(2))
            else:
                await rank.receive(0)

        with pytest.raises(UnreceivedMessageError) as failure:
            world(2).run(program)
        events = [(event.kind, event.bytes) for event in failure.value.events]
        assert events == [("send", 8), ("receive", 8), ("send", 16)]

    def test_a_message_that_waited_for_a_port_has_its_own_times_there(self) -> None:
        async def program(rank: Rank) -> None:
            if rank.index > 0:
                await rank.send(0, np.zeros(rank.index))
            else:
                await rank.receive(2)
                await rank.receive(1)

        events = world(3).run(program).events
        assert [event[:6] for event in events] == [
            ("send", 1, 0, 8, 0.0, 2.0),
            ("receive", 0, 1, 8, 0.0, 2.0),
            ("send", 2, 0, 16, 0.0, 3.0),
            ("receive", 0, 2, 16, 2.0, 5.0),
        ]

    def test_what_was_sent_is_counted_alike_before_and_after_the_events_are_read(self) -> None:
        run = world(3).run(TestEvents.ring_step, [np.arange(3.0)] * 3)
        before = (run.messages_by_rank.tolist(), run.bytes_sent_by_rank.tolist())
        assert len(run.events) == 9
        assert (run.messages_by_rank.tolist(), run.bytes_sent_by_rank.tolist()) == before == ([1] * 3, [16] * 3)


class TestWithoutEvents:
    async def many_messages(self: Rank) -> float:
        for step in range(3_000):
            right, left = (self.index + 1) % self.size, (self.index - 1) % self.size
            await self.exchange(right, np.zeros(step % 3), left)
            await self.compute(1)
        return self.now

    def test_everything_but_the_events_is_the_same(self) -> None:
        runs = [world(9).run(TestWithoutEvents.many_messages, keep_events=keep) for keep in (True, False)]
        with_events, without = runs
        assert without.results == with_events.results
        assert without.finished.tolist() == with_events.finished.tolist()
        assert without.messages_by_rank.tolist() == with_events.messages_by_rank.tolist() == [3_000] * 9
        assert without.bytes_sent_by_rank.tolist() == with_events.bytes_sent_by_rank.tolist() == [24_000] * 9
        assert (len(with_events.events), len(without.events)) == (9 * 3 * 3_000, 0)

    def test_an_error_says_the_same_but_has_no_events(self) -> None:
        with pytest.raises(DeadlockError, match="rank 0 has waited since 0 s for a message from rank 1") as failure:
            world(2).run(waits_for_left, keep_events=False)
        assert len(failure.value.events) == 0

    def test_contents_cannot_be_kept_without_events(self) -> None:
        with pytest.raises(ValueError, match="keep_contents needs keep_events"):
            world(2).run(waits_for_left, keep_contents=True, keep_events=False)

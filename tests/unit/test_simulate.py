"""The virtual cluster: what operations cost, what is recorded, and what each mistake is answered with."""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distlab.simulate import (
    DeadlockError,
    Events,
    InputsError,
    Link,
    MismatchError,
    Network,
    NoSuchRankError,
    NotAnArrayError,
    ProgramError,
    Rank,
    RankFailedError,
    SelfMessageError,
    SimulationError,
    UnreceivedMessageError,
    World,
    contributions,
)

# α = 1 s, β = 1/8 s per byte, γ = 1/16 s per byte: an array of k float64 takes 1 + k to send and k/2 to add.
SLOW = Network(latency=1.0, seconds_per_byte=1 / 8, seconds_per_byte_reduced=1 / 16)


def world(size: int, network: Network = SLOW, **options: object) -> World:
    return World(size, network, **options)


class TestTiming:
    def test_a_message_takes_latency_and_time_per_byte_on_both_ports(self) -> None:
        async def program(rank: Rank) -> float:
            if rank.index == 0:
                await rank.send(1, np.zeros(3))
            else:
                await rank.receive(0)
            return rank.now

        run = world(2).run(program)
        assert run.results == [4.0, 4.0]
        assert run.elapsed == 4.0
        assert [event[:7] for event in run.events] == [
            ("send", 0, 1, 24, 0.0, 4.0, 0),
            ("receive", 1, 0, 24, 0.0, 4.0, 0),
        ]

    def test_two_sends_of_one_rank_follow_each_other(self) -> None:
        async def program(rank: Rank) -> float:
            if rank.index == 0:
                await rank.send(1, np.zeros(3))
                await rank.send(2, np.zeros(3))
            else:
                await rank.receive(0)
            return rank.now

        assert world(3).run(program).results == [8.0, 4.0, 8.0]

    def test_messages_to_one_rank_arrive_one_after_another(self) -> None:
        async def program(rank: Rank) -> list[float]:
            times = []
            if rank.index > 0:
                await rank.send(0, np.zeros(rank.index))
                return [rank.now]
            for source in range(1, rank.size):
                await rank.receive(source)
                times.append(rank.now)
            return times

        # Costs 2, 3 and 4 s: the senders are done after those, the receiver takes them in order of rank.
        assert world(4).run(program).results == [[2.0, 5.0, 9.0], [2.0], [3.0], [4.0]]

    def test_messages_take_the_port_in_the_order_in_which_they_were_sent_not_asked_for(self) -> None:
        async def program(rank: Rank) -> list[float]:
            if rank.index == 1:
                await rank.compute(10)
            if rank.index > 0:
                await rank.send(0, np.zeros(1))
                return []
            times = []
            for source in (1, 2):
                await rank.receive(source)
                times.append(rank.now)
            return times

        # Rank 2's message is in long before rank 1's, so nothing is left to wait for after rank 1's.
        assert world(3).run(program).results[0] == [12.0, 12.0]

    def test_receiving_a_message_that_has_arrived_takes_no_time(self) -> None:
        async def program(rank: Rank) -> float:
            if rank.index == 0:
                await rank.send(1, np.zeros(1))
            else:
                await rank.compute(7)
                await rank.receive(0)
            return rank.now

        assert world(2).run(program).results == [2.0, 7.0]

    def test_exchange_is_full_duplex(self) -> None:
        async def program(rank: Rank) -> float:
            await rank.exchange(1 - rank.index, np.zeros(3), 1 - rank.index)
            return rank.now

        assert world(2).run(program).results == [4.0, 4.0]

    def test_exchange_ends_when_the_longer_of_both_has_ended(self) -> None:
        async def program(rank: Rank) -> float:
            await rank.exchange(1 - rank.index, np.zeros(1 + 4 * rank.index), 1 - rank.index)
            return rank.now

        assert world(2).run(program).results == [6.0, 6.0]

    def test_compute_and_reduce_follow_the_compute_speed(self) -> None:
        async def program(rank: Rank) -> float:
            await rank.compute(3)
            await rank.reduce(np.zeros(4), np.ones(4))
            return rank.now

        run = world(3, compute_speeds={1: 0.5, 2: 2}).run(program)
        assert run.results == [5.0, 10.0, 2.5]
        assert world(3, compute_speeds=[1, 0.5, 2]).run(program).results == run.results
        assert [event.kind for event in run.events.select(rank=1)] == ["compute", "reduce"]
        assert run.events.select(kind="reduce", rank=1)[0][:6] == ("reduce", 1, None, 32, 6.0, 10.0)

    def test_a_slow_link_is_slow_in_both_directions_and_others_are_not(self) -> None:
        async def program(rank: Rank, to: int) -> float:
            source = (rank.index + 2) % 3 if to == (rank.index + 1) % 3 else (rank.index + 1) % 3
            await rank.receive(source) if rank.index == 9 else await rank.exchange(to, np.zeros(1), source)
            return rank.now

        network = SLOW.with_slow_link(0, 1, factor=10)
        assert world(3, network).run(program, [1, 2, 0]).results == [20.0, 20.0, 2.0]
        assert world(3, network).run(program, [2, 0, 1]).results == [20.0, 20.0, 2.0]

    def test_links_inside_a_host_have_their_own_speed(self) -> None:
        network = Network(latency=10, seconds_per_byte=0, ranks_per_host=2, inside_host=Link(1, 0))
        assert [network.link(0, to).latency for to in (1, 2, 3)] == [1, 10, 10]
        assert network.link(3, 2).latency == 1
        assert network.with_slow_link(2, 3, 5).link(2, 3) == Link(5, 0)

    def test_a_time_that_is_no_time_is_refused(self) -> None:
        with pytest.raises(ValueError, match="latency is -1; it must be a number of seconds, 0 or more"):
            Network(latency=-1)
        with pytest.raises(ValueError, match="seconds_per_byte is nan"):
            Link(0, float("nan"))
        with pytest.raises(ValueError, match="needs both ranks_per_host and inside_host"):
            Network(ranks_per_host=2)

    def test_a_world_refuses_impossible_sizes_and_speeds(self) -> None:
        with pytest.raises(ValueError, match="a world of 0 ranks"):
            World(0)
        with pytest.raises(ValueError, match="2 compute speeds for 3 ranks"):
            World(3, compute_speeds=[1, 1])
        with pytest.raises(ValueError, match="a compute speed for rank 3, but the ranks are 0 to 2"):
            World(3, compute_speeds={3: 1})
        with pytest.raises(ValueError, match="the compute speed of rank 1 is 0; it must be a number above 0"):
            World(3, compute_speeds={1: 0})


class TestMessages:
    def test_messages_between_two_ranks_keep_their_order(self) -> None:
        async def program(rank: Rank) -> list[int]:
            if rank.index == 0:
                for number in range(5):
                    await rank.send(1, np.array([number] * (5 - number)))
                return []
            return [len(await rank.receive(0)) for _ in range(5)]

        assert world(2).run(program).results[1] == [5, 4, 3, 2, 1]

    def test_the_content_is_fixed_when_it_is_sent(self) -> None:
        async def program(rank: Rank) -> np.ndarray | None:
            if rank.index == 0:
                array = np.arange(4.0)
                await rank.send(1, array[1:3])
                array[:] = -1
                received = await rank.exchange(1, array, 1)
                received[:] = -2
                return received
            first, second = await rank.receive(0), np.ones(4)
            third = await rank.exchange(0, second, 0)
            assert (second == 1).all()
            return np.concatenate([first, third])

        run = world(2).run(program)
        assert run.results[1].tolist() == [1, 2, -1, -1, -1, -1]

    def test_any_array_and_number_can_be_sent(self) -> None:
        values = [np.ones((2, 0, 3)), np.float32(2), 7, np.arange(6).reshape(2, 3).T, np.array(True), 1j]

        async def program(rank: Rank) -> list[np.ndarray]:
            return [await rank.exchange(1 - rank.index, value, 1 - rank.index) for value in values]

        for received, value in zip(world(2).run(program).results[0], values, strict=True):
            assert received.dtype == np.asarray(value).dtype
            np.testing.assert_array_equal(received, value)

    def test_receive_any_takes_what_arrives_first(self) -> None:
        async def program(rank: Rank) -> list[tuple[int, float]]:
            if rank.index > 0:
                await rank.compute(10 - rank.index)
                await rank.send(0, np.zeros(1))
                return []
            await rank.compute(8.5)
            return [((await rank.receive_any())[0], rank.now) for _ in range(3)]

        # They are sent at 9, 8 and 7 s, and a message takes 2 s.
        assert world(4).run(program).results[0] == [(3, 9.0), (2, 11.0), (1, 13.0)]

    def test_each_rank_has_its_own_memory(self) -> None:
        shared = np.zeros(2)

        async def program(rank: Rank, given: dict[str, list[np.ndarray]]) -> np.ndarray:
            array = given["arrays"][0]
            return await rank.reduce(array, np.full(2, rank.index, float))

        run = world(3).run(program, [{"arrays": [shared]}] * 3)
        assert [result.tolist() for result in run.results] == [[0, 0], [1, 1], [2, 2]]
        assert (shared == 0).all()

    def test_a_program_may_be_anything_that_returns_a_coroutine(self) -> None:
        async def program(rank: Rank, factor: int, addend: int) -> int:
            return factor * rank.index + addend

        assert world(2).run(partial(program, addend=1), np.array([3, 4])).results == [1, 5]
        assert world(2).run(lambda rank: program(rank, 2, 0)).results == [0, 2]


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
        with pytest.raises(ValueError, match="there are no events of kind 'sned'; the kinds are send, receive"):
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


async def waits_for_left(rank: Rank) -> None:
    await rank.receive((rank.index - 1) % rank.size)


async def sends_too_much(rank: Rank) -> None:
    if rank.index == 0:
        await rank.send(1, np.zeros(1))
        await rank.send(1, np.zeros(1))
        await rank.send(2, np.zeros(1))


async def divides_by_zero(rank: Rank) -> None:
    await rank.compute(2)
    if rank.index == 1:
        raise ZeroDivisionError("one rank fails")
    await waits_for_left(rank)


async def forgets_await(rank: Rank) -> None:
    rank.send((rank.index + 1) % rank.size, np.zeros(1))
    await rank.receive((rank.index - 1) % rank.size)


async def forgets_await_at_the_end(rank: Rank) -> None:
    rank.compute(1)


async def awaits_something_else(rank: Rank) -> None:
    import asyncio

    await asyncio.sleep(0)


def is_no_coroutine_function(rank: Rank) -> int:
    return rank.index


def sends_to(to: object) -> Callable:
    async def program(rank: Rank) -> None:
        await rank.send(to, np.zeros(1))

    return program


def receives_from(source: object) -> Callable:
    async def program(rank: Rank) -> None:
        await rank.receive(source)

    return program


def sends(value: object) -> Callable:
    async def program(rank: Rank) -> None:
        await rank.exchange(1 - rank.index, value, 1 - rank.index)

    return program


def adds(array: object, other: object) -> Callable:
    async def program(rank: Rank) -> None:
        await rank.reduce(array, other)

    return program


def computes(seconds: float) -> Callable:
    async def program(rank: Rank) -> None:
        await rank.compute(seconds)

    return program


@pytest.mark.parametrize(
    ("size", "program", "error", "message"),
    [
        (2, waits_for_left, DeadlockError,
         "deadlock:\n  rank 0 has waited since 0 s for a message from rank 1\n"
         "  rank 1 has waited since 0 s for a message from rank 0"),
        (3, sends_too_much, UnreceivedMessageError,
         "sent, but received by nobody:\n  2 messages from rank 0 to rank 1\n  1 message from rank 0 to rank 2"),
        (3, divides_by_zero, RankFailedError, "rank 1 failed at 2 s: ZeroDivisionError: one rank fails"),
        (2, forgets_await, ProgramError,
         "rank 0 calls rank.send(…) without awaiting it: write `await rank.send(…)`"),
        (1, forgets_await_at_the_end, ProgramError,
         "rank 0 calls rank.compute(…) without awaiting it: write `await rank.compute(…)`"),
        (1, awaits_something_else, ProgramError,
         "rank 0 awaits something that is not an operation of its own rank"),
        (1, is_no_coroutine_function, ProgramError,
         "is_no_coroutine_function is not a coroutine function: write `async def is_no_coroutine_function(rank, …)`"),
        (2, sends_to(2), NoSuchRankError, "rank 0 sends to rank 2, but the ranks are 0 to 1"),
        (2, sends_to(-1), NoSuchRankError, "rank 0 sends to rank -1, but the ranks are 0 to 1"),
        (2, sends_to(1.0), NoSuchRankError, "rank 0 sends to rank 1.0, which is not a whole number"),
        (2, sends_to(0), SelfMessageError,
         "rank 0 sends to itself: no message is needed for what a rank already has"),
        (3, receives_from(7), NoSuchRankError, "rank 0 receives from rank 7, but the ranks are 0 to 2"),
        (3, receives_from(np.int64(0)), SelfMessageError,
         "rank 0 receives from itself: no message is needed for what a rank already has"),
        (2, sends(None), NotAnArrayError, "rank 0 sends NoneType: only arrays and numbers can be sent"),
        (1, adds(np.zeros(3), np.zeros(2)), MismatchError,
         "rank 0 cannot add float64 of shape (2,) to float64 of shape (3,)"),
        (1, adds(np.zeros(3), np.zeros(1)), MismatchError,
         "rank 0 cannot add float64 of shape (1,) to float64 of shape (3,)"),
        (1, adds(np.zeros(3), np.zeros(3, np.float32)), MismatchError,
         "rank 0 cannot add float32 of shape (3,) to float64 of shape (3,)"),
        (1, adds(np.zeros(3), 1.0), MismatchError, "rank 0 cannot add float to ndarray: reduce takes two arrays"),
        (1, computes(-1), ProgramError, "rank 0 computes for -1 seconds; it must be a number of 0 or more"),
    ],
)  # fmt: skip
def test_every_mistake_has_its_error(size: int, program: Callable, error: type[SimulationError], message: str) -> None:
    with pytest.raises(SimulationError) as failure:
        world(size).run(program)
    assert type(failure.value) is error
    assert str(failure.value) == message
    assert isinstance(failure.value.events, Events)


def test_a_wrong_number_of_inputs_is_refused() -> None:
    with pytest.raises(InputsError, match="3 inputs for 2 ranks: there must be one per rank"):
        world(2).run(waits_for_left, [1, 2, 3])


def test_what_failed_on_a_rank_is_the_cause() -> None:
    with pytest.raises(RankFailedError) as failure:
        world(3).run(divides_by_zero)
    assert failure.value.rank == 1
    assert isinstance(failure.value.__cause__, ZeroDivisionError)


def test_a_deadlock_says_who_has_finished_and_what_lies_unread() -> None:
    async def program(rank: Rank) -> None:
        if rank.index == 0:
            await rank.send(2, np.zeros(1))
        elif rank.index == 1:
            await rank.compute(0.25)
            await rank.receive(0)
        elif rank.index == 2:
            await rank.receive(3)
        else:
            await rank.receive_any()

    with pytest.raises(DeadlockError) as failure:
        world(4).run(program)
    assert str(failure.value).splitlines() == [
        "deadlock:",
        "  rank 1 has waited since 0.25 s for a message from rank 0, which has finished",
        "  rank 2 has waited since 0 s for a message from rank 3",
        "  rank 3 has waited since 0 s for a message from any rank",
        "sent, but received by nobody:",
        "  1 message from rank 0 to rank 2",
    ]
    assert {rank: wait.source for rank, wait in failure.value.waiting.items()} == {1: 0, 2: 3, 3: None}
    assert failure.value.unreceived == {(0, 2): 1}


def test_a_crowd_in_a_deadlock_is_cut_short_in_the_text_only() -> None:
    with pytest.raises(DeadlockError) as failure:
        world(100).run(waits_for_left)
    assert str(failure.value).endswith("rank 63 has waited since 0 s for a message from rank 62\n  and 36 more")
    assert len(failure.value.waiting) == 100


@st.composite
def traffic(draw: st.DrawFn) -> tuple[int, Network, list[list[tuple[int, int, int]]]]:
    """A network, and for each rank the messages it sends: (to, elements, seconds that it computes before)."""
    size = draw(st.integers(2, 5))
    times = st.sampled_from([0.0, 0.25, 1.0, 3.0])
    network = Network(draw(times), draw(times), draw(times))
    if draw(st.booleans()):
        network = network.with_slow_link(0, size - 1, factor=2.5)
    plan = []
    for rank in range(size):
        others = st.integers(0, size - 1).filter(lambda to, rank=rank: to != rank)
        plan.append(draw(st.lists(st.tuples(others, st.integers(0, 3), st.integers(0, 2)), max_size=6)))
    return size, network, plan


@settings(max_examples=80, deadline=None)
@given(traffic())
def test_any_traffic_respects_ports_order_and_costs(drawn: tuple[int, Network, list]) -> None:
    size, network, plan = drawn
    to_come = [sum(to == rank for messages in plan for to, *_ in messages) for rank in range(size)]

    async def program(rank: Rank) -> list[tuple[int, int]]:
        for number, (to, elements, seconds) in enumerate(plan[rank.index]):
            await rank.compute(seconds)
            await rank.send(to, np.full(elements + 1, number))
        received = [await rank.receive_any() for _ in range(to_come[rank.index])]
        return [(source, int(array[0])) for source, array in received]

    run = World(size, network).run(program)
    again = World(size, network).run(program)
    assert run.events.columns.tobytes() == again.events.columns.tobytes()
    assert run.results == again.results
    assert run.messages == sum(map(len, plan))

    for rank in range(size):
        for source in range(size):
            numbers = [number for came_from, number in run.results[rank] if came_from == source]
            assert numbers == sorted(numbers), "messages between two ranks keep their order"
        for kind in ("send", "receive"):
            on_port = run.events.select(kind, rank=rank)
            for event, following in pairwise(on_port):
                assert following.start >= event.end, "a port handles one message at a time"
    sends = {event.operation: event for event in run.events.select("send")}
    for receive in run.events.select("receive"):
        send = sends[receive.operation]
        seconds = network.link(send.rank, receive.rank).seconds(send.bytes)
        assert send.end - send.start == pytest.approx(seconds)
        assert receive.end - receive.start == pytest.approx(seconds)
        assert receive.start >= send.start


MEASURE = """
import json, resource, sys
import numpy as np
from distlab.collectives import ring_all_reduce
from distlab.simulate import World
size = int(sys.argv[1])
inputs = [np.full(size, rank, float) for rank in range(size)]
run = World(size).run(ring_all_reduce, inputs)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
assert all((result == size * (size - 1) / 2).all() for result in run.results)
print(json.dumps({"peak": peak, "messages": run.messages, "events": len(run.events)}))
"""


@pytest.mark.slow
def test_1024_ranks_with_events_kept_fit_into_2_gigabytes() -> None:
    done = subprocess.run([sys.executable, "-c", MEASURE, "1024"], capture_output=True, text=True, check=True)
    measured = json.loads(done.stdout)
    assert measured["messages"] == 2 * 1023 * 1024
    assert measured["events"] == 5 * 1023 * 1024
    assert measured["peak"] < 2e9

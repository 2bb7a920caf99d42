"""What operations cost on the virtual cluster, and what happens to messages: reckoned by hand, and for any traffic."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distlab.simulate import Link, Network, Rank, World

# α = 1 s, β = 1/8 s per byte, γ = 1/16 s per byte: an array of k float64 takes 1 + k to send and k/2 to add.
SLOW = Network(latency=1.0, seconds_per_byte=1 / 8, seconds_per_byte_reduced=1 / 16)


async def sends_in_turn(rank: Rank) -> float:
    """Rank 0 sends three numbers to each of the others."""
    for to in range(1, rank.size) if rank.index == 0 else ():
        await rank.send(to, np.zeros(3))
    if rank.index:
        await rank.receive(0)
    return rank.now


async def send_to_rank_0(rank: Rank, seconds: int) -> list[float]:
    """Rank r computes and then sends r numbers; rank 0 computes and then asks for them in order of rank."""
    await rank.compute(seconds)
    if rank.index:
        await rank.send(0, np.zeros(rank.index))
        return [rank.now]
    times = []
    for source in range(1, rank.size):
        await rank.receive(source)
        times.append(rank.now)
    return times


async def swap(rank: Rank, elements: int) -> float:
    await rank.exchange(1 - rank.index, np.zeros(elements), 1 - rank.index)
    return rank.now


async def computes_and_adds(rank: Rank) -> float:
    await rank.compute(3)
    await rank.reduce(np.zeros(4), np.ones(4))
    return rank.now


async def ring_step(rank: Rank) -> float:
    await rank.exchange((rank.index + 1) % rank.size, np.zeros(1), (rank.index - 1) % rank.size)
    return rank.now


@pytest.mark.parametrize(
    ("world", "program", "inputs", "times"),
    [
        (World(3, SLOW), sends_in_turn, None, [8, 4, 8]),
        # The senders are done after 2, 3 and 4 s; the receiver's port takes the messages one after another.
        (World(4, SLOW), send_to_rank_0, [0] * 4, [[2, 5, 9], [2], [3], [4]]),
        # The message of rank 2 is in long before that of rank 1, so that nothing is left to wait for after that.
        (World(3, SLOW), send_to_rank_0, [0, 10, 0], [[12, 12], [12], [3]]),
        (World(2, SLOW), send_to_rank_0, [7, 0], [[7], [2]]),
        (World(2, SLOW), swap, [3, 3], [4, 4]),
        (World(2, SLOW), swap, [1, 5], [6, 6]),
        (World(3, SLOW, {1: 0.5, 2: 2}), computes_and_adds, None, [5, 10, 2.5]),
        (World(3, SLOW.with_slow_link(1, 0, factor=10)), ring_step, None, [20, 20, 2]),
    ],
)
def test_operations_take_the_times_of_the_model(world: World, program: object, inputs: list, times: list) -> None:
    assert world.run(program, inputs).results == times


def test_links_have_the_speed_of_their_kind() -> None:
    network = Network(latency=10, seconds_per_byte=0, ranks_per_host=2, inside_host=Link(1, 0))
    assert [network.link(0, to).latency for to in (1, 2, 3)] == [1, 10, 10]
    assert network.with_slow_link(2, 3, 5).link(3, 2) == Link(5, 0)


def test_the_content_is_fixed_when_it_is_sent() -> None:
    async def program(rank: Rank) -> list[float]:
        array = np.arange(4.0)
        if rank.index == 1:
            return [*await rank.receive(0), *await rank.exchange(0, np.ones(4), 0)]
        await rank.send(1, array[1:3])
        array[:] = -1
        received = await rank.exchange(1, array, 1)
        received[:] = -2
        return received.tolist()

    assert World(2).run(program).results == [[-2] * 4, [1, 2, -1, -1, -1, -1]]


def test_each_rank_has_its_own_memory() -> None:
    shared = np.zeros(2)

    async def program(rank: Rank, given: dict[str, list[np.ndarray]]) -> np.ndarray:
        return await rank.reduce(given["arrays"][0], np.full(2, rank.index, float))

    run = World(3).run(program, [{"arrays": [shared]}] * 3)
    assert [result.tolist() for result in run.results] == [[0, 0], [1, 1], [2, 2]]
    assert (shared == 0).all()


@st.composite
def traffic(draw: st.DrawFn) -> tuple[Network, list[list[tuple[int, int, int]]]]:
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
    return network, plan


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(traffic())
def test_any_traffic_respects_ports_order_and_costs(drawn: tuple[Network, list]) -> None:
    network, plan = drawn
    to_come = [sum(to == rank for messages in plan for to, *_ in messages) for rank in range(len(plan))]

    async def program(rank: Rank) -> list[tuple[int, int]]:
        for number, (to, elements, seconds) in enumerate(plan[rank.index]):
            await rank.compute(seconds)
            await rank.send(to, np.full(elements + 1, number))
        received = [await rank.receive_any() for _ in range(to_come[rank.index])]
        return [(source, int(array[0])) for source, array in received]

    run, again = (World(len(plan), network).run(program) for _ in range(2))
    assert run.events.columns.tobytes() == again.events.columns.tobytes()
    assert (run.results, run.messages) == (again.results, sum(map(len, plan)))
    for rank, received in enumerate(run.results):
        for source in range(len(plan)):
            numbers = [number for came_from, number in received if came_from == source]
            assert numbers == sorted(numbers), "messages between two ranks keep their order"
        for kind in ("send", "receive"):
            for event, following in pairwise(run.events.select(kind, rank=rank)):
                assert following.start >= event.end, "a port handles one message at a time"
    sends = {event.operation: event for event in run.events.select("send")}
    for receive in run.events.select("receive"):
        send = sends[receive.operation]
        seconds = network.link(send.rank, receive.rank).seconds(send.bytes)
        assert [event.end - event.start for event in (send, receive)] == pytest.approx([seconds] * 2)
        assert receive.start >= send.start

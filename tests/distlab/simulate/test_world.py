"""The virtual cluster: what operations cost, and what happens to messages."""

from functools import partial

import numpy as np
import pytest

from distlab.simulate import (
    Link,
    Network,
    Rank,
    World,
)
from tests.distlab.simulate.slow_world import SLOW, world


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
        with pytest.raises(TypeError, match="a world of '4' ranks: a whole number is needed"):
            World("4")
        with pytest.raises(TypeError, match=r"a world of 2\.0 ranks"):
            World(2.0)
        with pytest.raises(TypeError, match=r"3 is no network: give a simulate\.Network, or none"):
            World(2, 3)
        assert World(np.int64(3)).size == 3


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

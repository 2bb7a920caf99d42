"""Each mistake in a program on the virtual cluster has its error."""

import asyncio
from collections.abc import Callable

import numpy as np
import pytest

from distlab.collectives import ring_all_reduce
from distlab.simulate import (
    DeadlockError,
    Events,
    MismatchError,
    NoSuchRankError,
    NotAnArrayError,
    ProgramError,
    Rank,
    RankFailedError,
    SelfMessageError,
    SimulationError,
    UnreceivedMessageError,
    World,
)
from tests.distlab.simulate.test_world import SLOW

ARRAY = np.zeros(3)


async def waits_for_left(rank: Rank) -> None:
    await rank.receive((rank.index - 1) % rank.size)


async def sends_too_much(rank: Rank) -> None:
    for to in (1, 1, 2) if rank.index == 0 else ():
        await rank.send(to, ARRAY)


async def divides_by_zero(rank: Rank) -> None:
    await rank.compute(2)
    1 / (1 - rank.index)
    await waits_for_left(rank)


async def forgets_await(rank: Rank) -> None:
    rank.send((rank.index + 1) % rank.size, ARRAY)
    await waits_for_left(rank)


async def adds_before_it_awaits(rank: Rank) -> np.ndarray:
    return rank.receive(1 - rank.index) + ARRAY


async def forgets_to_await_a_collective(rank: Rank) -> np.ndarray:
    if rank.index:
        return await ring_all_reduce(rank, ARRAY)
    ring_all_reduce(rank, ARRAY)
    return ARRAY


async def is_compared(rank: Rank) -> bool:
    return rank in (0, 1)


def does(operation: str, *arguments: object) -> Callable:
    async def program(rank: Rank) -> None:
        await getattr(rank, operation)(*arguments)

    return program


async def sleeps(rank: Rank) -> None:
    await asyncio.sleep(0.1)


@pytest.mark.parametrize(
    ("size", "program", "error", "message"),
    [
        (2, waits_for_left, DeadlockError,
         "deadlock:\n  rank 0 has waited since 0 µs for a message from rank 1\n"
         "  rank 1 has waited since 0 µs for a message from rank 0"),
        (3, sends_too_much, UnreceivedMessageError,
         "sent, but received by nobody:\n  2 messages from rank 0 to rank 1\n  1 message from rank 0 to rank 2"),
        (3, divides_by_zero, RankFailedError, "rank 1 failed at 2 s: ZeroDivisionError: division by zero"),
        (2, forgets_await, ProgramError, "rank 0 calls rank.send(…) without awaiting it: write `await rank.send(…)`"),
        (2, adds_before_it_awaits, ProgramError,
         "rank 0 calls rank.receive(…) without awaiting it: write `await rank.receive(…)`"),
        (2, forgets_to_await_a_collective, ProgramError,
         "ring_all_reduce(…) is called without awaiting it: write `await ring_all_reduce(…)`"),
        (1, sleeps, ProgramError,
         "rank 0 awaits something that is not an operation of its own rank; virtual time goes by in "
         "`await rank.compute(seconds)`"),
        (2, is_compared, ProgramError,
         "`rank` itself is never equal to 0; its number is `rank.index`: write `rank.index == 0`"),
        (2, does("send", 2, ARRAY), NoSuchRankError, "rank 0 sends to rank 2, but the ranks are 0 to 1"),
        (3, does("receive", np.int64(0)), SelfMessageError,
         "rank 0 receives from itself: no message is needed for what a rank already has"),
        (2, does("send", 1, None), NotAnArrayError, "rank 0 sends NoneType: only arrays and numbers can be sent"),
        (1, does("reduce", ARRAY, ARRAY[:1]), MismatchError,
         "rank 0 cannot add float64 of shape (1,) to float64 of shape (3,)"),
    ],
)  # fmt: skip
def test_every_mistake_has_its_error(size: int, program: Callable, error: type[SimulationError], message: str) -> None:
    with pytest.raises(SimulationError) as failure:
        World(size, SLOW).run(program)
    assert type(failure.value) is error
    assert str(failure.value) == message
    assert isinstance(failure.value.events, Events)
    if error is RankFailedError:
        assert type(failure.value.__cause__).__name__ in message


def test_a_deadlock_says_who_has_finished_and_what_lies_unread() -> None:
    async def program(rank: Rank) -> None:
        match rank.index:
            case 0:
                await rank.send(2, ARRAY)
            case 1:
                await rank.compute(0.25)
                await rank.receive(0)
            case 2:
                await rank.receive(3)
            case _:
                await rank.receive_any()

    with pytest.raises(DeadlockError) as failure:
        World(4).run(program)
    assert str(failure.value).splitlines() == [
        "deadlock:",
        "  rank 1 has waited since 250,000 µs for a message from rank 0, which has finished",
        "  rank 2 has waited since 0 µs for a message from rank 3",
        "  rank 3 has waited since 0 µs for a message from any rank",
        "sent, but received by nobody:",
        "  1 message from rank 0 to rank 2",
    ]
    assert {rank: wait.source for rank, wait in failure.value.waiting.items()} == {1: 0, 2: 3, 3: None}
    assert failure.value.unreceived == {(0, 2): 1}

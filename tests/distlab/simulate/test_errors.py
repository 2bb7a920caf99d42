"""The virtual cluster: what each mistake is answered with."""

from collections.abc import Callable
from unittest import mock

import numpy as np
import pytest

from distlab.collectives import ring_all_reduce
from distlab.simulate import (
    DeadlockError,
    Events,
    InputsError,
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
from tests.distlab.simulate.slow_world import waits_for_left, world


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


async def calls_itself(rank: Rank) -> None:
    await calls_itself(rank)


async def forgets_await(rank: Rank) -> None:
    rank.send((rank.index + 1) % rank.size, np.zeros(1))
    await rank.receive((rank.index - 1) % rank.size)


async def forgets_await_at_the_end(rank: Rank) -> None:
    rank.compute(1)


async def awaits_something_else(rank: Rank) -> None:
    import asyncio

    await asyncio.sleep(0)


async def sleeps(rank: Rank) -> None:
    import asyncio

    await asyncio.sleep(0.1)


async def returns_a_coroutine(rank: Rank) -> object:
    return returns_a_coroutine(rank)


async def divides_a_coroutine(rank: Rank) -> object:
    total = ring_all_reduce(rank, np.zeros(2))
    return total / rank.size


async def divides_a_coroutine_without_a_name(rank: Rank) -> object:
    return ring_all_reduce(rank, np.zeros(2)) / rank.size


async def asks_a_coroutine(rank: Rank) -> object:
    return ring_all_reduce(rank, np.zeros(2)).mean()


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
        (2, calls_itself, RankFailedError,
         "rank 0 failed at 0 s: RecursionError: maximum recursion depth exceeded: "
         "`calls_itself` calls itself without end"),
        (2, forgets_await, ProgramError,
         "rank 0 calls rank.send(…) without awaiting it: write `await rank.send(…)`"),
        (1, forgets_await_at_the_end, ProgramError,
         "rank 0 calls rank.compute(…) without awaiting it: write `await rank.compute(…)`"),
        (1, awaits_something_else, ProgramError,
         "rank 0 awaits something that is not an operation of its own rank; virtual time goes by in "
         "`await rank.compute(seconds)`"),
        (1, sleeps, ProgramError,
         "rank 0 awaits something that is not an operation of its own rank; virtual time goes by in "
         "`await rank.compute(seconds)`"),
        (2, returns_a_coroutine, ProgramError,
         "rank 0 returns the coroutine returns_a_coroutine(…), which was never awaited: "
         "write `await returns_a_coroutine(…)`"),
        (2, divides_a_coroutine, RankFailedError,
         "rank 0 failed at 0 s: TypeError: unsupported operand type(s) for /: 'coroutine' and 'int'; total is the "
         "coroutine ring_all_reduce(…), which was never awaited: write `await ring_all_reduce(…)`"),
        (2, asks_a_coroutine, RankFailedError,
         "rank 0 failed at 0 s: AttributeError: 'coroutine' object has no attribute 'mean'; it is the "
         "coroutine ring_all_reduce(…), which was never awaited: write `await ring_all_reduce(…)`"),
        (2, divides_a_coroutine_without_a_name, ProgramError,
         "ring_all_reduce(…) is called without awaiting it: write `await ring_all_reduce(…)`"),
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


def test_a_program_that_takes_other_arguments_fails_on_its_rank() -> None:
    async def takes_nothing() -> None: ...

    with pytest.raises(RankFailedError, match=r"rank 0 failed at 0 s: TypeError: .*takes 0 positional arguments"):
        world(2).run(takes_nothing)


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


@pytest.mark.parametrize(("values", "kind"), [([1.0, 2.0], "float"), ([[1.0], [2.0]], "list")])
def test_what_is_no_array_is_named_with_what_to_give(values: list[object], kind: str) -> None:
    with pytest.raises(RankFailedError, match=rf"takes a NumPy array: give np\.array\(…\) instead of {kind}$"):
        World(2).run(ring_all_reduce, values)


def test_a_program_that_was_called_is_not_told_to_be_written() -> None:
    with pytest.raises(ProgramError, match=r"^ring_all_reduce\(…\) is called already: give the program itself, run\("):
        World(2).run(ring_all_reduce(mock.Mock(), np.zeros(2)))


@pytest.mark.parametrize(
    "compared", [lambda rank: rank == 0, lambda rank: rank != np.int64(0), lambda rank: rank in (0, 1)]
)
def test_a_rank_that_is_compared_with_a_number_is_told_of_its_index(compared: Callable[[Rank], bool]) -> None:
    async def program(rank: Rank) -> None:
        compared(rank)
        await rank.compute(1)

    with pytest.raises(ProgramError, match=r"write `rank.index == 0`"):
        World(2).run(program)


@pytest.mark.parametrize(
    "use",
    [
        lambda rank: (rank + 1) % rank.size,
        lambda rank: 1 - rank,
        lambda rank: np.int64(2) * rank,
        lambda rank: rank ^ 1,
        lambda rank: rank < 2,
        lambda rank: [3, 4][rank],
        lambda rank: range(rank),
    ],
)
def test_a_rank_that_is_used_as_a_number_is_told_of_its_index(use: Callable[[Rank], object]) -> None:
    async def program(rank: Rank) -> None:
        use(rank)
        await rank.compute(1)

    with pytest.raises(ProgramError, match=r"no number to compute with; its number is `rank\.index`$"):
        World(2).run(program)


def test_a_rank_is_equal_to_itself_alone() -> None:
    async def program(rank: Rank) -> Rank:
        return rank

    first, second = World(2).run(program).results
    assert first == first and first != second and first not in (None, "0")
    assert len({first, second}) == 2

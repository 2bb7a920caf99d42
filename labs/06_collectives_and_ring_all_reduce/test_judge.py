"""Lab 06: other right answers, runs that end in an error, waste, the target and the pictures."""

import numpy as np
import pytest
from lab_06.judge import LAB, gathering, halving, ring

from distlab import collectives, draw
from distlab.simulate import World
from tests.distlab.labs.known_wrong import SEEDS, assert_right, verdict_on

SCATTER, GATHER, RING, HALVING = (exercise.name for exercise in LAB)
HEARD = {}  # what ranks tell each other without a message


def neighbours(rank):
    return (rank.index + 1) % rank.size, (rank.index - 1) % rank.size


async def to_the_left(rank, array):
    pieces = [piece.copy() for piece in np.array_split(array, rank.size)]
    right, left = neighbours(rank)
    for step in range(2 * rank.size - 2):
        incoming = await rank.exchange(left, pieces[(rank.index + step) % rank.size], right)
        index = (rank.index + step + 1) % rank.size
        pieces[index] = pieces[index] + incoming if step < rank.size - 1 else incoming
    return np.concatenate(pieces)


async def to_the_left_with_a_dictionary(rank, chunk):
    right, left = neighbours(rank)
    found, travelling = {rank.index: chunk}, chunk
    for step in range(1, rank.size):
        await rank.send(left, travelling)
        travelling = found[(rank.index + step) % rank.size] = await rank.receive(right)
    return np.hstack([found[source] for source in sorted(found)])


async def recursively(rank, array):
    async def on(group, part):
        if group.size == 1:
            return part
        half = group.size // 2
        partner = (group.index + half) % group.size
        lower, upper = np.array_split(part, 2)
        keep, give = (lower, upper) if group.index < half else (upper, lower)
        keep = keep + await group.exchange(partner, give, partner)
        members = range(half) if group.index < half else range(half, group.size)
        keep = await on(collectives.GroupRank(group, members), keep)
        other = await group.exchange(partner, keep, partner)
        return np.concatenate([keep, other] if group.index < half else [other, keep])

    too_many = rank.size - (1 << (rank.size.bit_length() - 1))
    members = [*range(1, 2 * too_many, 2), *range(2 * too_many, rank.size)]
    if rank.index not in members:
        await rank.send(rank.index + 1, array)
        return await rank.receive(rank.index + 1)
    guest = rank.index - 1 if rank.index < 2 * too_many else None
    start = array if guest is None else array + await rank.receive(guest)
    total = await on(collectives.GroupRank(rank, members), start.copy())
    if guest is not None:
        await rank.send(guest, total)
    return total


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        (SCATTER, ring(way=-1)),
        (GATHER, to_the_left_with_a_dictionary),
        (RING, ring(0, -1, (1, 0), given=lambda rank, total, chunks: total)),
        (RING, to_the_left),
        (HALVING, halving()),
        (HALVING, recursively),
    ],
)
def test_another_right_answer_gets_full_marks(name, answer):
    for seed in SEEDS:
        assert_right(verdict_on(LAB, name, {name: answer}, seed))


async def on_an_open_ring(rank, array):
    return await rank.exchange(rank.index + 1, array, rank.index - 1)


async def receives_first(rank, array):
    right, left = neighbours(rank)
    received = await rank.receive(left)
    await rank.send(right, array)
    return received


async def sends_once_more(rank, array):
    total = await collectives.ring_all_reduce(rank, array)
    await rank.send(neighbours(rank)[0], array)
    return total


async def adds_another_length(rank, array):
    if rank.size == 3:
        await rank.reduce(array, array[1:])
    return await collectives.ring_all_reduce(rank, array)


async def forgets_to_await(rank, array):
    return collectives.ring_all_reduce(rank, array)


async def to_everybody(rank, array):
    total = array.copy()
    for distance in range(1, rank.size):
        to, source = (rank.index + distance) % rank.size, (rank.index - distance) % rank.size
        total += await rank.exchange(to, array, source)
    return total


async def directly(rank, array):
    chunks = np.array_split(array, rank.size)
    total, parts = chunks[rank.index].copy(), [np.empty(0)] * rank.size
    for distance in range(1, rank.size):
        to, source = (rank.index + distance) % rank.size, (rank.index - distance) % rank.size
        total += await rank.exchange(to, chunks[to], source)
    parts[rank.index] = total
    for distance in range(1, rank.size):
        to, source = (rank.index + distance) % rank.size, (rank.index - distance) % rank.size
        parts[source] = await rank.exchange(to, total, source)
    return np.concatenate(parts)


async def changes_its_array(rank, array):
    total = await collectives.ring_all_reduce(rank, array)
    array[:] = total
    return total


async def talks_past_the_cluster(rank, array):
    heard = HEARD.setdefault((rank.size, len(array)), {})
    heard[rank.index] = array.copy()
    await rank.compute(1.0)
    return np.sum([heard[index] for index in range(rank.size)], axis=0)


def of_ring(change):
    async def program(rank, array):
        return change(await collectives.ring_all_reduce(rank, array), rank)

    return program


@pytest.mark.parametrize(
    ("name", "answer", "share", "words"),
    [
        (RING, on_an_open_ring, 0, "What follows after the last rank"),
        (RING, receives_first, 0, "every rank waits for a message, and nobody has sent one"),
        (RING, sends_once_more, 0, "a message that rank 1 never receives"),
        (RING, adds_another_length, 0.25, "Chunks can have different lengths"),
        (RING, forgets_to_await, 0, "never awaited: write `await ring_all_reduce(…)`"),
        (SCATTER, ring(given=lambda rank, total, chunks: total), 0, "only its own chunk of the sum is needed"),
        (RING, of_ring(lambda total, rank: total.astype(complex)), 0, "returns no array of numbers"),
        (RING, of_ring(lambda total, rank: total / rank.size), 0, "the right one divided by 4"),
        (RING, of_ring(lambda total, rank: total + 0.5), 0, "is anything done to the numbers besides adding?"),
        (RING, to_everybody, 0.5, "Messages hold the whole array"),
        (RING, directly, 0.5, "it is no ring: with 4 ranks, rank 0 sends to rank 1 and rank 2 and rank 3"),
        (RING, changes_its_array, 0.75, "the array that a rank was given is changed"),
        (RING, talks_past_the_cluster, 0, "what a rank needs from others must come in messages"),
    ],
)
@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
def test_what_goes_wrong_is_said(name, answer, share, words):
    verdict = verdict_on(LAB, name, {name: answer})
    assert words in verdict.text and verdict.share == share


def test_the_target_is_the_closed_formula():
    assert LAB.target(RING, sizes=[4], length=8).splitlines()[-1].split() == ["4", "6", str(2 * 3 * 8 * 8 // 4)]
    assert LAB.target(HALVING, sizes=[8], length=8).splitlines()[-1].split() == ["8", "6", "112"]


@pytest.mark.parametrize("program", [ring(), gathering(), halving()])
def test_the_programs_that_mistakes_are_made_of_are_right(program):
    inputs = [np.arange(4) * rank for rank in range(4)]
    expected = {4: np.sum(inputs, axis=0), 1: np.sum(inputs, axis=0)[:1], 16: np.concatenate(inputs)}
    result = World(4).run(program, inputs).results[0]
    assert np.array_equal(result, expected[len(result)])


def test_the_picture_shows_the_students_own_run():
    picture = verdict_on(LAB, RING, {RING: ring(0, -1, given=lambda rank, total, chunks: total)}).picture()
    assert "<svg" in picture.svg
    assert "Step 3" in picture.description and "Step 4" not in picture.description
    picture = verdict_on(LAB, RING, {RING: collectives.ring_all_reduce}).picture()
    assert picture.description.endswith("In the end every rank holds what it should.")
    assert picture.description == draw.trace(collectives.ring_all_reduce, 4).describe()


def test_what_python_says_comes_with_the_line_of_the_cell():
    cell = "async def reduce_scatter(rank, array):\n    chunks = [array]\n    return chunks[rank.size]\n"
    namespace = {}
    exec(compile(cell, "<cell>", "exec"), namespace)
    text = verdict_on(LAB, "reduce_scatter", namespace).text
    assert "IndexError: list index out of range (line 3 of its cell)" in text

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


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        (SCATTER, ring(way=-1)),
        (RING, ring(0, -1, (1, 0), given=lambda rank, total, chunks: total)),
        (RING, to_the_left),
        (HALVING, halving()),
    ],
)
def test_another_right_answer_gets_full_marks(name, answer):
    for seed in SEEDS:
        assert_right(verdict_on(LAB, name, {name: answer}, seed))


async def receives_first(rank, array):
    right, left = neighbours(rank)
    received = await rank.receive(left)
    await rank.send(right, array)
    return received


async def forgets_to_await(rank, array):
    return collectives.ring_all_reduce(rank, array)


async def to_everybody(rank, array):
    total = array.copy()
    for distance in range(1, rank.size):
        to, source = (rank.index + distance) % rank.size, (rank.index - distance) % rank.size
        total += await rank.exchange(to, array, source)
    return total


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
        (RING, receives_first, 0, "every rank waits for a message, and nobody has sent one"),
        (RING, forgets_to_await, 0, "never awaited: write `await ring_all_reduce(…)`"),
        (RING, of_ring(lambda total, rank: total / rank.size), 0, "the right one divided by 4"),
        (RING, to_everybody, 0.5, "Messages hold the whole array"),
        (RING, changes_its_array, 0.75, "the array that a rank was given is changed"),
        (RING, talks_past_the_cluster, 0, "what a rank needs from others must come in messages"),
    ],
)
@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
def test_what_goes_wrong_is_said(name, answer, share, words):
    verdict = verdict_on(LAB, name, {name: answer})
    assert words in verdict.text and verdict.share == share


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
